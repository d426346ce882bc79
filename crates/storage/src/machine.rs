//! What stores need from the machine besides files: a clock and random numbers.

use std::io;
use std::time::Instant;

/// A clock and a source of random numbers. A file system names the machine that it belongs to, so
/// that a simulated disk comes with a simulated machine.
pub trait Machine: Send + Sync {
    /// A time that never goes back.
    fn now(&self) -> Instant;

    /// A number that nobody can predict.
    fn random_u64(&self) -> io::Result<u64>;
}

/// The machine that the process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealMachine;

impl Machine for RealMachine {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn random_u64(&self) -> io::Result<u64> {
        getrandom::u64().map_err(|e| io::Error::other(e.to_string()))
    }
}
