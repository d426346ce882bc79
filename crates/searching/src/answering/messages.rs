//! What nodes ask each other, and what they answer.
//!
//! ```text
//! question  JSON, because a question is small and has a list of names and values
//! answer    u8 version, u8 kind, then the bytes of ombak_search's PartAnswer, or a text
//! ```

use ombak_search::merge::PartAnswer;
use serde::{Deserialize, Serialize};

/// The name under which nodes ask.
pub(crate) const FEATURE: &str = "search";

/// The version of both forms.
const VERSION: u8 = 1;

const FOUND: u8 = 0;
const BAD_QUERY: u8 = 1;
const TIMED_OUT: u8 = 2;

/// The question to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchQuestion {
    pub(crate) version: u8,
    /// The name of the index.
    pub(crate) index: String,
    /// Its incarnation.
    pub(crate) incarnation: u64,
    /// When the query began, in milliseconds since the Unix epoch.
    pub(crate) begun_ms: i64,
    /// Whether an answer is wanted of home partitions that are not fresh, too.
    pub(crate) takes_stale: bool,
    /// The parameters of the query.
    pub(crate) parameters: Vec<(String, String)>,
}

impl SearchQuestion {
    pub(crate) fn new(index: &str, incarnation: u64, begun_ms: i64, parameters: Vec<(String, String)>) -> Self {
        let index = index.to_owned();
        Self { version: VERSION, index, incarnation, begun_ms, takes_stale: false, parameters }
    }

    /// Reads the bytes of a question; `None` if they are none that this node understands.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(bytes).ok().filter(|question| question.version == VERSION)
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

/// The answer of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeAnswer {
    /// What was found.
    Found(PartAnswer),
    /// The query cannot be carried out; every node would say so.
    BadQuery(String),
    /// The query took too long.
    TimedOut,
}

impl NodeAnswer {
    /// Reads the bytes of an answer; `None` if they are none that this node understands.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (&[version, kind], rest) = bytes.split_first_chunk::<2>()?;
        match (version, kind) {
            (VERSION, FOUND) => PartAnswer::from_bytes(rest).ok().map(Self::Found),
            (VERSION, BAD_QUERY) => String::from_utf8(rest.to_vec()).ok().map(Self::BadQuery),
            (VERSION, TIMED_OUT) => Some(Self::TimedOut),
            _ => None,
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (kind, rest) = match self {
            Self::Found(part) => (FOUND, part.to_bytes()),
            Self::BadQuery(why) => (BAD_QUERY, why.as_bytes().to_vec()),
            Self::TimedOut => (TIMED_OUT, Vec::new()),
        };
        [&[VERSION, kind], &rest[..]].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_questions_of_version_1_stays() {
        let stored = r#"{"version":1,"index":"people","incarnation":18446744073709551615,"begun_ms":-1,"takes_stale":true,"parameters":[["q","*:*"]]}"#;
        let question = SearchQuestion::read(stored.as_bytes()).unwrap();
        assert_eq!(question.to_bytes().unwrap(), stored.as_bytes());
        assert_eq!((question.incarnation, question.parameters.len()), (u64::MAX, 1));
        assert_eq!(SearchQuestion::read(stored.replace("n\":1", "n\":2").as_bytes()), None);
    }

    #[test]
    fn answers_come_back() {
        let found = PartAnswer { found_count: 7, ..PartAnswer::default() };
        for answer in [NodeAnswer::Found(found), NodeAnswer::BadQuery("no".into()), NodeAnswer::TimedOut] {
            assert_eq!(NodeAnswer::read(&answer.to_bytes()), Some(answer));
        }
        assert_eq!(NodeAnswer::BadQuery("no".into()).to_bytes(), b"\x01\x01no");
        for bytes in [&b""[..], b"\x01", b"\x02\x02", b"\x01\x03", b"\x01\x00\xff\xff"] {
            assert_eq!(NodeAnswer::read(bytes), None, "{bytes:?}");
        }
    }
}
