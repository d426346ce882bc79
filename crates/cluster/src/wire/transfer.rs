//! The questions by which copies are brought back to where they belong, and their answers.
//!
//! ```text
//! question  = version u8, kind u8, varint partition, varint n, fields, part of the kind
//! compare     1  u8 synced, varint count, (bytes key, u64 digest, bytes clock)*
//! push        2  u8 synced, varint count, (bytes replica_store)*
//! summarize   3  varint ranges
//! give        4  u64 to, u64 order, varint ranges, varint count, (varint range)*
//!
//! compared  = version u8, home, counter, u8 is_full, varint count, (u8 held)*, fields
//! pushed    = version u8, home, counter, varint count, (u8 0, u64 digest | u8 1, bytes error)*,
//! fields summary   = version u8, home, varint count, (varint versions, u64 sum)*, fields
//! giving    = version u8, u8 (0 working, 1 done), fields
//! home      = u64 lineage, varint number: the version of the home partition
//! counter   = varint boot, varint counter
//! held        0 same, 1 covers, 2 less, 3 nothing, 4 other
//! ```
//!
//! The fields of a question:
//! * 1: summarize: the replica syncs its store before it answers. Empty. Nodes of version 1 get it
//!   never, because their rings do not change.
//! * 128: push: u64, the checksum of the copies (`ombak_kv::replica::checksum_of`).
//! * 129: give: varint, which copies the node takes: 1 at first, 2 at last. Without it: all.
//!
//! The fields of a summary:
//! * 128: what the replica was told of other stores: (u64 node, u64 store id, varint seq)*, not
//!   empty.
//!
//! A clock is in the form of `stored_object::encode_clock`; empty bytes are the empty clock.

use super::error::{decode_error, encode_error};
use super::fields::{Field, OPTIONAL_FROM, no_fields, read_fields};
use super::found::{counter, put_counter};
use super::reader::{Malformed, Reader};
use super::reaping::{put_told_of_nodes, told_of_nodes};
use super::replica_store::{decode_replica_store, encode_replica_store};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::ClassId;
use ombak_kv::replica::{
    COMPARE_KEYS_MAX, Compare, Compared, Give, GivePass, Giving, Held, HeldVersion, Push, Pushed, RangeSum,
    SUMMARY_RANGES_MAX, StoredVersion, Summarize, Summary,
};
use ombak_peer::mux::Body;
use ombak_ring::RingVersion;
use ombak_types::{NodeId, stored_object};

mod kind {
    pub const COMPARE: u8 = 1;
    pub const PUSH: u8 = 2;
    pub const SUMMARIZE: u8 = 3;
    pub const GIVE: u8 = 4;
}

mod tag {
    pub const SYNCED: u8 = 1;
    pub const CHECKSUM: u8 = super::OPTIONAL_FROM;
    /// Of a summary.
    pub const TOLD: u8 = super::OPTIONAL_FROM;
    pub const PASS: u8 = super::OPTIONAL_FROM + 1;
}

/// A question.
#[derive(Clone, Debug)]
pub enum TransferQuestion {
    /// What do you hold of these keys?
    Compare(Compare),
    /// Store these copies.
    Push(Push),
    /// Sum up what you hold.
    Summarize(Summarize),
    /// Push what another node lacks.
    Give(Give),
}

fn question(kind: u8, class: ClassId) -> Writer {
    question_with(kind, class, |_| ())
}

fn question_with(kind: u8, class: ClassId, put_fields: impl FnOnce(&mut Writer)) -> Writer {
    let mut out = Writer::of_message();
    out.u8(kind);
    out.varint(u64::from(class.partition));
    out.varint(u64::from(class.n));
    put_fields(&mut out);
    out.end_fields();
    out
}

/// The fields of a question.
#[derive(Default)]
struct Fields {
    synced: bool,
    checksum: Option<u64>,
    pass: GivePass,
}

fn fields_of(reader: &mut Reader<'_>, kind: u8) -> Result<Fields, Malformed> {
    let mut fields = Fields::default();
    read_fields(reader, |tag, content| {
        match (kind, tag) {
            (kind::SUMMARIZE, tag::SYNCED) => fields.synced = true,
            (kind::PUSH, tag::CHECKSUM) => fields.checksum = Some(content.u64()?),
            (kind::GIVE, tag::PASS) => fields.pass = pass(content)?,
            _ => return Ok(Field::Unknown),
        }
        Ok(Field::Read)
    })?;
    Ok(fields)
}

