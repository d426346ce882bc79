//! The answer of a node as bytes, for its way to the node that merges.
//!
//! ```text
//!  01 (the version)   found u64   flags u8: 1 a best score, 2 facets, 4 partial   [best score f32]
//!  hits: count u32, then each: id text, keys: count u32 and values,
//!        fields: count u32, then each: name text, 00 and a value, or 01, count u32 and values
//!        00, or 01 and the score f32
//!  facets: queries: count u32, u64 each
//!          fields: count u32, then each: count u32, then each: value, u64
//!          ranges: count u32, then each: count u32, u64 each             all numbers big-endian
//! ```
//!
//! Reading takes the counts of a stranger: nothing is reserved for them, so that what is read costs
//! memory only for bytes that are there.

use super::part_answer::{Hit, PartAnswer, PartFacets};
use crate::answer::{Document, FieldValues};
use crate::values::{Value, read_text, read_value, take, write_text, write_value};

/// The version of the form.
const VERSION: u8 = 1;

const HAS_SCORE_MAX: u8 = 1;
const HAS_FACETS: u8 = 2;
const IS_PARTIAL: u8 = 4;

/// Bytes are no answer of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPartAnswer {
    /// Another version.
    #[error("the answer of a node has the version {0}, and version {VERSION} is needed")]
    Version(u8),
    /// No answer.
    #[error("the answer of a node cannot be read")]
    Form,
}

impl PartAnswer {
    /// The bytes of the answer.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.found_count.to_be_bytes());
        let flags = [
            (self.score_max.is_some(), HAS_SCORE_MAX),
            (self.facets.is_some(), HAS_FACETS),
            (self.is_partial, IS_PARTIAL),
        ];
        bytes.push(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
        bytes.extend(self.score_max.iter().flat_map(|score| score.to_bits().to_be_bytes()));
        write_list(&self.hits, &mut bytes, write_hit);
        if let Some(facets) = &self.facets {
            write_list(&facets.queries, &mut bytes, write_u64);
            write_list(&facets.fields, &mut bytes, |counts, bytes| write_list(counts, bytes, write_count));
            write_list(&facets.ranges, &mut bytes, |counts, bytes| write_list(counts, bytes, write_u64));
        }
        bytes
    }

    /// Reads the bytes of an answer.
    ///
    /// # Errors
    /// They are none, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadPartAnswer> {
        let (version, mut rest) = bytes.split_first().ok_or(BadPartAnswer::Form)?;
        if *version != VERSION {
            return Err(BadPartAnswer::Version(*version));
        }
        let answer = read_answer(&mut rest).ok_or(BadPartAnswer::Form)?;
        if rest.is_empty() { Ok(answer) } else { Err(BadPartAnswer::Form) }
    }
}

fn read_answer(rest: &mut &[u8]) -> Option<PartAnswer> {
    let found_count = read_u64(rest)?;
    let [flags] = take(rest)?;
    if flags & !(HAS_SCORE_MAX | HAS_FACETS | IS_PARTIAL) != 0 {
        return None;
    }
    let score_max = if flags & HAS_SCORE_MAX == 0 { None } else { Some(read_f32(rest)?) };
    let hits = read_list(rest, read_hit)?;
    let facets = if flags & HAS_FACETS == 0 { None } else { Some(read_facets(rest)?) };
    Some(PartAnswer { found_count, score_max, hits, facets, is_partial: flags & IS_PARTIAL != 0 })
}

fn write_hit(hit: &Hit, bytes: &mut Vec<u8>) {
    write_text(&hit.id, bytes);
    write_list(&hit.sort_values, bytes, |value, bytes| write_value(value.as_ref(), bytes));
    write_list(&hit.document.fields, bytes, write_field);
    match hit.document.score {
        None => bytes.push(0),
        Some(score) => {
            bytes.push(1);
            bytes.extend(score.to_bits().to_be_bytes());
        }
    }
}

