//! The jobs of a node, in memory.

use crate::error::QueueError;
use crate::job::{JobEnd, JobId, JobKind, JobStatus};
use crate::saved::SavedJob;
use bytes::Bytes;
use ombak_types::Bucket;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How many jobs may wait. Each takes about a kilobyte.
pub(crate) const JOBS_MAX: usize = 1_000;
/// How many jobs that have ended are remembered.
const ENDED_MAX: usize = 50;

/// The wait after an attempt in which nothing was done. It doubles up to the second constant.
pub(crate) const WAIT_MIN: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// From this wait on, a job rests.
const REST_MIN: Duration = Duration::from_secs(1);

/// A job, with what is not saved of it.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) saved: SavedJob,
    /// What is done of the page that a worker has in its hands.
    pub(crate) page_done: u64,
    pub(crate) page_changed: u64,
    /// How many keys a drop had done when its last job began.
    pub(crate) done_at_fill: Option<u64>,
    /// The last failure, until something succeeds.
    pub(crate) waits_for: Option<String>,
    /// How many attempts in a row have done nothing.
    pub(crate) idle: u32,
    /// Until when others have their turn, because it does not get on.
    pub(crate) rests_until: Option<Instant>,
}

/// All jobs. It is a state machine without files.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Whether the jobs of an earlier run were read.
    is_open: bool,
    jobs: BTreeMap<JobId, Job>,
    last_id: JobId,
    /// Folds that are finding keys, with the keys so far.
    filling: BTreeMap<JobId, (JobKind, u64)>,
    /// Folds that were broken off, whose files are to be removed.
    broken_off: Vec<JobId>,
    /// Drops whose records are being written.
    beginning: BTreeMap<(String, String), JobId>,
    /// Jobs that have ended, and whose records do not say so yet.
    unsaved_ends: BTreeSet<JobId>,
}

impl State {
    pub(crate) fn new(saved: Vec<SavedJob>, last_id: JobId) -> Self {
        let jobs = saved.into_iter().map(|saved| (saved.id, Job::new(saved))).collect();
        Self { is_open: true, jobs, last_id, ..Self::default() }
    }

    /// A number for a new job. `is_leaving` says whether the node leaves its cluster; then only the
    /// drops that it has go on.
    pub(crate) fn new_id(&mut self, part_of: Option<JobId>, is_leaving: bool) -> Result<JobId, QueueError> {
        if !self.is_open {
            return Err(QueueError::NotOpen);
        }
        if is_leaving && part_of.is_none() {
            return Err(QueueError::Leaves);
        }
        let waiting = self.jobs.values().filter(|job| job.saved.ended.is_none()).count();
        if waiting + self.filling.len() >= JOBS_MAX {
            return Err(QueueError::TooManyJobs { max: JOBS_MAX });
        }
        self.last_id += 1;
        Ok(self.last_id)
    }

    /// How many jobs have not ended, with those whose keys are being found. While the jobs of an
    /// earlier run are not known, it may be one.
    pub(crate) fn not_ended(&self) -> u64 {
        let waiting = self.jobs.values().filter(|job| job.saved.ended.is_none()).count();
        let beginning = self.filling.len() + self.beginning.len();
        (waiting + beginning + usize::from(!self.is_open)) as u64
    }

    pub(crate) fn begin_to_fill(&mut self, id: JobId, kind: JobKind) {
        self.filling.insert(id, (kind, 0));
    }

    /// Counts keys that a fold has found, unless more keys would wait than `keys_max`. Then it
    /// returns how many more there is room for.
    pub(crate) fn found(&mut self, id: JobId, kind: JobKind, keys: u64, keys_max: u64) -> Result<(), u64> {
        let room = self.room(kind, keys_max);
        if keys > room {
            return Err(room + self.filling.get(&id).map_or(0, |(_, found)| *found));
        }
        if let Some((_, found)) = self.filling.get_mut(&id) {
            *found += keys;
        }
        Ok(())
    }

    /// A fold has ended without a job.
    pub(crate) fn break_off(&mut self, id: JobId) {
        if self.filling.remove(&id).is_some() {
            self.broken_off.push(id);
        }
    }

