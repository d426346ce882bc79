//! The keys of the node itself: its name, directories, listeners, logs and limits.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const INT_MAX: i64 = i64::MAX;
const NO_ERLANG: &str = "there is no Erlang virtual machine here";
const OLD_LOGS: &str = "Riak 3.2 replaced the log.* keys by logger.* keys; use those";
const LEVELS: &[&str] = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency", "none"];

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "nodename",
        Kind::NodeName,
        "riak@127.0.0.1",
        "The name of this node, as clients and statistics see it.",
    ),
    KeySpec::works(
        "ring_size",
        Kind::PowerOfTwo(8, 1024),
        "64",
        "The number of partitions over which the keys are distributed. It cannot be changed after the first start of \
         a data directory.",
    ),
    KeySpec::works("platform_data_dir", Kind::Path, "./data", "The directory in which the node keeps all of its data."),
    KeySpec::works("platform_log_dir", Kind::Path, "$(platform_data_dir)/log", "The directory of the log files."),
    KeySpec::own(
        "platform_backup_dir",
        Kind::Path,
        "$(platform_data_dir)-backups",
        "The directory in which 'ombak admin backup' writes. Backups to any other place are refused; symbolic links \
         are resolved before the check. It must be outside of platform_data_dir and of the directories of the stores. \
         If it is on the same file system as the stores, backups consist of hard links and take almost no space. The \
         first backup creates the directory.",
    ),
    KeySpec::no_meaning(
        "platform_bin_dir",
        Kind::Path,
        "",
        "The directory of Riak's programs.",
        "Ombak is a single program",
    ),
    KeySpec::no_meaning(
        "platform_etc_dir",
        Kind::Path,
        "",
        "The directory of Riak's configuration.",
        "--config or OMBAK_CONFIG names the configuration file",
    ),
    KeySpec::no_meaning(
        "platform_lib_dir",
        Kind::Path,
        "",
        "The directory of Riak's libraries.",
        "Ombak is a single program",
    ),
    KeySpec::works(
        "listener.http.$name",
        Kind::Address,
        "127.0.0.1:8098",
        "An address on which the node serves HTTP. NAME is any word; each further name adds a listener. If no \
         listener is set, there is one with the name 'internal' and the default address.",
    ),
    KeySpec::works(
        "listener.protobuf.$name",
        Kind::Address,
        "127.0.0.1:8087",
        "An address on which the node serves Protocol Buffers. NAME is any word; each further name adds a listener. \
         If no listener is set, there is one with the name 'internal' and the default address.",
    ),
    KeySpec::own(
        "listener.peer.$name",
        Kind::HostToListen,
        "",
        "The address on which the node listens for the other nodes of its cluster, and from which it connects to them. \
         A host name is resolved when the node starts. NAME is any word, and there is at most one such listener. Without it the node is alone: it cannot join other \
         nodes, and they cannot join it. Whoever reaches this address needs the secret of the cluster \
         (cluster.secret_file), or a certificate of its authority (cluster.ssl.certfile). Without certificates, \
         requests between nodes are not encrypted.",
    ),
    KeySpec::works(
        "listener.https.$name",
        Kind::Address,
        "",
        "An address on which the node serves HTTPS. NAME is any word; each further name adds a listener. It needs \
         ssl.certfile and ssl.keyfile. TLS encrypts, and shows clients which node they talk to. It does not decide what \
         they may do.",
    ),
    KeySpec::works(
        "protobuf.backlog",
        Kind::Int(1, 65_535),
        "128",
        "Number of connections that may wait to be accepted, for each listener of either protocol.",
    ),
    KeySpec::works("protobuf.nagle", Kind::Flag, "off", "Whether the kernel may delay small packets to combine them."),
    KeySpec::works("protobuf.keepalive", Kind::Flag, "on", "Whether the kernel probes idle connections."),
    KeySpec::own(
        "protobuf.max_connections",
        Kind::Int(1, 1_000_000),
        "8192",
        "Number of simultaneous Protocol Buffers connections. Further connections are closed immediately.",
    ),
    KeySpec::own(
        "http.max_connections",
        Kind::Int(1, 1_000_000),
        "4096",
        "Number of simultaneous HTTP connections. Further connections are closed immediately.",
    ),
    KeySpec::own(
        "http.header_timeout",
        Kind::Duration,
        "60s",
        "Time limit for sending the headers of a request. It also limits how long an idle connection is kept.",
    ),
    KeySpec::own(
        "http.allowed_origins",
        Kind::Origins,
        "",
        "Origins whose web pages may send writes, in addition to the node's own pages. A write with another 'Origin', \
         or with 'Origin: null', is answered with 403. Programs other than browsers send no 'Origin' and are not \
         affected.",
    ),
    KeySpec::own(
        "http.allowed_hosts",
        Kind::HostNames,
        "",
        "Host names that requests to a listener on a loopback address may have, in addition to localhost and loopback \
         addresses. A request with another 'Host' is answered with 403, because a web page could reach the node by \
         letting its own name point to 127.0.0.1. A proxy on this machine that passes on its own host name needs an \
         entry here. The check is off if a listener serves all addresses (0.0.0.0 or [::]).",
    ),
    KeySpec::own("request_timeout", Kind::Duration, "60s", "Time limit of requests that do not set a limit."),
    KeySpec::own(
        "shutdown_timeout",
        Kind::Duration,
        "10s",
        "Time limit for requests in progress when the node stops. The process ends at most 20 seconds after this \
         limit, even if something still runs; the next start is then like a start after a crash.",
    ),
    KeySpec::works(
        "max_concurrent_requests",
        Kind::Int(1, 10_000_000),
        "50000",
        "Number of gets, puts and deletes that a node works on at the same time, over both protocols and with those that \
         other nodes forward to it. Further ones are answered with 'overload'. Listings, queries and folds do not count: \
         their pools have limits of their own.",
    ),
    KeySpec::own(
        "request_memory.percent",
        Kind::Percent,
        "15",
        "Percentage of the machine's memory, or of this process's memory limit, for all requests and answers in \
         progress together, over both protocols. It is at least 256MB. If the memory is used up, the node first \
         closes connections whose clients have neither sent nor read for a second; then it answers requests with \
         'overload'. Each connection may use 32KB in addition.",
    ),
    KeySpec::own(
        "request_memory",
        Kind::ByteSize,
        "",
        "Memory for all requests and answers in progress together. This key overrides request_memory.percent.",
    ),
    KeySpec::own("io_threads", Kind::Int(1, 1024), "8", "Number of threads that read and write files."),
    KeySpec::works(
        "logger.level",
        Kind::Choice(LEVELS),
        "info",
        "The lowest severity of messages that are logged. 'notice' means info; 'critical' and higher mean error. \
         'ombak admin set logger.level=debug' changes the level of a running node until it stops.",
    ),
    KeySpec::works(
        "logger.file",
        Kind::Path,
        "$(platform_log_dir)/console.log",
        "The log file, with one JSON object on each line. The node reopens the file on SIGHUP, so that another \
         program can rotate it.",
    ),
    KeySpec::own(
        "logger.stderr",
        Kind::Flag,
        "on",
        "Whether log messages also go to standard error, as text. The reason why a node does not start always goes \
         there.",
    ),
    KeySpec::works(
        "logger.max_files",
        Kind::Int(1, 1000),
        "10",
        "Number of log files that are kept, including the current one.",
    ),
    KeySpec::works("logger.max_file_size", Kind::ByteSize, "1MB", "Size at which a new log file is begun."),
    KeySpec::own(
        "audit.log",
        Kind::Flag,
        "on",
        "Whether the node writes who did what from where: refused logins, denied requests, and what administration \
         changes.",
    ),
    KeySpec::own(
        "audit.file",
        Kind::Path,
        "$(platform_log_dir)/audit.log",
        "The file of audit.log for what administration changes, with one JSON object on each line. Only the user of \
         the node may read a new one. The node reopens the file on SIGHUP, so that another program can rotate it.",
    ),
    KeySpec::own(
        "audit.refusals_file",
        Kind::Path,
        "$(platform_log_dir)/refusals.log",
        "The file of audit.log for refused logins and denied requests. Those who are refused decide how much is in it, \
         so it is not the file of audit.file.",
    ),
    KeySpec::own(
        "audit.max_files",
        Kind::Int(1, 1000),
        "10",
        "Number of files that are kept of each of the two, including the current one.",
    ),
    KeySpec::own(
        "audit.max_file_size",
        Kind::ByteSize,
        "10MB",
        "Size at which a new file of audit.log is begun, of either kind.",
    ),
    KeySpec::own(
        "log.slow_request",
        Kind::DurationOr("off"),
        "500ms",
        "Requests that take this long or longer are logged, with where their time went. Requests of clients to this \
         node count, over both protocols. 'off' logs none. 'ombak admin set log.slow_request=100ms' changes the time in \
         a running node until it stops.",
    ),
    KeySpec::no_meaning("logger.**", Kind::Text, "", "Further settings of Erlang's logger.", NO_ERLANG),
    KeySpec::no_meaning("log.**", Kind::Text, "", "The log settings of Riak before 3.2.", OLD_LOGS),
    KeySpec::works("cluster.job.riak_kv.list_buckets", Kind::Flag, "on", "Whether clients may list buckets."),
    KeySpec::works(
        "cluster.job.riak_kv.stream_list_buckets",
        Kind::Flag,
        "on",
        "Whether clients may list buckets as a stream.",
    ),
    KeySpec::works("cluster.job.riak_kv.list_keys", Kind::Flag, "on", "Whether clients may list keys."),
    KeySpec::works(
        "cluster.job.riak_kv.stream_list_keys",
        Kind::Flag,
        "on",
        "Whether clients may list keys as a stream.",
    ),
    KeySpec::works(
        "cluster.job.riak_kv.secondary_index",
        Kind::Flag,
        "on",
        "Whether clients may query secondary indexes.",
    ),
    KeySpec::works(
        "cluster.job.riak_kv.stream_secondary_index",
        Kind::Flag,
        "on",
        "Whether clients may query secondary indexes as a stream.",
    ),
    KeySpec::works(
        "cluster.job.riak_kv.map_reduce",
        Kind::Flag,
        "on",
        "Whether clients may run MapReduce, link walking included.",
    ),
    KeySpec::works(
        "cluster.job.riak_kv.map_reduce_js",
        Kind::Flag,
        "on",
        "Whether clients may run MapReduce with JavaScript.",
    ),
    KeySpec::works("cluster.job.yokozuna.query", Kind::Flag, "on", "Whether clients may run full-text queries."),
    KeySpec::no_meaning(
        "cluster.job.riak_search.query",
        Kind::Flag,
        "on",
        "Whether clients may run queries of the old Riak Search.",
        "Riak dropped the old Riak Search in 3.0",
    ),
    KeySpec::own(
        "accept_missing.security",
        Kind::Flag,
        "off",
        "Whether the node starts although the configuration asks for security that does not exist here: encrypted \
         handoff (handoff.ssl) without cluster.ssl.certfile. Whoever is between the nodes reads everything then.",
    ),
    KeySpec::works(
        "ssl.certfile",
        Kind::Path,
        "",
        "The certificate that the node shows to clients, followed by the intermediate ones, in PEM form. With it and \
         ssl.keyfile, listener.https serves HTTPS, and clients of Protocol Buffers may ask for TLS. The node reads the \
         files ssl.* again on SIGHUP.",
    ),
    KeySpec::works(
        "ssl.keyfile",
        Kind::Path,
        "",
        "The private key of ssl.certfile in PEM form, without a passphrase. Nobody but its owner and its group may read \
         it. It may be ECDSA (P-256, P-384), Ed25519, or RSA with 2048 to 8192 bits.",
    ),
    KeySpec::works(
        "ssl.cacertfile",
        Kind::Path,
        "",
        "The certificates of the authorities that sign client certificates, in PEM form. With it, clients are asked for \
         a certificate, and need none. One that is presented and cannot be verified ends the connection. Without it, \
         clients are asked for none.",
    ),
    KeySpec::own(
        "ssl.crlfile",
        Kind::Path,
        "",
        "The lists of revoked certificates (CRLs) of the authorities in ssl.cacertfile, and of those between them and a \
         client, in PEM form. While check_crl is on, a certificate is refused if the list of its authority is missing or \
         out of date. Nothing is fetched from the network. Without this key, clients are asked for no certificates while \
         check_crl is on.",
    ),
    KeySpec::own(
        "ssl.handshake_timeout",
        Kind::Duration,
        "10s",
        "Time limit of a client for the whole handshake of TLS, over HTTPS and after StartTls.",
    ),
    KeySpec::own(
        "ssl.max_handshakes",
        Kind::Int(1, 1_000_000),
        "512",
        "Number of handshakes of TLS with clients that are under way at the same time. Further ones wait within their \
         time limit.",
    ),
    KeySpec::works(
        "tls_protocols.sslv3",
        Kind::Flag,
        "off",
        "Whether SSL 3 is allowed. It does not exist here: a node with ssl.certfile does not start with 'on'.",
    ),
    KeySpec::works(
        "tls_protocols.tlsv1",
        Kind::Flag,
        "off",
        "Whether TLS 1.0 is allowed. It does not exist here: a node with ssl.certfile does not start with 'on'.",
    ),
    KeySpec::works(
        "tls_protocols.tlsv1.1",
        Kind::Flag,
        "off",
        "Whether TLS 1.1 is allowed. It does not exist here: a node with ssl.certfile does not start with 'on'.",
    ),
    KeySpec::works("tls_protocols.tlsv1.2", Kind::Flag, "on", "Whether clients may use TLS 1.2."),
    KeySpec::works(
        "tls_protocols.tlsv1.3",
        Kind::Flag,
        "on",
        "Whether clients may use TLS 1.3. Riak's default has TLS 1.2 alone.",
    ),
    KeySpec::works(
        "honor_cipher_order",
        Kind::Flag,
        "off",
        "Whether the node's order of ciphers takes precedence over the client's.",
    ),
    KeySpec::works(
        "check_crl",
        Kind::Flag,
        "on",
        "Whether certificates of clients are looked up in the lists of ssl.crlfile, and refused if they are revoked or no \
         list says that they are not.",
    ),
    KeySpec::no_meaning(
        "secure_referer_check",
        Kind::Flag,
        "on",
        "Whether requests with a foreign Referer are refused.",
        "the check is always on where it matters",
    ),
    KeySpec::own(
        "monitoring.allowed_addresses",
        Kind::AddressRanges,
        "",
        "From where /stats and /metrics are read without a user while security is on, also without TLS. Everybody \
         else needs a user.",
    ),
    KeySpec::no_meaning(
        "permit_insecure_http_ops",
        Kind::Flag,
        "off",
        "Whether folds and replication queues are served to everybody while security is on.",
        "they always ask for a permission here: grant it to a user of the program that needs them",
    ),
    KeySpec::no_meaning("distributed_cookie", Kind::Text, "riak", "The shared secret of Erlang nodes.", NO_ERLANG),
    KeySpec::no_meaning(
        "erlang.distribution_buffer_size",
        Kind::ByteSize,
        "32MB",
        "A buffer of the Erlang virtual machine.",
        NO_ERLANG,
    ),
    KeySpec::no_meaning(
        "erlang.async_threads",
        Kind::Int(0, 1024),
        "64",
        "Threads of the Erlang virtual machine.",
        NO_ERLANG,
    ),
    KeySpec::no_meaning(
        "erlang.schedulers.force_wakeup_interval",
        Kind::Int(0, INT_MAX),
        "500",
        "A setting of the Erlang virtual machine.",
        NO_ERLANG,
    ),
    KeySpec::no_meaning(
        "erlang.schedulers.compaction_of_load",
        Kind::Flag,
        "false",
        "A setting of the Erlang virtual machine.",
        NO_ERLANG,
    ),
    KeySpec::no_meaning(
        "erlang.shutdown_time",
        Kind::Duration,
        "10s",
        "How long the Erlang virtual machine may take to stop.",
        "use shutdown_timeout",
    ),
    KeySpec::no_meaning("erlang.**", Kind::Text, "", "Further settings of the Erlang virtual machine.", NO_ERLANG),
    KeySpec::no_meaning(
        "dtrace",
        Kind::Flag,
        "off",
        "Whether DTrace probes are on.",
        "Riak's probes trace its Erlang functions",
    ),
    KeySpec::works(
        "cs_version",
        Kind::Int(20_000, 1_000_000),
        "",
        "The version of Riak CS that uses this node, for example 20100 for 2.1.0. With this key, storage_backend = \
         prefix_multi needs no further keys: blocks (buckets that begin with 0b:) are stored in bitcask, everything \
         else in leveldb.",
    ),
];
