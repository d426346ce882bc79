//! The course of a job, as a state machine.
//!
//! Its owner gives it keys and answers, and carries out the orders that [`JobRun::next_order`]
//! yields. Answers may be late, doubled or missing; only the answer to the newest attempt at a part
//! counts, and all of it at once.
//!
//! ```text
//!   keys ──▶ part stage ──▶ part stage ──▶ reduce stage ──▶ part stage ──▶ ...
//! ```
//!
//! Invariants:
//! * The results of a part count once. A part goes on where its last counted results ended.
//! * A part begins only if the stages behind it have room, so waiting values are bounded. The last
//!   part stage in front of a reduce stage always has room in it: the reduce phase shrinks what it
//!   holds, or the job fails.
//! * `End` is the last order. After it, nothing that the owner says has an effect.

mod order;
mod progress;
mod stage;

pub use order::{Attempt, Order, RunLimits, Source, Work};

use crate::bucket_access::{BucketAccess, ReadableBuckets};
use crate::job::{Phase, asks_for_prereduce};
use crate::{Failure, Input, Job, PhaseFailure, Reducer, Values};
use bytes::Bytes;
use ombak_types::etf::Term;
use stage::{PartStage, ReduceStage, Stage, Waiting};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A job that runs.
pub struct JobRun {
    limits: RunLimits,
    buckets: ReadableBuckets,
    /// Whether the client gets the results of each phase.
    keeps: Vec<bool>,
    stages: Vec<Stage>,
    /// The parts that run: their stage, the newest attempt and what it was ordered to do.
    parts: BTreeMap<u64, Running>,
    parts_made: u64,
    attempts_made: u64,
    are_keys_done: bool,
    orders: VecDeque<Order>,
    has_ended: bool,
    /// What the stages held at the end.
    leftovers: Vec<Stage>,
}

/// What a job held when it ended. To drop it takes long if it is much: not for network threads.
pub struct Leftovers {
    _stages: Vec<Stage>,
}

struct Running {
    stage: usize,
    number: u64,
    waiting: Waiting,
}

impl JobRun {
    /// Begins a job.
    pub fn new(job: &Job, source: Source, limits: RunLimits) -> Self {
        let mut stages: Vec<Stage> =
            job.phases.iter().enumerate().map(|(index, phase)| stage(index, phase, &limits)).collect();
        if let Source::Shares(count) = source {
            // Without a phase that reads objects in front, a stage only finds the keys.
            if !matches!(stages.first(), Some(Stage::Parts(_))) {
                stages.insert(0, Stage::Parts(PartStage::default()));
            }
            if let Some(Stage::Parts(first)) = stages.first_mut() {
                let shares =
                    (0..count).map(|share| Waiting { part: None, work: Work::Share(share), from: None, losses: 0 });
                first.waiting = shares.collect();
            }
        }
        let mut run = Self {
            limits,
            buckets: ReadableBuckets::default(),
            keeps: job.phases.iter().map(Phase::keep).collect(),
            stages,
            parts: BTreeMap::new(),
            parts_made: 0,
            attempts_made: 0,
            are_keys_done: matches!(source, Source::Shares(_)),
            orders: VecDeque::new(),
            has_ended: false,
            leftovers: Vec::new(),
        };
        run.choose_prereduces(job);
        run.go_on();
        run
    }

    /// The same job, which reads only what it may, and takes no other keys as inputs. It fails at
    /// the first bucket that is refused. The bucket of [`Source::Shares`] is not asked for.
    #[must_use]
    pub fn with_access(self, access: Option<Arc<dyn BucketAccess>>) -> Self {
        Self { buckets: ReadableBuckets::new(access), ..self }
    }

    /// What to do next; `None` until an answer or more keys come.
    pub fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Whether the job has ended.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes what the job held when it ended.
    pub fn take_leftovers(&mut self) -> Leftovers {
        Leftovers { _stages: std::mem::take(&mut self.leftovers) }
    }

