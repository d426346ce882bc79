//! Carries out the steps of one exchange: asks the other node, reads and drops versions, and saves
//! marks.
//!
//! What it is not: it decides nothing (`machine`). Pushes and proofs are those of all work on
//! copies (`send`).

use super::back::KeyedItem;
use super::client::{
    ExchangeAnswer, ExchangeClient, ExchangePart, ExchangeQuestion, KeyHeld, KeysAnswer, KeysQuestion, MarkQuestion,
    RootQuestion, Standing,
};
use super::dropped::{DroppedCopies, DroppedCopy};
use super::exchanges::{Exchanges, not_saved};
use super::folded_sums::fold;
use super::lists::Item;
use super::machine::{Action, Begin, Ended, Event, Exchange, Tally, marked_seq};
use super::marks::{PeerStore, Towards};
use super::pairs::{Pair, busy, witnesses};
use super::sums::{Cut, RANGES};
use super::verdict::Witness;
use crate::Host;
use crate::compare::refusal;
use crate::fold::Candidate;
use crate::progress::TransferKind;
use crate::send::Target;
use crate::work::Work;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Access, RepairHost, TRANSFER_BYTES_MAX, mix};
use ombak_kv::replica::{COMPARE_KEYS_MAX, Held, HeldVersion, range_of};
use ombak_ring::RingVersion;
use ombak_runtime::Asker;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, NodeId, StoreFailure, VectorClock};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::warn;

/// Maximum number of versions that one exchange lists. Further ranges wait for the next one. A
/// single range may have more.
const LISTED_MAX: usize = 100_000;
/// Bytes that one key takes in a question beside itself, its clock included, about.
const ENTRY_BYTES: usize = 100;

/// How far an exchange has come.
pub(super) enum Progress {
    /// It waits for its second look.
    Paused(Box<Run>),
    /// It has ended.
    Ended {
        ended: Ended,
        tally: Tally,
        /// Bytes of sums and lists, about.
        bytes: u64,
        /// When it ended, by the wall clock.
        at: UnixMicros,
    },
}

/// An exchange that is under way. It keeps no store open between its steps.
pub(super) struct Run {
    exchanges: Arc<Exchanges>,
    work: Arc<Work>,
    class: ClassId,
    node: NodeId,
    client: Arc<dyn ExchangeClient>,
    home_version: RingVersion,
    store_id: u64,
    is_way_back: bool,
    /// The keys of the items, in their order.
    keys: Arc<[KeyedItem]>,
    exchange: Exchange,
    bytes: u64,
}

impl Run {
    /// Begins an exchange, and goes on as far as it comes.
    pub(super) async fn begin(
        exchanges: Arc<Exchanges>,
        work: Arc<Work>,
        host: &Host,
        (class, node): Pair,
        back: Option<Vec<KeyedItem>>,
    ) -> Result<Progress, Error> {
        let client = exchanges.peers.client(node).ok_or_else(|| busy("the other node has no exchanges"))?;
        let home_version = host.home_version(class.partition);
        let cut = cut(&exchanges, host, class).await?;
        let store_id = host.partitions().find(class.partition)?.store().identity().store_id;
        let mark_of = |node| exchanges.marks.read(|marks| marks.towards(class, node, store_id));
        let of_others = witnesses(&**host, class, node).into_iter().filter_map(mark_of).map(|mark| mark.seq);
        let mark = mark_of(node);
        let begin = Begin {
            is_full: host.is_full(class.partition, class.n),
            cut,
            highest_mark: of_others.chain(mark.map(|mark| mark.seq)).max().unwrap_or_default(),
            mark,
            own_store: store_id,
            way_back: back.as_ref().map(|keys| keys.iter().map(|key| key.item).collect()),
        };
        let (exchange, action) = Exchange::begin(begin);
        let is_way_back = back.is_some();
        let keys = back.unwrap_or_default().into();
        let run = Self {
            exchanges,
            work,
            class,
            node,
            client,
            home_version,
            store_id,
            is_way_back,
            keys,
            exchange,
            bytes: 0,
        };
        run.go_on(host, action).await
    }

    /// Goes on after the pause.
    pub(super) async fn resume(mut self: Box<Self>, host: &Host) -> Result<Progress, Error> {
        let Cut { sums, .. } = cut(&self.exchanges, host, self.class).await?;
        let action = self.exchange.on(Event::Resumed(sums));
        self.go_on(host, action).await
    }

    pub(super) const fn pair(&self) -> Pair {
        (self.class, self.node)
    }

    pub(super) const fn is_way_back(&self) -> bool {
        self.is_way_back
    }

