//! What operators see of a cluster, and the commands that they give.
//!
//! What it is: the members and the ring ([`facts`]), whether everything lies where it belongs
//! ([`settlement`]), transfers and their limits ([`transfers`]), exchanges ([`exchanges`]), the
//! times of failure detection ([`detection_times`]), who takes part in decisions ([`deciders`]);
//! and the commands that stage, plan and commit changes ([`commands`]), with what they would
//! destroy ([`losses`]), and by which a new node takes the place of a lost one ([`rejoin`]).
//!
//! What it is not: it has no interface. The program shows these over HTTP and its command line.
//! Every command comes to effect through an entry of the metadata, or through a question to the
//! member that it is for.
//!
//! Invariants:
//! * What is shown is at least as new as what a majority had decided when the operator asked, if a
//!   majority can be reached.
//! * A command that would destroy data says so, and needs the operator's word.

pub(super) mod commands;
pub(super) mod deciders;
pub(super) mod detection_times;
pub(super) mod exchanges;
pub(super) mod facts;
pub(super) mod losses;
pub(super) mod rejoin;
pub(super) mod settlement;
pub(super) mod transfers;
