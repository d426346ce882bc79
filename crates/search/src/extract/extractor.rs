//! Which extractor reads a value.

use super::error::ExtractError;
use super::limits::VALUE_BYTES_MAX;
use super::pair::{Pair, Pairs};
use super::{json, xml};

/// How a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extractor {
    /// JSON.
    Json,
    /// XML.
    Xml,
    /// The value is one text, under the name `text`.
    Text,
    /// Nothing is read.
    Nothing,
}

impl Extractor {
    /// The extractor of a media type. Parameters such as `charset` do not count.
    pub fn of_media_type(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        match essence.to_ascii_lowercase().as_str() {
            "application/json" => Self::Json,
            "application/xml" | "text/xml" => Self::Xml,
            "text/plain" => Self::Text,
            _ => Self::Nothing,
        }
    }

    /// The extractor of a name, as the header `yz-extractor` has it.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "yz_json_extractor" => Self::Json,
            "yz_xml_extractor" => Self::Xml,
            "yz_text_extractor" => Self::Text,
            "yz_noop_extractor" => Self::Nothing,
            _ => return None,
        })
    }

    /// Reads a value.
    ///
    /// # Errors
    /// The value cannot be read, or has more than fits.
    pub fn extract(self, value: &[u8]) -> Result<Vec<Pair>, ExtractError> {
        if self == Self::Nothing {
            return Ok(Vec::new());
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(ExtractError::TooLong);
        }
        let mut pairs = Pairs::default();
        match self {
            Self::Json => json::extract(value, &mut pairs)?,
            Self::Xml => xml::extract(text_of(value)?, &mut pairs)?,
            Self::Text => pairs.push_text("text", text_of(value)?)?,
            Self::Nothing => {}
        }
        Ok(pairs.into_list())
    }
}

