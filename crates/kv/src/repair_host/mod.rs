//! What the crate `ombak-repair` uses of this one, and nobody else: the engine as a [`RepairHost`],
//! the answers that it is given, and the state that the work reads and changes. Only the switch of
//! deliberate faults is for `ombak-key-queues`, too.
//!
//! Everything here is told for the work on copies alone. A program that embeds the engine needs
//! none of it.

pub use crate::buckets::Snapshot as BucketsSnapshot;
pub use crate::deliberate_faults::{BrokenRule, is_broken};
pub use crate::digest::digest;
pub use crate::engine::{
    LeftAndFailed, ReaperWaiting, RepairAnswers, RepairHost, RequestPlacement, Taken, UsedPlacement,
};
pub use crate::partition::{
    Access, Failure, KeyPlace, Locked, Partition, PartitionTable, UnreadableKeys, Written, is_unreadable,
};
pub use crate::reaping::{Class, DueVersions, Ending, Fences, Floors, ReapingCounts, ReapingState};
pub use crate::replica::{KnownCounters, REAP_BYTES_MAX, TRANSFER_BYTES_MAX};
pub use crate::routing::{class_of_key, is_of_class};
pub use crate::sums::mix;
pub use crate::transfer::{
    Asked, AwaitedReplicas, Classes, Comparison, Doubt, DroppedFile, EmptyAt, EmptyStore, Filling, FoldBegin,
    ForeignCopy, ForeignData, Fullness, Known, Marks, OtherWays, Owed, OwedMarks, PeerStore, Proofs, SetAside, SetBack,
    SyncMarks, ToldSeqs, Towards, Transfers, UNKNOWN_N, is_of_one_ring, is_to_be_full,
};
