//! Folds that erase and reap, while clients write and faults last.
//!
//! A fold through a random node finds the keys of a bucket, as the queues of keys let it. Then its
//! keys are erased or reaped one after the other, with the calls of the queues. The queues
//! themselves keep files outside of the simulated disks, and are not run. An erased key gets a
//! tombstone with a token, so the oracle knows it as any other delete.
//!
//! What is checked besides the rules of the oracle: a fold deletes nothing that was written after
//! it has found its keys.
//!
//! Only some seeds have folds, and those draw from a random stream of their own, so that the others
//! are what they are without folds.

use crate::bucket_kinds::{BucketKind, Merging};
use crate::clients::{Client, Clients, Put, Seen};
use crate::oracle::{Key, TOKEN_NAME, Token, storage_keys};
use crate::random::Random;
use crate::world::{HostId, OUTSIDE};
use bytes::Bytes;
use ombak_key_queues::{FoundAgain, found_again};
use ombak_kv::UncountedMemory;
use ombak_kv::folds::{FoldRange, FoldWants, Found, FoundKey, KeyConsumer};
use ombak_kv::replica::Ordered;
use ombak_runtime::{BoxFuture, RuntimeExt};
use ombak_types::names::encode_storage_key;
use ombak_types::{Error, Object, VectorClock};
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::time::Duration;

/// What makes the random stream another one than that of the world.
const STREAM: u64 = 0x666f_6c64_696e_6773;
/// The pause between two folds, and between a fold and its work, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 100..1_000;
const WORK_PAUSE_MS: std::ops::Range<u64> = 0..600;
/// How many clients fold at the same time.
pub(crate) const CLIENTS: u64 = 2;
/// How often tombstones are ordered to be reaped, and the pause between.
const ORDERS: usize = 6;
const ORDER_PAUSE: Duration = Duration::from_millis(700);

/// A key that a fold has found, as the queues keep it.
type QueuedKey = (Bytes, VectorClock);

/// Whether a seed has folds.
pub(crate) const fn happen_in(seed: u64) -> bool {
    matches!(seed % 10, 0 | 9)
}

/// Folds until `is_over`, as the client of folds with this number.
pub(crate) async fn run(clients: Clients, (seed, number): (u64, u64), is_over: impl Fn() -> bool) {
    let runtime = clients.world.runtime(OUTSIDE);
    let random = Random::new(seed ^ STREAM ^ (number << 56));
    let mut client = Client { random, shared: clients, seen: BTreeMap::new() };
    loop {
        runtime.sleep(Duration::from_millis(client.random.within(PAUSE_MS))).await;
        if is_over() {
            return;
        }
        // A value that is written once is neither deleted nor reaped.
        let kinds = BucketKind::ALL.into_iter().filter(|kind| kind.merging != Merging::WriteOnce);
        let kind = *client.random.pick(&kinds.collect::<Vec<_>>());
        let hosts = client.shared.cluster.lock().member_hosts();
        let host = *client.random.pick(&hosts);
        if client.random.chance(60) {
            client.erase_by_fold(host, kind).await;
        } else {
            client.reap_by_fold(host, kind).await;
        }
    }
}

/// Takes the keys of a fold.
#[derive(Default)]
struct Taken(Vec<QueuedKey>);

impl KeyConsumer for Taken {
    fn take(&mut self, keys: Vec<FoundKey>) -> BoxFuture<'_, Result<(), Error>> {
        let queued = |FoundKey { bucket, key, found }: FoundKey| {
            let Found::Clock(clock) = found else { return None };
            let mut storage_key = Vec::new();
            encode_storage_key(&bucket, &key, &mut storage_key);
            Some((storage_key.into(), clock))
        };
        self.0.extend(keys.into_iter().filter_map(queued));
        Box::pin(ready(Ok(())))
    }
}