    async fn go_on(mut self, host: &Host, mut action: Action) -> Result<Progress, Error> {
        loop {
            let event = match action {
                Action::Pause => return Ok(Progress::Paused(Box::new(self))),
                Action::End(ended) => {
                    let (tally, bytes, at) = (self.exchange.tally(), self.bytes, host.now());
                    return Ok(Progress::Ended { ended, tally, bytes, at });
                }
                step => self.take(host, step).await?,
            };
            action = self.exchange.on(event);
        }
    }

    /// Takes one step. A stop, or a change of the home, ends the exchange before it.
    async fn take(&mut self, host: &Host, step: Action) -> Result<Event, Error> {
        self.check(host)?;
        Ok(match step {
            Action::AskRoot { seq, sum, marked_seq } => {
                let root = RootQuestion { store_id: self.store_id, seq, sum, marked_seq };
                match self.ask(ExchangePart::Root(root)).await? {
                    ExchangeAnswer::Root(answer) => Event::Root(answer),
                    _ => return Err(other_answer()),
                }
            }
            Action::AskGroups => Event::Sums(self.sums(ExchangePart::Groups).await?),
            Action::AskRanges(groups) => Event::Sums(self.sums(ExchangePart::Ranges { groups }).await?),
            Action::AskSome(ranges) => Event::Sums(self.sums(ExchangePart::Some { ranges }).await?),
            Action::List(ranges) => self.list(host, ranges).await?,
            Action::SendList(list) => match self.ask(ExchangePart::List(list)).await? {
                ExchangeAnswer::Lacked(mut mixes) => {
                    mixes.sort_unstable();
                    Event::Lacked(mixes)
                }
                _ => return Err(other_answer()),
            },
            Action::Compare(places, peer) => self.compare(host, &places, peer).await?,
            Action::AskWitnesses(places) => self.ask_witnesses(host, &places).await?,
            Action::Push(places) => Event::Pushed(self.push(host, &places).await?),
            Action::Drop(places) => Event::Dropped(self.drop_all(host, &places).await?),
            Action::Mark { seq, token } => {
                match self.ask(ExchangePart::Mark(MarkQuestion { store_id: self.store_id, seq, token })).await? {
                    ExchangeAnswer::Marked(peer_seq) => Event::Marked(peer_seq),
                    _ => return Err(other_answer()),
                }
            }
            Action::Keep(mark) => self.keep(host, mark).await?,
            Action::Pause | Action::End(_) => return Err(StoreFailure::internal("this is no step").into()),
        })
    }

    fn check(&self, host: &Host) -> Result<(), Error> {
        if host.transfers().is_stopped() {
            return Err(busy("this node stops"));
        }
        self.work.check_gives()?;
        let placement = host.placement();
        let home = placement.home(self.class.partition);
        if home.is_changing() || home.version() != self.home_version {
            return Err(busy("the home has begun to change"));
        }
        Ok(())
    }

    /// Asks the other node.
    async fn ask(&mut self, part: ExchangePart) -> Result<ExchangeAnswer, Error> {
        let client = self.client.clone();
        self.ask_at(&client, part).await
    }

    /// Asks a node, within the limit of bytes.
    async fn ask_at(&mut self, client: &Arc<dyn ExchangeClient>, part: ExchangePart) -> Result<ExchangeAnswer, Error> {
        let bytes = part.bytes();
        self.exchanges.throttle.admit(bytes).await;
        self.bytes += bytes;
        let question = ExchangeQuestion { class: self.class, home_version: self.home_version, part };
        self.work.in_time(client.ask(question)).await
    }

    async fn sums(&mut self, part: ExchangePart) -> Result<Vec<u64>, Error> {
        match self.ask(part).await? {
            ExchangeAnswer::Sums(sums) => Ok(sums),
            _ => Err(other_answer()),
        }
    }

