//! Carries out the steps of one exchange: asks the other node, reads and drops versions, and saves
//! marks.
//!
//! What it is not: it decides nothing (`machine`). Pushes and proofs are those of all work on
//! copies (`send`).

use super::back::KeyedItem;
use super::class_fold::{WantedRanges, fold};
use super::client::{
    ExchangeAnswer, ExchangeClient, ExchangePart, ExchangeQuestion, KeyHeld, KeysAnswer, KeysQuestion, MarkQuestion,
    RootAnswer, RootQuestion, Standing,
};
use super::drops::{InPlace, ToDrop, drop_all, fetch};
use super::exchanges::{Exchanges, counted_seq, not_saved};
use super::lists::Item;
use super::machine::{Action, Begin, Ended, Event, Exchange, Tally, marked_seq};
use super::other_ways::read_items;
use super::pairs::{Pair, busy, witnesses};
use super::sums::{Cut, NO_SLOTS, Sums};
use super::verdict::Witness;
use crate::Host;
use crate::fold::Candidate;
use crate::progress::TransferKind;
use crate::send::Target;
use crate::work::Work;
use bytes::Bytes;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Access, PeerStore, TRANSFER_BYTES_MAX, Towards, mix};
use ombak_kv::replica::{COMPARE_KEYS_MAX, Held, HeldVersion};
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
    class_print: u64,
    /// The first slot of expiry that this exchange compares.
    first_slot: u32,
    store_id: u64,
    /// The store of this node with its token, from before anything was looked at; none if the class
    /// was not full.
    own: Option<PeerStore>,
    is_way_back: bool,
    /// The keys of the items, in their order.
    keys: Arc<[KeyedItem]>,
    exchange: Exchange,
    bytes: u64,
    /// Up to this seq copies of this store were in doubt when the exchange began.
    doubt_to: u64,
    /// Whether the other node was asked to note a mark: something differed.
    has_asked_mark: bool,
    /// By the places of versions: the nodes that hold something else of the key.
    others: BTreeMap<usize, Vec<NodeId>>,
}

impl Run {
    /// Begins an exchange, and goes on as far as it comes.
    pub(super) async fn begin(
        exchanges: Arc<Exchanges>,
        work: Arc<Work>,
        host: &Host,
        pair: Pair,
        back: Option<Vec<KeyedItem>>,
    ) -> Result<Progress, Error> {
        let home_version = host.home_version(pair.0.partition);
        let class_print = host.buckets().snapshot().class_print(pair.0.n);
        let first_slot = Exchanges::first_slot(&**host, pair.0)?;
        // A loss after this draws another token.
        let own = own_store(&exchanges, host, pair.0).await?;
        let cut = cut(&exchanges, host, pair.0, first_slot).await?;
        let at = (home_version, class_print, first_slot);
        Self::begin_at((exchanges, work), host, pair, at, (own, cut, back), Exchange::begin).await
    }

    /// Begins an exchange of some keys alone, without sums, and goes on to its end.
    pub(super) async fn begin_with_keys(
        exchanges: Arc<Exchanges>,
        work: Arc<Work>,
        host: &Host,
        pair: Pair,
        keys: Vec<Bytes>,
    ) -> Result<Progress, Error> {
        let (there, class) = (host.clone(), pair.0);
        let home_version = host.home_version(class.partition);
        let class_print = host.buckets().snapshot().class_print(class.n);
        let own = own_store(&exchanges, host, class).await?;
        let items = host.transfers().pool.run(move || read_items(&*there, class, &keys)).await??;
        if items.is_empty() {
            let (ended, tally, at) = (Ended::Partly, Tally::default(), host.now());
            return Ok(Progress::Ended { ended, tally, bytes: 0, at });
        }
        // All of them take part.
        let cut = Cut { seq: u64::MAX, through: 0, sums: Sums::default() };
        let begin = Exchange::begin_with_keys;
        let at = (home_version, class_print, NO_SLOTS);
        Self::begin_at((exchanges, work), host, pair, at, (own, cut, Some(items)), begin).await
    }

