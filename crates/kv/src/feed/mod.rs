//! Leads consumers along the change feeds of the partitions of a node.
//!
//! What it is: a few threads that lead consumers along the feeds of the open partitions, each for a
//! turn of bounded time ([`Feeds`]); the durable places of the consumers ([`CursorFile`]); and the
//! bound of what stores keep for consumers that lag.
//!
//! What it is not: it reads no files of stores, and decides nothing about changes. The feed is a
//! part of the stores (`ombak_storage::feed`). A node without consumers has no such threads, and
//! its stores keep nothing.
//!
//! Invariants:
//! * A place is saved only after the consumer has what lies before it.
//! * A store is asked to keep removals only from saved places on, and never for more appends since
//!   its start than the consumer may lag behind ([`ChangeConsumer::lag_max`]).
//! * A consumer that cannot be told everything begins anew, with a fold over the store.
//! * Changes go on while a consumer is told everything of a partition.
//! * A consumer that has much to be told does not hold up the others.
//! * Versions that are set aside are not handed out.
//!
//! [`CursorFile`]: cursor_file::CursorFile
//! [`ChangeConsumer::lag_max`]: crate::hooks::ChangeConsumer::lag_max

mod cursor_file;
mod feeds;
mod follower;
mod led;
mod pause;
mod places;
mod store_of_partition;
mod telling;

pub(crate) use feeds::Feeds;