    pub(crate) fn take_broken_off(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.broken_off)
    }

    /// Adds a job. Returns the jobs that are forgotten for it, or nothing if the fold was broken
    /// off that has found its keys.
    pub(crate) fn add(&mut self, saved: SavedJob) -> Option<Vec<JobId>> {
        let was_filling = self.filling.remove(&saved.id).is_some();
        if saved.kind != JobKind::Drop && !was_filling {
            return None;
        }
        self.jobs.insert(saved.id, Job::new(saved));
        let ended = |job: &&Job| job.saved.ended.is_some();
        let mut forgotten: Vec<JobId> = self.jobs.values().filter(ended).map(|job| job.saved.id).collect();
        forgotten.truncate(forgotten.len().saturating_sub(ENDED_MAX));
        forgotten.iter().for_each(|id| drop(self.jobs.remove(id)));
        Some(forgotten)
    }

    pub(crate) fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    pub(crate) fn job_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(&id)
    }

    /// The job that an operator names.
    pub(crate) fn named(&mut self, id: JobId) -> Result<&mut Job, QueueError> {
        let job = self.jobs.get_mut(&id).filter(|job| job.saved.ended.is_none());
        let job = job.ok_or(QueueError::NoSuchJob(id))?;
        match job.saved.part_of {
            Some(drop) => Err(QueueError::PartOfDrop(id, drop)),
            None => Ok(job),
        }
    }

    /// The job whose turn it is.
    pub(crate) fn next(&self, kind: JobKind, now: Instant) -> Option<&Job> {
        let is_ready = |job: &Job| job.rests_until.is_none_or(|until| until <= now) && !self.is_paused(job);
        let may_work = |job: &Job| job.saved.ended.is_none() && is_ready(job) && !self.is_orphan(job);
        self.jobs.values().find(|job| job.saved.kind == kind && may_work(job))
    }

    /// The drop whose turn it is: no job of it works.
    pub(crate) fn next_drop(&self, now: Instant) -> Option<JobId> {
        let is_ready = |job: &Job| job.rests_until.is_none_or(|until| until <= now) && !self.is_paused(job);
        let may_work = |job: &Job| job.saved.ended.is_none() && is_ready(job) && self.part_of(job.saved.id).is_none();
        let next = self.jobs.values().find(|job| job.saved.kind == JobKind::Drop && may_work(job));
        next.map(|job| job.saved.id)
    }

    /// Whether the drop of a job has ended or is gone: nobody wants the job any more.
    fn is_orphan(&self, job: &Job) -> bool {
        let ended = |drop: JobId| self.jobs.get(&drop).is_none_or(|drop| drop.saved.ended.is_some());
        job.saved.part_of.is_some_and(ended)
    }

    /// A job of a drop that has ended.
    pub(crate) fn orphan(&self) -> Option<JobId> {
        let orphan = self.jobs.values().find(|job| job.saved.ended.is_none() && self.is_orphan(job));
        orphan.map(|job| job.saved.id)
    }

    /// A job whose record does not say yet that it has ended.
    pub(crate) fn unsaved_end(&self) -> Option<JobId> {
        self.unsaved_ends.first().copied()
    }

    /// The record of a job says what this state says.
    pub(crate) fn was_saved(&mut self, saved: &SavedJob) {
        if saved.ended.is_some() {
            self.unsaved_ends.remove(&saved.id);
        }
    }

    /// Begins to drop a bucket, whose record is written next.
    pub(crate) fn begin_drop(&mut self, names: &(String, String), id: JobId) {
        self.beginning.insert(names.clone(), id);
    }

    /// The record of the drop of a bucket was written, or could not be.
    pub(crate) fn drop_has_begun(&mut self, names: &(String, String)) {
        self.beginning.remove(names);
    }

    /// The drop of a bucket that has not ended.
    pub(crate) fn drop_of(&self, names: &(String, String)) -> Option<JobId> {
        if let Some(id) = self.beginning.get(names) {
            return Some(*id);
        }
        let is_of = |job: &&Job| {
            let saved = &job.saved;
            let is_drop = saved.kind == JobKind::Drop && saved.ended.is_none();
            is_drop && saved.bucket_type == names.0 && saved.bucket == names.1
        };
        self.jobs.values().find(is_of).map(|job| job.saved.id)
    }

    /// The job of a drop that has not ended.
    pub(crate) fn part_of(&self, drop: JobId) -> Option<JobId> {
        let is_part = |job: &&Job| job.saved.part_of == Some(drop) && job.saved.ended.is_none();
        self.jobs.values().find(is_part).map(|job| job.saved.id)
    }

    fn is_paused(&self, job: &Job) -> bool {
        let of_drop = job.saved.part_of.and_then(|drop| self.jobs.get(&drop));
        job.saved.is_paused || of_drop.is_some_and(|drop| drop.saved.is_paused)
    }

    /// How many more keys of a kind may wait.
    pub(crate) fn room(&self, kind: JobKind, keys_max: u64) -> u64 {
        keys_max.saturating_sub(self.waiting_keys(kind))
    }

    /// How many keys of a kind are not done.
    pub(crate) fn waiting_keys(&self, kind: JobKind) -> u64 {
        let jobs = self.jobs.values().filter(|job| job.saved.kind == kind && job.saved.ended.is_none());
        let found = self.filling.values().filter(|(of, _)| *of == kind).map(|(_, found)| *found);
        jobs.map(Job::waiting_keys).chain(found).sum()
    }

    /// All jobs, in the order of their numbers. The keys of a drop are those of its jobs.
    pub(crate) fn statuses(&self) -> Vec<JobStatus> {
        self.jobs.values().map(|job| self.status(job)).collect()
    }

    fn status(&self, job: &Job) -> JobStatus {
        let saved = &job.saved;
        let part = self.jobs.values().find(|part| part.saved.part_of == Some(saved.id) && part.saved.ended.is_none());
        let of_part = part.map(|part| (part.saved.keys, part.done(), part.changed(), part.waits_for.clone()));
        let (keys, done, changed, waits_for) = of_part.unwrap_or_default();
        JobStatus {
            id: saved.id,
            kind: saved.kind,
            bucket: Bucket { bucket_type: from_hex(&saved.bucket_type), name: from_hex(&saved.bucket) },
            began_secs: saved.began_secs,
            keys: saved.keys + keys,
            done: job.done() + done,
            changed: job.changed() + changed,
            is_paused: self.is_paused(job),
            waits_for: job.waits_for.clone().or(waits_for),
            damage: saved.damage.clone(),
            part_of: saved.part_of,
            ended: saved.ended.clone(),
        }
    }

    /// Ends a job. A drop gets the counts of its part.
    pub(crate) fn end(&mut self, id: JobId, end: JobEnd, now_secs: u64) {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.saved.ended.is_none()) else { return };
        job.take_page();
        job.waits_for = None;
        job.saved.ended = Some((end, now_secs));
        self.unsaved_ends.insert(id);
        let (keys, done, changed) = (job.saved.keys, job.saved.done, job.saved.changed);
        if let Some(drop) = job.saved.part_of.and_then(|drop| self.jobs.get_mut(&drop)) {
            drop.saved.keys += keys;
            drop.saved.done += done;
            drop.saved.changed += changed;
        }
    }
}