impl Client {
    /// What a fold through a host finds. None if it failed.
    async fn fold(&self, host: HostId, kind: BucketKind, wants: FoldWants) -> Option<Vec<QueuedKey>> {
        let folded = self.shared.call(host, move |kv| {
            Box::pin(async move {
                let (range, mut taken) = (FoldRange::of_bucket(kind.bucket()), Taken::default());
                let count = kv.fold_keys(range, wants, &mut UncountedMemory, &mut taken).await?;
                Ok::<_, Error>((count, taken.0))
            })
        });
        let (count, found) = match folded.await {
            Some(Ok(found)) => found,
            Some(Err(_)) | None => {
                self.shared.ended(|counts| counts.failed += 1);
                return None;
            }
        };
        self.shared.ended(|counts| counts.folds += 1);
        let distinct: BTreeSet<&Bytes> = found.iter().map(|(key, _)| key).collect();
        if distinct.len() != found.len() || count != found.len() as u64 {
            let what = format!("a fold of {} through host {} counts {count} and has {found:?}", kind.name, host.0);
            self.shared.oracle.lock().broken(crate::oracle::Violation::Listing { what });
        }
        Some(found)
    }

    /// Deletes what a fold finds and what is not written meanwhile.
    async fn erase_by_fold(&mut self, host: HostId, kind: BucketKind) {
        let Some(found) = self.fold(host, kind, FoldWants::Living).await else { return };
        let written_before = self.shared.oracle.lock().next_token();
        let runtime = self.shared.world.runtime(OUTSIDE);
        for queued in found {
            let pause_ms = self.random.within(WORK_PAUSE_MS);
            runtime.sleep(Duration::from_millis(pause_ms)).await;
            let Some(key) = storage_keys().get(&queued.0[..]).copied() else { continue };
            let again = self.shared.call(host, |kv| Box::pin(async move { found_again(&kv, &queued).await }));
            let Some(Ok(FoundAgain::Same(head))) = again.await else { continue };
            self.log(key, || format!("a fold erases it through {}", host.0));
            self.erase(host, key, head, written_before).await;
        }
    }

    /// Deletes an object that a fold has found, when this write had not begun.
    async fn erase(&mut self, host: HostId, key: Key, head: Object, written_before: Token) {
        let tokens = tokens_of_head(&head);
        let seen = {
            let mut oracle = self.shared.oracle.lock();
            oracle.fold_erases(key, &tokens, written_before);
            let deletes = oracle.deletes_in(key, &head.clock);
            Seen { clock: head.clock, tokens: tokens.union(&deletes).copied().collect(), has_value: true }
        };
        self.seen.insert(key, seen);
        self.write(host, key, Put { is_delete: true, is_conditional: false, is_hasty: false }).await;
        self.shared.ended(|counts| counts.erased_by_folds += 1);
    }

    /// Orders the tombstones that a fold finds to be reaped, until they are gone or changed.
    async fn reap_by_fold(&mut self, host: HostId, kind: BucketKind) {
        let Some(mut left) = self.fold(host, kind, FoldWants::Tombstones).await else { return };
        let runtime = self.shared.world.runtime(OUTSIDE);
        for _ in 0..ORDERS {
            if left.is_empty() {
                return;
            }
            let orders = left.clone();
            let ordered = self.shared.call(host, |kv| Box::pin(async move { kv.order_reaping(&orders).await }));
            let Some(ordered) = ordered.await else { return };
            for ((storage_key, _), answer) in left.iter().zip(&ordered) {
                if let Some(key) = storage_keys().get(&storage_key[..]) {
                    self.log(*key, || format!("a fold orders to reap it through {}: {answer:?}", host.0));
                }
            }
            let is_gone = |answer: &Result<Ordered, Error>| matches!(answer, Ok(Ordered::Gone));
            let gone = ordered.iter().filter(|answer| is_gone(answer)).count() as u64;
            self.shared.ended(|counts| counts.reaped_by_folds += gone);
            let is_left = |answer: &Result<Ordered, Error>| matches!(answer, Ok(Ordered::Waits) | Err(_));
            let answers: Vec<bool> = ordered.iter().map(is_left).collect();
            left = left.into_iter().zip(answers).filter(|(_, is_left)| *is_left).map(|(key, _)| key).collect();
            runtime.sleep(ORDER_PAUSE).await;
        }
    }
}

/// The writes whose values an object has, without its values.
fn tokens_of_head(head: &Object) -> BTreeSet<Token> {
    let token = |(name, token): &(Bytes, Bytes)| {
        let is_token = name == TOKEN_NAME;
        is_token.then(|| std::str::from_utf8(token).ok()?.parse().ok()).flatten()
    };
    head.siblings.iter().filter_map(|sibling| sibling.meta.user_meta.iter().find_map(token)).collect()
}
