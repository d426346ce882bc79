//! The operations of `basho_bench_driver_riakc_pb` (docs/riak/basho-bench.md §4.1).

use crate::term::Term;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PbOperation {
    /// Reads a key, which may be missing.
    Get,
    /// Reads a key that must exist.
    GetExisting,
    /// Writes a key without reading it first.
    Put,
    /// Reads and then writes a key, which may be missing.
    Update,
    /// Reads and then writes a key that must exist.
    UpdateExisting,
    /// Deletes a key, which may be missing.
    Delete,
    /// Reads and then writes a key, with three or more index entries.
    UpdateWith2i,
    /// Queries the records of a postcode.
    QueryPostcode,
    /// Queries the records of a few birthdays.
    QueryDob,
    /// Lists keys in the background.
    ListKeys,
    /// Pauses for a minute.
    PauseMinute,
    /// An operation of basho_bench that this program does not have. The text names the missing
    /// feature.
    Unsupported(&'static str),
}

/// The operations by their names in a configuration.
const NAMES: [(&str, PbOperation); 22] = [
    ("get", PbOperation::Get),
    ("get_existing", PbOperation::GetExisting),
    ("put", PbOperation::Put),
    ("update", PbOperation::Update),
    ("update_existing", PbOperation::UpdateExisting),
    ("delete", PbOperation::Delete),
    ("update_with2i", PbOperation::UpdateWith2i),
    ("query_postcode", PbOperation::QueryPostcode),
    ("query_dob", PbOperation::QueryDob),
    ("listkeys", PbOperation::ListKeys),
    ("pause_minute", PbOperation::PauseMinute),
    ("search", PbOperation::Unsupported("full-text search")),
    ("search_interval", PbOperation::Unsupported("full-text search")),
    ("mr_bucket_erlang", PbOperation::Unsupported("MapReduce")),
    ("mr_bucket_js", PbOperation::Unsupported("MapReduce")),
    ("mr_keylist_erlang", PbOperation::Unsupported("MapReduce")),
    ("mr_keylist_js", PbOperation::Unsupported("MapReduce")),
    ("counter_incr", PbOperation::Unsupported("counters")),
    ("counter_val", PbOperation::Unsupported("counters")),
    ("counter", PbOperation::Unsupported("data types")),
    ("team", PbOperation::Unsupported("data types")),
    ("game", PbOperation::Unsupported("data types")),
];

impl PbOperation {
    /// Parses an entry of `operations`. Of a tuple, the first element is the name. `None` if
    /// basho_bench does not know the operation.
    pub fn parse(term: &Term) -> Option<Self> {
        let (name, tuple) = match term {
            Term::Atom(name) => (name.as_str(), false),
            Term::Tuple(items) => match items.first() {
                Some(Term::Atom(name)) => (name.as_str(), true),
                _ => return None,
            },
            _ => return None,
        };
        let is_data_type = matches!(name, "counter" | "team" | "game");
        let found = NAMES.iter().find(|(known, _)| *known == name).filter(|_| tuple == is_data_type);
        found.map(|(_, operation)| *operation)
    }

    /// The names of all operations, for an error message about an unknown one.
    pub fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Whether the operation has a single request and a single answer, so that several may be in
    /// flight.
    pub const fn is_one_exchange(self) -> bool {
        matches!(self, Self::Get | Self::GetExisting | Self::Put | Self::Delete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_known_by_name_also_those_that_are_not_here() {
        let atom = |name: &str| Term::Atom(name.to_owned());
        assert_eq!(PbOperation::parse(&atom("get")), Some(PbOperation::Get));
        assert_eq!(PbOperation::parse(&atom("search")), Some(PbOperation::Unsupported("full-text search")));
        let counter = Term::Tuple(vec![atom("counter"), atom("increment")]);
        assert_eq!(PbOperation::parse(&counter), Some(PbOperation::Unsupported("data types")));
        for wrong in [atom("gte"), atom("counter"), Term::Tuple(vec![atom("get"), atom("x")]), Term::Integer(1)] {
            assert_eq!(PbOperation::parse(&wrong), None, "{wrong:?}");
        }
    }
}
