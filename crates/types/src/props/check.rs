//! Checks changes of properties and brings them into their stored form (docs/riak/semantics.md
//! §2.3).
//!
//! There are two steps: first every value on its own ([`normalise`]), then the combination of the
//! values with each other and with the existing properties.

use super::errors::{PropErrors, Reason};
use super::{DataType, PropMap, SyncOnWrite, hook, quorum_value};
use crate::quorum::Quorum;
use crate::suggest::nearest;
use serde_json::Value;

/// The maximum `n_val`: the size of the largest ring. More copies than partitions cannot be placed.
const N_VAL_MAX: u64 = 1024;

/// The maximum time to live, in seconds. It is longer than anybody needs, and short enough that the
/// time of expiry fits in 32 bits for decades to come.
pub(crate) const TTL_SECS_MAX: u32 = 1_000_000_000;

/// Parses a time to live in seconds from decimal digits; 0 means no expiry. The error names the
/// allowed values.
pub fn ttl_secs(text: &str) -> Result<u32, String> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let secs = if is_number { text.parse().ok() } else { None };
    secs.filter(|&secs| secs <= TTL_SECS_MAX)
        .ok_or_else(|| format!("must be a whole number of seconds from 1 to {TTL_SECS_MAX}, or 0 for no end"))
}

/// The owner of the changed properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropScope {
    /// A new bucket type, or a type that was created and not activated yet. The current properties
    /// are the defaults.
    CreateType,
    /// An existing bucket type. A type that is not active yet may change like a new one.
    UpdateType {
        /// Whether it was activated.
        active: bool,
    },
    /// One bucket. The current properties are its effective properties: those of its type and its
    /// own.
    Bucket,
}

/// The kind of value that a property takes.
#[derive(Clone, Copy)]
enum Kind {
    /// Only answers carry the property. A change ignores it, so that an answer can be edited and
    /// sent back.
    AnswerOnly,
    Bool,
    Count,
    NVal,
    Seconds,
    TimeToLive,
    Quorum,
    QuorumOrZero,
    SyncOnWrite,
    Hooks,
    KeyFun,
    LinkFun,
    Name,
    Repl,
    DataType,
    HllPrecision,
    /// Stored unchanged: the property belongs to a feature that Riak itself dropped.
    Legacy,
}

/// All known properties.
const KNOWN: &[(&str, Kind)] = &[
    ("n_val", Kind::NVal),
    ("allow_mult", Kind::Bool),
    ("last_write_wins", Kind::Bool),
    ("dvv_enabled", Kind::Bool),
    ("r", Kind::Quorum),
    ("w", Kind::Quorum),
    ("rw", Kind::Quorum),
    ("dw", Kind::QuorumOrZero),
    ("pr", Kind::QuorumOrZero),
    ("pw", Kind::QuorumOrZero),
    ("node_confirms", Kind::QuorumOrZero),
    ("notfound_ok", Kind::Bool),
    ("basic_quorum", Kind::Bool),
    ("sync_on_write", Kind::SyncOnWrite),
    ("precommit", Kind::Hooks),
    ("postcommit", Kind::Hooks),
    ("chash_keyfun", Kind::KeyFun),
    ("linkfun", Kind::LinkFun),
    ("old_vclock", Kind::Count),
    ("young_vclock", Kind::Seconds),
    ("big_vclock", Kind::Count),
    ("small_vclock", Kind::Count),
    ("backend", Kind::Name),
    ("repl", Kind::Repl),
    ("datatype", Kind::DataType),
    ("hll_precision", Kind::HllPrecision),
    ("consistent", Kind::Bool),
    ("write_once", Kind::Bool),
    ("aae_tree_exclude", Kind::Bool),
    ("ttl", Kind::TimeToLive),
    ("stat_tracked", Kind::Bool),
    ("search", Kind::Bool),
    ("search_index", Kind::Name),
    ("search_extractor", Kind::Legacy),
    ("rs_extractfun", Kind::Legacy),
    ("name", Kind::AnswerOnly),
    ("active", Kind::AnswerOnly),
    ("claimant", Kind::AnswerOnly),
];

