//! The world: virtual time, hosts, tasks and the order of all events.
//!
//! One thread runs the whole world. What is to happen next is chosen by virtual time, and virtual
//! time is chosen by the random numbers of the seed: a task that is woken runs a random moment
//! later, and so does a job of a pool. A host can be paused (its tasks do not run while time goes
//! on) and killed (its tasks are dropped).

mod clock;
mod event;
mod executor;
mod host;
mod host_runtime;
mod periodic;
mod pool;
mod state;
mod tasks;
mod timer;

pub(crate) use event::Event;
pub use executor::{EndOfWorld, Stuck, World};
pub(crate) use host::HostKey;
pub use host::{HostId, OUTSIDE};
pub use host_runtime::HostRuntime;
pub(crate) use state::Inner;
