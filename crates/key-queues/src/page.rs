//! The work on a page of keys: what erases, reaps and repairs.

use crate::job::JobKind;
use crate::key_file::QueuedKey;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use ombak_kv::repair_host::{BrokenRule, is_broken};
use ombak_kv::replica::Ordered;
use ombak_kv::{DeleteMode, DeleteRequest, GetOptions, GetReply, GetRequest, Kv, PutOptions};
use ombak_types::names::decode_storage_key;
use ombak_types::time::GREGORIAN_OFFSET_SECS;
use ombak_types::{Error, Object, Quorum, StoreFailure, VectorClock};

/// What a reap waits for if nothing has failed.
const WAITS_FOR_ROUNDS: &str = "rounds that remove tombstones, for which all members have to be up";
/// How many keys are erased or repaired at the same time.
const KEYS_AT_ONCE: usize = 16;

/// What became of the keys of a page.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) done: u64,
    pub(crate) changed: u64,
    /// The keys that are to be tried again.
    pub(crate) left: Vec<QueuedKey>,
    /// The last failure.
    pub(crate) waits_for: Option<String>,
}

/// What became of a key.
enum Outcome {
    Done,
    /// What is stored is not what the fold has found.
    Changed,
    /// It is to be tried again.
    Left(Option<Error>),
}

impl Attempt {
    fn add(&mut self, key: QueuedKey, outcome: Outcome) {
        match outcome {
            Outcome::Done => self.done += 1,
            Outcome::Changed => self.changed += 1,
            Outcome::Left(why) => {
                self.left.push(key);
                self.waits_for = why.map(|error| error.to_string()).or(self.waits_for.take());
            }
        }
    }
}

/// Works on keys once.
pub(crate) async fn attempt(kv: &Kv, kind: JobKind, keys: Vec<QueuedKey>) -> Attempt {
    let mut attempt = Attempt::default();
    if kind == JobKind::Reap {
        let ordered = kv.order_reaping(&keys).await;
        for (key, ordered) in keys.into_iter().zip(ordered) {
            attempt.add(key, reaped(ordered));
        }
        if attempt.done + attempt.changed == 0 && attempt.waits_for.is_none() {
            attempt.waits_for = Some(WAITS_FOR_ROUNDS.to_owned());
        }
        return attempt;
    }
    let each = stream::iter(keys).map(|key| async move {
        let outcome = match kind {
            JobKind::Repair => repair(kv, &key).await,
            _ => erase(kv, &key).await,
        };
        (key, outcome.unwrap_or_else(|error| Outcome::Left(Some(error))))
    });
    let mut each = std::pin::pin!(each.buffer_unordered(KEYS_AT_ONCE));
    while let Some((key, outcome)) = each.next().await {
        attempt.add(key, outcome);
    }
    attempt
}

fn reaped(ordered: Result<Ordered, Error>) -> Outcome {
    match ordered {
        Ok(Ordered::Gone) => Outcome::Done,
        Ok(Ordered::Changed) => Outcome::Changed,
        Ok(Ordered::Waits) => Outcome::Left(None),
        Err(error) => Outcome::Left(Some(error)),
    }
}

/// Deletes an object, if it is still the one that the fold has found.
async fn erase(kv: &Kv, queued: &QueuedKey) -> Result<Outcome, Error> {
    let clock = match found_again(kv, queued).await? {
        FoundAgain::Same(head) => head.clock,
        FoundAgain::Gone => return Ok(Outcome::Done),
        FoundAgain::Changed => return Ok(Outcome::Changed),
    };
    let GetRequest { bucket, key, .. } = request_of(&queued.0, GetOptions::default())?;
    let (get, put) = (GetOptions::default(), PutOptions::default());
    kv.delete(DeleteRequest { bucket, key, clock: Some(clock), get, put, rw: None }).await?;
    Ok(Outcome::Done)
}

/// What has become of an object that a fold has found.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundAgain {
    /// It is there with the same clock. This is its head.
    Same(Object),
    /// It was written since.
    Changed,
    /// It was deleted.
    Gone,
}

/// Looks again at an object that a fold has found, given its storage key and its clock, before it
/// is erased.
pub async fn found_again(kv: &Kv, (storage_key, clock): &(Bytes, VectorClock)) -> Result<FoundAgain, Error> {
    let options = GetOptions { head: true, ..GetOptions::default() };
    let head = match kv.get(request_of(storage_key, options)?).await? {
        GetReply::Found(head) => head,
        GetReply::NotFound { tombstone: Some(_) } => return Ok(FoundAgain::Gone),
        // A replica that has missed the write, or one that stands in, may have said so.
        GetReply::NotFound { tombstone: None } => match kv.get(request_of(storage_key, of_all_primaries())?).await? {
            GetReply::Found(head) => head,
            GetReply::NotFound { .. } => return Ok(FoundAgain::Gone),
        },
    };
    let is_same = head.clock == *clock || is_broken(BrokenRule::ErasesCheckClocks);
    Ok(if is_same { FoundAgain::Same(head) } else { FoundAgain::Changed })
}

/// Lets all primaries of a key have the same. They must all be up. As in Riak, a tombstone whose
/// time has passed is reaped when it is read.
async fn repair(kv: &Kv, (storage_key, _): &QueuedKey) -> Result<Outcome, Error> {
    let found = kv.get(request_of(storage_key, of_all_primaries())?).await?;
    kv.repair_host().repair_key(storage_key.clone()).await?;
    if let GetReply::NotFound { tombstone: Some(clock) } = found
        && is_due(kv, &clock)
    {
        // The sweeps find it too, so nobody waits for this.
        kv.order_reaping(&[(storage_key.clone(), clock)]).await;
    }
    Ok(Outcome::Done)
}

/// Whether the delete mode lets a tombstone be reaped whose newest event is in this clock.
fn is_due(kv: &Kv, clock: &VectorClock) -> bool {
    let newest = clock.entries().iter().map(|entry| entry.stamp_secs).max().unwrap_or_default();
    let age_secs = kv.wall_clock().secs().saturating_sub(newest.saturating_sub(GREGORIAN_OFFSET_SECS));
    match kv.delete_mode() {
        DeleteMode::Keep => false,
        DeleteMode::Immediate => true,
        DeleteMode::After(delay) => age_secs > delay.as_secs(),
    }
}

/// A read that all primaries answer.
fn of_all_primaries() -> GetOptions {
    let all = Some(Quorum::All);
    GetOptions { r: all, pr: all, head: true, sloppy_quorum: false, ..GetOptions::default() }
}

fn request_of(storage_key: &Bytes, options: GetOptions) -> Result<GetRequest, Error> {
    let decoded = decode_storage_key(storage_key);
    let (bucket, key) = decoded.map_err(|_| StoreFailure::internal("a queue holds a key that is none"))?;
    Ok(GetRequest { bucket, key, options })
}
