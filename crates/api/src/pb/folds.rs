//! Anti-entropy folds (docs/riak/pb-api.md §14).
//!
//! Each message has its own struct, and most of them begin with the same fields: [`Range`] collects
//! them. Every fold has one answer.

use super::failure::Failure;
use super::handler::{Exchange, Handler, Request, Streaming};
use super::refusal::Refusal;
use crate::access::{Access, Permission};
use crate::decoding::IN_PLACE_BYTES_MAX;
use crate::folds::{self, INVALID_DEFINITION, InvalidDefinition, KEPT_ROOT, KEPT_TREE};
use crate::memory::Lease;
use bytes::Bytes;
use ombak_key_queues::{JobKind, QueueError};
use ombak_kv::folds::{FoldRange, FoldResult, FoldStats, FoldWants, Found, FoundKey};
use ombak_proto::code;
use ombak_proto::messages::{
    RpbAaeFoldBucket, RpbAaeFoldEraseKeysReq, RpbAaeFoldFetchClocksNValReq, RpbAaeFoldFetchClocksRangeReq,
    RpbAaeFoldFindKeysReq, RpbAaeFoldFindTombsReq, RpbAaeFoldKeyCountResp, RpbAaeFoldKeyValueResp,
    RpbAaeFoldListBucketsReq, RpbAaeFoldListBucketsResp, RpbAaeFoldMergeBranchNValReq, RpbAaeFoldMergeRootNValReq,
    RpbAaeFoldMergeTreesRangeReq, RpbAaeFoldObjectStatsReq, RpbAaeFoldReapTombsReq, RpbAaeFoldRepairKeysReq,
    RpbAaeFoldReplKeysReq, RpbAaeFoldTreeResp, RpbKeysCount, RpbKeysValue,
};
use ombak_proto::reply::write_message;
use ombak_tictac::{ClockHash, Tree, TreeSize, compressed_branches, riak_clock};
use ombak_types::Bucket;
use prost::Message;

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[
    Handler::streaming::<RpbAaeFoldMergeRootNValReq>(code::AAE_MERGE_ROOT_NVAL_REQ),
    Handler::streaming::<RpbAaeFoldMergeBranchNValReq>(code::AAE_MERGE_BRANCH_NVAL_REQ),
    Handler::streaming::<RpbAaeFoldFetchClocksNValReq>(code::AAE_FETCH_CLOCKS_NVAL_REQ),
    Handler::streaming::<RpbAaeFoldMergeTreesRangeReq>(code::AAE_MERGE_TREES_RANGE_REQ),
    Handler::streaming::<RpbAaeFoldFetchClocksRangeReq>(code::AAE_FETCH_CLOCKS_RANGE_REQ),
    Handler::streaming::<RpbAaeFoldFindKeysReq>(code::AAE_FIND_KEYS_REQ),
    Handler::streaming::<RpbAaeFoldObjectStatsReq>(code::AAE_OBJECT_STATS_REQ),
    Handler::streaming::<RpbAaeFoldReplKeysReq>(code::AAE_REPL_KEYS_REQ),
    Handler::streaming::<RpbAaeFoldFindTombsReq>(code::AAE_FIND_TOMBS_REQ),
    Handler::streaming::<RpbAaeFoldRepairKeysReq>(code::AAE_REPAIR_KEYS_REQ),
    Handler::streaming::<RpbAaeFoldListBucketsReq>(code::AAE_LIST_BUCKETS_REQ),
    Handler::streaming::<RpbAaeFoldReapTombsReq>(code::AAE_REAP_TOMBS_REQ),
    Handler::streaming::<RpbAaeFoldEraseKeysReq>(code::AAE_ERASE_KEYS_REQ),
];

/// The change methods: by a job, at each node, and only to count.
const JOB: u32 = 0;
const LOCAL: u32 = 1;
const COUNT: u32 = 2;

impl From<InvalidDefinition> for Refusal {
    fn from(_: InvalidDefinition) -> Self {
        Self::new(INVALID_DEFINITION)
    }
}

/// The fields that select objects of a bucket.
struct Range {
    bucket: Result<Bucket, InvalidDefinition>,
    keys: Option<(Option<Bytes>, Option<Bytes>)>,
    modified: Option<(Option<u32>, Option<u32>)>,
    segments: Option<(Option<u32>, Vec<u32>)>,
}