fn read_hit(rest: &mut &[u8]) -> Option<Hit> {
    let id = read_text(rest)?;
    let sort_values = read_list(rest, read_value)?;
    let fields = read_list(rest, read_field)?;
    let score = match take(rest)? {
        [0] => None,
        [1] => Some(read_f32(rest)?),
        _ => return None,
    };
    Some(Hit { id, sort_values, document: Document { fields, score } })
}

fn write_field((name, values): &(String, FieldValues), bytes: &mut Vec<u8>) {
    write_text(name, bytes);
    match values {
        FieldValues::One(value) => {
            bytes.push(0);
            write_value(Some(value), bytes);
        }
        FieldValues::Many(values) => {
            bytes.push(1);
            write_list(values, bytes, |value, bytes| write_value(Some(value), bytes));
        }
    }
}

fn read_field(rest: &mut &[u8]) -> Option<(String, FieldValues)> {
    let name = read_text(rest)?;
    let values = match take(rest)? {
        [0] => FieldValues::One(read_value(rest)??),
        [1] => FieldValues::Many(read_list(rest, |rest| read_value(rest)?)?),
        _ => return None,
    };
    Some((name, values))
}

fn read_facets(rest: &mut &[u8]) -> Option<PartFacets> {
    Some(PartFacets {
        queries: read_list(rest, read_u64)?,
        fields: read_list(rest, |rest| read_list(rest, read_count))?,
        ranges: read_list(rest, |rest| read_list(rest, read_u64))?,
    })
}

fn write_count((value, count): &(Value, u64), bytes: &mut Vec<u8>) {
    write_value(Some(value), bytes);
    write_u64(count, bytes);
}

fn read_count(rest: &mut &[u8]) -> Option<(Value, u64)> {
    Some((read_value(rest)??, read_u64(rest)?))
}

/// Lists are in memory, so they have no more items than fit.
fn write_list<T>(items: &[T], bytes: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
    bytes.extend(count.to_be_bytes());
    items.iter().take(count as usize).for_each(|item| write(item, bytes));
}

fn read_list<T>(rest: &mut &[u8], read: impl Fn(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = u32::from_be_bytes(take(rest)?);
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(read(rest)?);
    }
    Some(items)
}

fn write_u64(number: &u64, bytes: &mut Vec<u8>) {
    bytes.extend(number.to_be_bytes());
}

fn read_u64(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(take(rest)?))
}