fn put_pass(pass: GivePass, out: &mut Writer) {
    match pass {
        GivePass::All => {}
        GivePass::First => out.number_field(tag::PASS, 1),
        GivePass::Last => out.number_field(tag::PASS, 2),
        GivePass::Early => out.number_field(tag::PASS, 3),
    }
}

fn pass(content: &mut Reader<'_>) -> Result<GivePass, Malformed> {
    match content.varint()? {
        1 => Ok(GivePass::First),
        2 => Ok(GivePass::Last),
        3 => Ok(GivePass::Early),
        _ => Err(Malformed("a pass is not known")),
    }
}

/// Encodes a question.
pub fn encode_transfer_question(asked: &TransferQuestion) -> Body {
    match asked {
        TransferQuestion::Compare(compare) => encode_compare(compare),
        TransferQuestion::Push(push) => encode_push(push),
        TransferQuestion::Summarize(Summarize { class, ranges, synced }) => {
            let put_synced = |out: &mut Writer| {
                if *synced {
                    out.field(tag::SYNCED, &[])
                }
            };
            let mut out = question_with(kind::SUMMARIZE, *class, put_synced);
            out.varint(u64::from(*ranges));
            out.finish()
        }
        TransferQuestion::Give(give) => encode_give(give),
    }
}

fn encode_compare(compare: &Compare) -> Body {
    let Compare { class, versions, synced } = compare;
    let mut out = question(kind::COMPARE, *class);
    out.u8(u8::from(*synced));
    out.varint(versions.len() as u64);
    for HeldVersion { key, digest, clock } in versions {
        out.bytes(key);
        out.u64(*digest);
        if clock.is_empty() { out.bytes(&[]) } else { out.bytes(&stored_object::encode_clock(clock)) }
    }
    out.finish()
}

fn encode_push(push: &Push) -> Body {
    let Push { class, copies, synced, checksum } = push;
    let put_checksum = |out: &mut Writer| {
        if let Some(checksum) = checksum {
            out.field(tag::CHECKSUM, &checksum.to_le_bytes());
        }
    };
    let mut out = question_with(kind::PUSH, *class, put_checksum);
    out.u8(u8::from(*synced));
    out.varint(copies.len() as u64);
    for copy in copies {
        let parts = encode_replica_store(copy);
        out.bytes(&parts.parts().concat());
    }
    out.finish()
}

fn encode_give(give: &Give) -> Body {
    let Give { class, to, order, ranges, wanted, pass } = give;
    let mut out = question_with(kind::GIVE, *class, |out| put_pass(*pass, out));
    out.u64(to.get());
    out.u64(*order);
    out.varint(u64::from(*ranges));
    out.varint(wanted.len() as u64);
    wanted.iter().for_each(|range| out.varint(u64::from(*range)));
    out.finish()
}

/// Decodes a question. Copies have no deadline.
pub fn decode_transfer_question(message: &Bytes) -> Result<TransferQuestion, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let kind = reader.u8()?;
    let class = ClassId { partition: reader.varint32()?, n: reader.varint32()? };
    let Fields { synced, checksum, pass } = fields_of(&mut reader, kind)?;
    let decoded = match kind {
        kind::COMPARE => TransferQuestion::Compare(decode_compare(&mut reader, class)?),
        kind::PUSH => TransferQuestion::Push(decode_push(&mut reader, class, checksum)?),
        kind::SUMMARIZE => TransferQuestion::Summarize(Summarize { class, ranges: reader.varint32()?, synced }),
        kind::GIVE => TransferQuestion::Give(decode_give(&mut reader, class, pass)?),
        _ => return Err(Malformed("its kind is not known")),
    };
    reader.end()?;
    Ok(decoded)
}

fn decode_compare(reader: &mut Reader<'_>, class: ClassId) -> Result<Compare, Malformed> {
    let synced = flag(reader)?;
    // The list grows with the bytes that are there, not with the number that they claim.
    let mut versions = Vec::new();
    for _ in 0..count(reader, COMPARE_KEYS_MAX)? {
        let (key, digest, clock) = (reader.bytes()?, reader.u64()?, reader.bytes()?);
        let clock = stored_object::decode_clock(&clock).map_err(|_| Malformed("a clock does not decode"))?;
        versions.push(HeldVersion { key, digest, clock });
    }
    Ok(Compare { class, versions, synced })
}

