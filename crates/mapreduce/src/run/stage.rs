//! The stages of a job: what waits for a phase, and what it has made so far.

use super::order::{RunLimits, Work};
use crate::term::bytes_held;
use crate::{Batching, Input, Values};
use bytes::Bytes;
use std::collections::VecDeque;

/// A stage. Values go from each stage to the next.
pub(super) enum Stage {
    /// Keys are found, or objects are read, near the data.
    Parts(PartStage),
    /// Lists are reduced, where the job is run.
    Reduce(ReduceStage),
}

/// A part that does not run yet.
pub(super) struct Waiting {
    /// The part's number, if an attempt at it was made before.
    pub(super) part: Option<u64>,
    pub(super) work: Work,
    pub(super) from: Option<Bytes>,
    /// How often the part was lost since its last results.
    pub(super) losses: u32,
}

/// A stage that runs parts.
#[derive(Default)]
pub(super) struct PartStage {
    /// The phase; `None` for a stage that only finds the keys.
    pub(super) phase: Option<usize>,
    /// The phase that reduces the results of parts before they travel.
    pub(super) prereduce: Option<usize>,
    /// Parts that wait.
    pub(super) waiting: VecDeque<Waiting>,
    /// Keys that are not enough for a part yet.
    keys: Vec<Input>,
    /// The bytes of all that waits.
    pub(super) waiting_bytes: usize,
    /// How many parts run.
    pub(super) running: usize,
}

impl PartStage {
    /// Creates the stage of a map or link phase.
    pub(super) fn of_phase(phase: usize) -> Self {
        Self { phase: Some(phase), ..Self::default() }
    }

    /// Takes keys, and makes parts of them.
    pub(super) fn add_keys(&mut self, keys: Vec<Input>, limits: &RunLimits) {
        for key in keys {
            self.waiting_bytes += key_bytes(&key);
            self.keys.push(key);
            if self.keys.len() >= limits.keys_per_part_max {
                self.end_part();
            }
        }
    }

    /// Makes a part of the keys that are left.
    pub(super) fn end_part(&mut self) {
        if !self.keys.is_empty() {
            let work = Work::Keys(std::mem::take(&mut self.keys));
            self.waiting.push_back(Waiting { part: None, work, from: None, losses: 0 });
        }
    }

    /// Takes a part that waits. If so much waits that no more comes, a few keys are a part too.
    pub(super) fn take(&mut self, limits: &RunLimits) -> Option<Waiting> {
        if self.waiting.is_empty() && self.waiting_bytes >= limits.waiting_bytes_max {
            self.end_part();
        }
        let taken = self.waiting.pop_front()?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(work_bytes(&taken.work));
        Some(taken)
    }

    /// Puts a part in front of all others.
    pub(super) fn put_back(&mut self, part: Waiting) {
        self.waiting_bytes += work_bytes(&part.work);
        self.waiting.push_front(part);
    }

    /// Whether nothing waits or runs.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.keys.is_empty() && self.running == 0
    }
}

/// A stage that reduces.
#[derive(Default)]
pub(super) struct ReduceStage {
    pub(super) phase: usize,
    pub(super) batching: Batching,
    /// Whether no call gets the results of the one before it.
    pub(super) takes_each_alone: bool,
    /// The results of the last call, or of all calls if none gets those of the one before it.
    results: Vec<Values>,
    results_bytes: usize,
    /// Values that no call has got, in the order in which they came.
    batches: VecDeque<Values>,
    /// How many bytes of new values a call gets, if that is bounded.
    pub(super) call_bytes_max: Option<usize>,
    values_count: usize,
    pub(super) values_bytes: usize,
    /// Whether a call is being made, and how many bytes it was given.
    pub(super) call_bytes: Option<usize>,
    /// Whether a call was made.
    pub(super) was_called: bool,
    pub(super) is_done: bool,
}

impl ReduceStage {
    pub(super) fn new(phase: usize, batching: Batching) -> Self {
        Self { phase, batching, ..Self::default() }
    }

    pub(super) fn add(&mut self, values: Values) {
        if values.is_empty() {
            return;
        }
        self.values_bytes += values.bytes();
        self.values_count += values.len();
        match self.call_bytes_max {
            Some(bytes_max) => self.batches.extend(values.in_batches(bytes_max)),
            None => self.batches.push_back(values),
        }
    }

    /// Whether there are values that no call has got.
    pub(super) const fn has_values(&self) -> bool {
        self.values_count > 0
    }

    /// The bytes of all that the stage holds.
    pub(super) fn bytes(&self) -> usize {
        self.results_bytes + self.values_bytes + self.call_bytes.unwrap_or(0)
    }

    /// Whether there is enough for a call before the last one.
    pub(super) fn is_call_due(&self, limits: &RunLimits) -> bool {
        let values_min = self.batching.values_min.unwrap_or(limits.reduce_values_min).max(1);
        self.call_bytes.is_none() && !self.batching.only_once && self.values_count >= values_min
    }

    /// Begins a call: what the function gets, the results of the last call first.
    pub(super) fn begin_call(&mut self) -> Vec<Values> {
        let mut list = if self.takes_each_alone { Vec::new() } else { self.take_results() };
        let old_bytes = list.iter().map(Values::bytes).sum::<usize>();
        let (mut count, mut bytes) = (0, 0);
        while let Some(next) = self.batches.front() {
            if count > 0 && self.call_bytes_max.is_some_and(|bytes_max| bytes + next.bytes() > bytes_max) {
                break;
            }
            (count, bytes) = (count + next.len(), bytes + next.bytes());
            list.extend(self.batches.pop_front());
        }
        self.call_bytes = Some(old_bytes + bytes);
        self.was_called = true;
        self.values_count -= count;
        self.values_bytes -= bytes;
        list
    }

    /// Takes the results of the call.
    pub(super) fn end_call(&mut self, results: Values) {
        self.results_bytes += results.bytes();
        self.results.push(results);
        self.call_bytes = None;
    }

    /// Takes the results of the phase so far.
    pub(super) fn take_results(&mut self) -> Vec<Values> {
        self.results_bytes = 0;
        std::mem::take(&mut self.results)
    }
}

fn key_bytes(input: &Input) -> usize {
    let key_data = input.key_data.as_ref().map_or(0, bytes_held);
    size_of::<Input>() + input.key.len() + input.bucket.name.len() + input.bucket.bucket_type.len() + key_data
}

fn work_bytes(work: &Work) -> usize {
    match work {
        Work::Keys(keys) => keys.iter().map(key_bytes).sum(),
        Work::Share(_) => 0,
    }
}
