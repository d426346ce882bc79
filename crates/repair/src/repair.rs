//! The handle of the work on copies.

use crate::Host;
use crate::rounds::Driver;
use crate::work::Work;
use crate::worker::Worker;
use ombak_kv::Kv;
use ombak_kv::repair_host::RepairAnswers;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The work on the copies of one node. Cheap to clone: clones share everything.
///
/// From the first [`Repair::of`] on, the engine answers other nodes that compare, push or reap
/// copies. Before that it refuses them as busy, and they ask again. Work of its own begins with
/// [`Repair::start`] and ends when the engine closes.
#[derive(Clone)]
pub struct Repair {
    pub(crate) kv: Kv,
    pub(crate) host: Host,
    pub(crate) work: Arc<Work>,
}

impl Repair {
    /// The handle of an engine. There is one state of the work for each engine, however often this
    /// is called.
    pub fn of(kv: &Kv) -> Self {
        let host = kv.repair_host();
        let make = || -> Arc<dyn RepairAnswers> {
            let work = Arc::new(Work::new(&*host));
            kv.stats().attach(work.index_repair.clone());
            work
        };
        let answers: Arc<dyn Any + Send + Sync> = host.answer_with(&make);
        // Only this crate makes answers.
        let work = answers.downcast().unwrap_or_else(|_| Arc::new(Work::new(&*host)));
        Self { kv: kv.clone(), host, work }
    }

    /// The engine.
    pub const fn kv(&self) -> &Kv {
        &self.kv
    }

    /// Starts the work that brings copies back to where they belong, and the rounds that remove
    /// tombstones and expired versions, each once. Call it where `Runtime::spawn` works. A node
    /// that is alone has nothing to do, and may start it all the same.
    pub fn start(&self) {
        self.start_transfers();
        self.start_reaping();
    }

    /// The first half of [`Self::start`].
    pub fn start_transfers(&self) {
        if !self.work.is_working.swap(true, Ordering::SeqCst) {
            let worker = Worker::new(self.work.clone(), self.host.transfers().clone());
            self.host.runtime().spawn(Box::pin(worker.run(Arc::downgrade(&self.host))));
        }
    }

    /// The second half of [`Self::start`].
    pub fn start_reaping(&self) {
        if !self.work.is_reaping.swap(true, Ordering::SeqCst) {
            let driver = Driver::new(self.host.reaping().due.clone());
            self.host.runtime().spawn(Box::pin(driver.run(Arc::downgrade(&self.host))));
        }
    }
}