    async fn list(&mut self, host: &Host, ranges: Vec<u32>) -> Result<Event, Error> {
        let (there, class) = (host.clone(), self.class);
        let listed = host.transfers().walk(Asker::default(), move |waited| {
            let partition = there.partitions().find(class.partition)?;
            let mut by_range: BTreeMap<u32, Vec<KeyedItem>> = ranges.iter().map(|range| (*range, Vec::new())).collect();
            let (mut count, mut last) = (0, u32::MAX);
            fold(&*there, &partition, class, waited, |entry, hash| {
                let range = range_of(hash, RANGES as u32);
                let Some(keys) = by_range.get_mut(&range).filter(|_| range <= last) else { return };
                let item = Item { mix: mix(hash, entry.digest), seq: entry.seq };
                keys.push(KeyedItem { item, key: entry.key.clone(), digest: entry.digest });
                count += 1;
                // The highest ranges are left out, one after the other, and never the first one.
                while count > LISTED_MAX && by_range.len() > 1 {
                    let Some((left_out, keys)) = by_range.pop_last() else { break };
                    count -= keys.len();
                    last = left_out.saturating_sub(1);
                }
            })?;
            Ok(by_range)
        });
        let by_range = listed.await?;
        let ranges = by_range.keys().copied().collect();
        self.keys = by_range.into_values().flatten().collect();
        Ok(Event::Listed { ranges, items: self.keys.iter().map(|key| key.item).collect() })
    }

    /// Asks what the other node holds of some versions that are here still.
    async fn compare(&mut self, host: &Host, places: &[usize], peer: PeerStore) -> Result<Event, Error> {
        let client = self.client.clone();
        let (standings, held) = self.ask_keys(host, &client, places, 0).await?;
        let is_peer = |(standing, _): &(Standing, u64)| {
            standing.is_full && peer == PeerStore { store_id: standing.store_id, token: standing.token }
        };
        Ok(Event::Held { is_reliable: standings.iter().all(is_peer), held })
    }

    /// Asks all further primaries. One that does not answer is a silent witness.
    async fn ask_witnesses(&mut self, host: &Host, places: &[usize]) -> Result<Event, Error> {
        let mut answers = Vec::new();
        for node in witnesses(&**host, self.class, self.node) {
            answers.push(self.ask_witness(host, node, places).await.unwrap_or_else(|_| Witness::silent()));
        }
        Ok(Event::Witnessed(answers))
    }

    async fn ask_witness(&mut self, host: &Host, node: NodeId, places: &[usize]) -> Result<Witness, Error> {
        let client = self.exchanges.peers.client(node).filter(|_| host.peers().is_up(node));
        let client = client.ok_or(Error::AllNodesDown)?;
        let (class, store_id) = (self.class, self.store_id);
        let mark = self.exchanges.marks.read(|marks| marks.towards(class, node, store_id));
        let asked_seq = mark.map_or(0, |mark| mark.peer_seq);
        let (standings, held) = self.ask_keys(host, &client, places, asked_seq).await?;
        let covered = |(standing, known_seq): &(Standing, u64)| {
            let own = mark.map_or(0, |mark| marked_seq(&mark, *standing));
            own.max(*known_seq)
        };
        Ok(Witness {
            is_full: standings.iter().all(|(standing, _)| standing.is_full),
            // Without an answer nothing is known of the store.
            marked_seq: standings.iter().map(covered).min().unwrap_or_default(),
            held,
        })
    }

    /// Asks what a node holds of some versions. What is not here any more, or is another version by
    /// now, takes no part: it counts as the same. What this node cannot read counts as unreadable.
    /// Returns also how the node stood after each question, and what it knew to be included there.
    async fn ask_keys(
        &mut self,
        host: &Host,
        client: &Arc<dyn ExchangeClient>,
        places: &[usize],
        marked_seq: u64,
    ) -> Result<(Vec<(Standing, u64)>, Vec<KeyHeld>), Error> {
        let mut held = vec![KeyHeld::Readable(Held::Same); places.len()];
        let mut standings = Vec::new();
        for (places, held) in places.chunks(COMPARE_KEYS_MAX).zip(held.chunks_mut(COMPARE_KEYS_MAX)) {
            for (numbers, candidates) in self.in_questions(host, places).await? {
                let (numbers, versions) = readable_of(numbers, candidates, held);
                let asked = versions.len();
                let part = ExchangePart::Keys(KeysQuestion { store_id: self.store_id, marked_seq, versions });
                let ExchangeAnswer::Keys(KeysAnswer { standing, known_seq, held: answered }) =
                    self.ask_at(client, part).await?
                else {
                    return Err(other_answer());
                };
                if answered.len() != asked {
                    return Err(other_answer());
                }
                standings.push((standing, known_seq));
                numbers.into_iter().zip(answered).for_each(|(number, answered)| held[number] = answered);
            }
        }
        Ok((standings, held))
    }