    /// Whether there is room for more keys. Keys that come nevertheless are taken.
    pub fn wants_keys(&self) -> bool {
        !self.has_ended
            && !self.are_keys_done
            && match self.stages.first() {
                Some(Stage::Parts(first)) => first.waiting_bytes < self.limits.waiting_bytes_max,
                Some(Stage::Reduce(_)) => self.waiting_behind(None) < self.limits.waiting_bytes_max,
                None => true,
            }
    }

    /// Takes keys.
    pub fn add_keys(&mut self, keys: Vec<Input>) {
        if self.has_ended || self.are_keys_done {
            return;
        }
        if matches!(self.stages.first(), Some(Stage::Parts(_))) {
            self.read_objects(0, keys);
        } else if let Err(why) = self.buckets.check(&keys) {
            return self.end(Err(Failure::Forbidden(why)));
        } else {
            let keys: Vec<Term> = keys.iter().map(Input::to_term).collect();
            self.hand_over(self.keeps.is_empty().then_some(0), 0, keys.into());
        }
        self.go_on();
    }

    /// No more keys come.
    pub fn end_keys(&mut self) {
        self.are_keys_done = true;
        self.go_on();
    }

    /// An attempt gave results. With `from`, more of the part is left, behind that place.
    pub fn part_done(&mut self, attempt: Attempt, results: Values, from: Option<Bytes>) {
        let Some(mut running) = self.take_running(attempt) else { return };
        let next = running.stage + 1;
        let phase = match &self.stages[running.stage] {
            Stage::Parts(stage) => stage.phase,
            Stage::Reduce(_) => None,
        };
        if let (Some(from), Some(Stage::Parts(stage))) = (from, self.stages.get_mut(running.stage)) {
            running.waiting.from = Some(from);
            running.waiting.losses = 0;
            stage.put_back(running.waiting);
        }
        self.hand_over(phase.or(self.keeps.is_empty().then_some(0)), next, results);
        self.go_on();
    }

    /// An attempt has no answer and will have none, as when its node died. The part is tried again.
    /// When it is given up, the failure of the job has the last reason.
    pub fn part_lost(&mut self, attempt: Attempt, why: &str) {
        let Some(mut running) = self.take_running(attempt) else { return };
        running.waiting.losses += 1;
        if running.waiting.losses >= self.limits.attempts_max {
            return self.end(Err(Failure::Other(format!("no node could do a part of the job: {why}"))));
        }
        if let Some(Stage::Parts(stage)) = self.stages.get_mut(running.stage) {
            stage.put_back(running.waiting);
        }
        self.go_on();
    }

    /// An attempt found that the job cannot succeed, as when a function threw.
    pub fn part_failed(&mut self, attempt: Attempt, failure: Failure) {
        if self.take_running(attempt).is_some() {
            self.end(Err(failure));
        }
    }

    /// A call that was ordered gave results, or failed.
    pub fn reduced(&mut self, phase: usize, results: Result<Values, Failure>) {
        if self.has_ended {
            return;
        }
        let stages = self.stages.iter_mut();
        let mut reducing = stages.filter_map(|stage| match stage {
            Stage::Reduce(stage) if stage.phase == phase && stage.call_bytes.is_some() => Some(stage),
            _ => None,
        });
        match (reducing.next(), results) {
            (Some(stage), Ok(results)) => {
                stage.end_call(results);
                self.go_on();
            }
            (Some(_), Err(failure)) => self.end(Err(failure)),
            (None, _) => {}
        }
    }

    /// The job ends without success: its time is over, its client left, or its inputs failed.
    pub fn stop(&mut self, failure: Failure) {
        self.end(Err(failure));
    }