impl Job {
    const fn new(saved: SavedJob) -> Self {
        Self { saved, page_done: 0, page_changed: 0, done_at_fill: None, waits_for: None, idle: 0, rests_until: None }
    }

    fn done(&self) -> u64 {
        self.saved.done + self.page_done
    }

    fn changed(&self) -> u64 {
        self.saved.changed + self.page_changed
    }

    fn waiting_keys(&self) -> u64 {
        self.saved.keys.saturating_sub(self.done() + self.changed())
    }

    /// Nothing was done: the job waits, and longer each time. Returns how long its worker waits for
    /// it. From some length on, other jobs have their turn meanwhile.
    pub(crate) fn wait_longer(&mut self, now: Instant) -> Duration {
        let wait = (WAIT_MIN * (1 << self.idle.min(16))).min(WAIT_MAX);
        self.idle += 1;
        if wait < REST_MIN {
            return wait;
        }
        self.rests_until = Some(now + wait);
        WAIT_MIN
    }

    /// Counts the page for good: it is not worked on again.
    pub(crate) fn take_page(&mut self) {
        self.saved.done += std::mem::take(&mut self.page_done);
        self.saved.changed += std::mem::take(&mut self.page_changed);
    }
}

/// The names of a bucket, as they are saved.
pub(crate) fn names_of(bucket: &Bucket) -> (String, String) {
    let to_hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    (to_hex(&bucket.bucket_type), to_hex(&bucket.name))
}

