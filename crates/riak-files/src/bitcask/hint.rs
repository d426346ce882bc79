//! Hint files: the keys of a data file and where their records lie (docs/riak/backends.md §2.3).

/// Bytes before the key.
const HEADER_BYTES: usize = 18;
const TOMBSTONE_BIT: u64 = 1 << 63;
const TRAILER_OFFSET: u64 = u64::MAX >> 1;

/// One entry of a hint file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintEntry<'a> {
    /// Unix seconds of the write.
    pub tstamp_secs: u32,
    /// The offset of the record in the data file.
    pub offset: u64,
    /// Length of the whole record in bytes.
    pub record_bytes: u32,
    /// Whether the record is a tombstone. Older versions of Riak's bitcask do not mark tombstones.
    pub tombstone: bool,
    /// The key.
    pub key: &'a [u8],
}

/// Why a hint file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unusable(pub &'static str);

/// Checks a whole hint file: that the checksum in its trailer matches, and that each entry names a
/// record within the `data_bytes` of its data file. Returns the entries.
pub fn check(bytes: &[u8], data_bytes: u64) -> Result<impl Iterator<Item = HintEntry<'_>>, Unusable> {
    let (entries, trailer) = bytes.split_last_chunk::<HEADER_BYTES>().ok_or(Unusable("has no trailer"))?;
    let trailer = Fields::parse(trailer);
    if trailer.tstamp_secs != 0 || trailer.key_bytes != 0 || trailer.offset != TRAILER_OFFSET {
        return Err(Unusable("has no trailer"));
    }
    if trailer.record_bytes != crc32fast::hash(entries) {
        return Err(Unusable("does not match its checksum"));
    }
    let mut checked = Entries { rest: entries };
    for entry in &mut checked {
        if entry.offset.checked_add(u64::from(entry.record_bytes)).is_none_or(|end| end > data_bytes) {
            return Err(Unusable("names records beyond the end of its data file"));
        }
    }
    if !checked.rest.is_empty() {
        return Err(Unusable("has an entry that is cut short"));
    }
    Ok(Entries { rest: entries })
}

/// Writes one entry.
pub fn encode(entry: &HintEntry<'_>, out: &mut Vec<u8>) {
    let bit = if entry.tombstone { TOMBSTONE_BIT } else { 0 };
    push(out, entry.tstamp_secs, entry.key, entry.record_bytes, entry.offset | bit);
}

/// Writes the trailer that a hint file ends with.
pub fn encode_trailer(out: &mut Vec<u8>) {
    let crc = crc32fast::hash(out);
    push(out, 0, b"", crc, TRAILER_OFFSET);
}

fn push(out: &mut Vec<u8>, tstamp_secs: u32, key: &[u8], record_bytes: u32, offset: u64) {
    out.extend_from_slice(&tstamp_secs.to_be_bytes());
    out.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(&record_bytes.to_be_bytes());
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(key);
}

struct Fields {
    tstamp_secs: u32,
    key_bytes: u16,
    record_bytes: u32,
    offset: u64,
}

impl Fields {
    fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let &[t0, t1, t2, t3, k0, k1, r0, r1, r2, r3, offset @ ..] = bytes;
        Self {
            tstamp_secs: u32::from_be_bytes([t0, t1, t2, t3]),
            key_bytes: u16::from_be_bytes([k0, k1]),
            record_bytes: u32::from_be_bytes([r0, r1, r2, r3]),
            offset: u64::from_be_bytes(offset),
        }
    }
}

struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = HintEntry<'a>;

    fn next(&mut self) -> Option<HintEntry<'a>> {
        let (header, rest) = self.rest.split_first_chunk::<HEADER_BYTES>()?;
        let fields = Fields::parse(header);
        let (key, rest) = rest.split_at_checked(usize::from(fields.key_bytes))?;
        self.rest = rest;
        Some(HintEntry {
            tstamp_secs: fields.tstamp_secs,
            offset: fields.offset & !TOMBSTONE_BIT,
            record_bytes: fields.record_bytes,
            tombstone: fields.offset & TOMBSTONE_BIT != 0,
            key,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint() -> Vec<u8> {
        let mut out = Vec::new();
        encode(&HintEntry { tstamp_secs: 7, offset: 0, record_bytes: 40, tombstone: false, key: b"a" }, &mut out);
        encode(&HintEntry { tstamp_secs: 8, offset: 40, record_bytes: 37, tombstone: true, key: b"bc" }, &mut out);
        encode_trailer(&mut out);
        out
    }

    #[test]
    fn entries_come_back() {
        let bytes = hint();
        let entries: Vec<_> = check(&bytes, 77).unwrap().collect();
        assert_eq!(entries.len(), 2);
        assert_eq!((entries[0].key, entries[0].tombstone, entries[0].offset), (&b"a"[..], false, 0));
        assert_eq!((entries[1].key, entries[1].tombstone, entries[1].offset), (&b"bc"[..], true, 40));
    }

    #[test]
    fn a_hint_file_that_cannot_be_trusted_is_refused() {
        let good = hint();
        assert_eq!(check(&good, 76).err(), Some(Unusable("names records beyond the end of its data file")));
        for cut in 0..good.len() {
            assert!(check(&good[..cut], 77).is_err(), "{cut}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(check(&bad, 77).is_err(), "{at}");
        }
    }
}
