//! Calls the function of a reduce phase.

use super::worker::Worker;
use crate::part::PartError;
use ombak_mapreduce::{Failure, PhaseFailure, Reducer};
use ombak_runtime::pause_if_due;
use ombak_types::etf::Term;
use std::time::Instant;

impl Worker {
    /// Calls a function with a list of values.
    pub(super) async fn reduce(
        &self,
        (job, number): (u128, usize),
        function: &Reducer,
        arg: &Term,
        values: Vec<Term>,
        deadline: Instant,
    ) -> Result<Vec<Term>, PartError> {
        match function {
            Reducer::Native(function) => function
                .call(values, arg, pause_if_due)
                .map_err(|error| PartError::Failed(Failure::Phase(PhaseFailure::of_reduce(number, &error.0)))),
            Reducer::Script(source) => self.reduce_in_script((job, number), (source, arg), values, deadline).await,
        }
    }
}
