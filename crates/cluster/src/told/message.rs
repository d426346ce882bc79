//! The bytes of first words.
//!
//! ```text
//! words = version u8, fields, varint count, (varint partition, u64 store id, varint seq)*
//! ```
//!
//! The partitions ascend. No words at all say that nothing was told.

use crate::wire::{Malformed, Reader, Writer, no_fields};
use bytes::Bytes;
use ombak_kv::replica::ToldSeq;

/// Maximum number of partitions: a ring has no more. So the words have at most 21 KiB.
const PARTITIONS_MAX: usize = 1_024;

/// Encodes what was told of the stores of a node, by partition, ascending.
pub(super) fn encode_told(told: &[(u32, ToldSeq)]) -> Vec<u8> {
    let told = &told[..told.len().min(PARTITIONS_MAX)];
    let mut out = Writer::of_message();
    out.end_fields();
    out.varint(told.len() as u64);
    for (partition, ToldSeq { store_id, seq }) in told {
        out.varint(u64::from(*partition));
        out.u64(*store_id);
        out.varint(*seq);
    }
    out.finish().parts().concat()
}

/// Decodes what a node was told of the stores of this one.
pub(super) fn decode_told(words: &[u8]) -> Result<Vec<(u32, ToldSeq)>, Malformed> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let message = Bytes::copy_from_slice(words);
    let mut reader = Reader::of_message(&message)?;
    no_fields(&mut reader)?;
    let count = reader.varint()?;
    if count > PARTITIONS_MAX as u64 {
        return Err(Malformed("it tells of too many partitions"));
    }
    let mut told: Vec<(u32, ToldSeq)> = Vec::new();
    for _ in 0..count {
        let partition = reader.varint32()?;
        if told.last().is_some_and(|(before, _)| *before >= partition) {
            return Err(Malformed("its partitions are in no order"));
        }
        told.push((partition, ToldSeq { store_id: reader.u64()?, seq: reader.varint()? }));
    }
    reader.end()?;
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_peer::handshake::WORDS_BYTES_MAX;
    use proptest::prelude::*;

    fn told(partition: u32) -> (u32, ToldSeq) {
        (partition, ToldSeq { store_id: 0x0102_0304_0506_0708, seq: 300 })
    }

    /// Nodes of version 2 send these bytes, so they never change.
    #[test]
    fn words_have_the_bytes_of_version_2() {
        let bytes = [1, 0, 2, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0xac, 2, 0xac, 2, 8, 7, 6, 5, 4, 3, 2, 1, 0xac, 2];
        assert_eq!(encode_told(&[told(0), told(300)]), bytes);
        assert_eq!(decode_told(&bytes), Ok(vec![told(0), told(300)]));
        assert_eq!(encode_told(&[]), [1, 0, 0]);
        assert_eq!(decode_told(&[]), Ok(Vec::new()), "a node without stores may say nothing");
    }

    #[test]
    fn the_words_of_the_largest_ring_fit_into_a_handshake() {
        let told = |partition| (partition, ToldSeq { store_id: u64::MAX, seq: u64::MAX });
        let words = encode_told(&(0..PARTITIONS_MAX as u32).map(told).collect::<Vec<_>>());
        assert!(words.len() <= WORDS_BYTES_MAX);
        assert_eq!(decode_told(&words).unwrap().len(), PARTITIONS_MAX);
    }

    #[test]
    fn words_without_order_are_refused() {
        assert!(decode_told(&encode_told(&[told(3), told(3)])).is_err());
        assert!(decode_told(&encode_told(&[told(4), told(3)])).is_err());
    }

    proptest! {
        #[test]
        fn words_arrive_as_they_were_told(told in prop::collection::btree_map(any::<u32>(), any::<(u64, u64)>(), 0..20)) {
            let told: Vec<_> =
                told.into_iter().map(|(partition, (store_id, seq))| (partition, ToldSeq { store_id, seq })).collect();
            let words = encode_told(&told);
            prop_assert_eq!(decode_told(&words).unwrap(), told);
            for end in 1..words.len() {
                prop_assert!(decode_told(&words[..end]).is_err());
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(words in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(told) = decode_told(&words) {
                prop_assert_eq!(decode_told(&encode_told(&told)).unwrap(), told);
            }
        }
    }
}
