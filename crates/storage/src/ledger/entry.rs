//! The value of a key in a ledger.
//!
//! ```text
//!  0 version     u8    1
//!  1 flags       u8    1: the key was truncated and follows whole; 2: the body is here
//!  2 head_units  u8    of the position, and 128 when the head has index entries
//!  3 zero        u8
//!  4 file_id     u32   where the version lies
//!  8 offset      u32
//! 12 size        u32   0: the key was removed (only while a store is loaded)
//! 16 tstamp      u32   Unix seconds
//! 20 expires     u32   Unix seconds; 0: never
//! 24 seq         u64
//! 32 digest      u64
//! 40 head_len    u32
//! 44 key_len     u32   0 unless flag 1
//! 48 whole key, head, body
//! ```
//!
//! All integers are little-endian. The checksums of the tree's blocks cover the entries.

use super::keys::LedgerKey;
use crate::journal::{Entry, Position, le_at};
use bytes::{BufMut, Bytes, BytesMut};

const VERSION: u8 = 1;
const FIXED_BYTES: usize = 48;
const CUT: u8 = 1;
const INLINE: u8 = 2;
const TERMS: u8 = 0x80;

fn pack(position: Position) -> u8 {
    position.head_units | if position.has_terms { TERMS } else { 0 }
}

/// A key's entry in a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerEntry {
    pub(crate) entry: Entry,
    pub(crate) tstamp_secs: u32,
    /// Unix seconds, as the writer asked; 0: never.
    pub(crate) wanted_expires_secs: u32,
    pub(crate) head: Bytes,
    pub(crate) body: Option<Bytes>,
    /// The whole ledger key, if the stored one is truncated.
    pub(crate) whole_key: Option<Bytes>,
}

/// Encodes an entry. `entry.expires_secs` is what the writer asked for; the configured expiry is
/// applied when the entry is read.
pub(crate) fn encode(key: &LedgerKey, entry: &Entry, tstamp_secs: u32, head: &[u8], body: Option<&[&[u8]]>) -> Bytes {
    let whole = key.whole.as_deref().unwrap_or_default();
    let body_len: usize = body.unwrap_or_default().iter().map(|part| part.len()).sum();
    let mut out = BytesMut::with_capacity(FIXED_BYTES + whole.len() + head.len() + body_len);
    let flags = if whole.is_empty() { 0 } else { CUT } | if body.is_some() { INLINE } else { 0 };
    out.put_slice(&[VERSION, flags, pack(entry.position), 0]);
    out.put_u32_le(entry.position.file_id);
    out.put_u32_le(entry.position.offset);
    out.put_u32_le(entry.position.size);
    out.put_u32_le(tstamp_secs);
    out.put_u32_le(entry.expires_secs);
    out.put_u64_le(entry.seq);
    out.put_u64_le(entry.digest);
    out.put_u32_le(head.len() as u32);
    out.put_u32_le(whole.len() as u32);
    out.put_slice(whole);
    out.put_slice(head);
    body.unwrap_or_default().iter().for_each(|part| out.put_slice(part));
    out.freeze()
}

/// None if the bytes are not an entry of a version that this build reads.
pub(crate) fn decode(bytes: &Bytes) -> Option<LedgerEntry> {
    if bytes.len() < FIXED_BYTES || bytes[0] != VERSION {
        return None;
    }
    let position = Position {
        head_units: bytes[2] & !TERMS,
        has_terms: bytes[2] & TERMS != 0,
        file_id: le_at!(u32, bytes, 4),
        offset: le_at!(u32, bytes, 8),
        size: le_at!(u32, bytes, 12),
    };
    let entry = Entry {
        position,
        expires_secs: le_at!(u32, bytes, 20),
        seq: le_at!(u64, bytes, 24),
        digest: le_at!(u64, bytes, 32),
    };
    let head_start = FIXED_BYTES + le_at!(u32, bytes, 44) as usize;
    let head_end = head_start + le_at!(u32, bytes, 40) as usize;
    let (is_cut, is_inline) = (bytes[1] & CUT != 0, bytes[1] & INLINE != 0);
    let fits = if is_inline { head_end <= bytes.len() } else { head_end == bytes.len() };
    // Flags of a newer build have a meaning that this build does not know.
    let is_known = bytes[1] & !(CUT | INLINE) == 0 && bytes[3] == 0;
    if !fits || !is_known || is_cut != (head_start > FIXED_BYTES) {
        return None;
    }
    Some(LedgerEntry {
        wanted_expires_secs: entry.expires_secs,
        entry,
        tstamp_secs: le_at!(u32, bytes, 16),
        head: bytes.slice(head_start..head_end),
        body: is_inline.then(|| bytes.slice(head_end..)),
        whole_key: is_cut.then(|| bytes.slice(FIXED_BYTES..head_start)),
    })
}

/// The same entry with another position.
pub(super) fn moved(bytes: &Bytes, to: Position) -> Bytes {
    let mut out = BytesMut::from(&bytes[..]);
    out[2] = pack(to);
    out[4..8].copy_from_slice(&to.file_id.to_le_bytes());
    out[8..12].copy_from_slice(&to.offset.to_le_bytes());
    out[12..16].copy_from_slice(&to.size.to_le_bytes());
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Entry {
        let position = Position { file_id: 1, offset: 2, size: 3, head_units: 4, has_terms: true };
        Entry { position, expires_secs: 6, seq: 7, digest: 8 }
    }

    #[test]
    fn entries_come_back_and_move() {
        let key = LedgerKey::of_key(b"key");
        for body in [None, Some(&[&b"bo"[..], b"dy"][..])] {
            let bytes = encode(&key, &sample(), 5, b"head", body);
            let back = decode(&bytes).unwrap();
            assert_eq!((back.entry, back.tstamp_secs, &back.head[..]), (sample(), 5, &b"head"[..]));
            assert_eq!(back.body.as_deref(), body.map(|_| &b"body"[..]));
            assert_eq!(back.whole_key, None);
            let to = Position { file_id: 9, offset: 10, size: 3, head_units: 4, has_terms: true };
            let there = decode(&moved(&bytes, to)).unwrap();
            assert_eq!(there, LedgerEntry { entry: Entry { position: to, ..sample() }, ..back });
            for len in 0..bytes.len() - body.map_or(0, |_| 4) {
                assert_eq!(decode(&bytes.slice(..len)), None, "{len} bytes");
            }
        }
    }

    #[test]
    fn a_cut_key_is_in_the_value() {
        let key = LedgerKey::of_key(&vec![b'x'; 100_000]);
        let back = decode(&encode(&key, &sample(), 5, b"head", None)).unwrap();
        assert_eq!(back.whole_key, key.whole);
        assert_eq!(&back.head[..], b"head");
    }

    #[test]
    fn other_versions_are_none() {
        let mut bytes = encode(&LedgerKey::of_key(b"key"), &sample(), 5, b"head", None).to_vec();
        bytes[0] = 2;
        assert_eq!(decode(&bytes.into()), None);
    }
}
