//! The thread that reads stores as the schedule says, and what it counts and logs.

use super::log_limit::LogLimit;
use super::report::{ScrubReport, ScrubState, ScrubbedStore};
use super::schedule::{Moment, Next, SavedSchedule, Schedule};
use super::state_file::StateFile;
use super::stores::ScrubbedStores;
use crate::config::{KvConfig, ScrubConfig};
use ombak_runtime::{Runtime, pause_if_due};
use ombak_stats::{Feature, Figure, Number, Sum};
use ombak_storage::scrub::{DamagedPlace, DamagedVersion};
use ombak_storage::{ScrubCursor, ScrubFound, ScrubLimits, StorageError, TermCursor, TermStep};
use ombak_types::ShownKey;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::{debug, error, info, warn};

/// How long one step takes at most. A pause, and a stop of the node, wait for that.
const STEP_MAX: Duration = Duration::from_millis(20);
/// How long the steps of one call of [`Scrubbing::work`] take together.
const WORK_MAX: Duration = Duration::from_millis(90);
/// How many keys or index entries one step compares. With [`pause_if_due`] after each step, that is
/// as short as a step that reads.
const TERMS_PER_STEP: usize = 32;
/// How often the list of stores and their sizes is renewed.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// How often the state is saved while stores are read. After a crash that much is read again.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// What was found and read since the start of the node.
#[derive(Debug, Default)]
struct Counts {
    bytes: Sum,
    rounds: Sum,
    damaged: Sum,
    obsolete: Sum,
    places: Sum,
    index_entries: Sum,
}

/// When the thread last did what it does now and then.
#[derive(Debug, Default)]
struct Times {
    looked: Option<Instant>,
    saved: Option<Instant>,
    is_changed: bool,
    gives_way: bool,
}

/// Scrubbing of one node; see the module.
pub(crate) struct Scrubbing {
    config: ScrubConfig,
    schedule: Mutex<Schedule>,
    stores: Arc<dyn ScrubbedStores>,
    runtime: Arc<dyn Runtime>,
    file: StateFile,
    times: Mutex<Times>,
    counts: Counts,
    log_limit: Mutex<LogLimit>,
    started: Instant,
}

