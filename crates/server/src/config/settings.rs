//! The typed settings that a node is built from.

use super::backend::BackendSettings;
use super::client_tls::{ClientTlsConfig, client_tls};
use super::effective::Effective;
use super::functions::FunctionSettings;
use super::host_port::HostPort;
use super::peers::{PeerListen, peer_certificates, peer_listener, peer_request_lifetime, peer_secret_file, peers};
use super::problem::Problem;
use super::reader::{Reader, mismatch};
use super::request_memory::request_memory_bytes;
use super::search::SearchSettings;
use super::vain;
use super::value::Value;
use ombak_api::security::AddressRange;
use ombak_api::{JobClass, JobSwitches};
use ombak_cluster::{Detection, Speaks};
use ombak_key_queues::KeyQueuesConfig;
use ombak_kv::{
    DeleteMode, KeepTrees, ObjectLimits, PoolStrategy, QueryConfig, ReadRepairLimits, ScrubConfig, TransferConfig,
    TreesConfig, WithoutMajority, WorkerPools,
};
use ombak_repair::ExchangeConfig;
use ombak_tls::CertificateFiles;
use ombak_types::PropMap;
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// An address to listen on, with the key that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The key, for example `listener.http.internal`.
    pub key: String,
    /// The address.
    pub address: SocketAddr,
}

/// Where log messages are written, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// The least severe level that is written.
    pub level: LevelFilter,
    /// The path of the current log file.
    pub file: PathBuf,
    /// The number of files to keep, including the current one.
    pub files_max: u32,
    /// The size at which a new file is begun, in bytes.
    pub file_bytes_max: u64,
    /// Whether the messages go to standard error as well.
    pub to_stderr: bool,
}

/// Where the audit log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// The path of the current file for what administration changes.
    pub file: PathBuf,
    /// The path of the current file for what is refused.
    pub refusals_file: PathBuf,
    /// The number of files to keep of each, including the current one.
    pub files_max: u32,
    /// The size at which a new file is begun, in bytes.
    pub file_bytes_max: u64,
}

impl AuditSettings {
    fn of_node(from: &Reader<'_>) -> Result<Option<Self>, Problem> {
        let settings = Self {
            file: from.text("audit.file")?.into(),
            refusals_file: from.text("audit.refusals_file")?.into(),
            files_max: from.count("audit.max_files")?,
            file_bytes_max: from.bytes("audit.max_file_size")?,
        };
        Ok(from.flag("audit.log")?.then_some(settings))
    }
}

/// The typed settings that a node is built from.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is the key of nearly the same name; the registry documents it")]
pub struct Settings {
    pub node_name: String,
    pub data_dir: PathBuf,
    pub backup_dir: PathBuf,
    pub ring_size: u32,
    pub http: Vec<Listen>,
    pub https: Vec<Listen>,
    pub pb: Vec<Listen>,
    /// `None` if clients cannot use TLS.
    pub client_tls: Option<ClientTlsConfig>,
    pub peer: Option<PeerListen>,
    pub peer_advertised: Option<HostPort>,
    /// Where the nodes listen that this one asks before it serves, if it is new.
    pub peers: Vec<HostPort>,
    /// `None` if certificates alone decide who is let in.
    pub peer_secret_file: Option<PathBuf>,
    pub peer_certificates: Option<CertificateFiles>,
    pub target_n_val: u32,
    pub target_location_n_val: u32,
    pub detection: Detection,
    pub participates_in_coverage: bool,
    pub transfer: TransferConfig,
    pub scrub: ScrubConfig,
    pub trees: TreesConfig,
    pub exchange: ExchangeConfig,
    pub without_majority: WithoutMajority,
    pub speaks: Speaks,
    pub read_repair: ReadRepairLimits,
    /// How old a request between nodes may become.
    pub peer_request_lifetime: Duration,
    pub backlog: i32,
    pub http_connections_max: usize,
    pub pb_connections_max: usize,
    pub http_header_timeout: Duration,
    pub http_allowed_origins: Vec<String>,
    pub http_allowed_hosts: Vec<String>,
    /// From where statistics are read without a user while security is on.
    pub monitoring_addresses: Vec<AddressRange>,
    pub pb_nagle: bool,
    pub pb_keepalive: bool,
    pub request_timeout: Duration,
    pub shutdown_timeout: Duration,
    pub requests_max: usize,
    pub request_memory_bytes: u64,
    pub io_threads: usize,
    pub worker_pools: WorkerPools,
    pub jobs: JobSwitches,
    pub limits: ObjectLimits,
    pub delete_mode: DeleteMode,
    pub queries: QueryConfig,
    /// Full-text search.
    pub search: SearchSettings,
    /// The queues of keys that folds erase, reap and repair.
    pub key_queues: KeyQueuesConfig,
    /// From how long on a request is logged as slow.
    pub slow_request: Option<Duration>,
    pub default_props: PropMap,
    pub functions: FunctionSettings,
    pub backend: BackendSettings,
    pub log: LogSettings,
    pub audit: Option<AuditSettings>,
}

