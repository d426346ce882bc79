//! The workers: each takes the jobs of one kind, one after the other, page by page.

use crate::error::QueueError;
use crate::job::{JobEnd, JobId, JobKind};
use crate::key_file::{FIRST_OFFSET, KeyFile, QueuedKey, ReadPage};
use crate::page::attempt;
use crate::queues::Shared;
use crate::saved::{SavedJob, keys_path};
use crate::state::WAIT_MIN;
use ombak_kv::{Kv, WeakKv};
use ombak_runtime::within;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time between two looks for work.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// How many keys are erased or repaired in one page at most.
const PAGE_KEYS: usize = 200;
/// How many tombstones are reaped in one page. A round takes many of them at once, and a tombstone
/// needs two rounds.
const REAPED_PAGE_KEYS: usize = 5_000;
const PAGE_BYTES: usize = 1 << 20;
/// After so many attempts the keys that are left go to the end of their file.
const ATTEMPTS_MAX: u32 = 12;
/// A file is copied only if more than this of it is done.
const COPY_BYTES_MIN: u64 = 16 << 20;
/// How often the place of a job is saved.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The job that a worker has in its hands.
struct Open {
    id: JobId,
    file: Arc<Mutex<KeyFile>>,
    /// What is left of the page.
    page: Vec<QueuedKey>,
    next_offset: u64,
    attempts: u32,
    /// Whether something of the page is done.
    has_settled: bool,
    saved_at: Instant,
}

/// What comes next of a file.
enum NextPage {
    /// Keys; none at the end.
    Keys(ReadPage),
    /// Something is damaged, and the keys go on there.
    GoesOnAt(u64),
}

/// A worker.
struct Worker {
    shared: Arc<Shared>,
    kind: JobKind,
    open: Option<Open>,
    /// When the pace lets it go on.
    go_on_at: Instant,
}

/// Works until the engine is closed or gone.
pub(crate) async fn run(shared: Arc<Shared>, engine: WeakKv, kind: JobKind) {
    let go_on_at = shared.runtime.now();
    let mut worker = Worker { shared: shared.clone(), kind, open: None, go_on_at };
    loop {
        let Some(kv) = engine.upgrade().filter(Kv::is_open) else { return };
        let until = match worker.step(&kv).await {
            Ok(until) => until,
            Err(error) => worker.failed(&error),
        };
        drop(kv);
        let now = shared.runtime.now();
        // A pause may last longer than a look for the end of the engine.
        let looks_at = (now + LOOK).min(until.unwrap_or(now + LOOK));
        if looks_at > now {
            // The limit or the wake-up ends the wait.
            let _ = within(&*shared.runtime, Some(looks_at), shared.work.notified()).await;
        }
    }
}

impl Worker {
    /// Does one piece of work. Returns when the next one may begin, or nothing if there is none.
    async fn step(&mut self, kv: &Kv) -> Result<Option<Instant>, QueueError> {
        self.remove_broken_off(kv).await?;
        if self.shared.runtime.now() < self.go_on_at {
            return Ok(Some(self.go_on_at));
        }
        let next = self.shared.state.lock().next(self.kind, self.shared.runtime.now()).map(|job| job.saved.clone());
        // A job that rests keeps its page.
        let Some(job) = next else { return Ok(None) };
        if self.open.as_ref().is_none_or(|open| open.id != job.id) {
            self.forget_page();
            self.open = self.open_job(kv, &job).await?;
        }
        let Some(mut open) = self.open.take() else { return Ok(Some(self.shared.runtime.now())) };
        if open.page.is_empty() {
            match self.read_page(kv, &open).await? {
                NextPage::Keys(page) if page.keys.is_empty() => {
                    let end = self.shared.state.lock().job(open.id).map_or(JobEnd::Done, |job| job.saved.end());
                    self.shared.end(kv, open.id, end).await?;
                    return Ok(Some(self.shared.runtime.now()));
                }
                NextPage::Keys(page) => {
                    (open.page, open.next_offset) = (page.keys, page.next_offset);
                    (open.attempts, open.has_settled) = (0, false);
                }
                NextPage::GoesOnAt(offset) => {
                    open.next_offset = offset;
                    self.open = Some(open);
                    return Ok(Some(self.shared.runtime.now()));
                }
            }
        }
        let done = self.work_on(kv, &mut open).await;
        self.open = Some(open);
        // What is left of the page may be nowhere but on the disk, so all of it is read again.
        done.inspect_err(|_| self.forget_page())?;
        Ok(Some(self.go_on_at))
    }

