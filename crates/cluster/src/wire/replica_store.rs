//! A store of one version at a replica.
//!
//! ```text
//! version u8, flags u8, varint partition, varint n, bytes key, fields, object
//! flags   1 dvv, 2 synced, 4 may replace a version that cannot be read, 8 adds to a value
//! fields  1 noted counter of fences      varint boot, varint counter
//!         2 expected clock               a clock as clients get it
//!         3 kind of value                varint, not 0
//!         4 ballot                       varint stamp, varint number; with 2 only
//!         128 time of storing            varint, Unix seconds
//! ```

use super::NO_RING;
use super::fields::{Field, OPTIONAL_FROM, read_fields};
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::Ballot;
use ombak_kv::replica::{NodeCounter, ReplicaStore, StoreKind, StoreMode};
use ombak_peer::mux::Body;
use ombak_types::time::UnixMicros;
use ombak_types::{VectorClock, stored_object};

mod flag {
    pub const DVV: u8 = 1;
    pub const SYNCED: u8 = 2;
    pub const REPLACES_UNREADABLE: u8 = 4;
    /// Only for members that know data types. Another one refuses the store.
    pub const ADDS: u8 = 8;
    pub const ALL: u8 = 15;
}

mod tag {
    pub const NOTED: u8 = 1;
    pub const EXPECTED: u8 = 2;
    pub const VALUES: u8 = 3;
    pub const BALLOT: u8 = 4;
    /// A node that does not know it counts the age from the arrival.
    pub const STORED_SECS: u8 = super::OPTIONAL_FROM;
}

/// Encodes a store. Its deadline and its ring travel in the header of the transport.
pub fn encode_replica_store(store: &ReplicaStore) -> Body {
    let ReplicaStore { partition, n, ring: _, key, head, body, .. } = store;
    let ReplicaStore { stored_secs, kind, mode, noted, synced, deadline: _, .. } = store;
    let StoreKind { dvv, values } = kind;
    let flags = [
        (*dvv, flag::DVV),
        (*synced, flag::SYNCED),
        (*mode == StoreMode::ReplaceUnreadable, flag::REPLACES_UNREADABLE),
        (*mode == StoreMode::Add, flag::ADDS),
    ];
    let mut out = Writer::of_message();
    out.u8(flags.iter().fold(0, |all, (set, bit)| if *set { all | bit } else { all }));
    out.varint(u64::from(*partition));
    out.varint(u64::from(*n));
    out.bytes(key);
    if let Some(NodeCounter { boot, counter }) = noted {
        out.numbers_field(tag::NOTED, &[*boot, *counter]);
    }
    if let StoreMode::IfExpected { expected, ballot: _ } = mode {
        out.field(tag::EXPECTED, &stored_object::encode_clock(expected));
    }
    if *values != 0 {
        out.number_field(tag::VALUES, u64::from(*values));
    }
    if let StoreMode::IfExpected { expected: _, ballot } = mode {
        out.numbers_field(tag::BALLOT, &[ballot.stamp.0, ballot.number]);
    }
    if let Some(secs) = stored_secs {
        out.number_field(tag::STORED_SECS, u64::from(*secs));
    }
    out.end_fields();
    out.finish_with_object(head, body)
}

/// Decodes a store without a deadline and without a ring. Whether head and body are an object is
/// not checked: the replica decodes them anyway.
pub fn decode_replica_store(message: &Bytes) -> Result<ReplicaStore, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let flags = reader.u8()?;
    if flags > flag::ALL {
        return Err(Malformed("a flag is not known"));
    }
    let has = |bit: u8| flags & bit != 0;
    let (partition, n, key) = (reader.varint32()?, reader.varint32()?, reader.bytes()?);
    let (mut noted, mut values, mut expected, mut ballot) = (None, 0, None::<VectorClock>, None);
    let mut stored_secs = None;
    read_fields(&mut reader, |tag, content| {
        match tag {
            tag::NOTED => noted = Some(NodeCounter { boot: content.varint()?, counter: content.varint()? }),
            tag::EXPECTED => {
                let clock = stored_object::decode_clock(&content.rest()?);
                expected = Some(clock.map_err(|_| Malformed("its clock"))?);
            }
            tag::BALLOT => {
                ballot = Some(Ballot { stamp: UnixMicros(content.varint()?), number: content.varint()? });
            }
            tag::VALUES => {
                values = u16::try_from(content.varint()?).map_err(|_| Malformed("a number is too large"))?;
            }
            tag::STORED_SECS => stored_secs = Some(content.varint32()?),
            _ => return Ok(Field::Unknown),
        }
        Ok(Field::Read)
    })?;
    let mode = match (expected, ballot, has(flag::REPLACES_UNREADABLE), has(flag::ADDS)) {
        (None, None, false, false) => StoreMode::Merge,
        (None, None, true, false) => StoreMode::ReplaceUnreadable,
        (None, None, false, true) => StoreMode::Add,
        (Some(expected), Some(ballot), false, false) => StoreMode::IfExpected { expected, ballot },
        _ => return Err(Malformed("its mode")),
    };
    let (head, body) = reader.object()?;
    let (kind, synced) = (StoreKind { dvv: has(flag::DVV), values }, has(flag::SYNCED));
    let (ring, deadline) = (NO_RING, None);
    Ok(ReplicaStore { partition, n, ring, key, head, body, stored_secs, kind, mode, noted, synced, deadline })
}