impl Settings {
    /// Converts the values in force, and checks rules that concern several keys together.
    pub fn new(from: &Effective) -> Result<Self, Vec<Problem>> {
        let settings = Self::typed(&Reader::new(from)).map_err(|p| vec![p])?;
        let mut problems = vain::refusals(from);
        problems.extend(settings.contradictions());
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    fn typed(from: &Reader<'_>) -> Result<Self, Problem> {
        Ok(Self {
            node_name: from.text("nodename")?,
            data_dir: from.text("platform_data_dir")?.into(),
            backup_dir: from.text("platform_backup_dir")?.into(),
            ring_size: from.count("ring_size")?,
            http: from.listeners("listener.http.$name")?,
            https: from.listeners("listener.https.$name")?,
            pb: from.listeners("listener.protobuf.$name")?,
            client_tls: client_tls(from)?,
            peer: peer_listener(from)?,
            peer_advertised: match from.optional("cluster.advertised_address") {
                Some(Value::Host(address)) => Some(address.clone()),
                _ => None,
            },
            peers: peers(from)?,
            peer_secret_file: peer_secret_file(from)?,
            peer_certificates: peer_certificates(from)?,
            target_n_val: from.count("target_n_val")?,
            target_location_n_val: from.count("target_location_n_val")?,
            detection: detection(from)?,
            participates_in_coverage: from.flag("participate_in_coverage")?,
            transfer: TransferConfig {
                bytes_per_second: from.bytes("handoff.bytes_per_second")?,
                concurrency: from.count("transfer_limit")?,
                foreign_bytes_max: from.bytes("handoff.hinted_bytes_max")?,
                gives: from.flag("handoff.outbound")?,
                takes: from.flag("handoff.inbound")?,
            },
            scrub: ScrubConfig {
                is_enabled: from.flag("scrub.enabled")?,
                interval: from.duration("scrub.interval")?,
                bytes_per_second_max: from.bytes("scrub.bytes_per_second_max")?,
            },
            exchange: exchange(from)?,
            without_majority: match from.text("cluster.conditional_put_without_majority")?.as_str() {
                "api_only" => WithoutMajority::ApiOnly,
                _ => WithoutMajority::Refuse,
            },
            speaks: match from.text("cluster.speaks")?.as_str() {
                "previous" => Speaks::Version1,
                _ => Speaks::Everything,
            },
            read_repair: ReadRepairLimits { log: from.flag("read_repair_log")?, ..ReadRepairLimits::default() },
            peer_request_lifetime: peer_request_lifetime(from)?,
            backlog: from.count("protobuf.backlog")?,
            http_connections_max: from.count("http.max_connections")?,
            pb_connections_max: from.count("protobuf.max_connections")?,
            pb_nagle: from.flag("protobuf.nagle")?,
            pb_keepalive: from.flag("protobuf.keepalive")?,
            http_header_timeout: from.duration("http.header_timeout")?,
            http_allowed_origins: from.words("http.allowed_origins")?,
            http_allowed_hosts: from.words("http.allowed_hosts")?,
            monitoring_addresses: monitoring_addresses(from)?,
            request_timeout: from.duration("request_timeout")?,
            shutdown_timeout: from.duration("shutdown_timeout")?,
            requests_max: from.count("max_concurrent_requests")?,
            request_memory_bytes: request_memory_bytes(from)?,
            io_threads: from.count("io_threads")?,
            worker_pools: worker_pools(from)?,
            jobs: jobs(from)?,
            limits: ObjectLimits {
                bytes_max: from.bytes("object.size.maximum")?,
                bytes_warn: from.bytes("object.size.warning_threshold")?,
                siblings_max: from.count("object.siblings.maximum")?,
                siblings_warn: from.count("object.siblings.warning_threshold")?,
            },
            delete_mode: delete_mode(from)?,
            queries: QueryConfig {
                timeout: Duration::from_millis(from.count("secondary_index_timeout")?),
                shows_tombstones: from.flag("dollarkey_readtombs")?,
                logs: from.flag("log_index_fsm")?,
                has_empty_folds: trees(from) == Some("passive"),
            },
            search: SearchSettings::of_node(from)?,
            key_queues: KeyQueuesConfig {
                erase_keys_max: from.count("eraser_overflow_limit")?,
                reap_keys_max: from.count("reaper_overflow_limit")?,
                repair_keys_max: from.count("reader_overflow_limit")?,
                keys_per_second: from.count("key_queues.keys_per_second")?,
            },
            trees: kept_trees(from)?,
            slow_request: slow_request(from.optional("log.slow_request")),
            default_props: default_props(from)?,
            functions: FunctionSettings::of_node(from)?,
            backend: BackendSettings::of_node(from)?,
            log: LogSettings {
                level: log_level(&from.text("logger.level")?),
                file: from.text("logger.file")?.into(),
                files_max: from.count("logger.max_files")?,
                file_bytes_max: from.bytes("logger.max_file_size")?,
                to_stderr: from.flag("logger.stderr")?,
            },
            audit: AuditSettings::of_node(from)?,
        })
    }

    /// The listeners for clients.
    pub fn for_clients(&self) -> impl Iterator<Item = &Listen> {
        self.http.iter().chain(&self.https).chain(&self.pb)
    }

    fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let for_clients = self.for_clients().map(|on| (&on.key, on.address));
        let peer = self.peer.as_ref().and_then(|peer| Some((&peer.key, peer.on.address()?)));
        let listeners: Vec<(&String, SocketAddr)> = for_clients.chain(peer).collect();
        for (i, (key, address)) in listeners.iter().enumerate() {
            if let Some((other, _)) = listeners[..i].iter().find(|(_, other)| other == address && address.port() != 0) {
                problems.push(Problem::whole(format!("{other} and {key} are both {address}")));
            }
        }
        if let Some((key, address)) = peer.filter(|(_, address)| address.ip().is_unspecified())
            && self.peer_advertised.is_none()
        {
            problems.push(Problem::whole(format!(
                "{key} = {address} serves all addresses: set cluster.advertised_address to the one at which other nodes \
                 reach it"
            )));
        }
        if let Some(advertised) = self.peer_advertised.as_ref().and_then(HostPort::address)
            && advertised.ip().is_unspecified()
        {
            problems.push(Problem::whole(format!(
                "cluster.advertised_address = {advertised} is no address of one node: name the one at which other nodes \
                 reach this one"
            )));
        }
        if self.backup_dir.starts_with(&self.data_dir) {
            let what =
                "platform_backup_dir lies in platform_data_dir: backups belong outside of what they are backups of";
            problems.push(Problem::whole(what));
        }
        problems.extend(self.backend.contradictions());
        if self.log.file_bytes_max == 0 {
            problems.push(Problem::whole("logger.max_file_size must be more than 0"));
        }
        if let Some(audit) = &self.audit {
            if audit.file_bytes_max == 0 {
                problems.push(Problem::whole("audit.max_file_size must be more than 0"));
            }
            let files = [
                ("audit.file", &audit.file),
                ("audit.refusals_file", &audit.refusals_file),
                ("logger.file", &self.log.file),
            ];
            for (at, (key, file)) in files.iter().enumerate() {
                if let Some((other, _)) = files[..at].iter().find(|(_, other)| other == file) {
                    let file = file.display();
                    let what = format!("{other} and {key} are both {file}: give each log a file of its own");
                    problems.push(Problem::whole(what));
                }
            }
        }
        problems
    }
}

