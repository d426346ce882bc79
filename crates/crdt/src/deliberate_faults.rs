//! A rule that a test breaks on purpose, to see that the simulator finds out. The switch exists
//! only with the feature `deliberate-faults`, which the simulator alone enables.

#[cfg(feature = "deliberate-faults")]
use std::cell::Cell;

#[cfg(feature = "deliberate-faults")]
thread_local! {
    static IGNORES_OLDER: Cell<bool> = const { Cell::new(false) };
}

/// Lets everything that this thread runs ignore an assignment to a register that has a later value
/// by the clock, as Riak does.
#[cfg(feature = "deliberate-faults")]
pub fn ignore_older_assignments(ignores: bool) {
    IGNORES_OLDER.set(ignores);
}

/// Whether an assignment is ignored if the register has a later value by the clock.
#[cfg(feature = "deliberate-faults")]
pub(crate) fn older_assignments_are_ignored() -> bool {
    IGNORES_OLDER.get()
}

/// Whether an assignment is ignored if the register has a later value by the clock.
#[cfg(not(feature = "deliberate-faults"))]
pub(crate) const fn older_assignments_are_ignored() -> bool {
    false
}
