//! What `basho_bench_driver_nhs` can do (docs/riak/basho-bench.md §4.2).

use crate::term::Term;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NhsOperation {
    /// Reads a record with a key of the key generator; that it is not there is fine.
    Get,
    /// Reads one of the worker's records.
    AlwaysGet,
    /// The same over HTTP.
    AlwaysGetHttp,
    /// Writes a new record of the worker or rewrites one.
    AlwaysUpdate {
        /// With index entries.
        indexed: bool,
    },
    /// Reads and writes a record with a key of the key generator, with index entries.
    Update,
    /// Writes the worker's next document, with an index entry.
    PutUnique,
    /// The same, and waits until the peer has it.
    PutUniqueCheckRepl,
    /// The same into one of two buckets, without an index entry.
    PutUniqueTwoBuckets,
    /// Reads one of the worker's documents; that it is not there is fine.
    GetUnique,
    /// Deletes the worker's oldest document.
    DeleteUnique,
    /// Asks for the records of a postcode, over HTTP.
    PostcodeQuery,
    /// Asks for the records of two birthdays, over HTTP.
    BirthdayQuery,
    /// Lists the records' keys beside everything else, over HTTP.
    ListKeys,
    /// Now and then reads a record so that the server compares its replicas.
    ForceAae,
    /// basho_bench has it and this program has not; why.
    NotHere(&'static str),
}

const OBSOLETE: &str = "servers since Riak 2.9 do not have its kind of query";
const NEWEST: &str = "ombak-bench does this over Protocol Buffers only";

const NAMES: [(&str, NhsOperation); 21] = [
    ("get_pb", NhsOperation::Get),
    ("alwaysget_pb", NhsOperation::AlwaysGet),
    ("alwaysget_http", NhsOperation::AlwaysGetHttp),
    ("alwaysget_updatewith2i", NhsOperation::AlwaysUpdate { indexed: true }),
    ("alwaysget_updatewithout2i", NhsOperation::AlwaysUpdate { indexed: false }),
    ("update_with2i", NhsOperation::Update),
    ("put_unique", NhsOperation::PutUnique),
    ("put_unique_checkrepl", NhsOperation::PutUniqueCheckRepl),
    ("put_unique_bet365", NhsOperation::PutUniqueTwoBuckets),
    ("get_unique", NhsOperation::GetUnique),
    ("delete_unique", NhsOperation::DeleteUnique),
    ("postcodequery_http", NhsOperation::PostcodeQuery),
    ("dobquery_http", NhsOperation::BirthdayQuery),
    ("list_keys", NhsOperation::ListKeys),
    ("force_aae", NhsOperation::ForceAae),
    ("aae_query", NhsOperation::NotHere(OBSOLETE)),
    ("segment_fold", NhsOperation::NotHere(OBSOLETE)),
    ("alwaysget_updatewith2i_http", NhsOperation::NotHere(NEWEST)),
    ("put_unique_http", NhsOperation::NotHere(NEWEST)),
    ("get_unique_http", NhsOperation::NotHere(NEWEST)),
    ("delete_unique_http", NhsOperation::NotHere(NEWEST)),
];

impl NhsOperation {
    /// What a term of `operations` names.
    pub fn parse(term: &Term) -> Option<Self> {
        let Term::Atom(name) = term else { return None };
        NAMES.iter().find(|(known, _)| known == name).map(|(_, operation)| *operation)
    }

    /// The names, for the person who mistyped one.
    pub fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Whether it asks an index.
    pub const fn queries_indexes(self) -> bool {
        matches!(self, Self::PostcodeQuery | Self::BirthdayQuery)
    }

    /// Whether it writes index entries.
    pub const fn writes_indexes(self) -> bool {
        use NhsOperation::{AlwaysUpdate, PutUnique, PutUniqueCheckRepl, Update};
        matches!(self, AlwaysUpdate { indexed: true } | Update | PutUnique | PutUniqueCheckRepl)
    }

    /// Whether one worker does it for all.
    pub const fn is_nominated(self) -> bool {
        matches!(self, Self::ListKeys | Self::ForceAae)
    }
}