fn decode_push(reader: &mut Reader<'_>, class: ClassId, checksum: Option<u64>) -> Result<Push, Malformed> {
    let synced = flag(reader)?;
    let mut copies = Vec::new();
    for _ in 0..count(reader, COMPARE_KEYS_MAX)? {
        copies.push(decode_replica_store(&reader.bytes()?)?);
    }
    Ok(Push { class, copies, synced, checksum })
}

fn decode_give(reader: &mut Reader<'_>, class: ClassId, pass: GivePass) -> Result<Give, Malformed> {
    let (to, order, ranges) = (NodeId::new(reader.u64()?), reader.u64()?, reader.varint32()?);
    let mut wanted = Vec::new();
    for _ in 0..count(reader, SUMMARY_RANGES_MAX as usize)? {
        wanted.push(reader.varint32()?);
    }
    Ok(Give { class, to, order, ranges, wanted, pass })
}

fn flag(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed("a flag is not known")),
    }
}

fn count(reader: &mut Reader<'_>, count_max: usize) -> Result<usize, Malformed> {
    let count = usize::try_from(reader.varint()?).ok().filter(|count| *count <= count_max);
    count.ok_or(Malformed("a list is too long"))
}

fn put_version(out: &mut Writer, version: RingVersion) {
    out.u64(version.lineage);
    out.varint(version.number);
}

fn version(reader: &mut Reader<'_>) -> Result<RingVersion, Malformed> {
    Ok(RingVersion { lineage: reader.u64()?, number: reader.varint()? })
}

/// Encodes what a replica found.
pub fn encode_compared(compared: &Compared) -> Body {
    let Compared { home_version, is_full, held, counter } = compared;
    let mut out = Writer::of_message();
    put_version(&mut out, *home_version);
    put_counter(*counter, &mut out);
    out.u8(u8::from(*is_full));
    out.varint(held.len() as u64);
    for held in held {
        out.u8(match held {
            Held::Same => 0,
            Held::Covers => 1,
            Held::Less => 2,
            Held::Nothing => 3,
            Held::Other => 4,
        });
    }
    out.end_fields();
    out.finish()
}

/// Decodes what a replica found.
pub fn decode_compared(message: &Bytes) -> Result<Compared, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let (home_version, counter, is_full) = (version(&mut reader)?, counter(&mut reader)?, flag(&mut reader)?);
    let mut held = Vec::new();
    for _ in 0..count(&mut reader, COMPARE_KEYS_MAX)? {
        let number = usize::from(reader.u8()?);
        held.push(*Held::ALL.get(number).ok_or(Malformed("its kind is not known"))?);
    }
    no_fields(&mut reader)?;
    reader.end()?;
    Ok(Compared { home_version, is_full, held, counter })
}

/// Encodes what a replica did with copies.
pub fn encode_pushed(pushed: &Pushed) -> Body {
    let Pushed { home_version, stored, counter } = pushed;
    let mut out = Writer::of_message();
    put_version(&mut out, *home_version);
    put_counter(*counter, &mut out);
    out.varint(stored.len() as u64);
    for stored in stored {
        match stored {
            Ok(StoredVersion { digest }) => {
                out.u8(0);
                out.u64(*digest);
            }
            Err(error) => {
                out.u8(1);
                out.bytes(&encode_error(error).parts().concat());
            }
        }
    }
    out.end_fields();
    out.finish()
}

/// Decodes what a replica did with copies.
pub fn decode_pushed(message: &Bytes) -> Result<Pushed, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let (home_version, counter) = (version(&mut reader)?, counter(&mut reader)?);
    let mut stored = Vec::new();
    for _ in 0..count(&mut reader, COMPARE_KEYS_MAX)? {
        stored.push(match flag(&mut reader)? {
            false => Ok(StoredVersion { digest: reader.u64()? }),
            true => Err(decode_error(&reader.bytes()?)?),
        });
    }
    no_fields(&mut reader)?;
    reader.end()?;
    Ok(Pushed { home_version, stored, counter })
}

