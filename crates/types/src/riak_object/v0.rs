//! Version 0 of Riak's stored objects: the object record in external term format
//! (docs/riak/backends.md §7.2).

use super::{BadRiakObject, add_pair, clock_from_term, instant};
use crate::etf::{self, Term};
use crate::object::{Object, Sibling, SiblingMeta, VAL_ENCODING_TERM};
use bytes::Bytes;

/// Decodes
/// `{r_object, Bucket, Key, [{r_content, Dict, Value}], Vclock, UpdateMetadata, UpdateValue}`.
/// Bucket and key are ignored, because the store's key has them.
pub(super) fn decode(bytes: &[u8]) -> Result<Object, BadRiakObject> {
    let term = etf::decode(bytes)?;
    let Some([tag, _bucket, _key, contents, clock, _, _]) = term.as_tuple() else {
        return Err(BadRiakObject::new("not an object record"));
    };
    if tag.as_atom() != Some("r_object") {
        return Err(BadRiakObject::new("not an object record"));
    }
    let clock = clock_from_term(clock).ok_or(BadRiakObject::new("its clock is not one"))?;
    let contents = contents.as_list().ok_or(BadRiakObject::new("its contents are no list"))?;
    let siblings = contents.iter().map(sibling).collect::<Result<_, _>>()?;
    Ok(Object { clock, siblings })
}

fn sibling(content: &Term) -> Result<Sibling, BadRiakObject> {
    let Some([tag, dict, value]) = content.as_tuple() else {
        return Err(BadRiakObject::new("a content is no content record"));
    };
    if tag.as_atom() != Some("r_content") {
        return Err(BadRiakObject::new("a content is no content record"));
    }
    let mut meta = SiblingMeta::default();
    each_of_dict(dict, |name, value| take_dict_pair(&mut meta, name, value))
        .ok_or(BadRiakObject::new("its metadata is no dict"))?;
    let value = match value {
        Term::Binary(bytes) => bytes.clone(),
        other => {
            meta.val_encoding = VAL_ENCODING_TERM;
            Bytes::from(etf::encode(other))
        }
    };
    Ok(Sibling { value, meta })
}

/// Visits the pairs of a `dict` record:
/// `{dict, Size, N, MaxN, Bso, ExpSize, ConSize, Empty, {Segment, …}}`. A segment is a tuple of
/// buckets, and a bucket is a list of `[Key | Value]`. The distribution of keys over buckets does
/// not matter to a reader.
fn each_of_dict(dict: &Term, mut visit: impl FnMut(&Term, &Term)) -> Option<()> {
    let [tag, _, _, _, _, _, _, _, Term::Tuple(segments)] = dict.as_tuple()? else { return None };
    if tag.as_atom() != Some("dict") {
        return None;
    }
    for segment in segments {
        let Term::Tuple(buckets) = segment else { return None };
        for bucket in buckets {
            for pair in bucket.as_list()? {
                pair_of(pair, &mut visit)?;
            }
        }
    }
    Some(())
}

/// Visits `[Key | Value]`. If the value is itself a list, the pair is a proper list.
fn pair_of(pair: &Term, visit: &mut impl FnMut(&Term, &Term)) -> Option<()> {
    match pair {
        Term::ImproperList(items, tail) => match items.as_slice() {
            [] => return None,
            [key] => visit(key, tail),
            [key, rest @ ..] => visit(key, &Term::ImproperList(rest.to_vec(), tail.clone())),
        },
        Term::List(items) => {
            let (key, rest) = items.split_first()?;
            visit(key, &Term::from_list(rest.to_vec()));
        }
        _ => return None,
    }
    Some(())
}

fn take_dict_pair(meta: &mut SiblingMeta, name_term: &Term, value: &Term) {
    let name = name_term.as_text().unwrap_or_default();
    let taken = match &name[..] {
        b"X-Riak-VTag" => value.as_text().map(|vtag| meta.vtag = Some(vtag)),
        b"X-Riak-Last-Modified" => now_tuple(value, meta),
        b"X-Riak-Deleted" => {
            meta.deleted = is_true(value);
            Some(())
        }
        _ => add_pair(meta, &name, value).then_some(()),
    };
    if taken.is_none() {
        meta.extra.push((tagged(name_term), tagged(value)));
    }
}

fn now_tuple(value: &Term, meta: &mut SiblingMeta) -> Option<()> {
    let [mega, secs, micros] = value.as_tuple()?;
    meta.last_modified = instant(mega.as_u64()?, secs.as_u64()?, micros.as_u64()?);
    Some(())
}

fn is_true(value: &Term) -> bool {
    value.as_atom() == Some("true") || value.as_text().is_some_and(|text| text == "true"[..])
}

/// The form in which version 1 stores a part of a pair: with its tag in front.
fn tagged(term: &Term) -> Bytes {
    let mut out = Vec::new();
    match term {
        Term::Binary(bytes) => {
            out.push(1);
            out.extend_from_slice(bytes);
        }
        other => {
            out.push(0);
            etf::encode_to(other, &mut out);
        }
    }
    Bytes::from(out)
}
