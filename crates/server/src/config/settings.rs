//! What a node is built from: the values in force, typed.

use super::effective::{Effective, Setting};
use super::problem::Problem;
use super::value::Value;
use ombak_api::{JobClass, JobSwitches};
use ombak_kv::{DeleteMode, ObjectLimits};
use ombak_storage::{JournalConfig, MergeConfig, MergePolicy, SyncStrategy};
use ombak_types::PropMap;
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// An address to listen on, with the key that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// `listener.http.internal`, for instance.
    pub key: String,
    /// Where.
    pub address: SocketAddr,
}

/// Where log messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// The least severe messages.
    pub level: LevelFilter,
    /// The current file.
    pub file: PathBuf,
    /// Files that are kept, the current one included.
    pub files_max: u32,
    /// Size of one file, in bytes.
    pub file_bytes_max: u64,
}

/// Which backend, and how.
#[derive(Clone, Debug)]
pub enum BackendSettings {
    /// Append-only files.
    Bitcask {
        /// Directory of the partitions.
        data_root: PathBuf,
        /// Everything else.
        config: JournalConfig,
    },
    /// Nothing survives.
    Memory {
        /// Age at which a value is gone.
        ttl: Option<Duration>,
        /// Bytes of one partition.
        partition_bytes_max: Option<u64>,
    },
}

impl BackendSettings {
    /// The word of `storage_backend`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bitcask { .. } => "bitcask",
            Self::Memory { .. } => "memory",
        }
    }
}

/// What a node is built from.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is the key of nearly the same name; the registry documents it")]
pub struct Settings {
    pub node_name: String,
    pub data_dir: PathBuf,
    pub ring_size: u32,
    pub http: Vec<Listen>,
    pub pb: Vec<Listen>,
    pub backlog: i32,
    pub http_connections_max: usize,
    pub pb_connections_max: usize,
    pub http_header_timeout: Duration,
    pub pb_nagle: bool,
    pub pb_keepalive: bool,
    pub request_timeout: Duration,
    pub shutdown_timeout: Duration,
    pub requests_max: usize,
    pub io_threads: usize,
    pub jobs: JobSwitches,
    pub limits: ObjectLimits,
    pub delete_mode: DeleteMode,
    pub default_props: PropMap,
    pub backend: BackendSettings,
    pub log: LogSettings,
}

impl Settings {
    /// From the values in force; checks what concerns several keys together.
    pub fn new(from: &Effective) -> Result<Self, Vec<Problem>> {
        let settings = Self::typed(&Reader(from)).map_err(|p| vec![p])?;
        let problems = settings.contradictions();
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    fn typed(from: &Reader<'_>) -> Result<Self, Problem> {
        Ok(Self {
            node_name: from.text("nodename")?,
            data_dir: from.text("platform_data_dir")?.into(),
            ring_size: from.count("ring_size")?,
            http: from.listeners("listener.http.$name")?,
            pb: from.listeners("listener.protobuf.$name")?,
            backlog: from.count("protobuf.backlog")?,
            http_connections_max: from.count("http.max_connections")?,
            pb_connections_max: from.count("protobuf.max_connections")?,
            pb_nagle: from.flag("protobuf.nagle")?,
            pb_keepalive: from.flag("protobuf.keepalive")?,
            http_header_timeout: from.duration("http.header_timeout")?,
            request_timeout: from.duration("request_timeout")?,
            shutdown_timeout: from.duration("shutdown_timeout")?,
            requests_max: from.count("max_concurrent_requests")?,
            io_threads: from.count("io_threads")?,
            jobs: jobs(from)?,
            limits: ObjectLimits {
                bytes_max: from.bytes("object.size.maximum")?,
                bytes_warn: from.bytes("object.size.warning_threshold")?,
                siblings_max: from.count("object.siblings.maximum")?,
                siblings_warn: from.count("object.siblings.warning_threshold")?,
            },
            delete_mode: delete_mode(from)?,
            default_props: default_props(from)?,
            backend: backend(from)?,
            log: LogSettings {
                level: level(&from.text("logger.level")?),
                file: from.text("logger.file")?.into(),
                files_max: from.count("logger.max_files")?,
                file_bytes_max: from.bytes("logger.max_file_size")?,
            },
        })
    }

    fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let listeners: Vec<&Listen> = self.http.iter().chain(&self.pb).collect();
        for (i, a) in listeners.iter().enumerate() {
            if let Some(b) = listeners[..i].iter().find(|b| b.address == a.address && a.address.port() != 0) {
                problems.push(Problem::whole(format!("{} and {} are both {}", b.key, a.key, a.address)));
            }
        }
        if let BackendSettings::Bitcask { config, .. } = &self.backend
            && config.file_bytes_max > u64::from(u32::MAX)
        {
            problems.push(Problem::whole("bitcask.max_file_size must be less than 4GB"));
        }
        if self.log.file_bytes_max == 0 {
            problems.push(Problem::whole("logger.max_file_size must be more than 0"));
        }
        problems
    }
}