/// The times of failure detection.
fn detection(from: &Reader<'_>) -> Result<Detection, Problem> {
    let period = from.duration("cluster.probe_period")?;
    let suspicion = from.duration("cluster.suspicion_time")?;
    let stall = from.duration("cluster.request_stall_time")?;
    Detection::with_times(period, suspicion, stall)
        .map_err(|why| Problem::whole(format!("the times cluster.* of failure detection do not fit: {why}")))
}

fn jobs(from: &Reader<'_>) -> Result<JobSwitches, Problem> {
    let mut jobs = JobSwitches::default();
    for class in JobClass::ALL {
        jobs = jobs.with(class, from.flag(class.config_key())?);
    }
    Ok(jobs)
}

/// What the configuration says of the newer of Riak's two systems, if it says anything.
fn trees<'a>(from: &'a Reader<'_>) -> Option<&'a str> {
    match from.optional("tictacaae_active") {
        Some(Value::Text(word)) => Some(word),
        _ => None,
    }
}

/// Which of Riak's trees the node keeps. Without a word about them, it keeps those that folds ask
/// for.
fn kept_trees(from: &Reader<'_>) -> Result<TreesConfig, Problem> {
    // A century is never, and can be added to a time.
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
    Ok(TreesConfig {
        keep: match trees(from) {
            Some("passive") => KeepTrees::Never,
            Some(_) => KeepTrees::Always,
            None => KeepTrees::WhenAsked,
        },
        memory_bytes_max: from.bytes("kept_trees.memory")?,
        rebuild_wait: LONGEST
            .min(Duration::from_secs(from.count::<u64>("tictacaae_rebuildwait")?.saturating_mul(3_600))),
        rebuild_delay: LONGEST.min(Duration::from_secs(from.count("tictacaae_rebuilddelay")?)),
        ..TreesConfig::default()
    })
}

