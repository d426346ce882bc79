//! The text format of a node's small files: a JSON object with a version and a checksum.
//!
//! What it is: a text format in which the checksum is the first field. The checksum covers the text
//! as it is without that field, so that the file remains one JSON object and every byte of it
//! counts. The first version of a file had no checksum and stays readable.
//!
//! What it is not: it opens and replaces no files.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

const BEGIN: &[u8] = b"{\n  \"checksum\": \"";
const DIGITS: usize = 16;
const END: &[u8] = b"\",";

/// The versions of a file that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// The last version without a checksum.
    pub without_checksum: u32,
    /// The version that is written. It has a checksum, and so have those between the two.
    pub current: u32,
}

/// Decoded first, so that a file of a later version is reported as such and not as damaged.
#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

/// The text of a value. The value's field `format` holds the current version.
pub fn to_text<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(with_checksum(&text))
}

/// Reads a text. The error says what is wrong, in words that follow the name of the file.
pub fn from_text<T: DeserializeOwned>(mut text: Vec<u8>, formats: Formats) -> Result<T, String> {
    let damaged = |why: &str| format!("is damaged ({why})");
    let (json, has_checksum) = match split(&mut text) {
        Some((json, checksum)) if checksum == Some(xxh3_64(json)) => (&*json, true),
        Some(_) => return Err(damaged("it does not match its checksum")),
        None => (text.as_slice(), false),
    };
    let FormatOnly { format } = serde_json::from_slice(json).map_err(|e| damaged(&e.to_string()))?;
    let Formats { without_checksum, current } = formats;
    if !(without_checksum..=current).contains(&format) {
        let up_to = if current == without_checksum + 1 { "and" } else { "to" };
        return Err(format!(
            "has format {format}, and this version of ombak reads the formats {without_checksum} {up_to} {current}"
        ));
    }
    if (format > without_checksum || format == current) && !has_checksum {
        return Err(damaged("its checksum is missing"));
    }
    serde_json::from_slice(json).map_err(|e| damaged(&e.to_string()))
}

/// Puts the checksum into the text of a JSON object.
pub fn with_checksum(json: &[u8]) -> Vec<u8> {
    let digits = format!("{:016x}", xxh3_64(json));
    let fields = json.strip_prefix(b"{").unwrap_or(json);
    [BEGIN, digits.as_bytes(), END, fields].concat()
}

/// Splits a text into the JSON without the checksum, and the checksum; returns `None` for a text
/// without one. The byte before the other fields is overwritten with the opening brace that the
/// checksum covers.
fn split(text: &mut [u8]) -> Option<(&mut [u8], Option<u64>)> {
    let after = text.strip_prefix(BEGIN)?.get(DIGITS..)?.strip_prefix(END)?.len();
    let digits = text.get(BEGIN.len()..BEGIN.len() + DIGITS)?;
    let is_ours = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let checksum = str::from_utf8(digits).ok().filter(|_| is_ours).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let begin = text.len() - after - 1;
    let json = text.get_mut(begin..)?;
    *json.first_mut()? = b'{';
    Some((json, checksum))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMATS: Formats = Formats { without_checksum: 1, current: 2 };

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Saved {
        format: u32,
        name: String,
        share: f64,
    }

    fn saved() -> Saved {
        Saved { format: 2, name: "a name".into(), share: 0.1 + 0.2 }
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed_and_no_missing_end() {
        let text = to_text(&saved()).unwrap();
        assert_eq!(from_text::<Saved>(text.clone(), FORMATS), Ok(saved()));
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&text).unwrap()["name"], "a name");
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let said = from_text::<Saved>(flipped, FORMATS).unwrap_err();
            assert!(said.starts_with("is damaged ("), "bit {bit}: {said}");
        }
        for length in 0..text.len() {
            assert!(from_text::<Saved>(text[..length].to_vec(), FORMATS).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn the_version_before_has_no_checksum_and_later_ones_are_named() {
        let plain =
            |format: u32| format!("{{\"format\": {format}, \"name\": \"a name\", \"share\": 1.0}}").into_bytes();
        let found = from_text::<Saved>(plain(1), FORMATS).unwrap();
        assert_eq!((found.format, &*found.name), (1, "a name"));
        let said = |text| from_text::<Saved>(text, FORMATS).unwrap_err();
        assert_eq!(said(plain(2)), "is damaged (its checksum is missing)");
        for later in [plain(3), with_checksum(&plain(3))] {
            assert_eq!(said(later), "has format 3, and this version of ombak reads the formats 1 and 2");
        }
    }
}
