//! The change feed of a store: what a consumer reads that may lag behind the writes.
//!
//! What it is: the place of a consumer ([`FeedCursor`]), what it reads from there on ([`Changes`]),
//! and why a place may be of no use any more ([`CursorLost`]). Stores with a lasting journal read
//! the feed from its files (`journal::feed`). All others walk over their index ([`by_index`]) and
//! remember removals in memory ([`RemovalLog`]).
//!
//! What it is not: the feed is no log of all writes. It has the last state of each key. What must
//! never drift from the store, such as sums over ranges, is no consumer: observers update it under
//! the key's lock.
//!
//! Invariants:
//! * A walk ([`Changes`]) shows the store as it was at one moment. It has each key whose state
//!   changed after the cursor, with the state of that moment: a version, or a removal. A key that
//!   was put and removed in between may come as a removal.
//! * At least once: after a restart from an earlier cursor, changes come again. Applying the last
//!   state of a key twice is harmless.
//! * The keys of one walk come in no order. Of two walks of a consumer, the later one has the later
//!   states.
//! * With [`Reach::Durable`], a walk has only what survives a loss of power. So a consumer never
//!   knows more than its store.
//! * A consumer that cannot be told everything is told so. A cursor is lost if the store was
//!   replaced or lost its newest writes, and if the store has forgotten removals behind the cursor.
//!   The consumer then begins anew: it takes [`Backend::feed_cursor`](crate::Backend::feed_cursor),
//!   forgets what it has, folds over [`Scope::EVERYTHING`](crate::Scope), and goes on from that
//!   cursor.

mod by_index;
mod change;
mod changes;
mod cursor;
mod removal_log;
#[cfg(test)]
mod tests;

pub(crate) use by_index::IndexChanges;
pub use change::{Change, KeyState, Origin};
pub use changes::{Changes, ChangesQuery, ChangesSince, FeedStep, Reach};
pub(crate) use cursor::PlaceNow;
pub use cursor::{CursorLost, FeedCursor, StorePlace};
pub(crate) use removal_log::{RemovalLog, Removed};