impl Range {
    /// The selected objects.
    fn into_range(self) -> Result<FoldRange, InvalidDefinition> {
        let mut range = FoldRange::of_bucket(self.bucket?);
        if let Some(keys) = self.keys {
            let (Some(first), Some(last)) = keys else { return Err(InvalidDefinition) };
            folds::set_keys(&mut range, first, last)?;
        }
        set_modified(&mut range, self.modified)?;
        if let Some((size, leaves)) = self.segments {
            folds::set_segments(&mut range, tree_size(size)?, leaves.into_iter().collect());
        }
        Ok(range)
    }
}

/// The first and the last time, if a message restricts times.
fn set_modified(range: &mut FoldRange, times: Option<(Option<u32>, Option<u32>)>) -> Result<(), InvalidDefinition> {
    match times {
        None => Ok(()),
        Some((Some(first), Some(last))) => folds::set_modified(range, first.into(), last.into()),
        Some(_) => Err(InvalidDefinition),
    }
}

/// Collects the fields that select objects. The messages have no segments in the second form.
macro_rules! range_of {
    ($message:expr, segments: $segments:expr) => {
        Range {
            bucket: bucket_of(&$message.r#type, &$message.bucket),
            keys: $message.key_range().then(|| ($message.start_key.clone(), $message.end_key.clone())),
            modified: $message.modified_range().then_some(($message.last_mod_start, $message.last_mod_end)),
            segments: $segments,
        }
    };
    ($message:expr) => {
        range_of!($message, segments: $message
            .segment_filter()
            .then(|| ($message.filter_tree_size, $message.id_filter.clone())))
    };
}

/// The bucket of a message, in which the default type is no type. A bucket without a name holds
/// nothing, and one that is missing is no bucket.
fn bucket_of(bucket_type: &Option<Bytes>, name: &Option<Bytes>) -> Result<Bucket, InvalidDefinition> {
    let name = name.clone().ok_or(InvalidDefinition)?;
    Ok(match bucket_type {
        Some(bucket_type) => Bucket::typed(bucket_type.clone(), name),
        None => Bucket::untyped(name),
    })
}

fn tree_size(number: Option<u32>) -> Result<TreeSize, InvalidDefinition> {
    number.and_then(|number| TreeSize::of_number(number.into())).ok_or(InvalidDefinition)
}

/// The objects of an n_val.
fn class_of(n_val: Option<u32>) -> Result<FoldRange, Refusal> {
    match n_val {
        Some(n_val) if n_val > 0 => Ok(FoldRange::of_classes([n_val])),
        _ => Err(Refusal::new("A fold over cached trees needs an n_val above 0")),
    }
}

fn access_of<'a>(bucket_type: &'a Option<Bytes>, bucket: &'a Option<Bytes>) -> Option<Access<'a>> {
    access_with(folds::READ, bucket_type, bucket)
}

fn access_with<'a>(
    permission: Permission,
    bucket_type: &'a Option<Bytes>,
    bucket: &'a Option<Bytes>,
) -> Option<Access<'a>> {
    Some(Access::to_bucket(permission, bucket_type.as_deref(), bucket.as_deref().unwrap_or_default()))
}

/// Runs a fold, as long as the client is there. The lease has the memory of the result.
async fn run<'s>(
    exchange: &mut Exchange<'_, 's>,
    range: FoldRange,
    wants: FoldWants,
) -> Result<(FoldResult, Lease<'s>), Failure> {
    let (kv, mut lease) = (&exchange.ctx.kv, exchange.writer.lease());
    let result = exchange.reader.while_open(folds::run(kv, range, wants, &mut lease)).await??;
    Ok((result, lease))
}