/// How exchanges with other primaries run. Each of Riak's two systems switches them on.
fn exchange(from: &Reader<'_>) -> Result<ExchangeConfig, Problem> {
    let tick = || from.count("tictacaae_exchangetick").map(Duration::from_millis);
    let interval = from.optional_duration("exchange.interval").map_or_else(tick, Ok)?;
    Ok(ExchangeConfig {
        begins: from.text("anti_entropy")? != "passive" || trees(from) == Some("active"),
        interval: interval.max(Duration::from_secs(1)),
        concurrency: from.count("anti_entropy.concurrency_limit")?,
        bytes_per_second: from.bytes("exchange.bytes_per_second")?,
        ..ExchangeConfig::default()
    })
}

/// The pools of threads for what no get or put waits for.
fn worker_pools(from: &Reader<'_>) -> Result<WorkerPools, Problem> {
    Ok(WorkerPools {
        strategy: match from.text("worker_pool_strategy")?.as_str() {
            "none" => PoolStrategy::None,
            "single" => PoolStrategy::Single,
            _ => PoolStrategy::Dscp,
        },
        vnode: from.count("worker_pool_size")?,
        node: from.count("node_worker_pool_size")?,
        af1: from.count("af1_worker_pool_size")?,
        af2: from.count("af2_worker_pool_size")?,
        af3: from.count("af3_worker_pool_size")?,
        af4: from.count("af4_worker_pool_size")?,
    })
}