impl fmt::Debug for Scrubbing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubbing").field("config", &self.config).field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Scrubbing {
    /// Loads how far an earlier run has come.
    pub(crate) fn open(config: &KvConfig, stores: Arc<dyn ScrubbedStores>) -> Self {
        let file = StateFile::new(config.fs.clone(), &config.data_dir);
        let saved = if config.scrub.is_enabled { file.load() } else { SavedSchedule::default() };
        let runtime = config.runtime.clone();
        let started = runtime.now();
        Self {
            config: config.scrub,
            schedule: Mutex::new(Schedule::new(config.scrub, saved)),
            stores,
            started,
            runtime,
            file,
            times: Mutex::new(Times { saved: Some(started), ..Times::default() }),
            counts: Counts::default(),
            log_limit: Mutex::default(),
        }
    }

    /// Whether the configuration has switched it on.
    pub(crate) fn is_enabled(&self) -> bool {
        self.config.is_enabled
    }

    /// Does what is due, for a moment. One thread calls this again and again.
    pub(crate) fn work(&self, stops: &AtomicBool) {
        let began = self.runtime.now();
        self.prepare(began);
        while !stops.load(Ordering::Relaxed) && self.runtime.now().saturating_duration_since(began) < WORK_MAX {
            let next = self.schedule.lock().next(self.moment());
            match next {
                Next::Wait => break,
                Next::Read { partition, cursor, bytes_max } => self.read(partition, &cursor, bytes_max),
                Next::CheckTerms { partition, cursor } => self.check_terms(partition, &cursor),
            }
        }
        let is_due = {
            let times = self.times.lock();
            let is_time = times.saved.is_none_or(|saved| began.saturating_duration_since(saved) >= SAVE_INTERVAL);
            times.is_changed && is_time
        };
        if is_due {
            self.save();
        }
    }

    /// Saves how far it has come. Blocks.
    pub(crate) fn save(&self) {
        let is_changed = {
            let mut times = self.times.lock();
            times.saved = Some(self.runtime.now());
            std::mem::take(&mut times.is_changed)
        };
        if !is_changed {
            return;
        }
        let saved = self.schedule.lock().saved();
        if let Err(why) = self.file.save(&saved) {
            self.times.lock().is_changed = true;
            warn!(error = %why, "how far scrubbing has come could not be saved");
        }
    }

    /// Begins a round over everything, at the highest rate.
    pub(crate) fn start_round(&self) {
        self.look();
        self.schedule.lock().start_round(self.moment());
        self.times.lock().is_changed = true;
        info!("an operator has begun a round of scrubbing");
    }

    /// Pauses, or goes on.
    pub(crate) fn set_paused(&self, is_paused: bool) {
        self.schedule.lock().set_paused(is_paused);
        info!(is_paused, "an operator has paused scrubbing, or lets it go on");
    }

    /// What an operator sees.
    pub(crate) fn report(&self) -> ScrubReport {
        let now = self.moment();
        let schedule = self.schedule.lock();
        let state = if !self.config.is_enabled {
            ScrubState::Off
        } else if schedule.is_paused() {
            ScrubState::Paused
        } else if schedule.is_round_over() {
            ScrubState::Waiting
        } else {
            ScrubState::Reading
        };
        let stores = schedule.progress().map(|(partition, progress, bytes, is_done)| {
            let unreadable = self.stores.unreadable(partition);
            ScrubbedStore {
                partition,
                last_full_secs: progress.last_full_secs,
                is_done,
                bytes_read: progress.bytes_read,
                bytes,
                damaged: progress.damaged,
                obsolete: progress.obsolete,
                places: progress.places,
                repaired: unreadable.repaired,
                waiting: unreadable.waiting,
                not_repairable: unreadable.failed,
            }
        });
        ScrubReport {
            state,
            bytes_per_second: if state == ScrubState::Reading { schedule.rate(now) } else { 0 },
            interval: self.config.interval,
            round_began_secs: schedule.began_secs(),
            next_round_secs: schedule
                .began_secs()
                .filter(|_| state == ScrubState::Waiting)
                .map(|_| schedule.next_round_secs()),
            bytes_read: self.counts.bytes.get(),
            stores: stores.collect(),
        }
    }

    fn moment(&self) -> Moment {
        let since = self.runtime.now().saturating_duration_since(self.started);
        let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Moment { ms, unix_secs: self.runtime.wall_clock().secs() }
    }

    fn prepare(&self, now: Instant) {
        let is_look_due = {
            let mut times = self.times.lock();
            if !std::mem::replace(&mut times.gives_way, true) {
                self.runtime.give_way();
            }
            times.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK_INTERVAL)
        };
        if is_look_due {
            self.look();
            self.times.lock().looked = Some(now);
        }
    }

    fn look(&self) {
        let stores = self.stores.stores();
        self.schedule.lock().set_stores(&stores);
    }

    fn read(&self, partition: u32, cursor: &ScrubCursor, bytes_max: u64) {
        let limits = ScrubLimits { bytes_max, time_max: STEP_MAX, give_way: &pause_if_due };
        let stepped = self.stores.step(partition, cursor, limits);
        let Some(step) = self.done(partition, stepped) else { return };
        self.schedule.lock().stepped(self.moment(), partition, cursor, &step);
        self.times.lock().is_changed = true;
        self.counts.bytes.add(step.bytes_read);
        self.note(partition, &step.found);
    }

    /// The last part of a store in a round.
    fn check_terms(&self, partition: u32, cursor: &TermCursor) {
        let stepped = self.stores.check_terms(partition, cursor, TERMS_PER_STEP);
        pause_if_due();
        let Some(step) = self.done(partition, stepped) else { return };
        let is_round_over = self.schedule.lock().terms_stepped(self.moment(), partition, cursor, &step);
        self.times.lock().is_changed = true;
        self.note_terms(partition, &step);
        if is_round_over {
            self.counts.rounds.add(1);
            info!("scrubbing has read everything on this node");
            self.save();
        }
    }

    /// The result of a step; none if it could not be done.
    fn done<T>(&self, partition: u32, stepped: Option<Result<T, StorageError>>) -> Option<T> {
        match stepped {
            None | Some(Err(StorageError::Closed)) => self.schedule.lock().closed(partition),
            Some(Err(why)) => {
                let is_first = self.schedule.lock().failed(self.moment(), partition);
                // A store that is handed over takes no writes for a while.
                if is_first && !matches!(why, StorageError::ClosedToWrites) {
                    warn!(partition, error = %why, "a step of scrubbing has failed; it is tried again every minute");
                } else {
                    debug!(partition, error = %why, "a step of scrubbing has failed again");
                }
            }
            Some(Ok(step)) => return Some(step),
        }
        None
    }

    /// Counts and logs index entries that were mended.
    fn note_terms(&self, partition: u32, step: &TermStep) {
        let (added, removed) = (step.lacking, step.surplus);
        if added + removed == 0 {
            return;
        }
        self.counts.index_entries.add(added + removed);
        if self.log_limit.lock().take(self.runtime.now(), 1) > 0 {
            warn!(partition, added, removed, "index entries did not fit their objects; they were mended");
        }
    }

    /// Counts what is damaged, and logs as much of it as the log has room for.
    fn note(&self, partition: u32, found: &ScrubFound) {
        if found.is_nothing() {
            return;
        }
        self.counts.damaged.add(found.versions_count);
        self.counts.obsolete.add(found.obsolete);
        self.counts.places.add(found.places_count);
        let wanted = found.versions.len() + found.places.len() + 1;
        let mut lines = self.log_limit.lock().take(self.runtime.now(), wanted);
        for DamagedVersion { key, file, offset } in found.versions.iter().take(lines) {
            let (at, file) = (ShownKey::of(key), file.display());
            let what = "a stored version is damaged; it is repaired from other replicas, if there are any";
            error!(
                partition, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, %file, offset, "{what}"
            );
        }
        lines = lines.saturating_sub(found.versions.len());
        for DamagedPlace { file, offset, length, what } in found.places.iter().take(lines) {
            error!(partition, file = %file.display(), offset, length, "{what}");
        }
        if lines > found.places.len() {
            let (versions, obsolete, places) = (found.versions_count, found.obsolete, found.places_count);
            warn!(partition, versions, obsolete, places, "scrubbing has found damage");
        }
    }
}