/// Makes an answer of a result, and writes it. It counts in the memory budget until it is sent.
async fn answer<'s, M: Message + 'static>(
    exchange: Exchange<'_, 's>,
    (result, mut lease): (FoldResult, Lease<'s>),
    code: u8,
    make: impl FnOnce(FoldResult) -> M + Send + 'static,
) -> Result<(), Failure> {
    // Large answers take long to make.
    let is_large = result.bytes > IN_PLACE_BYTES_MAX as u64 || result.tree.size() != TreeSize::XxSmall;
    let reply = if is_large { exchange.ctx.kv.offload(move || make(result)).await? } else { make(result) };
    lease.add(reply.encoded_len() as u64).await?;
    write_message(code, &reply, &mut exchange.writer.buffer);
    exchange.writer.hold(lease);
    Ok(())
}

/// Answers with keys and their clocks.
async fn answer_clocks(mut exchange: Exchange<'_, '_>, range: FoldRange, wants: FoldWants) -> Result<(), Failure> {
    let found = run(&mut exchange, range, wants).await?;
    let make = |result: FoldResult| RpbAaeFoldKeyValueResp {
        response_type: Bytes::from_static(b"clock"),
        keys_value: result.keys.into_iter().map(key_value).collect(),
    };
    answer(exchange, found, code::AAE_KEY_VALUE_RESP, make).await
}

fn key_value(found: FoundKey) -> RpbKeysValue {
    let FoundKey { bucket, key, found } = found;
    let value = match found {
        Found::Clock(clock) => Some(riak_clock(&clock).into()),
        Found::Number(_) => None,
    };
    RpbKeysValue { r#type: named_type(&bucket), bucket: bucket.name, key, value }
}

/// The type of a bucket, unless it is the default one.
fn named_type(bucket: &Bucket) -> Option<Bytes> {
    (!bucket.is_default_type()).then(|| bucket.bucket_type.clone())
}

/// Answers with numbers.
async fn answer_counts<'s>(
    exchange: Exchange<'_, 's>,
    found: (FoldResult, Lease<'s>),
    of: &'static str,
    counts: impl FnOnce(FoldResult) -> Vec<RpbKeysCount> + Send + 'static,
) -> Result<(), Failure> {
    let make = move |result| RpbAaeFoldKeyCountResp {
        response_type: Bytes::from_static(of.as_bytes()),
        keys_count: counts(result),
    };
    answer(exchange, found, code::AAE_KEY_COUNT_RESP, make).await
}

fn count(tag: impl Into<Bytes>, order: Option<u32>, count: u64) -> RpbKeysCount {
    RpbKeysCount { tag: tag.into(), order, count: u32::try_from(count).unwrap_or(u32::MAX) }
}

/// Answers with the number of objects that another fold would change or send.
async fn answer_dispatched(
    mut exchange: Exchange<'_, '_>,
    of: &'static str,
    range: FoldRange,
    wants: FoldWants,
) -> Result<(), Failure> {
    let found = run(&mut exchange, range, wants).await?;
    let counts = |result| vec![count("dispatched_count", None, folds::dispatched(&result))];
    answer_counts(exchange, found, of, counts).await
}

/// Counts keys, or lets them be changed, as a message says, and answers with their number.
async fn answer_change(
    exchange: Exchange<'_, '_>,
    (of, kind): (&'static str, JobKind),
    range: FoldRange,
    change_method: Option<u32>,
) -> Result<(), Failure> {
    match change_method {
        Some(COUNT) if kind == JobKind::Reap => answer_dispatched(exchange, of, range, FoldWants::Tombstones).await,
        Some(COUNT) => answer_dispatched(exchange, of, range, FoldWants::Living).await,
        Some(JOB | LOCAL) => answer_queued(exchange, (of, kind), range).await,
        _ => Err(Refusal::new("change_method must be 0 (job), 1 (local) or 2 (count)").into()),
    }
}

/// Lets keys be changed, and answers with their number.
async fn answer_queued(
    exchange: Exchange<'_, '_>,
    (of, kind): (&'static str, JobKind),
    range: FoldRange,
) -> Result<(), Failure> {
    let (queues, mut lease) = (&exchange.ctx.key_queues, exchange.writer.lease());
    let queued = exchange.reader.while_open(folds::dispatch(queues, kind, range, &mut lease)).await?;
    let keys = match queued {
        Ok(keys) => keys,
        Err(QueueError::Fold(error)) => return Err(error.into()),
        Err(refused) => return Err(Refusal::new(refused.to_string()).into()),
    };
    let counts = move |_| vec![count("dispatched_count", None, keys)];
    answer_counts(exchange, (FoldResult::empty(&FoldWants::Stats), lease), of, counts).await
}

/// The second level of a tree: each branch with its number before it.
fn level_two(tree: &Tree, branches: impl Iterator<Item = u32>) -> Vec<Bytes> {
    let branch = |(number, branch): (u32, Vec<u8>)| [&number.to_be_bytes()[..], &branch].concat().into();
    compressed_branches(tree, branches).map(branch).collect()
}

/// The parts of an answer about a tree.
fn tree_reply(size: TreeSize, level_one: Vec<u8>, level_two: Vec<Bytes>) -> RpbAaeFoldTreeResp {
    RpbAaeFoldTreeResp { size: size.number().into(), level_one: Some(level_one.into()), level_two }
}

/// A tree that is not asked for.
fn no_tree<'s>(exchange: &Exchange<'_, 's>) -> (FoldResult, Lease<'s>) {
    (FoldResult::empty(&FoldWants::Stats), exchange.writer.lease())
}

impl Request for RpbAaeFoldMergeRootNValReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_node(folds::READ))
    }
}

