//! What a node counts about the other nodes of its cluster, at a moment.

/// The questions between nodes. All numbers only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Reads that other nodes were asked for.
    pub reads_sent: u64,
    /// Stores that other nodes were asked for.
    pub stores_sent: u64,
    /// Puts that other nodes were asked to coordinate.
    pub puts_forwarded: u64,
    /// Parts of listings and index queries that other nodes were asked for.
    pub listings_sent: u64,
    /// Reads of other nodes that were executed here.
    pub reads_served: u64,
    /// Stores of other nodes that were executed here.
    pub stores_served: u64,
    /// Puts of other nodes that were coordinated here.
    pub puts_coordinated: u64,
    /// Parts of listings and index queries that were answered for other nodes.
    pub listings_served: u64,
    /// Requests of other nodes that were refused because too many were under way.
    pub refused_overload: u64,
    /// Requests of other nodes that came too late.
    pub refused_expired: u64,
    /// Requests of nodes whose ring has another lineage.
    pub refused_lineage: u64,
    /// Requests that did not decode.
    pub refused_malformed: u64,
}

/// The work that brings copies to where they belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferFigures {
    /// Copies that this node holds for others, about.
    pub hinted_objects: u64,
    /// Their bytes.
    pub hinted_bytes: u64,
    /// Partitions that may hold such copies.
    pub hinted_partitions: u64,
    /// Classes and peers that missed writes.
    pub owed_marks: u64,
    /// Classes of this node that may lack something.
    pub filling_classes: u64,
    /// Transfers under way that hand back what this node holds for others.
    pub hinted_active: u64,
    /// Transfers under way to primaries that lack something.
    pub repair_active: u64,
    /// Transfers under way of what exchanges have found.
    pub exchange_active: u64,
    /// Objects that were handed back since the start.
    pub hinted_objects_sent: u64,
    /// Their bytes.
    pub hinted_bytes_sent: u64,
    /// Objects that went to primaries that lacked them, since the start.
    pub repair_objects_sent: u64,
    /// Their bytes.
    pub repair_bytes_sent: u64,
    /// Objects that exchanges have brought to other primaries since the start.
    pub exchange_objects_sent: u64,
    /// Their bytes.
    pub exchange_bytes_sent: u64,
    /// Objects that other nodes brought since the start.
    pub objects_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Pushes that this node refused, because an operator has disabled them.
    pub rejected: u64,
    /// Questions to other nodes that were not answered in time.
    pub timeouts: u64,
}

/// The removal of tombstones and expired versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReapingFigures {
    /// Versions that wait for their removal.
    pub waiting: u64,
    /// Versions that were removed from stores of this node since the start.
    pub removed: u64,
    /// Rounds that this node has driven since the start.
    pub rounds: u64,
    /// Those of them that ended early or left something.
    pub rounds_failed: u64,
}

/// Listings and index queries over several nodes, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoverageFigures {
    /// Parts that were asked of replicas, those of this node included.
    pub parts_asked: u64,
    /// Parts that were asked again of another replica, because the first one failed.
    pub parts_repeated: u64,
}

/// What is known about one other node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerFigures {
    /// Its name.
    pub name: String,
    /// What failure detection says of it: `up`, `suspect`, `down` or `left`.
    pub state: &'static str,
    /// Whether requests are sent to it.
    pub is_up: bool,
    /// Whether it is there, but gets no requests because it does not answer them.
    pub is_slow: bool,
    /// Whether a connection with it is open, in either direction.
    pub is_connected: bool,
    /// Bytes that came from it.
    pub bytes_received: u64,
    /// Bytes that were sent to it.
    pub bytes_sent: u64,
    /// Requests to it.
    pub requests: u64,
    /// Requests of it that were served.
    pub served: u64,
    /// Requests to it that failed in the transport, by the reason.
    pub failures: Vec<(&'static str, u64)>,
}

/// What a node counts about its cluster. A node that is alone has no peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFigures {
    /// The questions between nodes.
    pub replicas: ReplicaCounts,
    /// The other members.
    pub peers: Vec<PeerFigures>,
    /// Copies that do not lie where they belong.
    pub transfers: TransferFigures,
    /// Tombstones and expired versions.
    pub reaping: ReapingFigures,
    /// Listings and index queries.
    pub coverage: CoverageFigures,
}
