//! Bodies that grow: a store that keeps the body of a version in parts, so that bytes are added to
//! it without writing it anew ([`Backend::extend`](crate::Backend::extend)).
//!
//! What it is: a layer over each store on disk. The *head record* of a version lies under its key.
//! It has the head, the *tail* of the body, and says which parts lie before the tail. The parts
//! lie under keys of their own, which no object has ([`layout`]). Parts are never changed.
//!
//! What it is not: it does not know what the bytes mean. Versions that were never extended have no
//! parts, and are stored as if this layer were not there. The memory backend has no such layer.
//!
//! Invariants:
//! * The head record decides. All parts that it names are durable before it is appended, and they
//!   stay until what replaced it is durable. So a loss of power at any point leaves a version that
//!   is whole: the new one, or the one before.
//! * A part that no head record names is garbage. Maintenance removes it, after a crash by a sweep.
//! * Nobody above sees parts: neither reads nor folds, nor the observer of drops, nor the number of
//!   keys. A version with parts reads as one body.
//! * A part that is missing or damaged makes its version unreadable, never shorter.

mod changes;
mod layout;
mod snapshot;
mod store;
mod sweep;
#[cfg(test)]
mod tests;

pub(crate) use store::PartedStore;