fn delete_mode(from: &Reader<'_>) -> Result<DeleteMode, Problem> {
    Ok(match from.value("delete_mode")? {
        Value::Text(word) if word == "keep" => DeleteMode::Keep,
        Value::Text(_) => DeleteMode::Immediate,
        Value::Duration(after) => DeleteMode::After(*after),
        other => return Err(mismatch("delete_mode", other)),
    })
}

/// The properties of untyped buckets that somebody set. The others keep their built-in values.
fn default_props(from: &Reader<'_>) -> Result<PropMap, Problem> {
    const PREFIX: &str = "buckets.default.";
    let mut props = PropMap::new();
    for setting in from.effective().settings() {
        let Some(name) = setting.key.strip_prefix(PREFIX) else { continue };
        if setting.origin == super::Origin::Default {
            continue;
        }
        let value = match name {
            "merge_strategy" => json!(from.text(&setting.key)? == "2"),
            "precommit" | "postcommit" => hooks(&from.text(&setting.key)?),
            _ => from.prop(&setting.key)?,
        };
        let name = if name == "merge_strategy" { "dvv_enabled" } else { name };
        props.insert(name.to_owned(), value);
    }
    Ok(props)
}

fn hooks(text: &str) -> serde_json::Value {
    let hook = |hook: &str| hook.split_once(':').map(|(module, function)| json!({"mod": module, "fun": function}));
    text.split_whitespace().filter_map(hook).collect()
}

/// From how long on a request is slow, as a value of `log.slow_request` says; `None`: never.
pub fn slow_request(value: Option<&Value>) -> Option<Duration> {
    match value {
        Some(Value::Duration(limit)) => Some(*limit).filter(|limit| !limit.is_zero()),
        _ => None,
    }
}

/// The log level that a word for `logger.level` stands for.
pub fn log_level(name: &str) -> LevelFilter {
    match name {
        "debug" => LevelFilter::DEBUG,
        "info" | "notice" => LevelFilter::INFO,
        "warning" => LevelFilter::WARN,
        "none" => LevelFilter::OFF,
        _ => LevelFilter::ERROR,
    }
}