    /// Brings some versions to the other node. Returns for each whether it is durably there, or not
    /// here any more.
    async fn push(&self, host: &Host, places: &[usize]) -> Result<Vec<bool>, Error> {
        let target = self.target(host, self.node);
        let mut proved = vec![true; places.len()];
        for (places, proved) in places.chunks(COMPARE_KEYS_MAX).zip(proved.chunks_mut(COMPARE_KEYS_MAX)) {
            for (numbers, candidates) in self.in_questions(host, places).await? {
                let answered = self.work.prove_at(host, &target, &candidates).await?;
                numbers.into_iter().zip(answered).for_each(|(number, is_proved)| proved[number] = is_proved);
            }
        }
        Ok(proved)
    }

    /// Drops versions that were removed everywhere else, each only if it is still that version.
    /// They are in the file of dropped copies before.
    async fn drop_all(&self, host: &Host, places: &[usize]) -> Result<Vec<bool>, Error> {
        let keys: Vec<KeyedItem> = self.keys_of(places).cloned().collect();
        let (partition, n, count) = (self.class.partition, self.class.n, keys.len());
        warn!(partition, n, count, "versions that all other primaries had and lack now are removed here");
        let (there, exchanges, at) = (host.clone(), self.exchanges.clone(), (self.class, self.home_version));
        host.transfers().pool.run(move || drop_copies(&*there, &exchanges.dropped, at, &keys)).await?
    }

    /// Saves the mark of this node. The other node has it already.
    async fn keep(&self, host: &Host, mark: Towards) -> Result<Event, Error> {
        let (exchanges, class, node) = (self.exchanges.clone(), self.class, self.node);
        let keep = move || exchanges.marks.change(|marks| marks.keep(class, node, mark));
        host.transfers().pool.run(keep).await?.map_err(|why| not_saved(&why))?;
        Ok(Event::Kept)
    }

    fn target(&self, host: &Host, node: NodeId) -> Target {
        Target {
            class: self.class,
            node,
            home_version: self.home_version,
            tracked: self.work.progress.begin(TransferKind::Owed, self.class, node, host.now()),
            refusal: Mutex::default(),
        }
    }

    fn keys_of<'a>(&'a self, places: &'a [usize]) -> impl Iterator<Item = &'a KeyedItem> + 'a {
        places.iter().filter_map(|place| self.keys.get(*place))
    }

    /// Those of at most [`COMPARE_KEYS_MAX`] versions that are still here, in parts that fit into
    /// one question each, with their numbers in the list of places.
    async fn in_questions(&self, host: &Host, places: &[usize]) -> Result<Vec<(Vec<usize>, Vec<Candidate>)>, Error> {
        let keys: Vec<KeyedItem> = self.keys_of(places).cloned().collect();
        let (there, partition) = (host.clone(), self.class.partition);
        let read = move || read_candidates(&there, partition, &keys);
        let mut parts: Vec<(Vec<usize>, Vec<Candidate>)> = Vec::new();
        let mut bytes = 0;
        for (number, candidate) in host.transfers().pool.run(read).await?? {
            let more = candidate.held.key.len() + ENTRY_BYTES;
            bytes += more;
            match parts.last_mut() {
                Some((numbers, part)) if bytes <= TRANSFER_BYTES_MAX => {
                    numbers.push(number);
                    part.push(candidate);
                }
                _ => {
                    bytes = more;
                    parts.push((vec![number], vec![candidate]));
                }
            }
        }
        Ok(parts)
    }
}

/// The versions of one question that this node can read, with their numbers. The others are noted
/// as unreadable. Their clocks are not known, so the other node is not asked for them. A push
/// proves them by their digests, and no mark covers them before.
fn readable_of(
    numbers: Vec<usize>,
    candidates: Vec<Candidate>,
    held: &mut [KeyHeld],
) -> (Vec<usize>, Vec<HeldVersion>) {
    let (mut readable, mut versions) = (Vec::new(), Vec::new());
    for (number, candidate) in numbers.into_iter().zip(candidates) {
        if candidate.is_readable {
            readable.push(number);
            versions.push(candidate.held);
        } else {
            held[number] = KeyHeld::Unreadable;
        }
    }
    (readable, versions)
}

/// Reads the heads of versions, each with its number. Those that are gone, or are other versions by
/// now, are left out. Blocks.
fn read_candidates(host: &Host, partition: u32, keys: &[KeyedItem]) -> Result<Vec<(usize, Candidate)>, Error> {
    let partition = host.partitions().find(partition)?;
    let read = |(number, keyed): (usize, &KeyedItem)| {
        let KeyedItem { key, digest, .. } = keyed;
        let found = partition.read_head(key, Access::Blocking);
        let found = found.and_then(|found| {
            let Some(found) = found else { return Ok(None) };
            let clock = partition.decode(key, &found)?.clock;
            Ok(Some((found, clock)))
        });
        let (found_digest, bytes, clock, is_readable) = match found {
            Ok(None) => return None,
            Ok(Some((found, clock))) => {
                let bytes = partition.store().record_bytes(key).ok().flatten();
                (found.digest, bytes.unwrap_or((key.len() + found.head.len()) as u64), clock, true)
            }
            // It was logged where it was read. Only a replica with the same digest has it.
            Err(_) => (*digest, 0, VectorClock::new(), false),
        };
        let held = HeldVersion { key: key.clone(), digest: found_digest, clock };
        (found_digest == *digest).then_some((number, Candidate { held, bytes, is_readable }))
    };
    Ok(keys.iter().enumerate().filter_map(read).collect())
}

