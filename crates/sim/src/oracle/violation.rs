//! How a rule can be broken.

use super::copies::Token;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An acknowledged value is on no disk that was not destroyed.
    #[error("{key}: write {token} was acknowledged, and no disk has it or what replaced it: {copies}")]
    Lost {
        /// The key.
        key: String,
        /// The write.
        token: Token,
        /// What the disks have.
        copies: String,
    },
    /// A value is back although an acknowledged write has replaced it.
    #[error("{key}: write {token} is back, which write {successor} had replaced: {copies}")]
    Back {
        /// The key.
        key: String,
        /// The write that is back.
        token: Token,
        /// The write that had replaced it.
        successor: Token,
        /// What the disks have.
        copies: String,
    },
    /// A fold deletes what was written after it had found its keys.
    #[error("{key}: a fold erases write {token}, which began after the fold had found its keys")]
    ErasedLater {
        /// The key.
        key: String,
        /// The write.
        token: Token,
    },
    /// A newer deletion has not replaced a value of a bucket without siblings at the end.
    #[error("{key}: a value is still beside a newer deletion after healing: {copies}")]
    NotDeleted {
        /// The key.
        key: String,
        /// What the disks have.
        copies: String,
    },
    /// A primary cannot read its copy at the end, although another one has what the copy held.
    #[error("{key}: host {host} still cannot read its copy, which others could repair: {copies}")]
    NotRepaired {
        /// The key.
        key: String,
        /// The number of the host.
        host: usize,
        /// What the disks have.
        copies: String,
    },
    /// The replicas of a key differ at the end.
    #[error("{key}: the replicas differ after healing: {copies}")]
    Unequal {
        /// The key.
        key: String,
        /// What the disks have.
        copies: String,
    },
    /// A node that is no primary of a key holds a copy of it at the end.
    #[error("{key}: host {host} is no primary, and holds a copy after healing: {copies}")]
    Stray {
        /// The key.
        key: String,
        /// The number of the host.
        host: usize,
        /// What the disks have.
        copies: String,
    },
    /// The replicas of a node are in neither ring of a change.
    #[error("host {host} takes {nodes} for the replicas of home {home} with n={n}: they are of no ring")]
    Strangers {
        /// The number of the host.
        host: usize,
        /// The home partition.
        home: u32,
        /// The n of the class.
        n: u32,
        /// The nodes.
        nodes: String,
    },
    /// An event id names two values.
    #[error("{key}: one event id names the writes {first} and {second}")]
    TwoValuesOfOneEvent {
        /// The key.
        key: String,
        /// One write.
        first: Token,
        /// The other write.
        second: Token,
    },
    /// A version that no client has written.
    #[error("{key} on {place}: {what}")]
    Forged {
        /// The key.
        key: String,
        /// Where it was found.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// Some primaries found nothing, and one of them must have a write.
    #[error("{key}: {primaries} primaries found nothing, and one of them must have write {token}")]
    NotFound {
        /// The number of primaries.
        primaries: u32,
        /// The key.
        key: String,
        /// The write.
        token: Token,
    },
    /// A read of all replicas, after a pause of all owners, has missed a write that others had
    /// acknowledged meanwhile.
    #[error("{key}: a read of all replicas through host {host} missed write {token} after a pause of all owners")]
    MissedAfterPause {
        /// The key.
        key: String,
        /// The number of the host.
        host: usize,
        /// The write.
        token: Token,
    },
    /// Two puts with the same precondition were acknowledged.
    #[error("{key}: writes {first} and {second} had the same precondition, and both were acknowledged")]
    TwoWithOneCondition {
        /// The key.
        key: String,
        /// One write.
        first: Token,
        /// The other write.
        second: Token,
    },
    /// Two puts of a key without a value were acknowledged, and each had that as its condition.
    #[error("{key}: writes {first} and {second} were both acknowledged for a key without a value")]
    TwoForNoValue {
        /// The key.
        key: String,
        /// One write.
        first: Token,
        /// The other write.
        second: Token,
    },
    /// A listing or a query is wrong.
    #[error("{what}")]
    Listing {
        /// What is wrong.
        what: String,
    },
    /// A copy came or went that must not.
    #[error("{key}: host {host}: {what}")]
    Unproven {
        /// The key.
        key: String,
        /// The number of the host.
        host: usize,
        /// What happened.
        what: String,
    },
    /// A store has lost a version that was not synced, and does not know that it lacks something.
    #[error("{key}: the store of host {host} lost its version, and says that it has everything")]
    LossNotNoticed {
        /// The key.
        key: String,
        /// The number of the host.
        host: usize,
    },
    /// Sums are not those of what lies in the stores.
    #[error("host {host}: {what}")]
    Sums {
        /// The number of the host.
        host: usize,
        /// What is wrong.
        what: String,
    },
    /// A node that was removed takes part.
    #[error("host {host}: {what}")]
    Removed {
        /// The number of the host.
        host: usize,
        /// What it does.
        what: String,
    },
    /// A put was acknowledged before its quorums were met.
    #[error("{key}: write {token} was acknowledged, although {what}")]
    Uncounted {
        /// The key.
        key: String,
        /// The write.
        token: Token,
        /// What is missing.
        what: String,
    },
    /// A write was executed after its time limit.
    #[error("{key}: write {token} was not executed in time, and appeared later")]
    Late {
        /// The key.
        key: String,
        /// The write.
        token: Token,
    },
    /// A node does not start although nothing of it was damaged.
    #[error("{0}")]
    NoStart(String),
    /// The run did not come to its end.
    #[error("{0}")]
    Stuck(String),
}
