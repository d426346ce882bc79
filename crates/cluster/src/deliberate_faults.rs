//! Rules of members that the simulator breaks on purpose (`ombak_kv::BrokenRule`). The switch
//! exists only with the feature `deliberate-faults`, which the simulator alone enables.

/// Whether a node that was removed goes on as a member on purpose: members let it in and watch it,
/// and it does not believe them that it was removed.
#[cfg(feature = "deliberate-faults")]
pub(crate) fn removed_nodes_take_part() -> bool {
    ombak_kv::is_broken(ombak_kv::BrokenRule::RemovedNodesTakeNoPart)
}

/// Whether a node that was removed goes on as a member on purpose.
#[cfg(not(feature = "deliberate-faults"))]
pub(crate) const fn removed_nodes_take_part() -> bool {
    false
}
