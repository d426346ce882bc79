//! The results of a piece, reduced before they travel if the job wants that.

use super::worker::Worker;
use crate::part::{PartError, PartRequest, PhaseOfPart};
use ombak_mapreduce::{Phase, Reducer, Values};
use ombak_types::etf::Term;
use std::sync::Arc;
use std::time::Instant;

/// How many new values are reduced at once.
const REDUCED_AT_ONCE: usize = 1000;

/// What a piece has given so far.
pub(super) struct Results {
    values: Values,
    bytes_max: usize,
    job: u128,
    reducer: Option<(usize, Reducer, Arc<Term>)>,
    /// How many of the values were reduced.
    reduced: usize,
    deadline: Instant,
}

impl Results {
    pub(super) fn new(request: &PartRequest, bytes_max: usize) -> Self {
        let reducer = match &request.prereduce {
            Some(PhaseOfPart { number, phase: Phase::Reduce { function, arg, .. } }) => {
                Some((*number, function.clone(), arg.clone()))
            }
            _ => None,
        };
        Self { values: Values::default(), bytes_max, job: request.job, reducer, reduced: 0, deadline: request.deadline }
    }

    pub(super) async fn add(&mut self, worker: &Worker, values: Vec<Term>) -> Result<(), PartError> {
        self.values.append(values.into());
        if self.is_full() || self.values.len() - self.reduced >= REDUCED_AT_ONCE {
            self.reduce(worker).await?;
        }
        Ok(())
    }

    /// Whether the piece is large enough.
    pub(super) const fn is_full(&self) -> bool {
        self.values.bytes() >= self.bytes_max
    }

    pub(super) async fn finish(mut self, worker: &Worker) -> Result<Values, PartError> {
        self.reduce(worker).await?;
        Ok(self.values)
    }

    /// Reduces what was not reduced yet. A phase that has no values is not called.
    async fn reduce(&mut self, worker: &Worker) -> Result<(), PartError> {
        let Some((number, function, arg)) = &self.reducer else { return Ok(()) };
        if self.values.len() == self.reduced {
            return Ok(());
        }
        let values = std::mem::take(&mut self.values).into_list();
        self.values = worker.reduce((self.job, *number), function, arg, values, self.deadline).await?.into();
        self.reduced = self.values.len();
        Ok(())
    }
}
