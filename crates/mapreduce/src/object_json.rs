//! The object as JavaScript functions see it:
//! `{"bucket_type","bucket","key","vclock","values":[{"metadata":{...},"data":"..."}]}`.
//!
//! The metadata has Riak's names. `Links`, `index` and `X-Riak-Meta` are always there, because
//! functions look into them without asking. A value that is not UTF-8 has no JSON form. A map
//! function gets `null` in its place ([`object_to_readable_json`]). A pre-commit hook would store
//! what stands in its place, so it does not get the object ([`object_to_json`]).

mod read;

pub use read::{BadObject, object_from_json};

use crate::Input;
use crate::term::{NotJson, to_json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ombak_types::etf::{Limits, Term, decode_with};
use ombak_types::object::{IndexTerm, SiblingMeta, VAL_ENCODING_TERM};
use ombak_types::stored_object::encode_clock;
use ombak_types::{Object, Sibling};
use std::time::{Duration, UNIX_EPOCH};

/// The object as JSON text.
pub fn object_to_json(input: &Input, object: &Object) -> Result<String, NotJson> {
    to_json(&object_term(input, object)?)
}

/// The object as JSON text for a function that gives no object back. A value that is not UTF-8 is
/// `null`. In all other texts, such as names and user metadata, U+FFFD stands for bytes that are
/// not UTF-8.
pub fn object_to_readable_json(input: &Input, object: &Object) -> Result<String, NotJson> {
    match object_to_json(input, object) {
        Err(NotJson::BadUtf8) => to_json(&readable(&object_term_with(input, object, readable_value)?)),
        other => other,
    }
}

/// The value of a sibling, or `null` if it is not UTF-8.
fn readable_value(sibling: &Sibling) -> Result<Term, NotJson> {
    match value_term(sibling)? {
        Term::Binary(bytes) if str::from_utf8(&bytes).is_err() => Ok(Term::atom("null")),
        value => Ok(value),
    }
}

/// The same term with U+FFFD in place of bytes that are not UTF-8.
fn readable(term: &Term) -> Term {
    let all = |items: &[Term]| items.iter().map(readable).collect();
    match term {
        Term::Binary(bytes) => Term::binary(String::from_utf8_lossy(bytes).as_bytes()),
        Term::List(items) => Term::List(all(items)),
        Term::Tuple(items) => Term::Tuple(all(items)),
        other => other.clone(),
    }
}

/// What a JavaScript function gives for a key without an object. Riak does not call the function.
pub fn not_found_term(input: &Input) -> Term {
    let mut members = vec![
        member("bucket", Term::Binary(input.bucket.name.clone())),
        member("key", Term::Binary(input.key.clone())),
        member("keydata", input.key_data_term()),
    ];
    if !input.bucket.is_default_type() {
        members.insert(0, member("bucket_type", Term::Binary(input.bucket.bucket_type.clone())));
    }
    object_of(vec![member("not_found", object_of(members))])
}

/// The object as the term of its JSON.
pub(crate) fn object_term(input: &Input, object: &Object) -> Result<Term, NotJson> {
    object_term_with(input, object, value_term)
}

fn object_term_with(
    input: &Input,
    object: &Object,
    data_of: fn(&Sibling) -> Result<Term, NotJson>,
) -> Result<Term, NotJson> {
    let values = object.siblings.iter().map(|sibling| {
        let data = data_of(sibling)?;
        Ok(object_of(vec![member("metadata", metadata_term(&sibling.meta)), member("data", data)]))
    });
    Ok(object_of(vec![
        member("bucket_type", Term::Binary(input.bucket.bucket_type.clone())),
        member("bucket", Term::Binary(input.bucket.name.clone())),
        member("key", Term::Binary(input.key.clone())),
        member("vclock", Term::binary(STANDARD.encode(encode_clock(&object.clock)).as_bytes())),
        member("values", Term::from_list(values.collect::<Result<_, NotJson>>()?)),
    ]))
}

/// The value of a sibling: its bytes, or the Erlang term that an Erlang program stored.
pub(crate) fn value_term(sibling: &Sibling) -> Result<Term, NotJson> {
    if sibling.meta.val_encoding != VAL_ENCODING_TERM {
        return Ok(Term::Binary(sibling.value.clone()));
    }
    // A term can take forty times its bytes.
    let limits = Limits { terms_max: 1 << 18, inflated_bytes_max: 16 << 20, ..Limits::default() };
    decode_with(&sibling.value, limits).map_err(|error| NotJson::BadTerm(error.to_string()))
}

fn metadata_term(meta: &SiblingMeta) -> Term {
    let mut members = Vec::new();
    let mut text = |name: &str, value: Option<&Bytes>| {
        members.extend(value.map(|value| member(name, Term::Binary(value.clone()))));
    };
    text("X-Riak-VTag", meta.vtag.as_ref());
    text("content-type", meta.served_content_type());
    text("charset", meta.charset.as_ref());
    text("content-encoding", meta.content_encoding.as_ref());
    if let Some(at) = meta.last_modified {
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at.secs()));
        members.push(member("X-Riak-Last-Modified", Term::binary(date.as_bytes())));
    }
    if meta.deleted {
        members.push(member("X-Riak-Deleted", Term::binary(b"true")));
    }
    let links = meta.links.iter().map(|link| {
        Term::List([&link.bucket, &link.key, &link.tag].into_iter().map(|text| Term::Binary(text.clone())).collect())
    });
    members.push(member("Links", Term::List(links.collect())));
    let indexes = meta.indexes.iter().map(|entry| {
        let term = match &entry.term {
            IndexTerm::Int(n) => Term::from(n.clone()),
            IndexTerm::Bin(text) => Term::Binary(text.clone()),
        };
        (entry.field.clone(), term)
    });
    members.push(member("index", grouped(indexes)));
    let user_meta = meta.user_meta.iter().map(|(name, value)| (name.clone(), Term::Binary(value.clone())));
    members.push(member("X-Riak-Meta", grouped(user_meta)));
    object_of(members)
}

/// An object of names and values. A name with several values has their list.
fn grouped(pairs: impl Iterator<Item = (Bytes, Term)>) -> Term {
    let mut members: Vec<(Bytes, Vec<Term>)> = Vec::new();
    for (name, value) in pairs {
        match members.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => members.push((name, vec![value])),
        }
    }
    let one = |mut values: Vec<Term>| if values.len() == 1 { values.remove(0) } else { Term::from_list(values) };
    object_of(members.into_iter().map(|(name, values)| Term::pair(Term::Binary(name), one(values))).collect())
}

fn member(name: &str, value: Term) -> Term {
    Term::pair(Term::binary(name.as_bytes()), value)
}

/// A JSON object as a term.
pub(crate) fn object_of(members: Vec<Term>) -> Term {
    Term::pair(Term::atom("struct"), Term::List(members))
}

#[cfg(test)]
mod tests;