/// The bytes of a saved name. A record with another text has no checksum that matches.
fn from_hex(text: &str) -> Bytes {
    let digits = text.as_bytes().chunks(2);
    digits.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The bucket of a job.
pub(crate) fn bucket_of(saved: &SavedJob) -> Bucket {
    Bucket { bucket_type: from_hex(&saved.bucket_type), name: from_hex(&saved.bucket) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> (String, String) {
        names_of(&Bucket::untyped("b"))
    }

    fn job(id: JobId, kind: JobKind, part_of: Option<JobId>) -> SavedJob {
        let mut saved = SavedJob::new(id, kind, names(), 1);
        (saved.part_of, saved.keys) = (part_of, 10);
        saved
    }

    #[test]
    fn nothing_works_for_a_drop_that_has_ended_or_is_gone() {
        let now = Instant::now();
        let parts = [job(1, JobKind::Drop, None), job(2, JobKind::Erase, Some(1)), job(3, JobKind::Reap, Some(77))];
        let mut state = State::new(parts.into(), 3);
        assert_eq!(state.next(JobKind::Erase, now).map(|job| job.saved.id), Some(2));
        assert!(state.next(JobKind::Reap, now).is_none(), "the record of its drop is damaged");
        assert_eq!(state.orphan(), Some(3));
        state.end(3, JobEnd::Cancelled, 5);
        assert_eq!(state.orphan(), None);
        // The drop was cancelled while a fold was finding the keys of this job.
        state.end(1, JobEnd::Cancelled, 5);
        assert!(state.next(JobKind::Erase, now).is_none());
        assert_eq!(state.orphan(), Some(2));
    }

    #[test]
    fn an_end_is_known_until_its_record_says_so() {
        let mut state = State::new(vec![job(1, JobKind::Erase, None)], 1);
        state.end(1, JobEnd::Cancelled, 5);
        assert_eq!(state.unsaved_end(), Some(1));
        state.was_saved(&job(1, JobKind::Erase, None));
        assert_eq!(state.unsaved_end(), Some(1), "the record says something else");
        let saved = state.job(1).unwrap().saved.clone();
        state.was_saved(&saved);
        assert_eq!(state.unsaved_end(), None);
    }

    #[test]
    fn a_bucket_has_one_drop_also_while_its_record_is_written() {
        let mut state = State::new(Vec::new(), 0);
        let id = state.new_id(None, false).unwrap();
        state.begin_drop(&names(), id);
        assert_eq!(state.drop_of(&names()), Some(id));
        assert!(state.add(job(id, JobKind::Drop, None)).is_some());
        state.drop_has_begun(&names());
        assert_eq!(state.drop_of(&names()), Some(id));
        assert_eq!(state.next_drop(Instant::now()), Some(id));
        // Another drop has its turn while this one has a job, or rests.
        assert!(state.add(job(5, JobKind::Drop, None)).is_some());
        state.begin_to_fill(6, JobKind::Erase);
        assert!(state.add(job(6, JobKind::Erase, Some(id))).is_some());
        assert_eq!(state.next_drop(Instant::now()), Some(5));
    }

    #[test]
    fn a_node_that_leaves_begins_nothing_new_and_ends_what_it_has() {
        let mut state = State::default();
        assert_eq!(state.not_ended(), 1, "nobody knows yet what an earlier run has left");
        state = State::new(vec![job(1, JobKind::Drop, None)], 1);
        assert_eq!((state.new_id(None, true), state.not_ended()), (Err(QueueError::Leaves), 1));
        let part = state.new_id(Some(1), true).unwrap();
        state.begin_to_fill(part, JobKind::Erase);
        assert_eq!(state.not_ended(), 2);
        state.break_off(part);
        state.begin_drop(&names(), 7);
        assert_eq!(state.not_ended(), 2);
        state.drop_has_begun(&names());
        state.end(1, JobEnd::Done, 5);
        assert_eq!(state.not_ended(), 0);
    }

    #[test]
    fn a_fold_that_was_broken_off_makes_no_job() {
        let mut state = State::new(Vec::new(), 0);
        let id = state.new_id(None, false).unwrap();
        state.begin_to_fill(id, JobKind::Erase);
        assert_eq!(state.found(id, JobKind::Erase, 10, 10), Ok(()));
        assert_eq!(state.found(id, JobKind::Erase, 1, 10), Err(10));
        state.break_off(id);
        assert!(state.add(job(id, JobKind::Erase, None)).is_none());
        assert_eq!((state.take_broken_off(), state.room(JobKind::Erase, 10)), (vec![id], 10));
    }
}