/// Encodes sums.
pub fn encode_summary(summary: &Summary) -> Body {
    let Summary { home_version, ranges, told } = summary;
    let mut out = Writer::of_message();
    put_version(&mut out, *home_version);
    out.varint(ranges.len() as u64);
    for RangeSum { versions, sum } in ranges {
        out.varint(*versions);
        out.u64(*sum);
    }
    put_told_of_nodes(told, tag::TOLD, &mut out);
    out.end_fields();
    out.finish()
}

/// Decodes sums.
pub fn decode_summary(message: &Bytes) -> Result<Summary, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let home_version = version(&mut reader)?;
    let mut ranges = Vec::new();
    for _ in 0..count(&mut reader, SUMMARY_RANGES_MAX as usize)? {
        ranges.push(RangeSum { versions: reader.varint()?, sum: reader.u64()? });
    }
    let mut told = Vec::new();
    read_fields(&mut reader, |tag, content| match tag {
        tag::TOLD => {
            told = told_of_nodes(content)?;
            Ok(Field::Read)
        }
        _ => Ok(Field::Unknown),
    })?;
    reader.end()?;
    Ok(Summary { home_version, ranges, told })
}

/// Encodes how far an order is.
pub fn encode_giving(giving: &Giving) -> Body {
    let mut out = Writer::of_message();
    out.u8(u8::from(*giving == Giving::Done));
    out.end_fields();
    out.finish()
}

