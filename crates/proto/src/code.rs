//! The message codes (docs/riak/pb-api.md §2): one table with their names, directions and services.

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Client to server.
    Request,
    /// Server to client.
    Response,
}

/// Which nodes know a code. A node answers an unknown code with `Unknown message code: N`
/// (docs/riak/pb-api.md §18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// A service has registered the code on every node.
    Registered,
    /// Search has registered the code, on a node that has search.
    OfSearch,
    /// The module that would serve the code is not loaded.
    NotLoaded,
}

/// The properties of one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeInfo {
    /// The code byte.
    pub code: u8,
    /// Riak's name of the message.
    pub name: &'static str,
    /// The direction of the message.
    pub direction: Direction,
    /// Whether a service is registered for it.
    pub service: Service,
}

macro_rules! codes {
    ($($code:literal $constant:ident $name:literal $direction:ident $service:ident;)*) => {
        $(#[doc = concat!("`", $name, "`")] pub const $constant: u8 = $code;)*

        /// All codes of docs/riak/pb-api.md §2, in ascending order.
        pub(crate) static CODES: &[CodeInfo] = &[$(CodeInfo {
            code: $code,
            name: $name,
            direction: Direction::$direction,
            service: Service::$service,
        },)*];
    };
}

codes! {
    0 ERROR_RESP "RpbErrorResp" Response NotLoaded;
    1 PING_REQ "RpbPingReq" Request Registered;
    2 PING_RESP "RpbPingResp" Response Registered;
    3 GET_CLIENT_ID_REQ "RpbGetClientIdReq" Request Registered;
    4 GET_CLIENT_ID_RESP "RpbGetClientIdResp" Response Registered;
    5 SET_CLIENT_ID_REQ "RpbSetClientIdReq" Request Registered;
    6 SET_CLIENT_ID_RESP "RpbSetClientIdResp" Response Registered;
    7 GET_SERVER_INFO_REQ "RpbGetServerInfoReq" Request Registered;
    8 GET_SERVER_INFO_RESP "RpbGetServerInfoResp" Response Registered;
    9 GET_REQ "RpbGetReq" Request Registered;
    10 GET_RESP "RpbGetResp" Response Registered;
    11 PUT_REQ "RpbPutReq" Request Registered;
    12 PUT_RESP "RpbPutResp" Response Registered;
    13 DEL_REQ "RpbDelReq" Request Registered;
    14 DEL_RESP "RpbDelResp" Response Registered;
    15 LIST_BUCKETS_REQ "RpbListBucketsReq" Request Registered;
    16 LIST_BUCKETS_RESP "RpbListBucketsResp" Response Registered;
    17 LIST_KEYS_REQ "RpbListKeysReq" Request Registered;
    18 LIST_KEYS_RESP "RpbListKeysResp" Response Registered;
    19 GET_BUCKET_REQ "RpbGetBucketReq" Request Registered;
    20 GET_BUCKET_RESP "RpbGetBucketResp" Response Registered;
    21 SET_BUCKET_REQ "RpbSetBucketReq" Request Registered;
    22 SET_BUCKET_RESP "RpbSetBucketResp" Response Registered;
    23 MAP_RED_REQ "RpbMapRedReq" Request Registered;
    24 MAP_RED_RESP "RpbMapRedResp" Response Registered;
    25 INDEX_REQ "RpbIndexReq" Request Registered;
    26 INDEX_RESP "RpbIndexResp" Response Registered;
    27 SEARCH_QUERY_REQ "RpbSearchQueryReq" Request OfSearch;
    28 SEARCH_QUERY_RESP "RpbSearchQueryResp" Response OfSearch;
    29 RESET_BUCKET_REQ "RpbResetBucketReq" Request Registered;
    30 RESET_BUCKET_RESP "RpbResetBucketResp" Response Registered;
    31 GET_BUCKET_TYPE_REQ "RpbGetBucketTypeReq" Request Registered;
    32 SET_BUCKET_TYPE_REQ "RpbSetBucketTypeReq" Request Registered;
    33 PREFLIST_REQ "RpbGetBucketKeyPreflistReq" Request Registered;
    34 PREFLIST_RESP "RpbGetBucketKeyPreflistResp" Response Registered;
    35 CLONE_REQ "RpbCloneReq" Request NotLoaded;
    36 CLONE_RESP "RpbCloneResp" Response NotLoaded;
    40 CS_BUCKET_REQ "RpbCSBucketReq" Request Registered;
    41 CS_BUCKET_RESP "RpbCSBucketResp" Response Registered;
    42 INDEX_BODY_RESP "RpbIndexBodyResp" Response NotLoaded;
    50 COUNTER_UPDATE_REQ "RpbCounterUpdateReq" Request Registered;
    51 COUNTER_UPDATE_RESP "RpbCounterUpdateResp" Response Registered;
    52 COUNTER_GET_REQ "RpbCounterGetReq" Request Registered;
    53 COUNTER_GET_RESP "RpbCounterGetResp" Response Registered;
    54 YOKOZUNA_INDEX_GET_REQ "RpbYokozunaIndexGetReq" Request OfSearch;
    55 YOKOZUNA_INDEX_GET_RESP "RpbYokozunaIndexGetResp" Response OfSearch;
    56 YOKOZUNA_INDEX_PUT_REQ "RpbYokozunaIndexPutReq" Request OfSearch;
    57 YOKOZUNA_INDEX_DELETE_REQ "RpbYokozunaIndexDeleteReq" Request OfSearch;
    58 YOKOZUNA_SCHEMA_GET_REQ "RpbYokozunaSchemaGetReq" Request OfSearch;
    59 YOKOZUNA_SCHEMA_GET_RESP "RpbYokozunaSchemaGetResp" Response OfSearch;
    60 YOKOZUNA_SCHEMA_PUT_REQ "RpbYokozunaSchemaPutReq" Request OfSearch;
    70 COVERAGE_REQ "RpbCoverageReq" Request NotLoaded;
    71 COVERAGE_RESP "RpbCoverageResp" Response NotLoaded;
    80 DT_FETCH_REQ "DtFetchReq" Request Registered;
    81 DT_FETCH_RESP "DtFetchResp" Response Registered;
    82 DT_UPDATE_REQ "DtUpdateReq" Request Registered;
    83 DT_UPDATE_RESP "DtUpdateResp" Response Registered;
    90 TS_QUERY_REQ "TsQueryReq" Request NotLoaded;
    91 TS_QUERY_RESP "TsQueryResp" Response NotLoaded;
    92 TS_PUT_REQ "TsPutReq" Request NotLoaded;
    93 TS_PUT_RESP "TsPutResp" Response NotLoaded;
    94 TS_DEL_REQ "TsDelReq" Request NotLoaded;
    95 TS_DEL_RESP "TsDelResp" Response NotLoaded;
    96 TS_GET_REQ "TsGetReq" Request NotLoaded;
    97 TS_GET_RESP "TsGetResp" Response NotLoaded;
    98 TS_LIST_KEYS_REQ "TsListKeysReq" Request NotLoaded;
    99 TS_LIST_KEYS_RESP "TsListKeysResp" Response NotLoaded;
    100 TS_COVERAGE_REQ "TsCoverageReq" Request NotLoaded;
    101 TS_COVERAGE_RESP "TsCoverageResp" Response NotLoaded;
    102 TS_COVERAGE_ENTRY "TsCoverageEntry" Response NotLoaded;
    103 TS_RANGE "TsRange" Response NotLoaded;
    104 TS_TTB_PUT_REQ "TsTtbPutReq" Request NotLoaded;
    128 REPL_GET_REQ "RpbReplGetReq" Request NotLoaded;
    129 REPL_GET_CLUSTER_ID_REQ "RpbReplGetClusterIdReq" Request NotLoaded;
    130 REPL_GET_CLUSTER_ID_RESP "RpbReplGetClusterIdResp" Response NotLoaded;
    200 RTE_REQ "RpbRTEReq" Request NotLoaded;
    201 RTE_RESP "RpbRTEResp" Response NotLoaded;
    202 FETCH_REQ "RpbFetchReq" Request Registered;
    203 FETCH_RESP "RpbFetchResp" Response Registered;
    204 PUSH_REQ "RpbPushReq" Request Registered;
    205 PUSH_RESP "RpbPushResp" Response Registered;
    206 MEMBERSHIP_REQ "RpbMembershipReq" Request Registered;
    207 MEMBERSHIP_RESP "RpbMembershipResp" Response Registered;
    210 AAE_MERGE_ROOT_NVAL_REQ "RpbAaeFoldMergeRootNValReq" Request Registered;
    211 AAE_MERGE_BRANCH_NVAL_REQ "RpbAaeFoldMergeBranchNValReq" Request Registered;
    212 AAE_FETCH_CLOCKS_NVAL_REQ "RpbAaeFoldFetchClocksNValReq" Request Registered;
    213 AAE_MERGE_TREES_RANGE_REQ "RpbAaeFoldMergeTreesRangeReq" Request Registered;
    214 AAE_FETCH_CLOCKS_RANGE_REQ "RpbAaeFoldFetchClocksRangeReq" Request Registered;
    215 AAE_FIND_KEYS_REQ "RpbAaeFoldFindKeysReq" Request Registered;
    216 AAE_OBJECT_STATS_REQ "RpbAaeFoldObjectStatsReq" Request Registered;
    217 AAE_REPL_KEYS_REQ "RpbAaeFoldReplKeysReq" Request Registered;
    218 AAE_FIND_TOMBS_REQ "RpbAaeFoldFindTombsReq" Request Registered;
    219 AAE_REPAIR_KEYS_REQ "RpbAaeFoldRepairKeysReq" Request Registered;
    220 AAE_TREE_RESP "RpbAaeFoldTreeResp" Response Registered;
    221 AAE_KEY_VALUE_RESP "RpbAaeFoldKeyValueResp" Response Registered;
    222 AAE_KEY_COUNT_RESP "RpbAaeFoldKeyCountResp" Response Registered;
    223 AAE_LIST_BUCKETS_REQ "RpbAaeFoldListBucketsReq" Request Registered;
    224 AAE_LIST_BUCKETS_RESP "RpbAaeFoldListBucketsResp" Response Registered;
    230 AAE_REAP_TOMBS_REQ "RpbAaeFoldReapTombsReq" Request Registered;
    231 AAE_ERASE_KEYS_REQ "RpbAaeFoldEraseKeysReq" Request Registered;
    253 AUTH_REQ "RpbAuthReq" Request Registered;
    254 AUTH_RESP "RpbAuthResp" Response NotLoaded;
    255 START_TLS "RpbStartTls" Request Registered;
}

/// The properties of `code`; `None` when no message has it.
pub fn info(code: u8) -> Option<&'static CodeInfo> {
    CODES.binary_search_by_key(&code, |info| info.code).ok().and_then(|at| CODES.get(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_twins() {
        assert!(CODES.windows(2).all(|pair| pair[0].code < pair[1].code));
    }

    #[test]
    fn every_code_is_found_and_no_other() {
        let known = (0..=255).filter(|&code| info(code).is_some_and(|i| i.code == code)).count();
        assert_eq!(known, CODES.len());
        assert_eq!(info(LIST_KEYS_RESP).map(|i| (i.name, i.direction)), Some(("RpbListKeysResp", Direction::Response)));
        assert_eq!(info(150), None);
    }
}
