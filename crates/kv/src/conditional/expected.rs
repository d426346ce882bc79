//! Which copies a conditional put may replace.

use crate::deliberate_faults::{BrokenRule, is_broken};
use ombak_types::time::UnixMicros;
use ombak_types::{Object, VectorClock};

/// Whether a copy holds nothing that a put has not seen. `expected` is the clock of what the put
/// has read. `sent` is the clock of the put's own value: a copy that has exactly its events has
/// stored it before.
pub(crate) fn is_expected(
    local: Option<&Object>,
    expected: &VectorClock,
    sent: Option<&VectorClock>,
    now: UnixMicros,
) -> bool {
    let Some(local) = local else { return true };
    if is_broken(BrokenRule::PrimariesCheckConditions) {
        return true;
    }
    // No clock covers a value without a clock (`write_once`).
    let is_uncovered = local.clock.is_empty() && !local.is_absent(now);
    let is_the_same = sent.is_some_and(|sent| local.clock.same_events(sent));
    !is_uncovered && (expected.descends(&local.clock) || is_the_same)
}
