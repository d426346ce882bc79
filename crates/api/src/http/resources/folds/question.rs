//! What a path and its filter ask.

use super::filter::{BadFilter, CachedFilter, RangeFilter, shown_raw};
use crate::folds;
use crate::http::path::Call;
use ombak_key_queues::JobKind;
use ombak_kv::folds::{FoldRange, FoldWants};
use ombak_tictac::{ClockHash, TreeSize};
use ombak_types::Bucket;

/// The question of a request.
pub(super) struct FoldQuestion {
    pub(super) range: FoldRange,
    pub(super) wants: FoldWants,
    pub(super) asked: Asked,
}

/// The document that is asked for.
pub(super) enum Asked {
    /// The root of a tree of all objects of some n_val.
    Root,
    /// Branches of such a tree, by their numbers.
    Branches(Vec<u32>),
    /// The same of a tree that does not exist.
    NoBranches(Vec<u32>),
    /// Keys with their clocks.
    KeysClocks,
    /// A tree of a range.
    Tree,
    /// Keys with numbers.
    Results,
    /// Statistics.
    Stats,
    /// How many objects were found.
    Count,
    /// How many keys wait to be changed now.
    Change(JobKind),
    /// Buckets.
    Buckets,
    /// Nothing: this is the answer.
    Nothing(String),
}

impl FoldQuestion {
    /// Reads the question of a request.
    pub(super) fn read(call: &Call<'_>, bucket: Option<&Bucket>) -> Result<Self, BadFilter> {
        match bucket {
            Some(bucket) => read_range(call, bucket),
            None if call.parts.part(0) == "aaebucketlist" => read_bucket_list(call),
            None => read_cached(call),
        }
    }
}

/// The place of the bucket among the parts of a path.
fn bucket_place(call: &Call<'_>) -> Option<usize> {
    call.parts.names().iter().take(4).position(|word| *word == b"buckets").map(|at| at + 1)
}

/// The bucket in a path: `RESOURCE/buckets/B/…` or `RESOURCE/types/T/buckets/B/…`.
pub(super) fn bucket_of(call: &Call<'_>) -> Option<Bucket> {
    let at = bucket_place(call)?;
    let name = call.parts.part(at);
    Some(if at == 2 { Bucket::untyped(name) } else { Bucket::typed(call.parts.part(at - 2), name) })
}

/// `/cachedtrees/nvals/N/root|branch|keysclocks`
fn read_cached(call: &Call<'_>) -> Result<FoldQuestion, BadFilter> {
    let (n, what) = (call.parts.part(2), call.parts.part(3));
    let n_val = positive(&n).map_err(|shown| malformed(format!("Cached tree request invalid nval {shown}")))?;
    let mut range = FoldRange::of_classes([n_val]);
    let exists = folds::has_kept_tree(&call.ctx.kv, n_val);
    let tree = folds::KEPT_TREE;
    let (wants, asked) = match &what[..] {
        b"root" if !exists => (tree, Asked::Nothing("{\"root\":[]}".to_owned())),
        b"root" => (folds::KEPT_ROOT, Asked::Root),
        b"branch" => {
            let branches = CachedFilter::read(call.request, "branch")?.into_branches()?;
            folds::set_branches(&mut range, &branches);
            (tree, if exists { Asked::Branches(branches) } else { Asked::NoBranches(branches) })
        }
        _ => {
            CachedFilter::read(call.request, "keysclocks")?.apply(&mut range)?;
            (FoldWants::Clocks, Asked::KeysClocks)
        }
    };
    Ok(FoldQuestion { range, wants, asked })
}

/// `/aaebucketlist?nval=N`
fn read_bucket_list(call: &Call<'_>) -> Result<FoldQuestion, BadFilter> {
    let n = call.request.parameter("nval").unwrap_or(b"1");
    let n = positive(n).map_err(|_| malformed(format!("Invalid n_val {}", shown_raw(n))))?;
    let range = folds::range_of_buckets(&call.ctx.kv, n);
    Ok(FoldQuestion { range, wants: FoldWants::Buckets, asked: Asked::Buckets })
}

/// The questions about a bucket.
fn read_range(call: &Call<'_>, bucket: &Bucket) -> Result<FoldQuestion, BadFilter> {
    let mut range = FoldRange::of_bucket(bucket.clone());
    let bucket_at = bucket_place(call).unwrap_or_default();
    let (resource, word) = (call.parts.part(0), call.parts.part(bucket_at + 1));
    let last = call.parts.part(bucket_at + 2);
    let size = if word == "trees" { Some(tree_size(&last)?) } else { None };
    let above = |what: &str, unit: &str| {
        let refused = |shown: String| malformed(format!("{what} requires integer for {unit}. Value {shown} invalid"));
        positive(&last).map(u64::from).map_err(refused)
    };
    let number = match &resource[..] {
        b"siblings" => above("sibling_count", "count")?,
        b"objectsizes" => above("object_size", "size")?,
        _ => 0,
    };
    let filter = RangeFilter::read(call.request)?;
    let hash = filter.hash_iv.map_or(ClockHash::Plain, ClockHash::With);
    let is_change = filter.is_change;
    filter.apply(&mut range)?;
    let (wants, asked) = match (&resource[..], size) {
        (b"rangetrees", Some(size)) => (FoldWants::Tree(size, hash), Asked::Tree),
        (b"rangetrees", None) => (FoldWants::Clocks, Asked::KeysClocks),
        (b"siblings", _) => (FoldWants::SiblingsAbove(number), Asked::Results),
        (b"objectsizes", _) => (FoldWants::BytesAbove(number), Asked::Results),
        (b"objectstats", _) => (FoldWants::Stats, Asked::Stats),
        (b"tombs", _) => (FoldWants::Tombstones, Asked::KeysClocks),
        (b"rangerepl", _) => (FoldWants::Stats, Asked::Count),
        (b"reap", _) if is_change => (FoldWants::Tombstones, Asked::Change(JobKind::Reap)),
        (b"erase", _) if is_change => (FoldWants::Living, Asked::Change(JobKind::Erase)),
        (b"reap", _) => (FoldWants::Tombstones, Asked::Count),
        (b"erase", _) => (FoldWants::Living, Asked::Count),
        _ => (FoldWants::Clocks, Asked::Change(JobKind::Repair)),
    };
    Ok(FoldQuestion { range, wants, asked })
}

fn tree_size(name: &[u8]) -> Result<TreeSize, BadFilter> {
    let size = std::str::from_utf8(name).ok().and_then(TreeSize::of_name);
    size.ok_or_else(|| malformed(format!("Invalid treesize {}", shown_raw(name))))
}

/// An integer above 0, or the text that shows what is there in its place.
fn positive(text: &[u8]) -> Result<u32, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    match number {
        Some(number) => u32::try_from(number).ok().filter(|n| *n > 0).ok_or_else(|| number.to_string()),
        None => Err(shown_raw(text)),
    }
}

fn malformed(text: String) -> BadFilter {
    BadFilter::Malformed(text)
}
