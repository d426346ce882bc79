//! The operations of `basho_bench_driver_http_raw` (docs/riak/basho-bench.md §4.4).

use crate::drivers::network::bytes;
use crate::term::Term;

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpOperation {
    /// Reads a key, which may be missing.
    Get,
    /// Reads a key that must exist.
    GetExisting,
    /// Writes a key without reading it first.
    Put,
    /// Writes a value under a key that the server chooses.
    Insert,
    /// Reads and then writes a key, which may be missing.
    Update,
    /// Reads and then writes a key that must exist.
    UpdateExisting,
    /// Deletes a key, which may be missing.
    Delete,
    /// Writes the content of the next file in a directory.
    PutFile,
    /// Runs a search whose number of results is known.
    Search {
        /// The search query.
        query: Vec<u8>,
        /// The expected number of results.
        expected: u64,
    },
    /// Reads the server's statistics.
    Stat,
}

const NAMES: [(&str, HttpOperation); 9] = [
    ("get", HttpOperation::Get),
    ("get_existing", HttpOperation::GetExisting),
    ("put", HttpOperation::Put),
    ("insert", HttpOperation::Insert),
    ("update", HttpOperation::Update),
    ("update_existing", HttpOperation::UpdateExisting),
    ("delete", HttpOperation::Delete),
    ("put_file", HttpOperation::PutFile),
    ("stat", HttpOperation::Stat),
];

impl HttpOperation {
    /// Parses an entry of `operations`.
    pub fn parse(term: &Term) -> Result<Self, String> {
        match term {
            Term::Atom(name) if name == "search" => {
                let what = "its queries come from http_search_generator, an Erlang function, and no Erlang is run here";
                Err(format!("'search' cannot be done: {what}; {{search, {{\"query\", Expected}}}} can"))
            }
            Term::Atom(name) => match NAMES.iter().find(|(known, _)| known == name) {
                Some((_, operation)) => Ok(operation.clone()),
                None => Err(unknown(term)),
            },
            Term::Tuple(pair) => search(pair).ok_or_else(|| unknown(term)),
            _ => Err(unknown(term)),
        }
    }
}

/// Parses the arguments of `{search, {Query, Expected}}`.
fn search(pair: &[Term]) -> Option<HttpOperation> {
    let [Term::Atom(name), Term::Tuple(asked)] = pair else { return None };
    let [query, Term::Integer(expected)] = &asked[..] else { return None };
    let (query, expected) = (bytes(query)?, u64::try_from(*expected).ok()?);
    (name == "search").then_some(HttpOperation::Search { query, expected })
}

fn unknown(term: &Term) -> String {
    let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
    let what = match term {
        Term::Atom(name) => format!("'{name}'"),
        _ => "like this one".to_owned(),
    };
    format!("there is no operation {what}; there are {} and {{search, {{\"query\", Expected}}}}", names.join(", "))
}