impl Streaming for RpbAaeFoldMergeRootNValReq {
    async fn serve(self, mut exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = class_of(self.n_val)?;
        let kv = &exchange.ctx.kv;
        let is_known = self.n_val.is_some_and(|n_val| folds::has_kept_tree(kv, n_val));
        let found = if is_known { run(&mut exchange, range, KEPT_ROOT).await? } else { no_tree(&exchange) };
        let make = move |result: FoldResult| tree_reply(TreeSize::Large, result.root, Vec::new());
        answer(exchange, found, code::AAE_TREE_RESP, make).await
    }
}

impl Request for RpbAaeFoldMergeBranchNValReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_node(folds::READ))
    }
}

impl Streaming for RpbAaeFoldMergeBranchNValReq {
    async fn serve(self, mut exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let mut range = class_of(self.n_val)?;
        if self.id_filter.iter().any(|branch| *branch >= TreeSize::Large.branches()) {
            return Err(Refusal::from(InvalidDefinition).into());
        }
        let wanted = self.id_filter;
        folds::set_branches(&mut range, &wanted);
        let found = if wanted.is_empty() { no_tree(&exchange) } else { run(&mut exchange, range, KEPT_TREE).await? };
        let make = move |result: FoldResult| {
            tree_reply(TreeSize::Large, Vec::new(), level_two(&result.tree, wanted.iter().copied()))
        };
        answer(exchange, found, code::AAE_TREE_RESP, make).await
    }
}

impl Request for RpbAaeFoldFetchClocksNValReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_node(folds::READ))
    }
}

impl Streaming for RpbAaeFoldFetchClocksNValReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let mut range = class_of(self.n_val)?;
        let times = self.modified_range().then_some((self.last_mod_start, self.last_mod_end));
        set_modified(&mut range, times).map_err(Refusal::from)?;
        folds::set_segments(&mut range, TreeSize::Large, self.id_filter.into_iter().collect());
        answer_clocks(exchange, range, FoldWants::Clocks).await
    }
}

impl Request for RpbAaeFoldMergeTreesRangeReq {
    fn access(&self) -> Option<Access<'_>> {
        access_of(&self.r#type, &self.bucket)
    }
}

impl Streaming for RpbAaeFoldMergeTreesRangeReq {
    async fn serve(self, mut exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = range_of!(self).into_range().map_err(Refusal::from)?;
        let size = tree_size(self.tree_size).map_err(Refusal::from)?;
        let hash = match (self.use_prehash(), self.init_vector) {
            (true, _) => ClockHash::Plain,
            (false, Some(number)) => ClockHash::With(number.into()),
            (false, None) => ClockHash::WithoutNumber,
        };
        let found = run(&mut exchange, range, FoldWants::Tree(size, hash)).await?;
        let make = move |FoldResult { tree, .. }: FoldResult| {
            tree_reply(size, tree.root(), level_two(&tree, 0..size.branches()))
        };
        answer(exchange, found, code::AAE_TREE_RESP, make).await
    }
}

impl Request for RpbAaeFoldFetchClocksRangeReq {
    fn access(&self) -> Option<Access<'_>> {
        access_of(&self.r#type, &self.bucket)
    }
}

impl Streaming for RpbAaeFoldFetchClocksRangeReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = range_of!(self).into_range().map_err(Refusal::from)?;
        answer_clocks(exchange, range, FoldWants::Clocks).await
    }
}

impl Request for RpbAaeFoldFindTombsReq {
    fn access(&self) -> Option<Access<'_>> {
        access_of(&self.r#type, &self.bucket)
    }
}

impl Streaming for RpbAaeFoldFindTombsReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = range_of!(self).into_range().map_err(Refusal::from)?;
        answer_clocks(exchange, range, FoldWants::Tombstones).await
    }
}

impl Request for RpbAaeFoldFindKeysReq {
    fn access(&self) -> Option<Access<'_>> {
        access_of(&self.r#type, &self.bucket)
    }
}

