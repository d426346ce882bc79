//! Converts bucket properties between `RpbBucketProps` and their JSON form (docs/riak/pb-api.md §4,
//! docs/riak/http-api.md §4).
//!
//! A property without a field in the message is left out. An absent field changes nothing.

use bytes::Bytes;
use ombak_proto::messages::rpb_bucket_props::{RpbReplMode, RpbSyncOnWrite};
use ombak_proto::messages::{RpbBucketProps, RpbCommitHook, RpbModFun};
use ombak_types::{PropMap, Quorum};
use serde_json::{Value, json};

/// The message for these properties. Its fields 30 to 32 exist only in newer clients, and a Riak
/// 3.2 node never sends them.
pub(super) fn to_message(map: &PropMap) -> RpbBucketProps {
    let flag = |name: &str| map.get(name).and_then(Value::as_bool);
    let number = |name: &str| map.get(name).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let text = |name: &str| map.get(name).and_then(Value::as_str).map(|s| Bytes::copy_from_slice(s.as_bytes()));
    let quorum = |name: &str| map.get(name).and_then(quorum_number);
    let mod_fun = |name: &str| map.get(name).and_then(mod_fun_message);
    let hooks =
        |name: &str| map.get(name).and_then(Value::as_array).map(|list| list.iter().map(hook_message).collect());
    let (precommit, postcommit) = (hooks("precommit"), hooks("postcommit"));
    RpbBucketProps {
        n_val: number("n_val"),
        allow_mult: flag("allow_mult"),
        last_write_wins: flag("last_write_wins"),
        has_precommit: precommit.is_some().then_some(true),
        precommit: precommit.unwrap_or_default(),
        has_postcommit: postcommit.is_some().then_some(true),
        postcommit: postcommit.unwrap_or_default(),
        chash_keyfun: mod_fun("chash_keyfun"),
        linkfun: mod_fun("linkfun"),
        old_vclock: number("old_vclock"),
        young_vclock: number("young_vclock"),
        big_vclock: number("big_vclock"),
        small_vclock: number("small_vclock"),
        pr: quorum("pr"),
        r: quorum("r"),
        w: quorum("w"),
        pw: quorum("pw"),
        dw: quorum("dw"),
        rw: quorum("rw"),
        basic_quorum: flag("basic_quorum"),
        notfound_ok: flag("notfound_ok"),
        backend: text("backend"),
        search: flag("search"),
        repl: map.get("repl").and_then(repl_mode).map(i32::from),
        search_index: text("search_index"),
        datatype: text("datatype"),
        consistent: flag("consistent"),
        write_once: flag("write_once"),
        hll_precision: number("hll_precision"),
        node_confirms: None,
        sync_on_write: None,
        aae_tree_exclude: None,
    }
}

/// The changes that a message asks for.
pub(super) fn from_message(props: &RpbBucketProps) -> PropMap {
    let mut changes = PropMap::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            changes.insert(name.to_owned(), value);
        }
    };
    let text = |bytes: &Option<Bytes>| bytes.as_ref().map(|b| Value::from(String::from_utf8_lossy(b)));
    let quorum = |n: Option<u32>| n.map(|n| quorum_json(Quorum::from_wire(n)));
    set("n_val", props.n_val.map(Value::from));
    set("allow_mult", props.allow_mult.map(Value::from));
    set("last_write_wins", props.last_write_wins.map(Value::from));
    // Hooks are changed only if the message says that it has some. An empty list removes them
    // (docs/riak/pb-api.md §4).
    set("precommit", (props.has_precommit == Some(true)).then(|| hooks_json(&props.precommit)));
    set("postcommit", (props.has_postcommit == Some(true)).then(|| hooks_json(&props.postcommit)));
    set("chash_keyfun", props.chash_keyfun.as_ref().map(mod_fun_json));
    set("linkfun", props.linkfun.as_ref().map(mod_fun_json));
    set("old_vclock", props.old_vclock.map(Value::from));
    set("young_vclock", props.young_vclock.map(Value::from));
    set("big_vclock", props.big_vclock.map(Value::from));
    set("small_vclock", props.small_vclock.map(Value::from));
    set("pr", quorum(props.pr));
    set("r", quorum(props.r));
    set("w", quorum(props.w));
    set("pw", quorum(props.pw));
    set("dw", quorum(props.dw));
    set("rw", quorum(props.rw));
    set("basic_quorum", props.basic_quorum.map(Value::from));
    set("notfound_ok", props.notfound_ok.map(Value::from));
    set("backend", text(&props.backend));
    set("search", props.search.map(Value::from));
    set("repl", props.repl.and_then(repl_json));
    set("search_index", text(&props.search_index));
    set("datatype", text(&props.datatype));
    set("consistent", props.consistent.map(Value::from));
    set("write_once", props.write_once.map(Value::from));
    set("hll_precision", props.hll_precision.map(Value::from));
    set("node_confirms", quorum(props.node_confirms));
    set("sync_on_write", props.sync_on_write.and_then(sync_json));
    set("aae_tree_exclude", props.aae_tree_exclude.map(Value::from));
    changes
}

fn quorum_number(value: &Value) -> Option<u32> {
    match value {
        Value::String(word) => Quorum::from_word(word).map(Quorum::to_wire),
        other => other.as_u64().and_then(|n| u32::try_from(n).ok()),
    }
}

fn quorum_json(quorum: Quorum) -> Value {
    match quorum {
        Quorum::Count(n) => Value::from(n),
        word => Value::from(word.to_string()),
    }
}

