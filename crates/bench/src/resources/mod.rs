//! The resources that the measured process uses: processor time, memory, bytes read from and
//! written to the disk, and disk space. It also describes the machine that runs the load generator.
//!
//! The numbers come from `/proc` (Linux) and from the data directory. A number is missing in a
//! sample if the system does not provide it, because of permissions or because the process has
//! ended. [`Sampler::take_warnings`] reports each reason once.

mod disk;
mod host;
mod process;
mod sample;
mod sampler;

pub use host::host;
pub use sample::ResourceSample;
pub use sampler::Sampler;