    /// Works once on the page, and counts what is done.
    async fn work_on(&mut self, kv: &Kv, open: &mut Open) -> Result<(), QueueError> {
        let began = self.shared.runtime.now();
        let attempt = attempt(kv, self.kind, std::mem::take(&mut open.page)).await;
        (open.page, open.attempts) = (attempt.left, open.attempts + 1);
        let settled = attempt.done + attempt.changed;
        open.has_settled |= settled > 0;
        self.shared.counters.add(self.kind, attempt.done);
        let rate = u64::from(self.shared.config.keys_per_second.max(1));
        let mut wait = Duration::from_micros(settled.saturating_mul(1_000_000) / rate);
        if let Some(job) = self.shared.state.lock().job_mut(open.id) {
            job.page_done += attempt.done;
            job.page_changed += attempt.changed;
            job.waits_for = attempt.waits_for;
            if settled == 0 {
                wait = job.wait_longer(began);
            } else {
                (job.idle, job.rests_until) = (0, None);
            }
        }
        self.go_on_at = began + wait;
        if !open.page.is_empty() && settled > 0 && self.kind == JobKind::Reap {
            // The rounds take a while.
            self.go_on_at = self.go_on_at.max(self.shared.runtime.now() + WAIT_MIN);
        }
        self.end_page(kv, open).await
    }

    /// Moves on to the next page, if this one is done, or its job does not get on with it.
    async fn end_page(&mut self, kv: &Kv, open: &mut Open) -> Result<(), QueueError> {
        let is_last = open.next_offset >= open.file.lock().bytes();
        let rests = self.shared.state.lock().job(open.id).is_some_and(|job| job.rests_until.is_some());
        let is_given_up = rests || open.attempts >= ATTEMPTS_MAX;
        // What is done of the last page does not have to be done again.
        let stays = is_last && !open.has_settled;
        if !open.page.is_empty() && (stays || !is_given_up) {
            return Ok(());
        }
        let is_requeued = !open.page.is_empty();
        if is_requeued {
            self.requeue(kv, open).await?;
        }
        if let Some(job) = self.shared.state.lock().job_mut(open.id) {
            job.take_page();
            job.saved.offset = open.next_offset;
            job.saved.file_bytes = open.file.lock().bytes();
        }
        let now = self.shared.runtime.now();
        if is_requeued || now >= open.saved_at + SAVE_INTERVAL {
            self.shared.save(kv, open.id).await?;
            open.saved_at = now;
        }
        if is_requeued && open.next_offset >= COPY_BYTES_MIN.max(open.file.lock().bytes() / 2) {
            self.copy(kv, open).await?;
        }
        Ok(())
    }

    /// Brings what is left of the page to the end of the file.
    async fn requeue(&self, kv: &Kv, open: &mut Open) -> Result<(), QueueError> {
        let (file, left) = (open.file.clone(), std::mem::take(&mut open.page));
        let requeue = move |_: &Shared| {
            let mut file = file.lock();
            file.append(&left)?;
            file.sync()
        };
        self.shared.on_disk(kv, requeue).await
    }

    /// Brings what is not done to another file, because keys that are brought to the end again and
    /// again would make the file grow.
    async fn copy(&self, kv: &Kv, open: &mut Open) -> Result<(), QueueError> {
        let generation = self.shared.state.lock().job(open.id).map_or(0, |job| job.saved.generation);
        let (id, next) = (open.id, generation.wrapping_add(1));
        let (file, from) = (open.file.clone(), open.next_offset);
        let copy = move |shared: &Shared| {
            let copy = file.lock().copy_from(from, &*shared.fs, &keys_path(&shared.dir, id, next))?;
            shared.fs.sync_dir(&shared.dir)?;
            Ok(copy)
        };
        let copy = self.shared.on_disk(kv, copy).await?;
        if let Some(job) = self.shared.state.lock().job_mut(id) {
            (job.saved.generation, job.saved.offset, job.saved.file_bytes) = (next, FIRST_OFFSET, copy.bytes());
        }
        (open.next_offset, open.file) = (FIRST_OFFSET, Arc::new(Mutex::new(copy)));
        self.shared.save(kv, id).await?;
        self.shared.on_disk(kv, move |shared| shared.remove(keys_path(&shared.dir, id, generation))).await
    }