impl Feature for Scrubbing {
    fn figures(&self) -> Vec<Figure<'_>> {
        let total = |name: &str, metric, label, help, count: &Sum| Figure {
            name: format!("ombak_scrub_{name}"),
            metric,
            label,
            help,
            number: Number::Total(count.get()),
        };
        let damaged = |name, kind, count| {
            let help = "Damage that scrubbing has found.";
            total(name, "scrub_damaged_total", Some(("kind", kind)), help, count)
        };
        let (counts, unreadable) = (&self.counts, self.stores.unreadable_on_node());
        let mut figures = vec![
            total("bytes", "scrub_read_bytes_total", None, "Bytes that scrubbing has read.", &counts.bytes),
            total("rounds", "scrub_rounds_total", None, "Rounds of scrubbing that have ended.", &counts.rounds),
            damaged("damaged_versions", "version", &counts.damaged),
            damaged("damaged_obsolete", "obsolete", &counts.obsolete),
            damaged("damaged_places", "place", &counts.places),
            damaged("damaged_index_entries", "index_entry", &counts.index_entries),
        ];
        let of_keys =
            |name: &str, metric, help, number| Figure { name: name.into(), metric, label: None, help, number };
        let help = "Versions that cannot be read and wait for their repair, as far as they are known.";
        figures.push(of_keys("ombak_unreadable_keys", "unreadable_keys", help, Number::Gauge(unreadable.waiting)));
        let help = "Versions that were repaired from other replicas because they could not be read.";
        let repaired = Number::Total(unreadable.repaired);
        figures.push(of_keys("ombak_unreadable_keys_repaired", "unreadable_keys_repaired_total", help, repaired));
        figures
    }
}
