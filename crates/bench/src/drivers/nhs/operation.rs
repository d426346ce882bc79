//! The operations of `basho_bench_driver_nhs` (docs/riak/basho-bench.md §4.2).

use crate::term::Term;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NhsOperation {
    /// Reads a record with a key from the key generator. The record may be missing.
    Get,
    /// Reads one of the worker's records.
    AlwaysGet,
    /// Reads one of the worker's records over HTTP.
    AlwaysGetHttp,
    /// Writes a new record of the worker, or rewrites an existing one.
    AlwaysUpdate {
        /// Whether the record has index entries.
        indexed: bool,
    },
    /// Reads and then writes a record with a key from the key generator, with index entries.
    Update,
    /// Writes the worker's next document, with an index entry.
    PutUnique,
    /// Writes the next document and waits until the peer cluster has it.
    PutUniqueCheckRepl,
    /// Writes the next document to one of two buckets, without an index entry.
    PutUniqueTwoBuckets,
    /// Reads one of the worker's documents, which may be missing.
    GetUnique,
    /// Deletes the worker's oldest document.
    DeleteUnique,
    /// Queries the records of a postcode, over HTTP.
    PostcodeQuery,
    /// Queries the records with a certain birthday, over HTTP.
    BirthdayQuery,
    /// Lists the keys of the records in the background, over HTTP.
    ListKeys,
    /// From time to time reads a record in a way that makes the server compare its replicas.
    ForceAae,
    /// An operation of basho_bench that this program does not have. The text says why.
    Unsupported(&'static str),
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
    ("aae_query", NhsOperation::Unsupported(OBSOLETE)),
    ("segment_fold", NhsOperation::Unsupported(OBSOLETE)),
    ("alwaysget_updatewith2i_http", NhsOperation::Unsupported(NEWEST)),
    ("put_unique_http", NhsOperation::Unsupported(NEWEST)),
    ("get_unique_http", NhsOperation::Unsupported(NEWEST)),
    ("delete_unique_http", NhsOperation::Unsupported(NEWEST)),
];

impl NhsOperation {
    /// Parses an entry of `operations`.
    pub fn parse(term: &Term) -> Option<Self> {
        let Term::Atom(name) = term else { return None };
        NAMES.iter().find(|(known, _)| known == name).map(|(_, operation)| *operation)
    }

    /// The names of all operations, for an error message about an unknown one.
    pub fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Whether the operation queries an index.
    pub const fn queries_indexes(self) -> bool {
        matches!(self, Self::PostcodeQuery | Self::BirthdayQuery)
    }

    /// Whether the operation writes index entries.
    pub const fn writes_indexes(self) -> bool {
        use NhsOperation::{AlwaysUpdate, PutUnique, PutUniqueCheckRepl, Update};
        matches!(self, AlwaysUpdate { indexed: true } | Update | PutUnique | PutUniqueCheckRepl)
    }

    /// Whether a single worker runs the operation on behalf of all.
    pub const fn is_nominated(self) -> bool {
        matches!(self, Self::ListKeys | Self::ForceAae)
    }
}
