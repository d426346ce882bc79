//! The order of an object's siblings, which every answer shows (docs/riak/semantics.md §2.1).
//!
//! Siblings are ordered by the bytes of their values. Equal values are ordered by the number of
//! their metadata entries, fewer entries first. Equal numbers are decided by the entries
//! themselves, which are compared in the order of Riak's names for them.

use super::{IndexEntry, Link, Object, Sibling, SiblingMeta};
use crate::clock::Dot;
use crate::time::UnixMicros;
use bytes::Bytes;
use smallvec::SmallVec;
use std::cmp::Ordering;

impl Object {
    /// Sorts the siblings. Values decide the order, so a head without values cannot be sorted.
    ///
    /// An object of one sibling costs one comparison of a length. Siblings that are already sorted
    /// are compared once.
    pub fn order_siblings(&mut self) {
        if self.siblings.len() > 1 && !self.siblings.is_sorted_by(|a, b| compare(a, b).is_le()) {
            self.siblings.sort_by(compare);
        }
    }
}

pub(super) fn compare(a: &Sibling, b: &Sibling) -> Ordering {
    a.value.cmp(&b.value).then_with(|| {
        let (a, b) = (entries(&a.meta), entries(&b.meta));
        a.len().cmp(&b.len()).then_with(|| a.cmp(&b))
    })
}

