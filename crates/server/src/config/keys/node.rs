//! The keys of the node itself: its name, directories, listeners, logs and limits.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const INT_MAX: i64 = i64::MAX;
const NO_ERLANG: &str = "there is no Erlang virtual machine here";
const HTTPS: &str = "HTTPS and security";
const OLD_LOGS: &str = "Riak itself replaced the log.* keys by logger.* in 3.2: use those";
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
        "The number of partitions that the keys are spread over. Fixed with the first start of a data directory.",
    ),
    KeySpec::works("platform_data_dir", Kind::Path, "./data", "The directory below which the node keeps everything."),
    KeySpec::works("platform_log_dir", Kind::Path, "$(platform_data_dir)/log", "The directory of the log files."),
    KeySpec::own(
        "platform_backup_dir",
        Kind::Path,
        "$(platform_data_dir)-backups",
        "The directory below which 'ombak admin backup' writes, and nowhere else; symbolic links are resolved before a \
         path is judged. It must lie outside of platform_data_dir and of the directories of the stores. On the same file \
         system as those, backups are hard links and take next to no space. It is created with the first backup.",
    ),
    KeySpec::no_meaning(
        "platform_bin_dir",
        Kind::Path,
        "",
        "Where Riak's programs are.",
        "ombak is one program and needs no directory for it",
    ),
    KeySpec::no_meaning(
        "platform_etc_dir",
        Kind::Path,
        "",
        "Where Riak's configuration is.",
        "name the file with --config or OMBAK_CONFIG",
    ),
    KeySpec::no_meaning(
        "platform_lib_dir",
        Kind::Path,
        "",
        "Where Riak's libraries are.",
        "ombak is one program and needs no libraries",
    ),
    KeySpec::works(
        "listener.http.$name",
        Kind::Address,
        "127.0.0.1:8098",
        "An address on which HTTP is served. NAME is any word; each further name adds a listener. The default holds for \
         the name 'internal' as long as no other is set.",
    ),
    KeySpec::works(
        "listener.protobuf.$name",
        Kind::Address,
        "127.0.0.1:8087",
        "An address on which Protocol Buffers are served. NAME is any word; each further name adds a listener. The \
         default holds for the name 'internal' as long as no other is set.",
    ),
    KeySpec::not_yet("listener.https.$name", Kind::Address, "", "An address on which HTTPS is served.", HTTPS),
    KeySpec::works(
        "protobuf.backlog",
        Kind::Int(1, 65_535),
        "128",
        "Connections that may wait to be accepted, for either kind of listener.",
    ),
    KeySpec::works("protobuf.nagle", Kind::Flag, "off", "Whether the kernel may hold back small packets."),
    KeySpec::works("protobuf.keepalive", Kind::Flag, "on", "Whether the kernel probes idle connections."),
    KeySpec::own(
        "protobuf.max_connections",
        Kind::Int(1, 1_000_000),
        "8192",
        "Protocol Buffers connections at once; further ones are closed at once.",
    ),
    KeySpec::own(
        "http.max_connections",
        Kind::Int(1, 1_000_000),
        "4096",
        "HTTP connections at once; further ones are closed at once.",
    ),
    KeySpec::own(
        "http.header_timeout",
        Kind::Duration,
        "60s",
        "How long a client may take to send the headers of a request; also how long an idle connection is kept.",
    ),
    KeySpec::own(
        "http.allowed_origins",
        Kind::Origins,
        "",
        "Origins whose web pages may write, beside pages of the interface itself. A write with another 'Origin', or with \
         'Origin: null', is answered 403. Programs that are no browsers send no 'Origin' and are not concerned.",
    ),
    KeySpec::own(
        "http.allowed_hosts",
        Kind::HostNames,
        "",
        "Names by which requests may call a listener on a loopback address, beside localhost and loopback addresses. A \
         request whose 'Host' is another name is answered 403: a web page could come here by making its own name point \
         to 127.0.0.1. Needed for a proxy on this machine that passes on the name by which it was called. Not checked \
         as long as a listener serves all addresses (0.0.0.0 or [::]).",
    ),
    KeySpec::own("request_timeout", Kind::Duration, "60s", "Time limit of requests that name none."),
    KeySpec::own(
        "shutdown_timeout",
        Kind::Duration,
        "10s",
        "How long requests under way may take to finish when the node stops. The process ends 20 seconds later at the \
         latest, whatever still runs; the next start then is one as after a crash.",
    ),
    KeySpec::works(
        "max_concurrent_requests",
        Kind::Int(1, 10_000_000),
        "50000",
        "Requests under way at once; further ones are answered 'overload'.",
    ),
    KeySpec::own(
        "request_memory.percent",
        Kind::Percent,
        "15",
        "Share of the machine's memory (or of what this process may have of it) for all requests and answers in flight \
         together, over both interfaces; at least 256MB. Where it is exhausted, connections whose clients neither send \
         nor read for a second are ended first, then requests are answered 'overload'. Each connection may have 32KB \
         beside it.",
    ),
    KeySpec::own("request_memory", Kind::ByteSize, "", "The same in bytes; goes before the percentage."),
    KeySpec::own("io_threads", Kind::Int(1, 1024), "8", "Threads that wait for disks."),
    KeySpec::works(
        "logger.level",
        Kind::Choice(LEVELS),
        "info",
        "The least severe messages that are logged. 'notice' counts as info; 'critical' and above as error. 'ombak admin \
         set logger.level=debug' changes it while the node runs, until the node stops.",
    ),
    KeySpec::works(
        "logger.file",
        Kind::Path,
        "$(platform_log_dir)/console.log",
        "The log file: one JSON object a line. SIGHUP makes the node reopen it, for programs that rotate logs from outside.",
    ),
    KeySpec::own(
        "logger.stderr",
        Kind::Flag,
        "on",
        "Whether log messages go to standard error as well, as text. Why a node does not start is said there in any case.",
    ),
    KeySpec::works("logger.max_files", Kind::Int(1, 1000), "10", "Log files that are kept, the current one included."),
    KeySpec::works("logger.max_file_size", Kind::ByteSize, "1MB", "Size at which a new log file is begun."),
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
    KeySpec::not_yet("ssl.certfile", Kind::Path, "", "The certificate of this node.", HTTPS),
    KeySpec::not_yet("ssl.keyfile", Kind::Path, "", "The private key of this node.", HTTPS),
    KeySpec::not_yet("ssl.cacertfile", Kind::Path, "", "The authorities that sign client certificates.", HTTPS),
    KeySpec::not_yet("tls_protocols.sslv3", Kind::Flag, "off", "Whether SSL 3 is allowed.", HTTPS),
    KeySpec::not_yet("tls_protocols.tlsv1", Kind::Flag, "off", "Whether TLS 1.0 is allowed.", HTTPS),
    KeySpec::not_yet("tls_protocols.tlsv1.1", Kind::Flag, "off", "Whether TLS 1.1 is allowed.", HTTPS),
    KeySpec::not_yet("tls_protocols.tlsv1.2", Kind::Flag, "on", "Whether TLS 1.2 is allowed.", HTTPS),
    KeySpec::not_yet("tls_protocols.tlsv1.3", Kind::Flag, "on", "Whether TLS 1.3 is allowed.", HTTPS),
    KeySpec::not_yet("honor_cipher_order", Kind::Flag, "off", "Whether the node's order of ciphers counts.", HTTPS),
    KeySpec::not_yet("check_crl", Kind::Flag, "on", "Whether revoked certificates are refused.", HTTPS),
    KeySpec::no_meaning(
        "secure_referer_check",
        Kind::Flag,
        "on",
        "Whether requests with a foreign Referer are refused.",
        "the check is always on where it matters",
    ),
    KeySpec::not_yet(
        "permit_insecure_http_ops",
        Kind::Flag,
        "off",
        "Whether HTTP without TLS is served while security is on.",
        HTTPS,
    ),
    KeySpec::no_meaning("distributed_cookie", Kind::Text, "riak", "The password between Erlang nodes.", NO_ERLANG),
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
        "The version of Riak CS that uses this node, 20100 for 2.1.0 for instance: storage_backend = prefix_multi sets \
         itself up for it, blocks (buckets that begin with 0b:) in bitcask and all else in leveldb.",
    ),
];
