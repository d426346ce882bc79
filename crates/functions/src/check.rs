//! Whether a program can be loaded.

use crate::process::Child;
use crate::{FunctionError, WorkerProgram};
use ombak_script::{Limits, Program};
use std::time::Duration;

/// How much longer than its limit the load of a program may take.
const OVERDUE_MAX: Duration = Duration::from_secs(1);

/// Loads a program once, in a process of its own that ends afterwards. This blocks the thread for
/// at most the time of a call and a second.
pub fn check_program(worker: &WorkerProgram, program: &Program, limits: &Limits) -> Result<(), FunctionError> {
    let died = |why: crate::process::Died| FunctionError::Died(why.to_string());
    let answer_time_max = Some(limits.call_time_max + OVERDUE_MAX);
    let (mut child, _) = Child::start(worker, limits, false, 1, answer_time_max, drop).map_err(died)?;
    Ok(child.open(1, program, limits.call_time_max).map_err(died)??)
}