/// One entry of a sibling's metadata. The variants are in the order of Riak's names for them:
/// "Links", "X-Riak-Deleted", "X-Riak-Last-Modified", "X-Riak-Meta", "X-Riak-VTag",
/// "X-Riak-Val-Encoding", "charset", "content-encoding", "content-type", "index", and `dot`, which
/// sorts last because it is a binary and the others are strings.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Entry<'a> {
    Links(&'a [Link]),
    Deleted,
    LastModified(UnixMicros),
    UserMeta(&'a [(Bytes, Bytes)]),
    Vtag(&'a Bytes),
    ValEncoding(u8),
    Charset(&'a Bytes),
    ContentEncoding(&'a Bytes),
    ContentType(&'a Bytes),
    Indexes(&'a [IndexEntry]),
    Dot(&'a Dot),
    /// A pair whose meaning only Riak knows.
    Extra(&'a (Bytes, Bytes)),
    /// Ombak's own entries, so they are compared last.
    Expires(u32),
    Kind(u16),
}

fn entries(meta: &SiblingMeta) -> SmallVec<[Entry<'_>; 16]> {
    // All fields are named, so that the compiler reports a forgotten new field.
    let SiblingMeta {
        content_type,
        charset,
        content_encoding,
        vtag,
        last_modified,
        links,
        user_meta,
        indexes,
        deleted,
        dot,
        val_encoding,
        extra,
        expires_secs,
        kind,
        // The events and the summary of a value of a kind do not count.
        of_kind: _,
    } = meta;
    let mut out = SmallVec::new();
    out.extend((!links.is_empty()).then_some(Entry::Links(links)));
    out.extend(deleted.then_some(Entry::Deleted));
    out.extend(last_modified.map(Entry::LastModified));
    out.extend((!user_meta.is_empty()).then_some(Entry::UserMeta(user_meta)));
    out.extend(vtag.as_ref().map(Entry::Vtag));
    out.extend((*val_encoding != 0).then_some(Entry::ValEncoding(*val_encoding)));
    out.extend(charset.as_ref().map(Entry::Charset));
    out.extend(content_encoding.as_ref().map(Entry::ContentEncoding));
    out.extend(content_type.as_ref().map(Entry::ContentType));
    out.extend((!indexes.is_empty()).then_some(Entry::Indexes(indexes)));
    out.extend(dot.as_ref().map(Entry::Dot));
    out.extend(extra.iter().map(Entry::Extra));
    out.extend(expires_secs.map(Entry::Expires));
    out.extend((*kind != 0).then_some(Entry::Kind(*kind)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Actor;
    use crate::testing::any_object;
    use crate::{VectorClock, stored_object};
    use proptest::prelude::*;

    fn sibling(value: &'static str, change: impl FnOnce(&mut SiblingMeta)) -> Sibling {
        let mut sibling = Sibling::new(value);
        change(&mut sibling.meta);
        sibling
    }

    fn ordered(siblings: Vec<Sibling>) -> Vec<Sibling> {
        let mut object = Object { clock: VectorClock::new(), siblings };
        object.order_siblings();
        object.siblings
    }

    /// The property tests try merging and storing with every order of the same siblings.
    fn any_siblings() -> impl Strategy<Value = (Object, Vec<Sibling>)> {
        any_object().prop_flat_map(|object| {
            let siblings = object.siblings.clone();
            (Just(object), Just(siblings).prop_shuffle())
        })
    }

    #[test]
    fn values_come_in_the_order_of_their_bytes_and_a_prefix_first() {
        let plain = |value| sibling(value, |_| {});
        let values: Vec<_> = ordered(["b", "ab", "\u{ff}", "a", "", "B"].map(plain).into()).into_iter().collect();
        let values: Vec<&[u8]> = values.iter().map(|s| &s.value[..]).collect();
        assert_eq!(values, [&b""[..], b"B", b"a", b"ab", b"b", "\u{ff}".as_bytes()]);
    }

    #[test]
    fn equal_values_come_with_fewer_entries_first_and_then_by_their_entries() {
        let at = |secs| move |m: &mut SiblingMeta| m.last_modified = Some(UnixMicros::from_secs(secs));
        let bare = sibling("v", |_| {});
        let (early, late) = (sibling("v", at(1)), sibling("v", at(2)));
        // Both have one entry, and the name of `deleted` sorts before the name of the time.
        let deleted = sibling("v", |m| m.deleted = true);
        let both = sibling("v", |m| {
            m.last_modified = Some(UnixMicros::from_secs(0));
            m.charset = Some("utf-8".into());
        });
        let expected = vec![bare, deleted, early, late, both];
        let mut mixed = expected.clone();
        mixed.reverse();
        assert_eq!(ordered(mixed), expected);
    }

    #[test]
    fn events_tell_apart_what_is_equal_otherwise() {
        let dotted =
            |counter| sibling("v", |m| m.dot = Some(Dot { actor: Actor::new(b"a"), counter, stamp_secs: 9 - counter }));
        assert_eq!(ordered(vec![dotted(2), dotted(1)]), vec![dotted(1), dotted(2)]);
    }

    proptest! {
        #[test]
        fn the_order_of_writing_does_not_count((object, shuffled) in any_siblings()) {
            let expected = ordered(object.siblings.clone());
            prop_assert_eq!(ordered(shuffled.clone()), expected.clone());
            prop_assert!(expected.is_sorted_by(|a, b| a.value <= b.value));

            // An object that an earlier version stored in another order is read in this order and
            // keeps its digest.
            let stored_before = Object { clock: object.clock.clone(), siblings: shuffled };
            let mut head = Vec::new();
            stored_object::encode_head(&stored_before, &mut head);
            let body: Vec<u8> = stored_before.siblings.iter().flat_map(|s| s.value.to_vec()).collect();
            let read = stored_object::decode(&head.into(), Some(&body.into())).expect("what was encoded");
            prop_assert_eq!(&read.siblings, &expected);
            prop_assert_eq!(read.digest(), stored_before.digest());
        }

        #[test]
        fn merging_leaves_siblings_in_order(a in any_object(), b in any_object()) {
            let mut merged = Object { clock: a.clock, siblings: ordered(a.siblings) };
            merged.merge(b);
            prop_assert_eq!(ordered(merged.siblings.clone()), merged.siblings);
        }

        #[test]
        fn coordinating_leaves_siblings_in_order(a in any_object(), value: [u8; 1], dvv: bool) {
            let local = Object { clock: a.clock, siblings: ordered(a.siblings) };
            let incoming = Object::new(Sibling::new(value.to_vec()));
            let put = Object::coordinate(Some(local), incoming, &Actor::new(b"x"), UnixMicros(0), dvv);
            prop_assert_eq!(ordered(put.siblings.clone()), put.siblings);
        }
    }
}
