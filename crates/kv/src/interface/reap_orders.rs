//! Orders to the primaries of keys to reap tombstones now: how they are given, and how this node
//! takes them.

use crate::digest::is_tombstone;
use crate::engine::{Engine, Kv};
use crate::partition::{Access, Partition};
use crate::replica::{Ordered, REAP_KEYS_MAX, ReapOrder};
use bytes::Bytes;
use futures_util::future::join_all;
use ombak_types::names::decode_storage_key;
use ombak_types::{Error, StoreFailure, StoreFailureKind, VectorClock};
use std::collections::BTreeMap;

/// A tombstone: its storage key and its clock.
type Tombstone = (Bytes, VectorClock);

impl Kv {
    /// Orders all primaries to reap tombstones now, whatever the delete mode is. Each tombstone is
    /// a storage key with a clock; the answers have their order.
    ///
    /// An answer is [`Ordered::Gone`] if no primary holds anything of the key, and
    /// [`Ordered::Changed`] if one holds something that is not covered by the tombstone. Otherwise
    /// the tombstone waits for a round: ask again later. An error means the same: a primary does
    /// not answer, or the home of the key is changing.
    pub async fn order_reaping(&self, tombstones: &[Tombstone]) -> Vec<Result<Ordered, Error>> {
        let mut answers: Vec<_> = tombstones.iter().map(|_| Ok(Ordered::Waits)).collect();
        let placement = self.engine.request_placement();
        let mut classes: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        for (at, (key, _)) in tombstones.iter().enumerate() {
            match self.class_of(&placement, key) {
                Ok(class) => classes.entry(class).or_default().push(at),
                Err(error) => answers[at] = Err(error),
            }
        }
        let orders =
            classes.iter().flat_map(|(class, places)| places.chunks(REAP_KEYS_MAX).map(|places| (*class, places)));
        let ordered = orders.map(|((partition, n_val), places)| {
            let home = placement.home(partition);
            let tombstones = places.iter().map(|at| tombstones[*at].clone()).collect();
            let order = ReapOrder { partition, n_val, ring: home.version(), tombstones };
            let clients = home
                .replica_set(n_val)
                .iter()
                .map(|node| Engine::reaping_client(&self.engine, *node))
                .collect::<Vec<_>>();
            async move { (places, join_all(clients.iter().map(|client| client.order(order.clone()))).await) }
        });
        for (places, of_primaries) in join_all(ordered).await {
            for (place, at) in places.iter().enumerate() {
                answers[*at] = together(&of_primaries, place);
            }
        }
        answers
    }

    /// The home partition of a storage key, and the n_val of its bucket.
    fn class_of(&self, placement: &ombak_ring::placement::Placement, key: &Bytes) -> Result<(u32, u32), Error> {
        let (bucket, key) = decode_storage_key(key).map_err(|_| StoreFailure::internal("a storage key is none"))?;
        let props = self.engine.buckets.props(&bucket)?;
        Ok((self.engine.home_of(placement, &bucket, &key, &props), props.n_val))
    }
}

/// What the answers of all primaries say of the tombstone at a place of their order.
fn together(of_primaries: &[Result<Vec<Ordered>, Error>], place: usize) -> Result<Ordered, Error> {
    let mut all = Ordered::Gone;
    for answers in of_primaries {
        let answers = answers.as_ref().map_err(Clone::clone)?;
        match answers.get(place) {
            Some(Ordered::Gone) => {}
            Some(Ordered::Changed) => return Ok(Ordered::Changed),
            Some(Ordered::Waits) => all = Ordered::Waits,
            None => return Err(StoreFailure::internal("an answer to an order to reap is too short").into()),
        }
    }
    Ok(all)
}

/// Lets the tombstones of an order wait for their removal. Refuses the order if this node is no
/// primary that has everything, or if the home is changing. Blocks.
pub(super) fn take(engine: &Engine, order: &ReapOrder) -> Result<Vec<Ordered>, Error> {
    let ReapOrder { partition, n_val, ring, ref tombstones } = *order;
    let placement = engine.placement();
    let home = placement.home(partition);
    if !engine.agrees_on_home(&placement, partition, ring) || home.is_changing() {
        return Err(refusal("the home partition is changing"));
    }
    // A primary that fills may lack a tombstone that another one has.
    if !home.replica_set(n_val).contains(&engine.identity.node_id) || !engine.is_full(partition, n_val) {
        return Err(refusal("this node is no primary that has everything"));
    }
    let partition = engine.partitions().find(partition)?;
    Ok(tombstones.iter().map(|(key, clock)| take_one(engine, &partition, key, clock)).collect())
}

fn take_one(engine: &Engine, partition: &Partition, key: &Bytes, clock: &VectorClock) -> Ordered {
    let found = match partition.read_head(key, Access::Blocking) {
        Ok(Some(found)) => found,
        Ok(None) => return Ordered::Gone,
        // What cannot be read is repaired first.
        Err(_) => return Ordered::Waits,
    };
    let Ok(local) = partition.decode(key, &found) else { return Ordered::Waits };
    if local.clock == *clock && is_tombstone(found.digest) {
        // Without room for it, it is ordered again later.
        engine.reaper.reap_now(partition.number(), key, found.digest);
        return Ordered::Waits;
    }
    // A primary that is behind gets the tombstone from another one, when that drives a round.
    let is_behind = local.clock != *clock && clock.dominates(&local.clock);
    if is_behind { Ordered::Waits } else { Ordered::Changed }
}

/// A refusal after which the order is given again.
fn refusal(why: &str) -> Error {
    StoreFailure::new(StoreFailureKind::Busy, why).into()
}