    /// Says for each part stage whether its results are reduced before they travel.
    fn choose_prereduces(&mut self, job: &Job) {
        for index in 0..self.stages.len() {
            let Some(Stage::Reduce(reduce)) = self.stages.get(index + 1) else { continue };
            let (phase, only_once) = (reduce.phase, reduce.batching.only_once);
            let Some(Stage::Parts(parts)) = self.stages.get_mut(index) else { continue };
            let asked = match parts.phase.and_then(|phase| job.phases.get(phase)) {
                Some(Phase::Map { arg, .. }) => asks_for_prereduce(arg),
                _ => None,
            };
            let is_regroupable =
                matches!(job.phases.get(phase), Some(Phase::Reduce { function, .. }) if function.is_regroupable());
            let is_kept = parts.phase.is_some_and(|phase| job.phases[phase].keep());
            let wanted = asked.unwrap_or(is_regroupable);
            parts.prereduce = (wanted && !only_once && !is_kept).then_some(phase);
        }
    }

    fn take_running(&mut self, attempt: Attempt) -> Option<Running> {
        if self.has_ended || self.parts.get(&attempt.part)?.number != attempt.number {
            return None;
        }
        let mut running = self.parts.remove(&attempt.part)?;
        running.waiting.part = Some(attempt.part);
        if let Some(Stage::Parts(stage)) = self.stages.get_mut(running.stage) {
            stage.running -= 1;
        }
        Some(running)
    }

    /// Hands the results of a phase to the stage behind it, and to the client if they are kept.
    fn hand_over(&mut self, phase: Option<usize>, next: usize, values: Values) {
        if self.has_ended {
            return;
        }
        let is_kept = |phase: usize| self.keeps.is_empty() || self.keeps.get(phase) == Some(&true);
        let kept = phase.filter(|phase| is_kept(*phase) && !values.is_empty());
        let is_last = next >= self.stages.len();
        match kept {
            Some(phase) if is_last => {
                return self.orders.push_back(Order::Give { phase, values: values.into_list() });
            }
            Some(phase) => self.orders.push_back(Order::Give { phase, values: values.list().to_vec() }),
            None => {}
        }
        match self.stages.get_mut(next) {
            Some(Stage::Reduce(reduce)) => reduce.add(values),
            Some(Stage::Parts(_)) => self.add_as_keys(next, values.list()),
            None => {}
        }
    }

    /// Gives keys to a part stage. Every key whose object is read passes here, apart from those
    /// that shares find.
    fn read_objects(&mut self, stage: usize, keys: Vec<Input>) {
        if let Err(why) = self.buckets.check(&keys) {
            return self.end(Err(Failure::Forbidden(why)));
        }
        if let Some(Stage::Parts(parts)) = self.stages.get_mut(stage) {
            parts.add_keys(keys, &self.limits);
        }
    }

    /// Takes results as the inputs of a part stage.
    fn add_as_keys(&mut self, stage: usize, values: &[Term]) {
        let Some(Stage::Parts(parts)) = self.stages.get(stage) else { return };
        let keys: Result<Vec<Input>, &Term> = values.iter().map(|value| Input::from_term(value).ok_or(value)).collect();
        match keys {
            Ok(keys) => self.read_objects(stage, keys),
            Err(value) => {
                let phase = parts.phase.unwrap_or_default();
                let error = format!("{{bad_input,{value}}}");
                self.end(Err(Failure::Phase(PhaseFailure::of_reduce(phase, &error))));
            }
        }
    }
}

fn stage(index: usize, phase: &Phase, limits: &RunLimits) -> Stage {
    if phase.reads_objects() {
        Stage::Parts(PartStage::of_phase(index))
    } else {
        let mut stage = ReduceStage::new(index, phase.batching());
        stage.takes_each_alone = matches!(phase, Phase::Reduce { function, .. } if function.takes_each_alone());
        let is_script = matches!(phase, Phase::Reduce { function: Reducer::Script(_), .. });
        stage.call_bytes_max = (is_script && !stage.batching.only_once).then_some(limits.script_call_bytes_max);
        Stage::Reduce(stage)
    }
}

#[cfg(test)]
mod tests;