    async fn begin_at(
        (exchanges, work): (Arc<Exchanges>, Arc<Work>),
        host: &Host,
        (class, node): Pair,
        (home_version, class_print, first_slot): (RingVersion, u64, u32),
        (own, cut, back): (Option<PeerStore>, Cut, Option<Vec<KeyedItem>>),
        begins: fn(Begin) -> (Exchange, Action),
    ) -> Result<Progress, Error> {
        let client = exchanges.peers.client(node).ok_or_else(|| busy("the other node has no exchanges"))?;
        let store_id = host.partitions().find(class.partition)?.store().identity().store_id;
        let mark_of = |node| host.transfers().marks.towards(class, node, store_id);
        let doubt_to = host.transfers().doubt.up_to(class.partition);
        let of_others = witnesses(&**host, class, node).into_iter().filter_map(mark_of).map(|mark| mark.seq);
        let mark = mark_of(node);
        let begin = Begin {
            is_full: own.is_some(),
            cut,
            highest_mark: of_others.chain(mark.map(|mark| mark.seq)).max().unwrap_or_default(),
            mark,
            own_store: store_id,
            doubt_to,
            way_back: back.as_ref().map(|keys| keys.iter().map(|key| key.item).collect()),
        };
        let (exchange, action) = begins(begin);
        let is_way_back = back.is_some();
        let keys = back.unwrap_or_default().into();
        let run = Self {
            exchanges,
            work,
            class,
            node,
            client,
            home_version,
            class_print,
            first_slot,
            store_id,
            own,
            is_way_back,
            keys,
            exchange,
            bytes: 0,
            doubt_to,
            has_asked_mark: false,
            others: BTreeMap::new(),
        };
        run.go_on(host, action).await
    }