impl Streaming for RpbAaeFoldFindKeysReq {
    async fn serve(self, mut exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = range_of!(self, segments: None).into_range().map_err(Refusal::from)?;
        let wants = match (self.finder, self.find_limit) {
            (Some(0), Some(limit)) => FoldWants::SiblingsAbove(limit.into()),
            (Some(1), Some(limit)) => FoldWants::BytesAbove(limit.into()),
            _ => return Err(Refusal::from(InvalidDefinition).into()),
        };
        let found = run(&mut exchange, range, wants).await?;
        let counted = |FoundKey { key, found, .. }: FoundKey| match found {
            Found::Number(number) => count(key, None, number),
            Found::Clock(_) => count(key, None, 0),
        };
        let counts = move |result: FoldResult| result.keys.into_iter().map(counted).collect();
        answer_counts(exchange, found, "find_keys", counts).await
    }
}

impl Request for RpbAaeFoldObjectStatsReq {
    fn access(&self) -> Option<Access<'_>> {
        access_of(&self.r#type, &self.bucket)
    }
}

impl Streaming for RpbAaeFoldObjectStatsReq {
    async fn serve(self, mut exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = range_of!(self, segments: None).into_range().map_err(Refusal::from)?;
        let found = run(&mut exchange, range, FoldWants::Stats).await?;
        answer_counts(exchange, found, "stats", |result| stats_counts(&result.stats)).await
    }
}

fn stats_counts(stats: &FoldStats) -> Vec<RpbKeysCount> {
    let totals = [("total_count", stats.objects), ("total_size", stats.bytes)];
    let totals = totals.into_iter().map(|(tag, number)| count(tag, None, number));
    let sizes = stats.sizes.iter().map(|(order, number)| count("sizes", Some(*order), *number));
    let siblings = stats.siblings.iter().map(|(order, number)| count("siblings", Some(*order), *number));
    totals.chain(sizes).chain(siblings).collect()
}

impl Request for RpbAaeFoldReplKeysReq {
    fn access(&self) -> Option<Access<'_>> {
        access_of(&self.r#type, &self.bucket)
    }
}

impl Streaming for RpbAaeFoldReplKeysReq {
    /// There are no queues, so what is counted is dropped, as in Riak for a queue that is not
    /// defined.
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = range_of!(self, segments: None).into_range().map_err(Refusal::from)?;
        if self.queuename.is_none() {
            return Err(Refusal::new("The name of a queue is missing").into());
        }
        answer_dispatched(exchange, "repl_keys", range, FoldWants::Stats).await
    }
}

impl Request for RpbAaeFoldRepairKeysReq {
    fn access(&self) -> Option<Access<'_>> {
        access_with(folds::REPAIR, &self.r#type, &self.bucket)
    }
}

impl Streaming for RpbAaeFoldRepairKeysReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = range_of!(self, segments: None).into_range().map_err(Refusal::from)?;
        answer_queued(exchange, ("repair_keys", JobKind::Repair), range).await
    }
}

impl Request for RpbAaeFoldListBucketsReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_node(folds::READ))
    }
}

impl Streaming for RpbAaeFoldListBucketsReq {
    async fn serve(self, mut exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let n_val = self.n_val.unwrap_or(1);
        let range = folds::range_of_buckets(&exchange.ctx.kv, n_val);
        let found = run(&mut exchange, range, FoldWants::Buckets).await?;
        let make = |result: FoldResult| {
            let bucket = |of: &Bucket| RpbAaeFoldBucket { r#type: named_type(of), bucket: of.name.clone() };
            RpbAaeFoldListBucketsResp { bucket_list: folds::typed_first(&result.buckets).map(bucket).collect() }
        };
        answer(exchange, found, code::AAE_LIST_BUCKETS_RESP, make).await
    }
}

impl Request for RpbAaeFoldReapTombsReq {
    fn access(&self) -> Option<Access<'_>> {
        access_with(folds::REAP, &self.r#type, &self.bucket)
    }
}

impl Streaming for RpbAaeFoldReapTombsReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = range_of!(self).into_range().map_err(Refusal::from)?;
        answer_change(exchange, ("reap_tombs", JobKind::Reap), range, self.change_method).await
    }
}

impl Request for RpbAaeFoldEraseKeysReq {
    fn access(&self) -> Option<Access<'_>> {
        access_with(folds::ERASE, &self.r#type, &self.bucket)
    }
}

impl Streaming for RpbAaeFoldEraseKeysReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let range = range_of!(self).into_range().map_err(Refusal::from)?;
        answer_change(exchange, ("erase_keys", JobKind::Erase), range, self.change_method).await
    }
}
