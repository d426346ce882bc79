//! Tags: metadata of an object that its field `x-riak-meta-yz-tags` names, separated by commas.

use super::error::ExtractError;
use super::extractor::text_of;
use super::limits::TAGS_MAX;
use super::pair::{Pair, Pairs};
use std::collections::BTreeMap;

/// Metadata that clients set have names that begin so.
const PREFIX: &str = "x-riak-meta-";

/// The name of the metadata that lists the tags.
const LIST: &str = "x-riak-meta-yz-tags";

/// Reads the tags of an object: the metadata that it lists, with their names without
/// `x-riak-meta-`. The case of names does not count, spaces in the list do not either, and a name
/// that is not there or begins otherwise is left out.
///
/// # Errors
/// A list or a value is not UTF-8, or there are too many tags.
pub fn extract_tags<'a>(metadata: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Result<Vec<Pair>, ExtractError> {
    // Of two names that differ in case, the last one counts.
    let by_name: BTreeMap<Vec<u8>, &[u8]> =
        metadata.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    let Some(list) = by_name.get(LIST.as_bytes()) else { return Ok(Vec::new()) };
    let list = text_of(list)?.replace(' ', "").to_ascii_lowercase();
    let mut pairs = Pairs::default();
    for (count, tag) in list.split(',').enumerate() {
        if count == TAGS_MAX {
            return Err(ExtractError::TooManyTags);
        }
        if let Some(name) = tag.strip_prefix(PREFIX)
            && let Some(value) = by_name.get(tag.as_bytes())
        {
            pairs.push_text(name, text_of(value)?)?;
        }
    }
    Ok(pairs.into_list())
}

#[cfg(test)]
mod tests {
    use super::super::pair::Extracted;
    use super::*;

    fn tags(metadata: &[(&str, &str)]) -> Vec<(String, String)> {
        let metadata = metadata.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let shown = |pair: Pair| match pair.value {
            Extracted::Text(text) => (pair.name, text),
            Extracted::Bool(_) => panic!("tags are texts"),
        };
        extract_tags(metadata).unwrap().into_iter().map(shown).collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn listed_metadata_are_fields() {
        let metadata = [
            ("X-Riak-Meta-Yz-Tags", "x-riak-meta-mark_s , X-Riak-Meta-age_i,x-riak-meta-none,other,"),
            ("x-riak-meta-Mark_s", "Über alles"),
            ("X-RIAK-META-AGE_I", "7"),
            ("x-riak-meta-hidden_s", "x"),
            ("other", "y"),
        ];
        assert_eq!(tags(&metadata), [pair("mark_s", "Über alles"), pair("age_i", "7")]);
    }

    #[test]
    fn objects_without_a_list_have_no_tags() {
        assert!(tags(&[("x-riak-meta-a_s", "x")]).is_empty());
        assert!(tags(&[("x-riak-meta-yz-tags", "")]).is_empty());
    }

    #[test]
    fn tags_are_bounded_texts() {
        let list = "x-riak-meta-a,".repeat(300);
        let result = extract_tags([(LIST.as_bytes(), list.as_bytes()), (b"x-riak-meta-a", b"x")]);
        assert_eq!(result, Err(ExtractError::TooManyTags));
        let result = extract_tags([(LIST.as_bytes(), &b"x-riak-meta-a"[..]), (b"x-riak-meta-a", b"\xff")]);
        assert_eq!(result, Err(ExtractError::NotUtf8));
    }
}
