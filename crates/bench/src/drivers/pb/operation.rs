//! What `basho_bench_driver_riakc_pb` can do (docs/riak/basho-bench.md §4.1).

use crate::term::Term;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PbOperation {
    /// Reads a key; that it is not there is fine.
    Get,
    /// Reads a key that has to be there.
    GetExisting,
    /// Writes a key without having read it.
    Put,
    /// Reads and writes a key, which may be new.
    Update,
    /// Reads and writes a key that has to be there.
    UpdateExisting,
    /// Deletes a key; that it is not there is fine.
    Delete,
    /// Reads and writes a key with three index entries or more.
    UpdateWith2i,
    /// Asks for the records of a postcode.
    QueryPostcode,
    /// Asks for the records of a few birthdays.
    QueryDob,
    /// Lists keys beside everything else.
    ListKeys,
    /// Does nothing for a minute.
    PauseMinute,
    /// basho_bench has it and this program has not.
    NotHere(&'static str),
}

/// What a configuration calls them.
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
    ("search", PbOperation::NotHere("full-text search")),
    ("search_interval", PbOperation::NotHere("full-text search")),
    ("mr_bucket_erlang", PbOperation::NotHere("MapReduce")),
    ("mr_bucket_js", PbOperation::NotHere("MapReduce")),
    ("mr_keylist_erlang", PbOperation::NotHere("MapReduce")),
    ("mr_keylist_js", PbOperation::NotHere("MapReduce")),
    ("counter_incr", PbOperation::NotHere("counters")),
    ("counter_val", PbOperation::NotHere("counters")),
    ("counter", PbOperation::NotHere("data types")),
    ("team", PbOperation::NotHere("data types")),
    ("game", PbOperation::NotHere("data types")),
];

impl PbOperation {
    /// What a term of `operations` names; of a tuple its first element tells. `None`: nothing that basho_bench knows.
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

    /// The names, for the person who mistyped one.
    pub fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Whether it is one request and one answer, so that several may be in flight.
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
        assert_eq!(PbOperation::parse(&atom("search")), Some(PbOperation::NotHere("full-text search")));
        let counter = Term::Tuple(vec![atom("counter"), atom("increment")]);
        assert_eq!(PbOperation::parse(&counter), Some(PbOperation::NotHere("data types")));
        for wrong in [atom("gte"), atom("counter"), Term::Tuple(vec![atom("get"), atom("x")]), Term::Integer(1)] {
            assert_eq!(PbOperation::parse(&wrong), None, "{wrong:?}");
        }
    }
}
