//! XML that strangers send, read within limits.
//!
//! The library reads without recursion and expands no entity of a document that declares none. It
//! compares every attribute with the others of its element, and copies the namespaces in scope, so
//! their numbers are checked before it starts.

use roxmltree::{Document, ParsingOptions};

/// Elements inside each other.
pub(crate) const DEPTH_MAX: usize = 100;

/// Attributes of an element.
pub(crate) const ELEMENT_ATTRIBUTES_MAX: usize = 256;

/// Elements, texts, comments and attributes of a document, roughly.
pub(crate) const NODES_MAX: u32 = 100_000;

/// Declarations of namespaces in a document.
pub(crate) const NAMESPACES_MAX: usize = 1_000;

/// A text is no XML, or asks for too much.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadXml {
    /// It has an error.
    #[error("line {line}: {what}")]
    NotWellFormed {
        /// The line, beginning with 1.
        line: u32,
        /// What is wrong.
        what: String,
    },
    /// It declares entities, which could make a short text large.
    #[error("declarations of entities (<!ENTITY) are refused")]
    Entities,
    /// Too many elements inside each other.
    #[error("XML has at most {DEPTH_MAX} elements inside each other")]
    TooDeep,
    /// Too many elements, texts or attributes.
    #[error(
        "XML has at most {NODES_MAX} elements, texts and attributes, {ELEMENT_ATTRIBUTES_MAX} attributes of an element \
         and {NAMESPACES_MAX} namespaces"
    )]
    TooMany,
}

/// Reads a document. Its length is the caller's to bound.
pub(crate) fn read_xml(text: &str) -> Result<Document<'_>, BadXml> {
    if text.contains("<!ENTITY") {
        return Err(BadXml::Entities);
    }
    check(text)?;
    let options = ParsingOptions { allow_dtd: true, nodes_limit: NODES_MAX, entity_resolver: None };
    Document::parse_with_options(text, options).map_err(|error| match error {
        roxmltree::Error::NodesLimitReached
        | roxmltree::Error::AttributesLimitReached
        | roxmltree::Error::NamespacesLimitReached => BadXml::TooMany,
        error => BadXml::NotWellFormed { line: error.pos().row, what: error.to_string() },
    })
}

/// Counts tags and attributes. What it takes for a tag in a text that is not well-formed does not
/// matter: the library refuses that text.
fn check(text: &str) -> Result<(), BadXml> {
    let (mut rest, mut depth, mut attributes, mut namespaces) = (text, 0_usize, 0, 0);
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(end) = passed(rest) {
            rest = rest.get(end..).unwrap_or_default();
        } else if rest.starts_with('/') {
            depth = depth.saturating_sub(1);
        } else {
            let tag = Tag::read(rest);
            depth += usize::from(!tag.is_empty);
            attributes += tag.attributes;
            namespaces += tag.namespaces;
            if depth > DEPTH_MAX {
                return Err(BadXml::TooDeep);
            }
            if tag.attributes > ELEMENT_ATTRIBUTES_MAX || attributes > NODES_MAX as usize || namespaces > NAMESPACES_MAX
            {
                return Err(BadXml::TooMany);
            }
            rest = &rest[tag.bytes..];
        }
    }
    Ok(())
}

/// How many bytes to pass behind a `<` that begins no tag.
fn passed(rest: &str) -> Option<usize> {
    for (begin, end) in [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")] {
        if rest.starts_with(begin) {
            return Some(rest.find(end).map_or(rest.len(), |at| at + end.len()));
        }
    }
    rest.starts_with('!').then_some(1)
}

/// A tag that begins or is an element.
struct Tag {
    bytes: usize,
    attributes: usize,
    namespaces: usize,
    is_empty: bool,
}

impl Tag {
    /// Reads the tag at the beginning of a text, without its `<`.
    fn read(text: &str) -> Self {
        let mut quote = None;
        let mut attributes = 0;
        let mut bytes = text.len();
        for (at, byte) in text.bytes().enumerate() {
            match (quote, byte) {
                (None, b'>') => {
                    bytes = at;
                    break;
                }
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), byte) if open == byte => quote = None,
                (None, b'=') => attributes += 1,
                _ => {}
            }
        }
        let tag = &text[..bytes];
        Self { bytes, attributes, namespaces: tag.matches("xmlns").count(), is_empty: tag.ends_with('/') }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_documents_are_read() {
        for text in [
            "<a b='1>2' c=\"=\"><!-- <<<< --><![CDATA[<x>]]><?p <?><d/></a>",
            "<!DOCTYPE a SYSTEM \"a.dtd\"><a>x</a>",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a xmlns='urn:x'><b/></a>",
        ] {
            assert!(read_xml(text).is_ok(), "{text}: {:?}", read_xml(text));
        }
        let deep = format!("{}{}", "<a>".repeat(DEPTH_MAX), "</a>".repeat(DEPTH_MAX));
        assert!(read_xml(&deep).is_ok());
    }

    #[test]
    fn hostile_documents_are_refused() {
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>";
        let external = "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>";
        let attributes: String = (0..300).map(|n| format!(" a{n}=''")).collect();
        let namespaces: String = (0..1_001).map(|n| format!("<a xmlns='urn:{n}'/>")).collect();
        for (text, bad) in [
            (bomb.to_owned(), BadXml::Entities),
            (external.to_owned(), BadXml::Entities),
            ("<a>".repeat(1_000_000), BadXml::TooDeep),
            (format!("<a{attributes}/>"), BadXml::TooMany),
            (format!("<a>{namespaces}</a>"), BadXml::TooMany),
            (format!("<a>{}</a>", "<b/>".repeat(200_000)), BadXml::TooMany),
            (format!("<a>{}</a>", "<b c=''/>".repeat(200_000)), BadXml::TooMany),
        ] {
            assert_eq!(read_xml(&text).map(|_| ()), Err(bad));
        }
    }

    #[test]
    fn errors_name_the_line() {
        assert!(matches!(read_xml("<a>\n<b>\n</a>"), Err(BadXml::NotWellFormed { line: 3, .. })));
        assert!(matches!(read_xml("<a>\n&x;</a>"), Err(BadXml::NotWellFormed { line: 2, .. })));
        assert!(matches!(read_xml("<a"), Err(BadXml::NotWellFormed { line: 1, .. })));
        assert!(matches!(read_xml(""), Err(BadXml::NotWellFormed { .. })));
    }
}
