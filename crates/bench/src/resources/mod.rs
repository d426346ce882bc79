//! What the process that is measured uses: processor time, memory, bytes to and from the disk, and space on it; and the
//! machine that the load comes from.
//!
//! The numbers come from `/proc` (Linux) and from the data directory. What the system does not say, for want of a
//! permission or because the process has ended, is missing in a sample; why is said once, in [`Sampler::take_warnings`].

mod disk;
mod host;
mod process;
mod sample;
mod sampler;

pub use host::host;
pub use sample::ResourceSample;
pub use sampler::Sampler;