    /// Opens the file of a job. A file that is gone, or no file of keys, ends its job.
    async fn open_job(&self, kv: &Kv, job: &SavedJob) -> Result<Option<Open>, QueueError> {
        let SavedJob { id, generation, offset, file_bytes, .. } = *job;
        let open =
            move |shared: &Shared| Ok(KeyFile::open(&*shared.fs, &keys_path(&shared.dir, id, generation), file_bytes));
        let (file, damage) = match self.shared.on_disk(kv, open).await? {
            Ok(opened) => opened,
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {
                tracing::error!(job = id, %error, "the keys of a job cannot be read: run its fold again");
                self.shared.end(kv, id, JobEnd::Lost(error.to_string())).await?;
                return Ok(None);
            }
            // Among others, another version of ombak has written it: an operator has to look.
            Err(error) => return Err(QueueError::Disk(error.to_string())),
        };
        if let Some(why) = damage {
            self.note_damage(kv, id, why, offset).await?;
        }
        let saved_at = self.shared.runtime.now();
        let file = Arc::new(Mutex::new(file));
        Ok(Some(Open { id, file, page: Vec::new(), next_offset: offset, attempts: 0, has_settled: false, saved_at }))
    }

    /// The next page of a job, or where its keys go on behind damage.
    async fn read_page(&self, kv: &Kv, open: &Open) -> Result<NextPage, QueueError> {
        let keys_max = if self.kind == JobKind::Reap { REAPED_PAGE_KEYS } else { PAGE_KEYS };
        let (file, offset) = (open.file.clone(), open.next_offset);
        let read = move |_: &Shared| {
            let file = file.lock();
            match file.read(offset, keys_max, PAGE_BYTES) {
                Err(why) if why.kind() == io::ErrorKind::InvalidData => Ok(Err((why, file.next_whole(offset)?))),
                read => read.map(Ok),
            }
        };
        match self.shared.on_disk(kv, read).await? {
            Ok(page) => Ok(NextPage::Keys(page)),
            Err((why, goes_on_at)) => {
                self.note_damage(kv, open.id, &why.to_string(), goes_on_at).await?;
                Ok(NextPage::GoesOnAt(goes_on_at))
            }
        }
    }

    /// Some keys of a job cannot be read: it goes on with those from an offset on.
    async fn note_damage(&self, kv: &Kv, id: JobId, why: &str, goes_on_at: u64) -> Result<(), QueueError> {
        tracing::error!(job = id, why, goes_on_at, "some keys of a job cannot be read: run its fold again at its end");
        if let Some(job) = self.shared.state.lock().job_mut(id) {
            job.saved.note_damage(why);
            job.saved.offset = goes_on_at;
        }
        self.shared.save(kv, id).await
    }

    /// What is done of a page that is given up counts when it is done again.
    fn forget_page(&mut self) {
        let Some(open) = self.open.take() else { return };
        if let Some(job) = self.shared.state.lock().job_mut(open.id) {
            (job.page_done, job.page_changed) = (0, 0);
        }
    }

    /// Removes the files of folds that were broken off.
    async fn remove_broken_off(&self, kv: &Kv) -> Result<(), QueueError> {
        let broken_off = self.shared.state.lock().take_broken_off();
        if broken_off.is_empty() {
            return Ok(());
        }
        let remove = move |shared: &Shared| {
            for id in broken_off {
                if let Err(error) = shared.remove(keys_path(&shared.dir, id, 0)) {
                    tracing::warn!(job = id, %error, "a file of keys that nobody needs stays until the next start");
                }
            }
            Ok(())
        };
        self.shared.on_disk(kv, remove).await
    }

    /// A file could not be written or read: it is tried again after a pause.
    fn failed(&mut self, error: &QueueError) -> Option<Instant> {
        tracing::warn!(kind = %self.kind, %error, "a job of keys waits, and is tried again");
        let now = self.shared.runtime.now();
        let mut state = self.shared.state.lock();
        let id = state.next(self.kind, now).map(|job| job.saved.id);
        self.go_on_at = now + WAIT_MIN;
        if let Some(job) = id.and_then(|id| state.job_mut(id)) {
            job.waits_for = Some(error.to_string());
            self.go_on_at = now + job.wait_longer(now);
        }
        Some(self.go_on_at)
    }
}
