//! A list of inputs in a compact form, for jobs that name millions of keys.
//!
//! An entry is a byte of flags and then what the flags announce: the bucket if it is another one
//! than that of the entry before, with its type if that is not the default one; the key; and the
//! key data in Erlang's external term format. Each is a length (LEB128) and as many bytes. An input
//! takes fewer bytes so than in a request.

use crate::Input;
use bytes::Bytes;
use ombak_types::etf::{Limits, Term, decode_with, encode_to};
use ombak_types::{Bucket, DecodeBudget, TooLarge, allocated};

/// The entry has another bucket than the one before.
const HAS_BUCKET: u8 = 1;
/// That bucket has another type than the default one.
const HAS_TYPE: u8 = 2;
/// The entry has key data.
const HAS_KEY_DATA: u8 = 4;

/// The bytes of flags and lengths of an entry, at most.
const OVERHEAD_BYTES_MAX: usize = 1 + 4 * 10;

/// The limits of key data, which a reader of requests has taken before. A value of JSON nests up to
/// four times as deep as a term.
const KEY_DATA_LIMITS: Limits = Limits { terms_max: usize::MAX, inflated_bytes_max: 0, depth_max: 1024 };

/// Inputs in their order. Cheap to clone: clones share everything.
#[derive(Clone, Debug, Default)]
pub struct InputList {
    bytes: Bytes,
    len: usize,
}

/// Makes an [`InputList`].
#[derive(Debug, Default)]
pub struct InputListBuilder {
    bytes: Vec<u8>,
    len: usize,
    last_bucket: Option<Bucket>,
}

/// The inputs of an [`InputList`], one after the other. Their keys share the memory of the list.
#[derive(Clone, Debug, Default)]
pub struct InputListIter {
    rest: Bytes,
    bucket: Option<Bucket>,
}

impl InputListBuilder {
    /// Appends an input. What the list takes counts in the budget.
    ///
    /// # Errors
    /// [`TooLarge`]: the list may not grow; it is unchanged.
    pub fn push(&mut self, input: &Input, budget: &mut DecodeBudget) -> Result<(), TooLarge> {
        let before = budget.bytes_used();
        let key_data = match &input.key_data {
            Some(term) => Some(encoded(term, budget)?),
            None => None,
        };
        let bucket = Some(&input.bucket).filter(|bucket| self.last_bucket.as_ref() != Some(bucket));
        let names = bucket.map_or(0, |bucket| bucket.bucket_type.len() + bucket.name.len());
        let data_bytes = key_data.as_ref().map_or(0, Vec::len);
        let scratch_bytes = budget.bytes_used() - before;
        budget.reserve(&mut self.bytes, OVERHEAD_BYTES_MAX + names + input.key.len() + data_bytes)?;
        budget.give(scratch_bytes);
        let bucket_type = bucket.filter(|bucket| !bucket.is_default_type()).map(|bucket| &bucket.bucket_type);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        self.bytes.push(
            flag(bucket.is_some(), HAS_BUCKET)
                | flag(bucket_type.is_some(), HAS_TYPE)
                | flag(key_data.is_some(), HAS_KEY_DATA),
        );
        let name = bucket.map(|bucket| &bucket.name);
        let parts = [bucket_type, name, Some(&input.key)].into_iter().flatten().map(|bytes| &bytes[..]);
        parts.chain(key_data.as_deref()).for_each(|part| put(part, &mut self.bytes));
        if let Some(bucket) = bucket {
            self.last_bucket = Some(bucket.clone());
        }
        self.len += 1;
        Ok(())
    }

    /// The list.
    pub fn finish(self) -> InputList {
        InputList { bytes: self.bytes.into(), len: self.len }
    }
}

/// Key data in Erlang's external term format. Its scratch memory counts in the budget.
fn encoded(term: &Term, budget: &mut DecodeBudget) -> Result<Vec<u8>, TooLarge> {
    // No term is longer in this format than in memory.
    let bytes = 1 + crate::bytes_held(term);
    budget.take(allocated(bytes))?;
    let mut out = Vec::with_capacity(bytes);
    encode_to(term, &mut out);
    Ok(out)
}

