//! Values that expire: what a write may ask for, and what a reader is told. This is Ombak's own;
//! Riak has neither.
//!
//! The time to live of a value begins with its write. The write may name it; otherwise the bucket's
//! property `ttl` applies. A write names it in user metadata, so every interface can set it and
//! every read returns it: when a client reads, changes and writes a value, the new value gets the
//! same time to live again. The moment of expiry is part of the object
//! ([`ombak_types::SiblingMeta::expires_secs`]), so replicas agree on it whenever they receive
//! their copy.
//!
//! An object is absent when all its values have expired. Before that, expired siblings are not
//! shown, and the next coordinated write drops them. A store hides an absent object from listings
//! and queries. Its clock stays and keeps older copies away, until the reaper removes the object
//! like a tombstone. From then on it is as if the object had never existed, and the rules of
//! [`crate::partition::ActorSource`] keep later writes safe.

use bytes::Bytes;
use ombak_types::props::ttl_secs;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, Object, SiblingMeta};

/// The user metadata by which a write asks for a time to live, in decimal seconds; 0 means that the
/// value does not expire, whatever the bucket says. The name matches in any letter case, with or
/// without the prefix that HTTP clients put in front of user metadata.
pub const TTL_NAME: &str = "X-Ombak-Ttl";

/// The user metadata by which an answer says how many seconds a value still lives: at least 1. A
/// write that sends it back does not store it.
pub const TTL_LEFT_NAME: &str = "X-Ombak-Ttl-Left";

const HTTP_PREFIX: &[u8] = b"X-Riak-Meta-";

/// Sets the expiry of the values of `object`, in a bucket whose values live for `bucket_ttl_secs`
/// (0: they do not expire). Their time to live begins at `now`. With `keeps_times`, it begins at
/// the time of the write that the value carries, where it carries one.
pub(crate) fn stamp(
    object: &mut Object,
    bucket_ttl_secs: u32,
    keeps_times: bool,
    now: UnixMicros,
) -> Result<(), Error> {
    for meta in object.siblings.iter_mut().map(|s| &mut s.meta) {
        meta.user_meta.retain(|(name, _)| !is_named(name, TTL_LEFT_NAME));
        let asked = asked_ttl_secs(meta)?;
        let written = meta.last_modified.filter(|_| keeps_times).unwrap_or(now);
        meta.expires_secs = match asked.unwrap_or(bucket_ttl_secs) {
            _ if meta.deleted => None,
            0 => None,
            ttl_secs => Some(u32::try_from(written.secs() + u64::from(ttl_secs)).unwrap_or(u32::MAX)),
        };
    }
    Ok(())
}

/// Turns a stored object into what a client sees at `now`.
pub(crate) fn show(object: &mut Object, now: UnixMicros) {
    object.drop_expired(now);
    for meta in object.siblings.iter_mut().map(|s| &mut s.meta) {
        if let Some(at) = meta.expires_secs {
            let left_secs = u64::from(at).saturating_sub(now.secs()).max(1);
            meta.user_meta.push((Bytes::from_static(TTL_LEFT_NAME.as_bytes()), Bytes::from(left_secs.to_string())));
        }
    }
}

fn asked_ttl_secs(meta: &SiblingMeta) -> Result<Option<u32>, Error> {
    let mut asked = None;
    for (_, value) in meta.user_meta.iter().filter(|(name, _)| is_named(name, TTL_NAME)) {
        let text = String::from_utf8_lossy(value);
        let secs = ttl_secs(&text).map_err(|why| Error::BadTtl(format!("{TTL_NAME} {why}, not '{text}'")))?;
        if asked.replace(secs).is_some_and(|before| before != secs) {
            return Err(Error::BadTtl(format!("{TTL_NAME} was given more than once")));
        }
    }
    Ok(asked)
}

fn is_named(name: &[u8], wanted: &str) -> bool {
    let bare = match name.split_at_checked(HTTP_PREFIX.len()) {
        Some((prefix, bare)) if prefix.eq_ignore_ascii_case(HTTP_PREFIX) => bare,
        _ => name,
    };
    bare.eq_ignore_ascii_case(wanted.as_bytes())
}