/// Writes versions to the file of dropped copies, and drops each that is still the same, as long as
/// the home has the version that the exchange is for. Returns for each whether it went. Blocks.
fn drop_copies(
    host: &dyn RepairHost,
    file: &DroppedCopies,
    (class, home_version): (ClassId, RingVersion),
    keys: &[KeyedItem],
) -> Result<Vec<bool>, Error> {
    let partition = host.partitions().find(class.partition)?;
    let mut dropped = Vec::with_capacity(keys.len());
    for KeyedItem { item, key, digest } in keys {
        let locked = partition.lock(key, Access::Blocking).map_err(refusal)?;
        // This may have waited for long, for a thread or for the lock.
        if host.home_version(class.partition) != home_version {
            return Err(busy("the home has begun to change"));
        }
        // The lock keeps it as it is. What cannot be read stays.
        let found = partition.read(key, Access::Blocking).ok().flatten();
        let Some(found) = found.filter(|found| found.digest == *digest && found.seq == item.seq) else {
            dropped.push(false);
            continue;
        };
        let copy = DroppedCopy {
            class,
            seq: found.seq,
            dropped_at: host.now(),
            stored_secs: found.stored_secs,
            key: key.clone(),
            head: found.head,
            body: found.body.unwrap_or_default(),
        };
        file.append(&copy).map_err(|why| not_saved(&why))?;
        host.reaping().fences.raise_for_key(class.partition, key);
        dropped.push(locked.remove_proven(*digest).map_err(refusal)?);
    }
    Ok(dropped)
}

/// The sums of this node.
async fn cut(exchanges: &Arc<Exchanges>, host: &Host, class: ClassId) -> Result<Cut, Error> {
    let (exchanges, there) = (exchanges.clone(), host.clone());
    host.transfers().walk(Asker::default(), move |waited| exchanges.cut(&*there, class, waited)).await
}

fn other_answer() -> Error {
    StoreFailure::internal("another node has answered another question of an exchange").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_kv::{Kv, KvConfig};
    use ombak_storage::{MemoryConfig, MemoryFactory};
    use ombak_types::Bucket;
    use ombak_types::names::encode_storage_key;

    #[test]
    fn what_this_node_cannot_read_does_not_count_as_held_elsewhere() {
        let candidate = |is_readable| {
            let held = HeldVersion { key: "k".into(), digest: 1, clock: VectorClock::new() };
            Candidate { held, bytes: 1, is_readable }
        };
        let mut held = vec![KeyHeld::Readable(Held::Same); 4];
        let (numbers, versions) =
            readable_of(vec![0, 2, 3], vec![candidate(true), candidate(false), candidate(true)], &mut held);
        assert_eq!((numbers, versions.len()), (vec![0, 3], 2));
        let same = KeyHeld::Readable(Held::Same);
        assert_eq!(held, [same, same, KeyHeld::Unreadable, same]);
    }

    #[tokio::test]
    async fn nothing_is_dropped_once_the_home_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Arc::new(MemoryFactory::new(MemoryConfig::default()));
        let kv = Kv::open(KvConfig::new("node", dir.path(), stores)).unwrap();
        let (host, class) = (kv.repair_host(), ClassId { partition: 0, n: 3 });
        let file = DroppedCopies::new(kv.file_system().clone(), dir.path().to_owned());
        let mut key = Vec::new();
        encode_storage_key(&Bucket::untyped("b"), b"k", &mut key);
        let keys = [KeyedItem { item: Item { mix: 1, seq: 1 }, key: key.into(), digest: 1 }];
        let drop_at = |version| drop_copies(&*host, &file, (class, version), &keys);
        let version = host.home_version(class.partition);
        assert_eq!(drop_at(version), Ok(vec![false]), "nothing is there");
        let later = RingVersion { number: version.number + 1, ..version };
        assert_eq!(drop_at(later), Err(busy("the home has begun to change")));
    }
}