fn monitoring_addresses(from: &Reader<'_>) -> Result<Vec<AddressRange>, Problem> {
    // The values have been checked when the configuration was read.
    Ok(from.words("monitoring.allowed_addresses")?.iter().filter_map(|range| range.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::Overrides;
    use super::*;
    use ombak_script::Limits;
    use ombak_storage::JournalConfig;
    use std::path::Path;

    fn settings(text: &str) -> Result<Settings, Vec<Problem>> {
        Settings::new(&Effective::merge(Some((Path::new("x.conf"), text)), &Overrides::default())?)
    }

    #[test]
    fn the_defaults_are_riaks() {
        let s = settings("").expect("defaults");
        assert_eq!((s.node_name.as_str(), s.ring_size, s.requests_max), ("riak@127.0.0.1", 64, 50_000));
        assert_eq!(s.limits, ObjectLimits::default());
        assert_eq!(s.delete_mode, DeleteMode::After(Duration::from_secs(3)));
        assert!(s.default_props.is_empty());
        assert_eq!(s.jobs, JobSwitches::default());
        assert_eq!((s.transfer, s.without_majority), (TransferConfig::default(), WithoutMajority::Refuse));
        assert!(!s.read_repair.log);
        assert_eq!(s.scrub, ScrubConfig { is_enabled: true, ..ScrubConfig::default() });
        assert_eq!(s.exchange, ExchangeConfig::default());
        let BackendSettings::Bitcask(disk) = s.backend else { panic!("bitcask is the default") };
        assert_eq!(disk.data_root, Path::new("./data/bitcask"));
        let journal = JournalConfig { disk_reserve_bytes: 64 << 20, ..JournalConfig::default() };
        assert_eq!(format!("{:?}", disk.journal), format!("{journal:?}"));
    }

    #[test]
    fn the_pools_of_workers_are_riaks() {
        let pools = |text: &str| settings(text).expect("valid").worker_pools;
        assert_eq!(pools(""), WorkerPools::default());
        let all = "worker_pool_strategy = single\nworker_pool_size = 7\nnode_worker_pool_size = 8\n\
                   af1_worker_pool_size = 1\naf2_worker_pool_size = 2\naf3_worker_pool_size = 3\naf4_worker_pool_size = 6";
        let expected =
            WorkerPools { strategy: PoolStrategy::Single, vnode: 7, node: 8, af1: 1, af2: 2, af3: 3, af4: 6 };
        assert_eq!(pools(all), expected);
        assert_eq!(pools("worker_pool_strategy = none").strategy, PoolStrategy::None);
        assert!(settings("af4_worker_pool_size = 0").is_err());
    }

    #[test]
    fn either_of_riaks_systems_switches_exchanges_on() {
        let exchange = |text: &str| settings(text).expect("valid").exchange;
        assert_eq!(exchange(""), ExchangeConfig::default());
        assert!(!exchange("anti_entropy = passive").begins);
        assert!(exchange("anti_entropy = passive\ntictacaae_active = active").begins);
        let riaks = exchange("anti_entropy = active-debug\ntictacaae_exchangetick = 60000");
        assert_eq!((riaks.begins, riaks.interval), (true, Duration::from_secs(60)));
        let own = exchange(
            "tictacaae_exchangetick = 60000\nexchange.interval = 2m\nexchange.bytes_per_second = 1MB\n\
             anti_entropy.concurrency_limit = 5",
        );
        assert_eq!((own.interval, own.bytes_per_second, own.concurrency), (Duration::from_secs(120), 1 << 20, 5));
        assert_eq!(exchange("exchange.interval = 1ms").interval, Duration::from_secs(1));
    }

    #[test]
    fn what_is_set_arrives() {
        let s = settings(
            "delete_mode = keep\n\
             buckets.default.n_val = 5\nbuckets.default.w = all\nbuckets.default.merge_strategy = 2\n\
             buckets.default.allow_mult = true\nbuckets.default.postcommit = a:b c:d\n\
             cluster.job.riak_kv.list_keys = disabled\nlogger.level = warning\n\
             transfer_limit = 0\nhandoff.inbound = off\nhandoff.bytes_per_second = 5MB\n\
             handoff.hinted_bytes_max = 1GB\nread_repair_log = on\n\
             scrub.enabled = off\nscrub.interval = 1w\nscrub.bytes_per_second_max = 0\n\
             cluster.conditional_put_without_majority = api_only\ncluster.speaks = previous",
        )
        .expect("valid");
        assert_eq!(s.delete_mode, DeleteMode::Keep);
        assert!(!s.jobs.is_enabled(JobClass::ListKeys) && s.jobs.is_enabled(JobClass::StreamListKeys));
        assert_eq!(s.log.level, LevelFilter::WARN);
        let transfer = TransferConfig {
            bytes_per_second: 5 << 20,
            concurrency: 0,
            foreign_bytes_max: 1 << 30,
            gives: true,
            takes: false,
        };
        assert_eq!((s.transfer, s.without_majority, s.read_repair.log), (transfer, WithoutMajority::ApiOnly, true));
        let week = Duration::from_secs(7 * 86_400);
        assert_eq!(s.scrub, ScrubConfig { is_enabled: false, interval: week, bytes_per_second_max: 0 });
        assert_eq!((s.speaks, settings("").expect("defaults").speaks), (Speaks::Version1, Speaks::Everything));
        let expected = json!({"n_val": 5, "w": "all", "allow_mult": true, "dvv_enabled": true,
            "postcommit": [{"mod": "a", "fun": "b"}, {"mod": "c", "fun": "d"}]});
        assert_eq!(serde_json::Value::Object(s.default_props), expected);
    }

    #[test]
    fn limits_of_functions_arrive() {
        let expected = FunctionSettings {
            map_threads: 3,
            reduce_threads: 4,
            hook_threads: 5,
            memory_bytes_max: 16 << 20,
            stack_bytes_max: 2 << 20,
            call_time_max: Duration::from_secs(7),
            allows_anonymous: true,
            source_dir: Some("./functions".into()),
        };
        let s = settings(
            "javascript.map_pool_size = 3\njavascript.reduce_pool_size = 4\njavascript.hook_pool_size = 5\n\
             javascript.maximum_heap_size = 16MB\njavascript.maximum_stack_size = 2MB\n\
             javascript.call_time = 7s\njavascript.anonymous_functions = on\njavascript.source_dir = ./functions",
        );
        assert_eq!(s.expect("valid").functions, expected);
        assert_eq!(settings("").expect("defaults").functions.limits(), Limits::default());
    }

    #[test]
    fn certificates_between_nodes_are_complete_and_take_the_place_of_a_secret_that_nobody_named() {
        let plain = settings("").expect("defaults");
        assert_eq!(plain.peer_certificates, None);
        assert_eq!(plain.peer_secret_file.as_deref(), Some(Path::new("./data/cluster.secret")));
        let files = "cluster.ssl.certfile = c\ncluster.ssl.keyfile = k\ncluster.ssl.cacertfile = a\n";
        let secured = settings(files).expect("complete");
        let (certificate, key, authorities) = ("c".into(), "k".into(), "a".into());
        assert_eq!(secured.peer_certificates, Some(CertificateFiles { certificate, key, authorities }));
        assert_eq!(secured.peer_secret_file, None);
        let both = settings(&format!("{files}cluster.secret_file = s")).expect("complete");
        assert_eq!(both.peer_secret_file.as_deref(), Some(Path::new("s")));
        let problems = settings("cluster.ssl.certfile = c\ncluster.ssl.cacertfile = a").expect_err("incomplete");
        assert!(problems[0].to_string().starts_with("cluster.ssl.keyfile has no value"), "{problems:?}");
    }

    #[test]
    fn contradictions_are_named() {
        let problems = settings("cluster.probe_period = 2s").expect_err("longer than the suspicion");
        assert!(problems[0].to_string().contains("suspicion must be at least as long"), "{problems:?}");
        let problems = settings("cluster.request_stall_time = 100ms").expect_err("too short");
        assert!(problems[0].to_string().contains("stall_max must be"), "{problems:?}");
        let problems = settings("listener.http.a = 127.0.0.1:5\nlistener.protobuf.b = 127.0.0.1:5").expect_err("clash");
        assert_eq!(problems[0].to_string(), "listener.http.a and listener.protobuf.b are both 127.0.0.1:5");
        let problems = settings("platform_data_dir = /d\nplatform_backup_dir = /d/backups").expect_err("inside");
        assert!(problems[0].to_string().starts_with("platform_backup_dir lies in platform_data_dir"), "{problems:?}");
        assert!(settings("listener.http.a = 127.0.0.1:0\nlistener.protobuf.b = 127.0.0.1:0").is_ok());
        let problems = settings("listener.http.a = 127.0.0.1:5\nlistener.peer.b = 127.0.0.1:5").expect_err("clash");
        assert_eq!(problems[0].to_string(), "listener.http.a and listener.peer.b are both 127.0.0.1:5");
        for nowhere in ["listener.peer.b = 0.0.0.0:5", "cluster.advertised_address = 0.0.0.0:5"] {
            assert_eq!(settings(nowhere).expect_err("nobody can connect to that").len(), 1, "{nowhere}");
        }
    }

    #[test]
    fn addresses_between_nodes_may_have_names() {
        let s = settings(
            "listener.peer.a = node-1.example:8099\ncluster.advertised_address = 10.0.0.1:8099\n\
             cluster.peers = node-1.example:8099 [::1]:8099",
        );
        let s = s.expect("valid");
        assert_eq!(
            s.peer.map(|peer| (peer.key, peer.on.to_string())),
            Some(("listener.peer.a".into(), "node-1.example:8099".into()))
        );
        assert_eq!(s.peer_advertised.and_then(|at| at.address()), "10.0.0.1:8099".parse().ok());
        assert_eq!(s.peers.iter().map(HostPort::to_string).collect::<Vec<_>>(), ["node-1.example:8099", "[::1]:8099"]);
    }
}
