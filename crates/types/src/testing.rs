//! Arbitrary objects for the property tests of this crate.

use crate::clock::{Actor, COUNTER_MAX, Dot, VectorClock};
use crate::object::{IndexEntry, IndexTerm, KindState, Link, Object, Sibling, SiblingMeta};
use crate::time::UnixMicros;
use bytes::Bytes;
use proptest::prelude::*;

/// A few arbitrary bytes.
pub fn text() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..12).prop_map(Bytes::from)
}

/// A dot that a decoder accepts.
pub fn any_dot() -> impl Strategy<Value = Dot> {
    (prop::collection::vec(any::<u8>(), 0..24), 1..COUNTER_MAX, any::<u64>())
        .prop_map(|(actor, counter, stamp_secs)| Dot { actor: Actor::new(&actor), counter, stamp_secs })
}

fn any_meta() -> impl Strategy<Value = SiblingMeta> {
    let index = prop_oneof![
        text().prop_map(|term| IndexEntry { field: Bytes::from_static(b"f_bin"), term: IndexTerm::Bin(term) }),
        any::<i128>()
            .prop_map(|term| IndexEntry { field: Bytes::from_static(b"f_int"), term: IndexTerm::Int(term.into()) }),
    ];
    let link = (text(), text(), text()).prop_map(|(bucket, key, tag)| Link { bucket, key, tag });
    let extra = (text(), text()).prop_map(|(name, value)| {
        (Bytes::from([b"\x01x", &name[..]].concat()), Bytes::from([b"\x01", &value[..]].concat()))
    });
    let kind_state = (prop::collection::vec(any_dot(), 0..3), text())
        .prop_map(|(dots, summary)| KindState { events: VectorClock::from_entries(dots), summary });
    (
        (prop::option::of(text()), prop::option::of(text()), prop::option::of(text())),
        prop::option::of("[A-Za-z0-9]{2,22}".prop_map(Bytes::from)),
        prop::option::of(1..4_000_000_000_000_000u64),
        prop::collection::vec(link, 0..3),
        prop::collection::vec((text(), text()), 0..3),
        prop::collection::vec(index, 0..3),
        any::<bool>(),
        prop::option::of(any_dot()),
        any::<u8>(),
        (
            prop::collection::vec(extra, 0..2),
            prop::option::of(any::<u32>()),
            prop_oneof![3 => Just((0, None)), 1 => (1..=u16::MAX, prop::option::of(kind_state))],
        ),
    )
        .prop_map(
            |(
                texts,
                vtag,
                at,
                links,
                user_meta,
                indexes,
                deleted,
                dot,
                val_encoding,
                (extra, expires_secs, (kind, of_kind)),
            )| {
                SiblingMeta {
                    content_type: texts.0,
                    charset: texts.1,
                    content_encoding: texts.2,
                    vtag,
                    last_modified: at.map(UnixMicros),
                    links,
                    user_meta,
                    indexes,
                    deleted,
                    dot,
                    val_encoding,
                    extra,
                    expires_secs,
                    kind,
                    of_kind: of_kind.map(Box::new),
                }
            },
        )
}

/// An object that a decoder accepts: its siblings are in order, and extra pairs are tagged as Riak
/// tags them.
pub fn any_object() -> impl Strategy<Value = Object> {
    let sibling = (text(), any_meta()).prop_map(|(value, meta)| Sibling { value, meta });
    (prop::collection::vec(any_dot(), 0..4), prop::collection::vec(sibling, 0..3)).prop_map(|(dots, siblings)| {
        let mut object = Object { clock: VectorClock::from_entries(dots), siblings };
        object.order_siblings();
        object
    })
}