/// Properties that are fixed when a type is created.
const IMMUTABLE: [&str; 3] = ["datatype", "consistent", "write_once"];

/// Checks `changes` against the effective properties `current` and returns them in their stored
/// form. Words that stand for booleans or numbers are converted. Properties that only answers carry
/// (`name`, `active`, `claimant`) are removed. An `hll` type gets its precision.
///
/// If one change is wrong, none may be applied. The error lists all wrong changes.
pub fn check(scope: PropScope, current: &PropMap, changes: &PropMap) -> Result<PropMap, PropErrors> {
    let mut errors = PropErrors::default();
    let mut kept = PropMap::new();
    for (name, value) in changes {
        match normalise_named(name, value) {
            Ok(None) => {}
            Ok(Some(value)) => {
                kept.insert(name.clone(), value);
            }
            Err(reason) => errors.push(name, reason),
        }
    }
    let new_type = matches!(scope, PropScope::CreateType | PropScope::UpdateType { active: false });
    let mut merged = Merged { current, kept, errors };
    if new_type {
        merged.check_new_type();
    } else {
        merged.check_immutable();
        merged.check_consistent_n_val();
    }
    if scope == PropScope::Bucket {
        // These properties belong to the type, so a bucket must not store a copy.
        IMMUTABLE.iter().for_each(|name| drop(merged.kept.shift_remove(*name)));
    }
    merged.check_allow_mult();
    merged.check_hll_precision(new_type);
    merged.check_last_write_wins();
    if merged.errors.is_empty() { Ok(merged.kept) } else { Err(merged.errors) }
}

fn normalise_named(name: &str, value: &Value) -> Result<Option<Value>, Reason> {
    match KNOWN.iter().find(|(known, _)| *known == name) {
        Some((_, kind)) => normalise(*kind, value),
        None => {
            let known = KNOWN.iter().map(|(known, _)| *known);
            Err(Reason::Text(match nearest(name, known) {
                Some(meant) => format!("unknown property, did you mean {meant}?"),
                None => "unknown property".to_owned(),
            }))
        }
    }
}

/// Normalises one value. Returns `None` when there is nothing to store.
fn normalise(kind: Kind, value: &Value) -> Result<Option<Value>, Reason> {
    let kept = match kind {
        Kind::AnswerOnly => return Ok(None),
        Kind::Bool => Value::Bool(boolean(value).ok_or(Reason::Atom("not_boolean"))?),
        Kind::Count => Value::from(count(value).filter(|&n| n > 0).ok_or(Reason::Atom("not_integer"))?),
        Kind::NVal => {
            let n = count(value).filter(|&n| n > 0).ok_or(Reason::Atom("not_integer"))?;
            if u64::from(n) > N_VAL_MAX {
                return Err(Reason::Text(format!("must be at most {N_VAL_MAX}")));
            }
            Value::from(n)
        }
        Kind::Seconds => Value::from(count_or_digits(value).ok_or(Reason::Atom("not_integer"))?),
        Kind::TimeToLive => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Value::from(ttl_secs(&text).map_err(Reason::Text)?)
        }
        Kind::Quorum => quorum(value, 1)?,
        Kind::QuorumOrZero => quorum(value, 0)?,
        Kind::SyncOnWrite => {
            let known = value.as_str().and_then(SyncOnWrite::from_name);
            Value::from(known.ok_or(Reason::Atom("not_valid_sync_param"))?.name())
        }
        Kind::Hooks => hook_list(value)?,
        Kind::KeyFun => key_fun(value)?,
        Kind::LinkFun => link_fun(value)?,
        Kind::Name => match value.as_str() {
            Some(name) if !name.is_empty() => Value::from(name),
            _ => return Err(Reason::Text("must be a string".into())),
        },
        Kind::Repl => repl(value)?,
        Kind::DataType => data_type(value)?,
        Kind::HllPrecision => hll_precision(value)?,
        Kind::Legacy => value.clone(),
    };
    Ok(Some(kept))
}