/// Typed access. A key that is missing or of another type is a mistake in this file; it is reported, not hidden.
struct Reader<'a>(&'a Effective);

impl Reader<'_> {
    fn value(&self, key: &str) -> Result<&Value, Problem> {
        self.0.get(key).ok_or_else(|| Problem::whole(format!("{key} has no value")))
    }

    fn text(&self, key: &str) -> Result<String, Problem> {
        match self.value(key)? {
            Value::Text(text) => Ok(text.clone()),
            other => Err(mismatch(key, other)),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, Problem> {
        match self.value(key)? {
            Value::Flag(on) => Ok(*on),
            other => Err(mismatch(key, other)),
        }
    }

    fn count<T: TryFrom<i64>>(&self, key: &str) -> Result<T, Problem> {
        match self.value(key)? {
            Value::Int(n) => T::try_from(*n).map_err(|_| Problem::whole(format!("{key} = {n} is out of range"))),
            other => Err(mismatch(key, other)),
        }
    }

    fn bytes(&self, key: &str) -> Result<u64, Problem> {
        match self.value(key)? {
            Value::Bytes(n) => Ok(*n),
            other => Err(mismatch(key, other)),
        }
    }

    fn duration(&self, key: &str) -> Result<Duration, Problem> {
        match self.value(key)? {
            Value::Duration(Some(d)) => Ok(*d),
            other => Err(mismatch(key, other)),
        }
    }

    fn optional_duration(&self, key: &str) -> Option<Duration> {
        match self.0.get(key) {
            Some(Value::Duration(d)) => *d,
            _ => None,
        }
    }

    fn listeners(&self, pattern: &str) -> Result<Vec<Listen>, Problem> {
        let listen = |s: &Setting| match &s.value {
            Some(Value::Address(address)) => Ok(Listen { key: s.key.clone(), address: *address }),
            _ => Err(Problem::whole(format!("{} has no address", s.key))),
        };
        self.0.instances(pattern).map(listen).collect()
    }

    /// A property value as JSON: numbers as numbers, words as text.
    fn prop(&self, key: &str) -> Result<serde_json::Value, Problem> {
        match self.value(key)? {
            Value::Int(n) => Ok(json!(n)),
            Value::Text(word) => Ok(json!(word)),
            Value::Flag(on) => Ok(json!(on)),
            other => Err(mismatch(key, other)),
        }
    }
}

fn mismatch(key: &str, value: &Value) -> Problem {
    Problem::whole(format!("{key} = {value} is of an unexpected type"))
}

fn jobs(from: &Reader<'_>) -> Result<JobSwitches, Problem> {
    let mut jobs = JobSwitches::default();
    for class in JobClass::ALL {
        jobs = jobs.with(class, from.flag(class.config_key())?);
    }
    Ok(jobs)
}

fn delete_mode(from: &Reader<'_>) -> Result<DeleteMode, Problem> {
    Ok(match from.value("delete_mode")? {
        Value::Text(word) if word == "keep" => DeleteMode::Keep,
        Value::Text(_) => DeleteMode::Immediate,
        Value::Duration(Some(after)) => DeleteMode::After(*after),
        other => return Err(mismatch("delete_mode", other)),
    })
}

/// The properties of untyped buckets that somebody set: the rest keeps the built-in values.
fn default_props(from: &Reader<'_>) -> Result<PropMap, Problem> {
    const PREFIX: &str = "buckets.default.";
    let mut props = PropMap::new();
    for setting in from.0.settings() {
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

fn backend(from: &Reader<'_>) -> Result<BackendSettings, Problem> {
    if from.text("storage_backend")? == "memory" {
        let partition_bytes_max = from.bytes("memory_backend.max_memory_per_vnode").ok();
        return Ok(BackendSettings::Memory { ttl: from.optional_duration("memory_backend.ttl"), partition_bytes_max });
    }
    let config = JournalConfig {
        sync: match from.text("bitcask.sync.strategy")?.as_str() {
            "o_sync" => SyncStrategy::OSync,
            "interval" => SyncStrategy::Interval(from.duration("bitcask.sync.interval")?),
            _ => SyncStrategy::None,
        },
        file_bytes_max: from.bytes("bitcask.max_file_size")?,
        expiry_secs: from.optional_duration("bitcask.expiry").map(secs),
        expiry_grace_secs: secs(from.duration("bitcask.expiry.grace_time")?),
        merge: merge(from)?,
        open_files_max: from.count("bitcask.max_open_files")?,
        ..JournalConfig::default()
    };
    Ok(BackendSettings::Bitcask { data_root: from.text("bitcask.data_root")?.into(), config })
}

fn merge(from: &Reader<'_>) -> Result<MergeConfig, Problem> {
    Ok(MergeConfig {
        policy: match from.text("bitcask.merge.policy")?.as_str() {
            "never" => MergePolicy::Never,
            "window" => MergePolicy::Window {
                start_hour: from.count("bitcask.merge.window.start")?,
                end_hour: from.count("bitcask.merge.window.end")?,
            },
            _ => MergePolicy::Always,
        },
        utc_offset_secs: from.count::<i32>("bitcask.merge.window.utc_offset_minutes")? * 60,
        trigger_fragmentation_percent: from.count("bitcask.merge.triggers.fragmentation")?,
        trigger_dead_bytes: from.bytes("bitcask.merge.triggers.dead_bytes")?,
        threshold_fragmentation_percent: from.count("bitcask.merge.thresholds.fragmentation")?,
        threshold_dead_bytes: from.bytes("bitcask.merge.thresholds.dead_bytes")?,
        threshold_small_file_bytes: from.bytes("bitcask.merge.thresholds.small_file")?,
        bytes_max: from.bytes("bitcask.max_merge_size")?,
        check_interval_secs: secs(from.duration("bitcask.merge_check_interval")?),
        check_jitter_percent: from.count("bitcask.merge_check_jitter")?,
        io_bytes_per_sec: from.bytes("bitcask.merge.bytes_per_second")?.max(1),
    })
}

fn secs(d: Duration) -> u32 {
    u32::try_from(d.as_secs()).unwrap_or(u32::MAX)
}

fn level(name: &str) -> LevelFilter {
    match name {
        "debug" => LevelFilter::DEBUG,
        "info" | "notice" => LevelFilter::INFO,
        "warning" => LevelFilter::WARN,
        "none" => LevelFilter::OFF,
        _ => LevelFilter::ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Overrides;
    use super::*;
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
        let BackendSettings::Bitcask { data_root, config } = s.backend else { panic!("bitcask is the default") };
        assert_eq!(data_root, Path::new("./data/bitcask"));
        assert_eq!(format!("{config:?}"), format!("{:?}", JournalConfig::default()));
    }

    #[test]
    fn what_is_set_arrives() {
        let s = settings(
            "delete_mode = keep\nbitcask.sync.strategy = interval\nbitcask.sync.interval = 250ms\nbitcask.expiry = 1d\n\
             buckets.default.n_val = 5\nbuckets.default.w = all\nbuckets.default.merge_strategy = 2\n\
             buckets.default.allow_mult = true\nbuckets.default.precommit = a:b c:d\n\
             cluster.job.riak_kv.list_keys = disabled\nlogger.level = warning",
        )
        .expect("valid");
        assert_eq!(s.delete_mode, DeleteMode::Keep);
        assert!(!s.jobs.is_enabled(JobClass::ListKeys) && s.jobs.is_enabled(JobClass::StreamListKeys));
        assert_eq!(s.log.level, LevelFilter::WARN);
        let expected = json!({"n_val": 5, "w": "all", "allow_mult": true, "dvv_enabled": true,
            "precommit": [{"mod": "a", "fun": "b"}, {"mod": "c", "fun": "d"}]});
        assert_eq!(serde_json::Value::Object(s.default_props), expected);
        let BackendSettings::Bitcask { config, .. } = s.backend else { panic!("bitcask") };
        assert_eq!(config.sync, SyncStrategy::Interval(Duration::from_millis(250)));
        assert_eq!(config.expiry_secs, Some(86_400));
    }

    #[test]
    fn contradictions_are_named() {
        let problems = settings("listener.http.a = 127.0.0.1:5\nlistener.protobuf.b = 127.0.0.1:5").expect_err("clash");
        assert_eq!(problems[0].to_string(), "listener.http.a and listener.protobuf.b are both 127.0.0.1:5");
        assert!(settings("bitcask.max_file_size = 5GB").is_err());
        assert!(settings("listener.http.a = 127.0.0.1:0\nlistener.protobuf.b = 127.0.0.1:0").is_ok());
    }

    #[test]
    fn memory_has_limits_of_its_own() {
        let text = "storage_backend = memory\nmemory_backend.ttl = 1h\nmemory_backend.max_memory_per_vnode = 1MB";
        let BackendSettings::Memory { ttl, partition_bytes_max } = settings(text).expect("valid").backend else {
            panic!("memory")
        };
        assert_eq!((ttl, partition_bytes_max), (Some(Duration::from_secs(3600)), Some(1 << 20)));
    }
}
