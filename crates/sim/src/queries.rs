//! Listings and index queries of a run.

use crate::bucket_kinds::BucketKind;
use crate::clients::Clients;
use crate::cluster::Backends;
use crate::oracle::{Key, Violation};
use crate::world::HostId;
use bytes::Bytes;
use ombak_kv::{IndexQuery, QueryRange};
use ombak_types::{Error, IndexEntry, IndexTerm};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a listing or a query may take.
const LISTING_MAX: Duration = Duration::from_secs(3);
/// The index field of all values.
const FIELD: &[u8] = b"number_int";

/// The index entry of the values of a key.
pub(crate) fn entry_of(key: Key) -> Option<IndexEntry> {
    IndexEntry::parse(FIELD, key.number.to_string().as_bytes()).ok()
}

/// The keys of a bucket, as a node lists them. None if that failed.
pub(crate) async fn list(clients: &Clients, host: HostId, kind: BucketKind) -> Option<Vec<Bytes>> {
    let listed = clients.call(host, move |kv| {
        Box::pin(async move {
            let mut listing = kv.list_keys(&kind.bucket(), Some(LISTING_MAX))?;
            let mut keys = Vec::new();
            while let Some(batch) = listing.next().await {
                keys.extend(batch?);
            }
            Ok::<_, Error>(keys)
        })
    });
    let keys = listed.await?.ok()?;
    check(clients, host, kind, "a listing", &keys);
    Some(keys)
}

/// Whether this run has listings and index queries.
pub(crate) fn are_possible(clients: &Clients) -> bool {
    clients.cluster.lock().backends == Backends::OnlyMemory
}

/// The keys of a bucket, as an index query through a node finds them. None if that failed.
pub(crate) async fn query(clients: &Clients, host: HostId, kind: BucketKind) -> Option<Vec<Bytes>> {
    let term = |number: u64| IndexTerm::Int(number.into());
    let range = QueryRange::Terms { field: Bytes::from_static(FIELD), from: term(0), to: term(u64::MAX) };
    let bucket = kind.bucket();
    let query = IndexQuery { bucket, range, after: None, results_max: None, pattern: None, shows_tombstones: false };
    let found = clients.call(host, move |kv| {
        Box::pin(async move {
            let mut results = kv.query(query, Some(LISTING_MAX))?;
            let mut keys = Vec::new();
            while let Some(batch) = results.next().await {
                keys.extend(batch?.into_iter().map(|found| found.key));
            }
            Ok::<_, Error>(keys)
        })
    });
    let keys = found.await?.ok()?;
    check(clients, host, kind, "a query", &keys);
    Some(keys)
}

/// What must be true of each listing: each key comes once, and was written once.
fn check(clients: &Clients, host: HostId, kind: BucketKind, what: &str, keys: &[Bytes]) {
    let mut oracle = clients.oracle.lock();
    let known: BTreeSet<Bytes> = oracle.keys().iter().filter(|key| key.kind == kind).map(|key| key.bytes()).collect();
    let distinct: BTreeSet<&Bytes> = keys.iter().collect();
    if distinct.len() != keys.len() || distinct.iter().any(|key| !known.contains(*key)) {
        let what = format!("{what} of {} through host {} shows {keys:?}", kind.name, host.0);
        oracle.broken(Violation::Listing { what });
    }
}

/// When nothing happens any more, each node lists and finds exactly the keys that are there.
pub(crate) async fn check_listings(clients: &Clients) {
    if !are_possible(clients) {
        return;
    }
    let hosts = clients.cluster.lock().member_hosts();
    for (kind, host) in BucketKind::ALL.into_iter().zip(hosts.into_iter().cycle()) {
        let there = {
            let (cluster, oracle) = (clients.cluster.lock(), clients.oracle.lock());
            oracle.living(&cluster, kind)
        };
        let Some(there) = there else { continue };
        let (listed, queried) = (list(clients, host, kind).await, query(clients, host, kind).await);
        for (what, found) in [("a listing", listed), ("a query", queried)] {
            let found: Option<BTreeSet<Bytes>> = found.map(|keys| keys.into_iter().collect());
            if found.as_ref() != Some(&there) {
                let what = format!("{what} of {} through host {}: {found:?} instead of {there:?}", kind.name, host.0);
                clients.oracle.lock().broken(Violation::Listing { what });
            }
        }
    }
}
