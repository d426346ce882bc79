//! Random histories over engines in one process, message by message, as in the model
//! (docs/design/models/reap.py): messages are late, lost or doubled, nodes do not agree on which of
//! them are up, and stand-ins take writes. Processes are killed, and machines lose what they have
//! not synced. One seed decides everything.
//!
//! When all faults have ended, nothing that was acknowledged is missing, nothing that was deleted
//! is back, and all tombstones are gone. A rule that is left out is found.

mod conditional;
mod histories;
mod network;
mod one_thread;
mod world;
