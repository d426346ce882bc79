//! What a job does when something has changed.

use super::stage::Stage;
use super::{Attempt, JobRun, Order, Running};
use crate::{Failure, PhaseFailure};

impl JobRun {
    /// Orders all that can be done now, and ends the job if nothing is left.
    pub(super) fn go_on(&mut self) {
        let mut is_front_done = self.are_keys_done;
        for index in 0..self.stages.len() {
            if self.has_ended {
                return;
            }
            is_front_done = match &self.stages[index] {
                Stage::Parts(_) => self.end_part_stage(index, is_front_done),
                Stage::Reduce(_) => self.reduce(index, is_front_done),
            };
        }
        if self.has_ended {
            return;
        }
        self.begin_parts();
        if is_front_done {
            self.end(Ok(()));
        }
    }

    /// Whether a part stage is done, given whether all in front of it are.
    fn end_part_stage(&mut self, index: usize, is_front_done: bool) -> bool {
        let Some(Stage::Parts(stage)) = self.stages.get_mut(index) else { return is_front_done };
        if is_front_done {
            stage.end_part();
        }
        is_front_done && stage.is_idle()
    }

    /// Orders a call of a reduce stage if one is due. Returns whether the stage is done; then its
    /// results have been passed on.
    fn reduce(&mut self, index: usize, is_front_done: bool) -> bool {
        let limits = self.limits;
        let Some(Stage::Reduce(stage)) = self.stages.get_mut(index) else { return is_front_done };
        if stage.is_done {
            return true;
        }
        let phase = stage.phase;
        if stage.bytes() > limits.reduce_bytes_max {
            let error = format!("the values of the reduce phase take more than {} bytes", limits.reduce_bytes_max);
            self.end(Err(Failure::Phase(PhaseFailure::of_reduce(phase, &error))));
            return false;
        }
        // The last call gets what is left. A phase without inputs is called once, with no values.
        let is_last_due = is_front_done && stage.call_bytes.is_none() && (stage.has_values() || !stage.was_called);
        if stage.is_call_due(&limits) || is_last_due {
            let values = stage.begin_call();
            self.orders.push_back(Order::Reduce { phase, values });
            return false;
        }
        if !is_front_done || stage.call_bytes.is_some() {
            return false;
        }
        stage.is_done = true;
        for results in stage.take_results() {
            self.hand_over(Some(phase), index + 1, results);
        }
        true
    }

    /// Begins as many parts as there is room for, those of late stages first: their results are
    /// nearer to the client.
    fn begin_parts(&mut self) {
        let limits = self.limits;
        for index in (0..self.stages.len()).rev() {
            while self.parts.len() < limits.parts_at_once_max
                && self.waiting_behind(Some(index)) < limits.waiting_bytes_max
            {
                let Some(Stage::Parts(stage)) = self.stages.get_mut(index) else { break };
                let Some(waiting) = stage.take(&limits) else { break };
                stage.running += 1;
                let (map, prereduce) = (stage.phase, stage.prereduce);
                let part = waiting.part.unwrap_or_else(|| {
                    self.parts_made += 1;
                    self.parts_made
                });
                self.attempts_made += 1;
                let attempt = Attempt { part, number: self.attempts_made };
                let (work, from) = (waiting.work.clone(), waiting.from.clone());
                self.orders.push_back(Order::Run { attempt, work, from, map, prereduce });
                self.parts.insert(part, Running { stage: index, number: attempt.number, waiting });
            }
        }
    }

    /// How many bytes wait in the stages behind one. What a reduce stage holds between calls does
    /// not count, because no other stage can make it less.
    pub(super) fn waiting_behind(&self, index: Option<usize>) -> usize {
        let behind = self.stages.iter().skip(index.map_or(0, |index| index + 1));
        let bytes = behind.map(|stage| match stage {
            Stage::Parts(stage) => stage.waiting_bytes,
            Stage::Reduce(stage) if stage.call_bytes.is_some() => stage.values_bytes,
            Stage::Reduce(_) => 0,
        });
        bytes.sum()
    }

    /// Ends the job. Attempts that still run are stopped, and orders that were not taken are
    /// forgotten unless they are results of a job that succeeded.
    pub(super) fn end(&mut self, result: Result<(), Failure>) {
        if self.has_ended {
            return;
        }
        self.has_ended = true;
        if result.is_err() {
            // An attempt whose order nobody has taken needs no stop.
            let ordered: Vec<Attempt> = self
                .orders
                .drain(..)
                .filter_map(|order| match order {
                    Order::Run { attempt, .. } => Some(attempt),
                    _ => None,
                })
                .collect();
            let running = self.parts.iter().map(|(part, running)| Attempt { part: *part, number: running.number });
            let stops: Vec<Order> = running.filter(|attempt| !ordered.contains(attempt)).map(Order::Stop).collect();
            self.orders.extend(stops);
        }
        self.parts.clear();
        self.leftovers = std::mem::take(&mut self.stages);
        self.orders.push_back(Order::End(result));
    }
}
