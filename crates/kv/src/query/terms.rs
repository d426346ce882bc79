//! Index terms as stores keep them: bytes that sort in the order of the terms.

use super::expired_siblings;
use bytes::Bytes;
use num_bigint::{BigInt, Sign};
use ombak_storage::HeadTerms;
use ombak_types::{IndexTerm, stored_object};

/// Maximum length of an integer in bytes; no longer integer was ever accepted.
const MAGNITUDE_BYTES_MAX: usize = u16::MAX as usize;
const NEGATIVE: u8 = 0;
const POSITIVE: u8 = 1;

/// Reads index entries from the heads that this crate writes.
pub(crate) struct ObjectTerms;

impl HeadTerms for ObjectTerms {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        // A head that does not decode is reported when the object is read.
        let Ok(object) = stored_object::decode(&Bytes::copy_from_slice(head), None) else { return };
        for entry in object.index_entries() {
            visit(&entry.field, &sortable(&entry.term));
        }
        if let Some(at) = expired_siblings::first_expiry_entry(&object) {
            visit(expired_siblings::field(), &at);
        }
    }
}

/// A term as bytes that sort in the order of terms. The bytes of a `_bin` term are unchanged. The
/// bytes of an `_int` term have its sign and length in front; for a negative term the length and
/// the magnitude are inverted.
pub(crate) fn sortable(term: &IndexTerm) -> Bytes {
    match term {
        IndexTerm::Bin(term) => term.clone(),
        IndexTerm::Int(term) => {
            let (sign, magnitude) = term.to_bytes_be();
            let magnitude = if sign == Sign::NoSign { Vec::new() } else { magnitude };
            let length = magnitude.len().min(MAGNITUDE_BYTES_MAX) as u16;
            let mut out = Vec::with_capacity(3 + magnitude.len());
            if sign == Sign::Minus {
                out.push(NEGATIVE);
                out.extend_from_slice(&(!length).to_be_bytes());
                out.extend(magnitude.iter().map(|byte| !byte));
            } else {
                out.push(POSITIVE);
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(&magnitude);
            }
            out.into()
        }
    }
}

/// Decodes the bytes of a term of `field`; `None` when they are invalid.
pub(crate) fn from_sortable(field: &[u8], bytes: &Bytes) -> Option<IndexTerm> {
    if !field.ends_with(b"_int") {
        return Some(IndexTerm::Bin(bytes.clone()));
    }
    let (sign, rest) = bytes.split_first()?;
    let (_, magnitude) = rest.split_at_checked(2)?;
    Some(IndexTerm::Int(match *sign {
        NEGATIVE => {
            let magnitude: Vec<u8> = magnitude.iter().map(|byte| !byte).collect();
            BigInt::from_bytes_be(Sign::Minus, &magnitude)
        }
        _ => BigInt::from_bytes_be(Sign::Plus, magnitude),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn int() -> impl Strategy<Value = BigInt> {
        let small = any::<i16>().prop_map(BigInt::from);
        let large = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..12));
        let large = large
            .prop_map(|(minus, bytes)| BigInt::from_bytes_be(if minus { Sign::Minus } else { Sign::Plus }, &bytes));
        prop_oneof![small, large]
    }

    proptest! {
        #[test]
        fn integers_sort_as_numbers_and_come_back(one in int(), other in int()) {
            let (a, b) = (IndexTerm::Int(one.clone()), IndexTerm::Int(other.clone()));
            prop_assert_eq!(sortable(&a).cmp(&sortable(&b)), one.cmp(&other));
            prop_assert_eq!(from_sortable(b"f_int", &sortable(&a)), Some(a));
        }

        #[test]
        fn anything_is_a_term_or_none(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let bytes = Bytes::from(bytes);
            let _ = from_sortable(b"f_int", &bytes);
            prop_assert_eq!(from_sortable(b"f_bin", &bytes), Some(IndexTerm::Bin(bytes)));
        }
    }
}