/// Riak accepts words in any letter case, and treats integers above zero as true.
fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(b) => Some(*b),
        Value::String(word) if word.eq_ignore_ascii_case("true") => Some(true),
        Value::String(word) if word.eq_ignore_ascii_case("false") => Some(false),
        Value::Number(n) if n.is_u64() || n.is_i64() => Some(n.as_u64().is_some_and(|n| n > 0)),
        _ => None,
    }
}

fn count(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|n| u32::try_from(n).ok())
}

fn count_or_digits(value: &Value) -> Option<u32> {
    count(value).or_else(|| value.as_str()?.parse().ok())
}

fn quorum(value: &Value, least: u32) -> Result<Value, Reason> {
    // On the wire the largest numbers stand for words, so such a count would be read back as
    // another quorum.
    let valid = match quorum_value(value) {
        Some(Quorum::Count(n)) => n >= least && Quorum::from_wire(n) == Quorum::Count(n),
        Some(Quorum::Default) | None => false,
        Some(_) => true,
    };
    if valid { Ok(value.clone()) } else { Err(Reason::Atom("not_valid_quorum")) }
}

fn hook_list(value: &Value) -> Result<Value, Reason> {
    let all_known = value.as_array().is_some_and(|hooks| hooks.iter().all(|h| hook(h).is_some()));
    if all_known {
        Ok(value.clone())
    } else {
        Err(Reason::Text(r#"must be a list of hooks, each {"mod":MODULE,"fun":FUNCTION} or {"name":NAME}"#.into()))
    }
}

/// A hash function that Ombak cannot run would place keys where no request finds them. Only Riak's
/// two functions are accepted.
fn key_fun(value: &Value) -> Result<Value, Reason> {
    let part = |name: &str| value.get(name).and_then(Value::as_str);
    match (part("mod"), part("fun")) {
        (Some("riak_core_util"), Some("chash_std_keyfun" | "chash_bucketonly_keyfun")) => Ok(value.clone()),
        _ => Err(Reason::Text(
            r#"must be {"mod":"riak_core_util","fun":F} with chash_std_keyfun or chash_bucketonly_keyfun as F"#.into(),
        )),
    }
}

fn link_fun(value: &Value) -> Result<Value, Reason> {
    let is_text = |name: &str| value.get(name).is_some_and(Value::is_string);
    let jsanon_object = value
        .get("jsanon")
        .is_some_and(|anon| ["bucket", "key"].iter().all(|part| anon.get(part).is_some_and(Value::is_string)));
    let known = (is_text("mod") && is_text("fun"))
        || is_text("jsfun")
        || is_text("jsanon")
        || jsanon_object
        || value.as_str() == Some("qfun");
    if known {
        Ok(value.clone())
    } else {
        Err(Reason::Text(r#"must be {"mod":MODULE,"fun":FUNCTION}, {"jsfun":NAME} or {"jsanon":SOURCE}"#.into()))
    }
}

fn repl(value: &Value) -> Result<Value, Reason> {
    match value.as_str() {
        Some(word @ ("realtime" | "fullsync" | "both")) => Ok(Value::from(word)),
        _ => match boolean(value) {
            Some(b) => Ok(Value::Bool(b)),
            None => Err(Reason::Text(r#"must be true, false, "realtime", "fullsync" or "both""#.into())),
        },
    }
}

fn data_type(value: &Value) -> Result<Value, Reason> {
    match value.as_str().and_then(DataType::from_name) {
        Some(known) => Ok(Value::from(known.name())),
        None => {
            let given = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Err(Reason::Charlist(format!("{given} not supported for bucket datatype property")))
        }
    }
}

fn hll_precision(value: &Value) -> Result<Value, Reason> {
    match count_or_digits(value) {
        Some(bits @ 4..=16) => Ok(Value::from(bits)),
        _ => Err(bad_precision(value)),
    }
}

fn bad_precision(value: &Value) -> Reason {
    Reason::Charlist(format!("{value} is no precision: it must be an integer from 4 to 16 and may only be reduced"))
}

/// The `hll_precision` of an `hll` type that sets none.
const HLL_PRECISION_DEFAULT: u32 = 14;

/// The changes together with the existing properties.
struct Merged<'a> {
    current: &'a PropMap,
    kept: PropMap,
    errors: PropErrors,
}

impl Merged<'_> {
    fn refuse(&mut self, name: &str, reason: &str) {
        self.kept.shift_remove(name);
        self.errors.push(name, Reason::Charlist(reason.to_owned()));
    }

    /// The value that a property would have after the changes.
    fn effective(&self, name: &str) -> Option<&Value> {
        self.kept.get(name).or_else(|| self.current.get(name))
    }

    fn is_true(&self, name: &str) -> bool {
        self.effective(name) == Some(&Value::Bool(true))
    }

    fn check_new_type(&mut self) {
        if !self.is_true("write_once") {
            return;
        }
        if self.effective("datatype").is_some() {
            self.refuse("datatype", "Write once buckets must not have datatype defined");
        }
        if self.is_true("consistent") {
            self.refuse("consistent", "Write once buckets must not be consistent=true");
        }
    }

    fn check_immutable(&mut self) {
        let datatype = self.current.get("datatype");
        if self.kept.get("datatype").is_some_and(|new| Some(new) != datatype) {
            let reason = match datatype {
                None => "`datatype` must not be defined.",
                Some(_) => "Cannot update datatype on existing bucket",
            };
            self.refuse("datatype", reason);
        }
        for (name, reason) in
            [("consistent", "cannot update consistent property"), ("write_once", "cannot update write_once property")]
        {
            let now = self.current.get(name).and_then(Value::as_bool).unwrap_or(false);
            if self.kept.get(name).is_some_and(|new| *new != Value::Bool(now)) {
                self.refuse(name, reason);
            }
        }
    }

    fn check_consistent_n_val(&mut self) {
        let consistent = self.current.get("consistent") == Some(&Value::Bool(true));
        if consistent && self.kept.get("n_val").is_some_and(|n| Some(n) != self.current.get("n_val")) {
            self.refuse("n_val", "n_val cannot be modified for existing consistent type");
        }
    }

    fn check_allow_mult(&mut self) {
        if self.effective("datatype").is_some() && !self.is_true("allow_mult") && !self.errors.names("allow_mult") {
            self.refuse("allow_mult", "Data Type buckets must be allow_mult=true");
        }
    }

    fn check_hll_precision(&mut self, new_type: bool) {
        if self.effective("datatype").and_then(Value::as_str) != Some(DataType::Hll.name()) {
            return;
        }
        let now = self.current.get("hll_precision").and_then(Value::as_u64);
        match (self.kept.get("hll_precision").cloned(), now) {
            (None, None) if !self.errors.names("hll_precision") => {
                self.kept.insert("hll_precision".into(), Value::from(HLL_PRECISION_DEFAULT));
            }
            (Some(new), Some(now)) if !new_type && new.as_u64().is_some_and(|new| new > now) => {
                self.kept.shift_remove("hll_precision");
                self.errors.push("hll_precision", bad_precision(&new));
            }
            _ => {}
        }
    }

    fn check_last_write_wins(&mut self) {
        let touched = self.kept.contains_key("last_write_wins") || self.kept.contains_key("dvv_enabled");
        if touched && self.is_true("last_write_wins") && self.is_true("dvv_enabled") {
            self.refuse("dvv_enabled", "If last_write_wins is true, dvv_enabled must be false");
        }
    }
}