pub(super) fn text_of(bytes: &[u8]) -> Result<&str, ExtractError> {
    std::str::from_utf8(bytes).map_err(|_| ExtractError::NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::super::pair::Extracted;
    use super::*;
    use crate::extract::limits::{NAME_BYTES_MAX, PAIRS_MAX};
    use proptest::prelude::*;

    /// The pairs as `name=value`.
    fn pairs(extractor: Extractor, value: &str) -> Vec<String> {
        let shown = |pair: Pair| match pair.value {
            Extracted::Text(text) => format!("{}={text}", pair.name),
            Extracted::Bool(is_true) => format!("{}={is_true}?", pair.name),
        };
        extractor.extract(value.as_bytes()).unwrap().into_iter().map(shown).collect()
    }

    #[test]
    fn media_types_have_extractors() {
        for (media_type, extractor) in [
            ("application/json", Extractor::Json),
            ("Application/JSON; charset=utf-8", Extractor::Json),
            ("application/xml", Extractor::Xml),
            ("text/xml", Extractor::Xml),
            ("text/plain", Extractor::Text),
            ("text/plain;charset=UTF-8", Extractor::Text),
            ("text/html", Extractor::Nothing),
            ("application/octet-stream", Extractor::Nothing),
            ("application/x-erlang-binary", Extractor::Nothing),
            ("", Extractor::Nothing),
        ] {
            assert_eq!(Extractor::of_media_type(media_type), extractor, "{media_type}");
        }
        assert_eq!(Extractor::of_name("yz_xml_extractor"), Some(Extractor::Xml));
        assert_eq!(Extractor::of_name("yz_other"), None);
    }

    #[test]
    fn json_is_flattened() {
        let value = r#"{"name":"ryan","age":29,"ok":true,"none":null,"x":1.5,"y":1.1e6,"big":123456789012345678901,
            "info":{"city":"Baltimore","visited":["Boston","New York"]},
            "list":[[1,[2]],{"a":{"b":"c"}},null,[]],"empty":{}}"#;
        assert_eq!(
            pairs(Extractor::Json, value),
            [
                "name=ryan",
                "age=29",
                "ok=true?",
                "x=1.5",
                "y=1100000.0",
                "big=123456789012345678901",
                "info.city=Baltimore",
                "info.visited=Boston",
                "info.visited=New York",
                "list=1",
                "list=2",
                "list.a.b=c",
            ]
        );
        // A list of objects outside has their members. A value without a name is left out.
        assert_eq!(pairs(Extractor::Json, r#"[{"a":1},{"a":2},3]"#), ["a=1", "a=2"]);
        assert!(pairs(Extractor::Json, "\"text\"").is_empty());
        // The name of a member can be empty, or have a separator.
        assert_eq!(pairs(Extractor::Json, r#"{"a":{"":1,"b.c":2},"":{"d":3}}"#), ["a.=1", "a.b.c=2", ".d=3"]);
    }

    #[test]
    fn xml_is_flattened() {
        let value = "<?xml version='1.0'?>\n<person xmlns:x='urn:x' id='7' x:kind='a&amp;b'>\n  <name>Ryan &lt;3</name>\n  \
            <!-- not this --><x:age unit='years'>29</x:age><notes>a<b>c</b>d<![CDATA[<e>]]></notes>\n  <none/></person>";
        assert_eq!(
            pairs(Extractor::Xml, value),
            [
                "person@id=7",
                "person@kind=a&b",
                "person.name=Ryan <3",
                "person.age@unit=years",
                "person.age=29",
                "person.notes=a",
                "person.notes.b=c",
                "person.notes=d<e>",
            ]
        );
        assert_eq!(pairs(Extractor::Xml, "<a>x</a>"), ["a=x"]);
    }

    #[test]
    fn text_is_one_value() {
        assert_eq!(pairs(Extractor::Text, "bryan\nfink"), ["text=bryan\nfink"]);
        assert!(pairs(Extractor::Nothing, "bryan").is_empty());
        assert_eq!(Extractor::Text.extract(b"\xff"), Err(ExtractError::NotUtf8));
        assert_eq!(Extractor::Xml.extract(b"\xff"), Err(ExtractError::NotUtf8));
        assert_eq!(Extractor::Nothing.extract(b"\xff"), Ok(Vec::new()));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for value in ["", "{", "{\"a\":}", "{\"a\":1} x", "nul"] {
            let result = Extractor::Json.extract(value.as_bytes());
            assert!(matches!(result, Err(ExtractError::Json(_))), "{value}: {result:?}");
        }
        for value in ["", "<a>", "<a></b>", "a", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"] {
            let result = Extractor::Xml.extract(value.as_bytes());
            assert!(matches!(result, Err(ExtractError::Xml(_))), "{value}: {result:?}");
        }
    }

    #[test]
    fn hostile_values_are_refused() {
        let json = |value: String| Extractor::Json.extract(value.as_bytes()).unwrap_err();
        assert!(matches!(json("[".repeat(1_000_000)), ExtractError::Json(_)));
        assert_eq!(json(format!("{{\"a\":[{}1]}}", "1,".repeat(PAIRS_MAX))), ExtractError::TooMany);
        assert_eq!(json(format!("{{\"{}\":1}}", "a".repeat(NAME_BYTES_MAX + 1))), ExtractError::NameTooLong);
        let nested = format!("{}1{}", format!("{{\"{}\":", "a".repeat(100)).repeat(20), "}".repeat(20));
        assert_eq!(json(nested), ExtractError::NameTooLong);
        assert_eq!(Extractor::Text.extract(&vec![b'a'; VALUE_BYTES_MAX + 1]), Err(ExtractError::TooLong));
        let xml = format!("<a>{}</a>", "<b>c</b>".repeat(PAIRS_MAX + 1));
        assert_eq!(Extractor::Xml.extract(xml.as_bytes()), Err(ExtractError::TooMany));
    }

    proptest! {
        #[test]
        fn no_value_makes_an_extractor_panic(value in any::<Vec<u8>>(), text in "[\\[\\]{}\",:a1<>/&;= !-]{0,40}") {
            for extractor in [Extractor::Json, Extractor::Xml, Extractor::Text, Extractor::Nothing] {
                let _ = extractor.extract(&value);
                let _ = extractor.extract(text.as_bytes());
            }
        }
    }
}