fn read_f32(rest: &mut &[u8]) -> Option<f32> {
    Some(f32::from_bits(u32::from_be_bytes(take(rest)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dates::Date;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            "\\PC{0,6}".prop_map(Value::String),
            "\\PC{0,6}".prop_map(Value::Text),
            any::<i32>().prop_map(Value::Int),
            any::<i64>().prop_map(Value::Long),
            any::<f32>().prop_map(Value::Float),
            any::<f64>().prop_map(Value::Double),
            any::<bool>().prop_map(Value::Bool),
            (-300_000_000_000_000_i64..250_000_000_000_000).prop_map(|ms| Value::Date(Date::from_unix_ms(ms).unwrap())),
            prop::collection::vec(any::<u8>(), 0..6).prop_map(Value::Bytes),
        ]
    }

    fn hit() -> impl Strategy<Value = Hit> {
        let values = prop_oneof![
            value().prop_map(FieldValues::One),
            prop::collection::vec(value(), 0..3).prop_map(FieldValues::Many),
        ];
        let fields = prop::collection::vec(("[a-z_]{0,4}", values), 0..3);
        let keys = prop::collection::vec(prop::option::of(value()), 0..3);
        ("\\PC{0,8}", keys, fields, prop::option::of(any::<f32>())).prop_map(|(id, sort_values, fields, score)| Hit {
            id,
            sort_values,
            document: Document { fields, score },
        })
    }

    fn facets() -> impl Strategy<Value = PartFacets> {
        let counts = || prop::collection::vec(any::<u64>(), 0..3);
        let values = prop::collection::vec((value(), any::<u64>()), 0..3);
        (counts(), prop::collection::vec(values, 0..3), prop::collection::vec(counts(), 0..3))
            .prop_map(|(queries, fields, ranges)| PartFacets { queries, fields, ranges })
    }

    fn answer() -> impl Strategy<Value = PartAnswer> {
        let score = prop::option::of(any::<f32>());
        (any::<u64>(), score, prop::collection::vec(hit(), 0..3), prop::option::of(facets()), any::<bool>()).prop_map(
            |(found_count, score_max, hits, facets, is_partial)| PartAnswer {
                found_count,
                score_max,
                hits,
                facets,
                is_partial,
            },
        )
    }

    #[test]
    fn the_form_of_version_1_stays() {
        let hit = Hit {
            id: "1*t*b*k*7".into(),
            sort_values: vec![Some(Value::Int(-2)), None],
            document: Document {
                fields: vec![
                    ("a_s".into(), FieldValues::One(Value::String("é".into()))),
                    ("b_is".into(), FieldValues::Many(vec![Value::Int(1)])),
                ],
                score: Some(1.5),
            },
        };
        let facets =
            PartFacets { queries: vec![3], fields: vec![vec![(Value::Bool(true), 2)]], ranges: vec![vec![0, 9]] };
        let answer = PartAnswer {
            found_count: 258,
            score_max: Some(1.5),
            hits: vec![hit],
            facets: Some(facets),
            is_partial: true,
        };
        let frozen = concat!(
            "01",
            "0000000000000102",
            "07",
            "3fc00000",
            "00000001",
            "00000009",
            "312a742a622a6b2a37",
            "00000002",
            "04fffffffe",
            "00",
            "00000002",
            "00000003615f73",
            "00",
            "01",
            "00000002c3a9",
            "00000004625f6973",
            "01",
            "00000001",
            "0400000001",
            "01",
            "3fc00000",
            "00000001",
            "0000000000000003",
            "00000001",
            "00000001",
            "03",
            "0000000000000002",
            "00000001",
            "00000002",
            "0000000000000000",
            "0000000000000009",
        );
        let hex: String = answer.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, frozen);
        assert_eq!(PartAnswer::from_bytes(&answer.to_bytes()), Ok(answer));
    }

    #[test]
    fn other_versions_and_counts_without_items_are_refused() {
        assert_eq!(PartAnswer::from_bytes(&[]), Err(BadPartAnswer::Form));
        assert_eq!(PartAnswer::from_bytes(&[2, 0]), Err(BadPartAnswer::Version(2)));
        let mut bytes = PartAnswer::default().to_bytes();
        bytes.push(0);
        assert_eq!(PartAnswer::from_bytes(&bytes), Err(BadPartAnswer::Form));
        bytes.truncate(10);
        bytes.extend([0xff; 4]);
        assert_eq!(PartAnswer::from_bytes(&bytes), Err(BadPartAnswer::Form));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(answer in answer()) {
            let bytes = answer.to_bytes();
            let read = PartAnswer::from_bytes(&bytes).unwrap();
            // Numbers that are none are not equal; their bytes are.
            prop_assert_eq!(read.to_bytes(), bytes);
        }

        #[test]
        fn what_is_cut_off_or_changed_never_panics(answer in answer(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let bytes = answer.to_bytes();
            let at = at.index(bytes.len());
            prop_assert_eq!(PartAnswer::from_bytes(&bytes[..at]).is_ok(), false);
            let mut changed = bytes;
            changed[at] = byte;
            if let Ok(read) = PartAnswer::from_bytes(&changed) {
                prop_assert_eq!(read.to_bytes(), changed);
            }
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = PartAnswer::from_bytes(&bytes);
            bytes.insert(0, VERSION);
            if let Ok(read) = PartAnswer::from_bytes(&bytes) {
                prop_assert_eq!(read.to_bytes(), bytes);
            }
        }
    }
}