    /// Goes on after the pause.
    pub(super) async fn resume(mut self: Box<Self>, host: &Host) -> Result<Progress, Error> {
        let Cut { sums, .. } = cut(&self.exchanges, host, self.class, self.first_slot).await?;
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
                    if ended == Ended::Included {
                        self.exchanges.doubt_rounds.ended(&**host, (self.class, self.node), self.doubt_to);
                    }
                    let (tally, bytes, at) = (self.exchange.tally(), self.bytes, host.now());
                    return Ok(Progress::Ended { ended, tally, bytes, at });
                }
                step => self.take(host, step).await?,
            };
            action = self.exchange.on(event);
        }
    }

    /// Takes one step. A stop, a change of the home, or a loss of this node's store ends the
    /// exchange before it.
    async fn take(&mut self, host: &Host, step: Action) -> Result<Event, Error> {
        self.check(host)?;
        if matches!(step, Action::Push(_) | Action::Drop(_) | Action::Mark { .. } | Action::Keep(_)) {
            self.check_own_store(host).await?;
        }
        Ok(match step {
            Action::AskRoot { seq, sum, marked_seq } => {
                let root = RootQuestion { store_id: self.store_id, seq, sum, marked_seq };
                match self.ask(ExchangePart::Root(root)).await? {
                    ExchangeAnswer::Root(answer) => {
                        let known_seq = counted_seq(host, (self.class, self.node), answer.known_seq)?;
                        let answer = RootAnswer { known_seq, ..answer };
                        self.note_told(host, self.node, answer.standing);
                        self.forget_void_mark(host, answer.standing);
                        Event::Root(answer)
                    }
                    _ => return Err(other_answer()),
                }
            }
            Action::Meet(places) => self.meet(host, &places).await?,
            Action::AskGroups => Event::Sums(self.sums(ExchangePart::Groups).await?),
            Action::AskOutlines(groups) => {
                match self.ask(ExchangePart::Ranges { groups, takes_outlines: true }).await? {
                    ExchangeAnswer::Outlines(outlines) => Event::Outlines(outlines),
                    ExchangeAnswer::Sums(sums) => Event::Sums(sums),
                    _ => return Err(other_answer()),
                }
            }
            Action::AskRanges(groups) => {
                Event::Sums(self.sums(ExchangePart::Ranges { groups, takes_outlines: false }).await?)
            }
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
                self.has_asked_mark = true;
                match self.ask(ExchangePart::Mark(MarkQuestion { store_id: self.store_id, seq, token })).await? {
                    ExchangeAnswer::Marked(peer_seq) => Event::Marked(peer_seq),
                    _ => return Err(other_answer()),
                }
            }
            Action::Keep(mark) => self.keep(host, mark).await?,
            Action::Pause | Action::End(_) => return Err(StoreFailure::internal("this is no step").into()),
        })
    }

    /// Notes what another node had on its disk when it answered.
    fn note_told(&self, host: &Host, node: NodeId, standing: Standing) {
        host.transfers().told.note(node, self.class.partition, standing.store_id, standing.seq);
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
        if host.buckets().snapshot().class_print(self.class.n) != self.class_print {
            return Err(busy("an n_val has begun to change"));
        }
        let transfers = host.transfers();
        let is_same = |own: &PeerStore| {
            let ClassId { partition, n } = self.class;
            host.is_full(partition, n) && transfers.fullness.token(self.class) == Some(own.token)
        };
        // Without a store of its own it began because a rule is broken.
        let Some(own) = &self.own else { return Ok(()) };
        if !is_same(own) || transfers.doubt.up_to(self.class.partition) > self.doubt_to {
            return Err(lost());
        }
        Ok(())
    }

    /// As [`Self::check`], with losses of this node's store that nobody has noted yet.
    async fn check_own_store(&self, host: &Host) -> Result<(), Error> {
        if self.own.is_some() && own_store(&self.exchanges, host, self.class).await? != self.own {
            return Err(lost());
        }
        self.check(host)
    }

    /// Asks the other node.
    async fn ask(&mut self, part: ExchangePart) -> Result<ExchangeAnswer, Error> {
        let client = self.client.clone();
        self.ask_at(&client, part).await
    }

    /// Asks a node, within the limit of bytes.
    async fn ask_at(&mut self, client: &Arc<dyn ExchangeClient>, part: ExchangePart) -> Result<ExchangeAnswer, Error> {
        let bytes = part.bytes();
        self.exchanges.throttle.admit(bytes + part.answer_bytes_max()).await;
        self.bytes += bytes;
        let (class, home_version, first_slot) = (self.class, self.home_version, self.first_slot);
        let question = ExchangeQuestion { class, home_version, class_print: self.class_print, first_slot, part };
        let answer = self.work.in_time(client.ask(question)).await.map_err(refused)?;
        self.bytes += answer.bytes();
        Ok(answer)
    }

    async fn sums(&mut self, part: ExchangePart) -> Result<Vec<u64>, Error> {
        match self.ask(part).await? {
            ExchangeAnswer::Sums(sums) => Ok(sums),
            _ => Err(other_answer()),
        }
    }

    async fn list(&mut self, host: &Host, ranges: Vec<u32>) -> Result<Event, Error> {
        let (there, class, first_slot) = (host.clone(), self.class, self.first_slot);
        let listed = host.transfers().walk(Asker::default(), move |waited| {
            let partition = there.partitions().find(class.partition)?;
            let mut by_range: BTreeMap<u32, Vec<KeyedItem>> = ranges.iter().map(|range| (*range, Vec::new())).collect();
            let (mut count, mut last) = (0, u32::MAX);
            let wanted = WantedRanges::new(&ranges, first_slot);
            fold(&*there, &partition, (class, &wanted), waited, |entry, hash, range| {
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
        let other = (self.node, self.client.clone());
        let mark = host.transfers().marks.towards(self.class, self.node, self.store_id);
        let asked_seq = mark.map_or(0, |mark| mark.peer_seq);
        let (standings, held) = self.ask_keys(host, &other, places, asked_seq).await?;
        standings.iter().for_each(|(standing, _)| self.note_told(host, self.node, *standing));
        // Without a question the first answer says how far the mark goes.
        let marked_seq = standings.iter().map(|answer| covered(mark, *answer)).min().unwrap_or(u64::MAX);
        let is_peer = |(standing, _): &(Standing, u64)| {
            standing.is_full && peer == PeerStore { store_id: standing.store_id, token: standing.token }
        };
        self.note_others(self.node, places, &held);
        Ok(Event::Held { is_reliable: standings.iter().all(is_peer), marked_seq, held })
    }

    /// Asks what the other node stands for, and holds of some versions that are here still.
    async fn meet(&mut self, host: &Host, places: &[usize]) -> Result<Event, Error> {
        let other = (self.node, self.client.clone());
        let mark = host.transfers().marks.towards(self.class, self.node, self.store_id);
        let asked_seq = mark.map_or(0, |mark| mark.peer_seq);
        let (standings, held) = self.ask_keys(host, &other, places, asked_seq).await?;
        standings.iter().for_each(|(standing, _)| self.note_told(host, self.node, *standing));
        let known_seq = standings.iter().map(|(_, known_seq)| *known_seq).min().unwrap_or_default();
        let store = |standing: &Standing| (standing.store_id, standing.token);
        let is_one = standings.windows(2).all(|two| store(&two[0].0) == store(&two[1].0));
        let is_lost = standings.iter().any(|(standing, _)| standing.is_lost);
        // Of two stores nothing is known.
        let standing = standings.last().filter(|_| is_one).map(|(standing, _)| *standing).unwrap_or_default();
        let standing = Standing { is_lost, ..standing };
        Ok(Event::Met { answer: RootAnswer { is_same: false, standing, known_seq }, held })
    }

    /// Asks all further primaries. One that does not answer is a silent witness.
    async fn ask_witnesses(&mut self, host: &Host, places: &[usize]) -> Result<Event, Error> {
        let mut answers = Vec::new();
        for node in witnesses(&**host, self.class, self.node) {
            let answer = self.ask_witness(host, node, places).await.unwrap_or_else(|_| Witness::silent());
            if answer.is_full {
                self.note_others(node, places, &answer.held);
            }
            answers.push(answer);
        }
        Ok(Event::Witnessed(answers))
    }

    async fn ask_witness(&mut self, host: &Host, node: NodeId, places: &[usize]) -> Result<Witness, Error> {
        let client = self.exchanges.peers.client(node).filter(|_| host.peers().is_up(node));
        let client = client.ok_or(Error::AllNodesDown)?;
        let (class, store_id) = (self.class, self.store_id);
        let mark = host.transfers().marks.towards(class, node, store_id);
        let asked_seq = mark.map_or(0, |mark| mark.peer_seq);
        let (standings, held) = self.ask_keys(host, &(node, client), places, asked_seq).await?;
        standings.iter().for_each(|(standing, _)| self.note_told(host, node, *standing));
        Ok(Witness {
            is_full: standings.iter().all(|(standing, _)| standing.is_full),
            // Without an answer nothing is known of the store.
            marked_seq: standings.iter().map(|answer| covered(mark, *answer)).min().unwrap_or_default(),
            held,
        })
    }

    /// Asks what a node holds of some versions. What is not here any more, or is another version by
    /// now, takes no part: it counts as the same. What this node cannot read counts as unreadable.
    /// Returns also how the node stood after each question, and what it knew to be included there.
    async fn ask_keys(
        &mut self,
        host: &Host,
        (node, client): &(NodeId, Arc<dyn ExchangeClient>),
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
                standings.push((standing, counted_seq(host, (self.class, *node), known_seq)?));
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
        let (partition, n, count) = (self.class.partition, self.class.n, places.len());
        warn!(partition, n, count, "versions that all other primaries lack are removed here");
        let mut drops = Vec::with_capacity(places.len());
        for (place, keyed) in places.iter().zip(self.keys_of(places)) {
            let others = self.others.get(place).map_or(&[][..], Vec::as_slice);
            let in_place = match others.is_empty() {
                true => InPlace::Nothing,
                false => fetch(&self.work, host, self.class, &keyed.key, others).await,
            };
            drops.push(ToDrop { keyed: keyed.clone(), in_place });
        }
        let (there, exchanges, at) = (host.clone(), self.exchanges.clone(), (self.class, self.home_version));
        host.transfers().pool.run(move || drop_all(&*there, &exchanges.dropped, at, drops)).await?
    }

    /// Notes which versions a node has something else in place of, that neither contains them nor
    /// is contained in them.
    fn note_others(&mut self, node: NodeId, places: &[usize], held: &[KeyHeld]) {
        for (place, held) in places.iter().zip(held) {
            if *held == KeyHeld::Readable(Held::Other) {
                self.others.entry(*place).or_default().push(node);
            }
        }
    }

    /// Saves the mark of this node. The other node has it already. Of two stores with equal copies,
    /// whose last mark holds, it may be saved later.
    async fn keep(&self, host: &Host, mark: Towards) -> Result<Event, Error> {
        let (there, class, node) = (host.clone(), self.class, self.node);
        let before = host.transfers().marks.towards(class, node, self.store_id);
        host.transfers().told.note(node, class.partition, mark.peer.store_id, mark.peer_seq);
        if !self.has_asked_mark && before.is_some_and(|before| before.peer == mark.peer) {
            host.transfers().marks.keep_soon(class, node, mark, host.runtime().now());
            return Ok(Event::Kept);
        }
        let keep = move || {
            there.transfers().told.save()?;
            there.transfers().marks.keep(class, node, mark)
        };
        host.transfers().pool.run(keep).await?.map_err(|why| not_saved(&why))?;
        Ok(Event::Kept)
    }

    /// Forgets the mark of this node's store, if the other node's answer says that it holds no
    /// more.
    fn forget_void_mark(&self, host: &Host, standing: Standing) {
        let mark = host.transfers().marks.towards(self.class, self.node, self.store_id);
        if let Some(mark) = mark.filter(|mark| standing.is_full && marked_seq(mark, standing) == 0) {
            host.transfers().marks.forget(self.class, self.node, mark, host.runtime().now());
        }
    }

    fn target(&self, host: &Host, node: NodeId) -> Target {
        Target {
            class: self.class,
            node,
            home_version: self.home_version,
            tracked: self.work.progress.begin(TransferKind::Exchange, self.class, node, host.now()),
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
        let KeyedItem { item, key, digest } = keyed;
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
        (found_digest == *digest).then_some((number, Candidate { held, seq: item.seq, bytes, is_readable }))
    };
    Ok(keys.iter().enumerate().filter_map(read).collect())
}

/// The sums of this node.
async fn cut(exchanges: &Arc<Exchanges>, host: &Host, class: ClassId, first_slot: u32) -> Result<Cut, Error> {
    let (exchanges, there) = (exchanges.clone(), host.clone());
    host.transfers().pool.run(move || exchanges.cut(&*there, class, first_slot)).await?
}

/// The store of this node, once all of its losses were noted; none if the class is not full.
async fn own_store(exchanges: &Arc<Exchanges>, host: &Host, class: ClassId) -> Result<Option<PeerStore>, Error> {
    let (exchanges, there) = (exchanges.clone(), host.clone());
    host.transfers().pool.run(move || exchanges.own_store(&*there, class)).await?
}

/// Up to which seq of this node's store everything was included at a node that stands like this, as
/// this node's mark for it says, if it holds, or what that node knows.
fn covered(mark: Option<Towards>, (standing, known_seq): (Standing, u64)) -> u64 {
    mark.map_or(0, |mark| marked_seq(&mark, standing)).max(known_seq)
}

/// Says of a refusal that it is one of the other node.
fn refused(why: Error) -> Error {
    match why {
        Error::Storage(StoreFailure { kind, text }) => {
            StoreFailure::new(kind, format!("the other node refuses: {text}")).into()
        }
        other => other,
    }
}

fn lost() -> Error {
    busy("this node's store has lost something")
}

fn other_answer() -> Error {
    StoreFailure::internal("another node has answered another question of an exchange").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_node_cannot_read_does_not_count_as_held_elsewhere() {
        let candidate = |is_readable| {
            let held = HeldVersion { key: "k".into(), digest: 1, clock: VectorClock::new() };
            Candidate { held, seq: 1, bytes: 1, is_readable }
        };
        let mut held = vec![KeyHeld::Readable(Held::Same); 4];
        let (numbers, versions) =
            readable_of(vec![0, 2, 3], vec![candidate(true), candidate(false), candidate(true)], &mut held);
        assert_eq!((numbers, versions.len()), (vec![0, 3], 2));
        let same = KeyHeld::Readable(Held::Same);
        assert_eq!(held, [same, same, KeyHeld::Unreadable, same]);
    }
}