fn put(part: &[u8], out: &mut Vec<u8>) {
    let mut length = part.len();
    while length > 0x7f {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(part);
}

impl InputList {
    /// How many inputs these are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The inputs, one after the other.
    pub fn iter(&self) -> InputListIter {
        InputListIter { rest: self.bytes.clone(), bucket: None }
    }
}

impl IntoIterator for &InputList {
    type Item = Input;
    type IntoIter = InputListIter;

    fn into_iter(self) -> InputListIter {
        self.iter()
    }
}

impl FromIterator<Input> for InputList {
    /// For inputs that this node has made itself: their size has no bound.
    fn from_iter<I: IntoIterator<Item = Input>>(inputs: I) -> Self {
        let (mut list, mut budget) = (InputListBuilder::default(), DecodeBudget::unlimited());
        for input in inputs {
            if list.push(&input, &mut budget).is_err() {
                break;
            }
        }
        list.finish()
    }
}

impl Iterator for InputListIter {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        let (&flags, _) = self.rest.split_first()?;
        self.rest = self.rest.slice(1..);
        if flags & HAS_BUCKET != 0 {
            let bucket_type = if flags & HAS_TYPE != 0 { Some(self.part()?) } else { None };
            let name = self.part()?;
            self.bucket = Some(match bucket_type {
                Some(bucket_type) => Bucket::typed(bucket_type, name),
                None => Bucket::untyped(name),
            });
        }
        let (bucket, key) = (self.bucket.clone()?, self.part()?);
        let key_data = if flags & HAS_KEY_DATA != 0 { decode_with(&self.part()?, KEY_DATA_LIMITS).ok() } else { None };
        Some(Input { bucket, key, key_data })
    }
}

impl InputListIter {
    fn part(&mut self) -> Option<Bytes> {
        let (mut length, mut read) = (0, 0);
        for byte in self.rest.iter().take(10) {
            length |= usize::from(byte & 0x7f) << (7 * read);
            read += 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let end = length.checked_add(read).filter(|end| *end <= self.rest.len())?;
        let part = self.rest.split_to(end);
        Some(part.slice(read..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json;
    use ombak_types::json::Json;
    use proptest::prelude::*;

    fn input() -> impl Strategy<Value = Input> {
        let name = || proptest::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from);
        let data = proptest::option::of(prop_oneof![
            any::<i64>().prop_map(Term::Int),
            name().prop_map(Term::Binary),
            any::<bool>().prop_map(|flag| from_json(&Json::List(vec![Json::Bool(flag), Json::Object(Vec::new())]))),
        ]);
        let bucket = prop_oneof![
            Just(Bucket::untyped("b")),
            name().prop_map(Bucket::untyped),
            (name(), name()).prop_map(|(bucket_type, name)| Bucket::typed(bucket_type, name)),
        ];
        (bucket, name(), data).prop_map(|(bucket, key, key_data)| Input { bucket, key, key_data })
    }

    proptest! {
        #[test]
        fn inputs_come_back_as_they_were(inputs in proptest::collection::vec(input(), 0..20)) {
            let list: InputList = inputs.iter().cloned().collect();
            prop_assert_eq!(list.len(), inputs.len());
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), inputs);
        }
    }

    #[test]
    fn key_data_may_nest_as_deep_as_json() {
        let text = format!("{}1{}", "{\"a\":".repeat(127), "}".repeat(127));
        let deep = from_json(&Json::read(text.as_bytes()).unwrap());
        let input = Input { key_data: Some(deep), ..Input::new(Bucket::untyped("b"), Bytes::from_static(b"k")) };
        let list: InputList = std::iter::once(input.clone()).collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), [input]);
    }

    #[test]
    fn an_input_takes_fewer_bytes_than_in_a_request() {
        let (mut list, mut budget) = (InputListBuilder::default(), DecodeBudget::unlimited());
        for _ in 0..100_000 {
            list.push(&Input::new(Bucket::untyped("b"), Bytes::from_static(b"k")), &mut budget).unwrap();
        }
        assert_eq!(list.bytes.len(), 2 + 100_000 * 3);
        assert!(budget.bytes_peak() < 100_000 * "[\"b\",\"k\"],".len(), "{}", budget.bytes_peak());
    }
}