/// Decodes how far an order is.
pub fn decode_giving(message: &Bytes) -> Result<Giving, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let is_done = flag(&mut reader)?;
    no_fields(&mut reader)?;
    reader.end()?;
    Ok(if is_done { Giving::Done } else { Giving::Working })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;
    use ombak_kv::replica::{NodeCounter, ReplicaStore, StoreKind, StoreMode, ToldSeq};
    use ombak_types::time::UnixMicros;
    use ombak_types::{Actor, Error, VectorClock};
    use proptest::prelude::*;

    fn some_bytes() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
    }

    fn class() -> impl Strategy<Value = ClassId> {
        (any::<u32>(), any::<u32>()).prop_map(|(partition, n)| ClassId { partition, n })
    }

    fn held_version() -> impl Strategy<Value = HeldVersion> {
        (some_bytes(), any::<u64>(), 0u8..3).prop_map(|(key, digest, events)| {
            let mut clock = VectorClock::new();
            (0..events).for_each(|actor| drop(clock.increment(&Actor::new(&[actor; 9]), UnixMicros(7))));
            HeldVersion { key, digest, clock }
        })
    }

    fn copy() -> impl Strategy<Value = Bytes> {
        some_bytes()
    }

    fn push_of(class: ClassId, bodies: Vec<Bytes>, synced: bool, checksum: Option<u64>) -> Push {
        let copies = bodies.into_iter().map(|body| ReplicaStore {
            partition: class.partition,
            n: class.n,
            key: body.clone(),
            head: Bytes::from_static(b"head"),
            body,
            stored_secs: None,
            kind: StoreKind { dvv: true, values: 0 },
            ring: RingVersion::first(0),
            mode: StoreMode::Merge,
            noted: Some(COUNTER),
            synced,
            deadline: None,
        });
        Push { class, copies: copies.collect(), synced, checksum }
    }

    fn question() -> impl Strategy<Value = TransferQuestion> {
        let versions = prop::collection::vec(held_version(), 0..5);
        let compare = (class(), versions, any::<bool>())
            .prop_map(|(class, versions, synced)| TransferQuestion::Compare(Compare { class, versions, synced }));
        let push = (class(), prop::collection::vec(copy(), 0..4), any::<bool>(), any::<Option<u64>>()).prop_map(
            |(class, bodies, synced, checksum)| TransferQuestion::Push(push_of(class, bodies, synced, checksum)),
        );
        let summarize = (class(), any::<u32>(), any::<bool>())
            .prop_map(|(class, ranges, synced)| TransferQuestion::Summarize(Summarize { class, ranges, synced }));
        let pass = prop_oneof![Just(GivePass::All), Just(GivePass::First), Just(GivePass::Last), Just(GivePass::Early)];
        let give = (class(), any::<(u64, u64, u32)>(), prop::collection::vec(any::<u32>(), 0..9), pass).prop_map(
            |(class, (to, order, ranges), wanted, pass)| {
                TransferQuestion::Give(Give { class, to: NodeId::new(to), order, ranges, wanted, pass })
            },
        );
        prop_oneof![compare, push, summarize, give]
    }

    fn bytes_of(body: &Body) -> Bytes {
        body.parts().concat().into()
    }

    const RING: RingVersion = RingVersion { lineage: 7, number: 300 };
    const COUNTER: NodeCounter = NodeCounter { boot: 3, counter: 200 };

    proptest! {
        #[test]
        fn questions_arrive_as_they_were_sent(question in question()) {
            let bytes = bytes_of(&encode_transfer_question(&question));
            prop_assert_eq!(format!("{:?}", decode_transfer_question(&bytes).unwrap()), format!("{question:?}"));
            for length in 0..bytes.len() {
                prop_assert!(decode_transfer_question(&bytes.slice(..length)).is_err(), "{} bytes", length);
            }
        }

        #[test]
        fn answers_arrive_as_they_were_sent(
            is_full in any::<bool>(), held in prop::collection::vec(0usize..5, 0..9),
            digests in prop::collection::vec(prop::option::of(any::<u64>()), 0..9),
            sums in prop::collection::vec((any::<u64>(), any::<u64>()), 0..9),
            told in prop::collection::vec(any::<(u64, u64)>(), 0..3),
        ) {
            let held = held.into_iter().map(|number| Held::ALL[number]).collect();
            let compared = Compared { home_version: RING, is_full, held, counter: COUNTER };
            prop_assert_eq!(decode_compared(&bytes_of(&encode_compared(&compared))), Ok(compared));
            let stored = digests.into_iter().map(|digest| digest.map(|digest| StoredVersion { digest }).ok_or(Error::Overload));
            let pushed = Pushed { home_version: RING, stored: stored.collect(), counter: COUNTER };
            prop_assert_eq!(decode_pushed(&bytes_of(&encode_pushed(&pushed))), Ok(pushed));
            let ranges = sums.into_iter().map(|(versions, sum)| RangeSum { versions, sum }).collect();
            let told = told.into_iter().map(|(node, seq)| (NodeId::new(node), ToldSeq { store_id: !node, seq }));
            let summary = Summary { home_version: RING, ranges, told: told.collect() };
            prop_assert_eq!(decode_summary(&bytes_of(&encode_summary(&summary))), Ok(summary));
        }

        #[test]
        fn hostile_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..6) {
            fuzzing::messages(&bytes);
            if let [version, place, ..] = bytes.as_mut_slice() {
                (*version, *place) = (super::super::VERSION, kind);
            }
            fuzzing::messages(&bytes);
        }
    }

    #[test]
    fn an_order_is_working_or_done() {
        for giving in [Giving::Working, Giving::Done] {
            assert_eq!(decode_giving(&bytes_of(&encode_giving(&giving))), Ok(giving));
        }
    }

    #[test]
    fn a_list_beyond_its_bound_is_refused() {
        let too_many = Compared {
            home_version: RING,
            is_full: true,
            held: vec![Held::Same; COMPARE_KEYS_MAX + 1],
            counter: COUNTER,
        };
        assert_eq!(decode_compared(&bytes_of(&encode_compared(&too_many))), Err(Malformed("a list is too long")));
    }

    /// The bytes of version 1 of two messages. Nodes of two releases must agree on them.
    #[test]
    fn the_bytes_of_version_1_do_not_change() {
        let class = ClassId { partition: 5, n: 3 };
        let versions = vec![HeldVersion { key: Bytes::from_static(b"k"), digest: 2, clock: VectorClock::new() }];
        let compare = TransferQuestion::Compare(Compare { class, versions, synced: true });
        let bytes = [1, 1, 5, 3, 0, 1, 1, 1, b'k', 2, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes_of(&encode_transfer_question(&compare)), bytes.as_slice());
        let ring = RingVersion { lineage: 1, number: 2 };
        let counter = NodeCounter { boot: 4, counter: 5 };
        let compared = Compared { home_version: ring, is_full: true, held: vec![Held::Nothing], counter };
        assert_eq!(bytes_of(&encode_compared(&compared)), [1, 1, 0, 0, 0, 0, 0, 0, 0, 2, 4, 5, 1, 1, 3, 0].as_slice());
    }
}
