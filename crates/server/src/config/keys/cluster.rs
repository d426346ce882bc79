//! The keys for clusters: membership, handoff, worker pools.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const INT_MAX: i64 = i64::MAX;
const TLS: &str = "everything between nodes goes over listener.peer, which cluster.ssl.certfile encrypts";
const POOLS: &str = "no work of Ombak is of this class";

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::own(
        "cluster.secret_file",
        Kind::Path,
        "$(platform_data_dir)/cluster.secret",
        "The file with the secret that all nodes of a cluster share; others get nowhere on listener.peer. A node that \
         listens for others creates the default file with a random secret if it is missing. Before a node joins a \
         cluster, give it the secret of that cluster: copy the file of a member to it, or name the same file on all \
         nodes, and start the node again. The file belongs to the user of the node, and nobody else may read it. It has \
         at least 16 bytes, which nobody can guess. With cluster.ssl.certfile the certificates decide who is let in, and \
         nodes prove the secret in addition only if this key is set.",
    ),
    KeySpec::own(
        "cluster.ssl.certfile",
        Kind::Path,
        "",
        "The file with this node's certificate for listener.peer, in PEM form, followed by the intermediate ones up to \
         the authority. With it, connections between nodes are encrypted, and both sides prove that an authority of \
         cluster.ssl.cacertfile has issued a certificate to them; others get nowhere. All nodes of a cluster have such \
         certificates, or none. Names in the certificate are not checked. If there is an extendedKeyUsage, it has \
         serverAuth and clientAuth. cluster.ssl.keyfile and cluster.ssl.cacertfile are needed, too. SIGHUP makes a \
         running node read the three files again.",
    ),
    KeySpec::own(
        "cluster.ssl.keyfile",
        Kind::Path,
        "",
        "The file with the private key of cluster.ssl.certfile, in PEM form and without a passphrase. Only its owner and \
         its group may read it.",
    ),
    KeySpec::own(
        "cluster.ssl.cacertfile",
        Kind::Path,
        "",
        "The file with the certificates of the authorities whose certificates let a node in, in PEM form. Any certificate \
         that one of them has issued is accepted, so they issue certificates to nodes of this cluster only.",
    ),
    KeySpec::own(
        "cluster.probe_period",
        Kind::Duration,
        "350ms",
        "How often a node asks one of the others whether it is there. All nodes of a cluster should have the same value.",
    ),
    KeySpec::own(
        "cluster.suspicion_time",
        Kind::Duration,
        "1400ms",
        "How long a node that did not answer may take to show that it is there, before it is down. It is at least \
         cluster.probe_period. With the defaults a node that was killed is down after about 3 s at most, and one that \
         returned is up within 1 s. All nodes of a cluster should have the same value.",
    ),
    KeySpec::own(
        "cluster.request_stall_time",
        Kind::Duration,
        "1s",
        "A node that answers no request for this long gets no further ones until it answers again, even if it is there \
         otherwise: its process may be stopped, or its disk may hang. It is at least 700ms.",
    ),
    KeySpec::own(
        "cluster.request_lifetime",
        Kind::Duration,
        "30s",
        "How old a request between nodes may become. A node neither sends nor executes an older one, so one that lay in \
         a queue or in a network for long does nothing late. It is at least 1s. All nodes of a cluster should have the \
         same value.",
    ),
    KeySpec::own(
        "cluster.advertised_address",
        Kind::Host,
        "",
        "The address at which other nodes reach listener.peer. It is needed if that listener serves all addresses \
         (0.0.0.0 or [::]), or if an address translation is in between. Without it, other nodes use the address of the \
         listener. A host name is resolved when the node starts, and the other nodes learn the address.",
    ),
    KeySpec::own(
        "cluster.peers",
        Kind::Hosts,
        "",
        "The addresses at which other nodes of the cluster listen (their listener.peer or cluster.advertised_address), \
         separated by blanks. A node that starts with an empty data directory asks them before it serves. If a member has \
         its name or its address, its directory was lost: then it serves nobody until an operator lets it take the place \
         of that member ('ombak admin cluster rejoin'), join as another node ('ombak admin cluster join'), or go on alone \
         ('ombak admin cluster alone'). It also waits as long as none of them is a member of a cluster that does not know \
         it, and not all of them answer. Without this key it is a cluster of its own at once. It may name the node \
         itself, so all nodes can have the same value. Host names are resolved each time they are used: a node also \
         finds members under them that came back with another address.",
    ),
    KeySpec::own(
        "cluster.conditional_put_without_majority",
        Kind::Choice(&["refuse", "api_only"]),
        "refuse",
        "What becomes of a conditional put while no majority of the primaries of its key is up. 'refuse': it fails, so of \
         two puts with the same condition at most one is acknowledged. 'api_only': the condition is checked before the \
         put, as Riak's conditional_put_mode = api_only does, and two such puts can both pass.",
    ),
    KeySpec::own(
        "cluster.speaks",
        Kind::Choice(&["newest", "previous"]),
        "newest",
        "What this node tells other nodes that it can do. 'previous': only what the version before this one can do. Then \
         the members do nothing together that only this version knows, also when all of them have been upgraded, so they \
         can still go back. To end that, remove the key and start the nodes again one after another.",
    ),
    KeySpec::works(
        "transfer_limit",
        Kind::Int(0, 1024),
        "4",
        "Number of partitions and classes that a node works on at the same time to bring copies back to where they \
         belong; 0: no transfer begins. 'ombak admin transfer-limit' changes it while the node runs.",
    ),
    KeySpec::works(
        "handoff.inbound",
        Kind::Flag,
        "on",
        "Whether this node takes copies that other nodes hand to it. 'ombak admin handoff' changes it while the node \
         runs. Requests of clients are not affected.",
    ),
    KeySpec::works(
        "handoff.outbound",
        Kind::Flag,
        "on",
        "Whether this node hands copies to the nodes to which they belong. 'ombak admin handoff' changes it while the \
         node runs. What has to be handed off is kept. Requests of clients are not affected.",
    ),
    KeySpec::own(
        "handoff.bytes_per_second",
        Kind::ByteSize,
        "200MB",
        "Maximum of the bytes that a node hands to others in a second; 0: no limit. 'ombak admin transfer-limit --rate' \
         changes it while the node runs.",
    ),
    KeySpec::own(
        "handoff.hinted_bytes_max",
        Kind::ByteSize,
        "64GB",
        "When a node holds more bytes than this for other nodes, it refuses to take more for them, with 'overload'. It \
         never drops what it holds.",
    ),
    KeySpec::no_meaning(
        "handoff.ip",
        Kind::Text,
        "0.0.0.0",
        "Address on which handoffs are received.",
        "nodes exchange everything over listener.peer",
    ),
    KeySpec::no_meaning(
        "handoff.port",
        Kind::Int(1, 65_535),
        "8099",
        "Port on which handoffs are received.",
        "nodes exchange everything over listener.peer",
    ),
    KeySpec::no_meaning("handoff.ssl.certfile", Kind::Path, "", "Certificate for handoffs.", TLS),
    KeySpec::no_meaning("handoff.ssl.keyfile", Kind::Path, "", "Private key for handoffs.", TLS),
    KeySpec::no_meaning(
        "handoff.max_rejects",
        Kind::Int(0, INT_MAX),
        "6",
        "Limit of the growth of the wait after a refused handoff.",
        "a transfer that failed is tried again after a minute at the latest, and at once when a node comes up",
    ),
    KeySpec::no_meaning(
        "handoff_batch_threshold_count",
        Kind::Int(1, INT_MAX),
        "500",
        "Number of objects in a batch of a handoff.",
        "batches are limited by their bytes",
    ),
    KeySpec::no_meaning(
        "handoff_timeout",
        Kind::Int(1, INT_MAX),
        "120000",
        "Milliseconds without progress after which a handoff fails.",
        "each question of a transfer waits 30 s for its answer",
    ),
    KeySpec::no_meaning(
        "handoff_deletes",
        Kind::Flag,
        "disabled",
        "Whether requests to remove tombstones are forwarded during a handoff.",
        "a tombstone is removed only when no node holds anything older",
    ),
    KeySpec::no_meaning(
        "ring.state_dir",
        Kind::Path,
        "$(platform_data_dir)/ring",
        "The directory of the ring file.",
        "the ring is part of the metadata of the cluster, which is in $(platform_data_dir)/metadata",
    ),
    KeySpec::no_meaning(
        "choose_claim_fun",
        Kind::Text,
        "choose_claim_v2",
        "The Erlang function that assigns partitions to nodes.",
        "there is only one way of assigning partitions",
    ),
    KeySpec::works(
        "target_n_val",
        Kind::Int(1, 1024),
        "4",
        "Number of neighbouring partitions that are on distinct nodes, if there are enough nodes. The member that plans \
         a change of the cluster uses its value.",
    ),
    KeySpec::works(
        "target_location_n_val",
        Kind::Int(1, 1024),
        "3",
        "Number of neighbouring partitions that are at distinct locations, as far as their sizes allow. It has an effect \
         when a node has a location ('ombak admin cluster location'). The member that plans a change of the cluster uses \
         its value.",
    ),
    KeySpec::not_yet(
        "full_rebalance_onleave",
        Kind::Flag,
        "off",
        "Whether all partitions are assigned anew when a node leaves.",
        "nodes that leave",
    ),
    KeySpec::no_meaning(
        "vnode_management_timer",
        Kind::Duration,
        "10s",
        "Time between checks for partitions to hand off.",
        "a node looks several times in a second, which costs next to nothing",
    ),
    KeySpec::no_meaning(
        "background_manager",
        Kind::Flag,
        "off",
        "Whether Riak's background manager runs.",
        "background work has its own limits",
    ),
    KeySpec::works(
        "participate_in_coverage",
        Kind::Flag,
        "enabled",
        "Whether this node answers coverage queries, such as listings and index queries. Those that clients send to a \
         node that does not are answered by other nodes.",
    ),
    KeySpec::not_yet(
        "strong_consistency",
        Kind::Flag,
        "off",
        "Whether strongly consistent buckets are available.",
        "strong consistency",
    ),
    KeySpec::no_meaning(
        "read_repair_primaryonly",
        Kind::Flag,
        "disabled",
        "Whether read repair only repairs primary replicas.",
        "only primaries are repaired: a copy on another node would have to be handed back",
    ),
    KeySpec::works("read_repair_log", Kind::Flag, "disabled", "Whether each read repair is logged."),
    KeySpec::no_meaning(
        "conditional_put_mode",
        Kind::Choice(&["api_only", "prefer_token"]),
        "api_only",
        "How conditional puts are protected against concurrent puts on other nodes.",
        "a conditional put always needs a majority of the primaries; cluster.conditional_put_without_majority says what \
         happens without one",
    ),
    KeySpec::no_meaning(
        "token_request_mode",
        Kind::Choice(&["head_only", "basic_consensus", "primary_consensus"]),
        "primary_consensus",
        "Which nodes are asked for the token of a conditional put.",
        "conditional puts need no token: a majority of the primaries decides",
    ),
    KeySpec::no_meaning(
        "repair_deferred",
        Kind::Flag,
        "disabled",
        "Whether the repair of a node fetches values later than keys.",
        "a node that may lack something compares itself with the other primaries by itself",
    ),
    KeySpec::no_meaning(
        "repair_span",
        Kind::Choice(&["pair", "double_pair"]),
        "double_pair",
        "The neighbours from which a partition is repaired.",
        "a partition is compared with all other primaries",
    ),
    KeySpec::works(
        "worker_pool_strategy",
        Kind::Choice(&["none", "single", "dscp"]),
        "dscp",
        "Which threads do the work that no get or put waits for. 'dscp': each class of work has its own, so no class waits \
         for another one. 'single': index queries have their own, and everything else shares others. 'none': everything \
         shares the threads of index queries.",
    ),
    KeySpec::works(
        "worker_pool_size",
        Kind::Int(1, 1024),
        "5",
        "Number of threads of the node for index queries. In Riak each partition has so many.",
    ),
    KeySpec::works(
        "node_worker_pool_size",
        Kind::Int(1, 1024),
        "4",
        "Number of threads for everything but index queries, with worker_pool_strategy = single.",
    ),
    KeySpec::works(
        "af1_worker_pool_size",
        Kind::Int(1, 1024),
        "2",
        "Number of threads for walks over partitions: for exchanges, and for copies that move to other nodes.",
    ),
    KeySpec::works(
        "af2_worker_pool_size",
        Kind::Int(1, 1024),
        "1",
        "Number of threads for listings of keys and buckets.",
    ),
    KeySpec::works(
        "af3_worker_pool_size",
        Kind::Int(1, 1024),
        "4",
        "Number of threads for folds that gather trees and clocks.",
    ),
    KeySpec::works("af4_worker_pool_size", Kind::Int(1, 1024), "1", "Number of threads for all other folds."),
    KeySpec::no_meaning(
        "be_worker_pool_size",
        Kind::Int(1, 1024),
        "1",
        "Number of workers for tasks of low priority.",
        POOLS,
    ),
    KeySpec::no_meaning(
        "metadata_cache_size",
        Kind::Text,
        "off",
        "Memory for a cache of object metadata.",
        "metadata is read from the operating system's page cache",
    ),
];
