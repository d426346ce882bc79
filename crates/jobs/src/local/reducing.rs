//! Calls the function of a reduce phase.

use super::Inner;
use crate::part::PartError;
use ombak_mapreduce::{Failure, PhaseFailure, Reducer};
use ombak_types::etf::Term;
use std::time::Instant;

/// Calls a function with a list of values.
pub(super) async fn reduce(
    node: &Inner,
    (job, number): (u128, usize),
    function: &Reducer,
    arg: &Term,
    values: Vec<Term>,
    deadline: Instant,
) -> Result<Vec<Term>, PartError> {
    let failed = |error: &str| Failure::Phase(PhaseFailure::of_reduce(number, error));
    match function {
        Reducer::Native(function) => {
            let (function, arg) = (*function, arg.clone());
            let called = node.on_thread(deadline, move || function.call(values, &arg)).await?;
            called.map_err(|error| PartError::Failed(failed(&error.0)))
        }
        Reducer::Script(source) => node.reduce_in_script((job, number), (source, arg), values, deadline).await,
    }
}