fn member(value: &Value, name: &str) -> Option<Bytes> {
    value.get(name).and_then(Value::as_str).map(|s| Bytes::copy_from_slice(s.as_bytes()))
}

fn mod_fun_message(value: &Value) -> Option<RpbModFun> {
    Some(RpbModFun { module: member(value, "mod")?, function: member(value, "fun")? })
}

fn mod_fun_json(mod_fun: &RpbModFun) -> Value {
    json!({"mod": String::from_utf8_lossy(&mod_fun.module), "fun": String::from_utf8_lossy(&mod_fun.function)})
}

fn hook_message(value: &Value) -> RpbCommitHook {
    RpbCommitHook { modfun: mod_fun_message(value), name: member(value, "name") }
}

fn hooks_json(hooks: &[RpbCommitHook]) -> Value {
    let hook = |hook: &RpbCommitHook| match &hook.modfun {
        Some(mod_fun) => mod_fun_json(mod_fun),
        None => json!({"name": String::from_utf8_lossy(hook.name.as_deref().unwrap_or_default())}),
    };
    hooks.iter().map(hook).collect()
}

fn repl_mode(value: &Value) -> Option<RpbReplMode> {
    Some(match value {
        Value::Bool(false) => RpbReplMode::False,
        Value::Bool(true) => RpbReplMode::True,
        Value::String(word) => match word.as_str() {
            "realtime" => RpbReplMode::Realtime,
            "fullsync" => RpbReplMode::Fullsync,
            "both" | "true" => RpbReplMode::True,
            "false" => RpbReplMode::False,
            _ => return None,
        },
        _ => return None,
    })
}

fn repl_json(mode: i32) -> Option<Value> {
    Some(match RpbReplMode::try_from(mode).ok()? {
        RpbReplMode::False => Value::from(false),
        RpbReplMode::Realtime => Value::from("realtime"),
        RpbReplMode::Fullsync => Value::from("fullsync"),
        RpbReplMode::True => Value::from(true),
    })
}

fn sync_json(sync: i32) -> Option<Value> {
    Some(Value::from(match RpbSyncOnWrite::try_from(sync).ok()? {
        RpbSyncOnWrite::Backend => "backend",
        RpbSyncOnWrite::One => "one",
        RpbSyncOnWrite::All => "all",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    fn map(value: Value) -> PropMap {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    fn riaks_defaults() -> PropMap {
        map(json!({
            "allow_mult": false, "basic_quorum": false, "big_vclock": 50,
            "chash_keyfun": {"mod": "riak_core_util", "fun": "chash_std_keyfun"}, "dvv_enabled": false,
            "dw": "quorum", "last_write_wins": false,
            "linkfun": {"mod": "riak_kv_wm_link_walker", "fun": "mapreduce_linkfun"}, "n_val": 3, "node_confirms": 0,
            "notfound_ok": true, "old_vclock": 86400, "postcommit": [], "pr": 0, "precommit": [], "pw": 0,
            "r": "quorum", "repl": true, "rw": "quorum", "small_vclock": 50, "sync_on_write": "backend",
            "w": "quorum", "write_once": false, "young_vclock": 20,
        }))
    }

    #[test]
    fn the_defaults_have_the_fields_that_riak_sends() {
        // According to docs/riak/pb-api.md §18 these are the fields 1–3, 5, 7–21, 24 and 28.
        let bytes = to_message(&riaks_defaults()).encode_to_vec();
        let mut fields = ombak_proto::wire::Fields::new(&bytes);
        let mut numbers = Vec::new();
        while let Some((number, _)) = fields.next().unwrap() {
            numbers.push(number);
        }
        let expected: Vec<u32> = [1, 2, 3, 5].into_iter().chain(7..=21).chain([24, 28]).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn what_a_message_can_say_survives_both_ways() {
        let all = RpbBucketProps {
            precommit: vec![RpbCommitHook {
                modfun: Some(RpbModFun { module: "m".into(), function: "f".into() }),
                name: None,
            }],
            postcommit: vec![RpbCommitHook { modfun: None, name: Some("Foo.js".into()) }],
            pr: Some(Quorum::One.to_wire()),
            pw: Some(2),
            repl: Some(RpbReplMode::Fullsync.into()),
            datatype: Some("set".into()),
            hll_precision: Some(12),
            backend: Some("b1".into()),
            consistent: Some(true),
            ..to_message(&riaks_defaults())
        };
        assert_eq!(to_message(&from_message(&all)), all);
    }

    #[test]
    fn what_a_message_does_not_say_changes_nothing() {
        let only = RpbBucketProps { n_val: Some(2), allow_mult: Some(true), ..RpbBucketProps::default() };
        assert_eq!(Value::Object(from_message(&only)), json!({"n_val": 2, "allow_mult": true}));
        let cleared = RpbBucketProps { has_precommit: Some(true), ..RpbBucketProps::default() };
        assert_eq!(Value::Object(from_message(&cleared)), json!({"precommit": []}));
        let ignored = RpbBucketProps { precommit: vec![RpbCommitHook::default()], ..RpbBucketProps::default() };
        assert!(from_message(&ignored).is_empty());
    }

    #[test]
    fn the_newest_fields_can_be_set() {
        let newest = RpbBucketProps {
            node_confirms: Some(2),
            sync_on_write: Some(RpbSyncOnWrite::All.into()),
            aae_tree_exclude: Some(true),
            ..RpbBucketProps::default()
        };
        let expected = json!({"node_confirms": 2, "sync_on_write": "all", "aae_tree_exclude": true});
        assert_eq!(Value::Object(from_message(&newest)), expected);
    }
}
