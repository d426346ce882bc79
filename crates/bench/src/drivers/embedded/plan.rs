//! The settings of the embedded engine.

use super::engine::Engine;
use super::worker::{EmbeddedOperation, EmbeddedWorker};
use crate::config::{ConfigError, Operation, Settings};
use crate::drivers::{DriverError, Prepared};
use crate::term::Term;
use ombak_storage::backend::NoTerms;
use ombak_storage::fs::RealFs;
use ombak_storage::{
    BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, MemoryConfig,
    MemoryFactory, StorageError, SyncStrategy,
};
use std::path::PathBuf;
use std::sync::Arc;

/// The default number of partitions of a node.
const PARTITIONS_DEFAULT: i128 = 64;
const PARTITIONS_MAX: i128 = 1024;

/// The bucket that basho_bench's drivers use by default.
const BUCKET_DEFAULT: &str = "test";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bitcask,
    Leveled,
    Leveldb,
    Memory,
}

/// The valid values of `ombak_backend`.
const KINDS: &str = "bitcask, leveled, leveldb and memory";

impl Kind {
    /// Finds a backend by Riak's name, or by the name of basho_bench's driver for it.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "bitcask" | "ombak_embedded" => Self::Bitcask,
            "leveled" => Self::Leveled,
            "leveldb" | "eleveldb" | "eldb" => Self::Leveldb,
            "memory" | "ets" => Self::Memory,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Bitcask => "bitcask",
            Self::Leveled => "leveled",
            Self::Leveldb => "leveldb",
            Self::Memory => "memory",
        }
    }
}

/// The embedded engine with its settings.
#[derive(Debug)]
pub struct EmbeddedPlan {
    kind: Kind,
    dir: PathBuf,
    sync: SyncStrategy,
    partitions: u32,
    bucket: String,
    operations: Vec<EmbeddedOperation>,
    engine: Option<Arc<Engine>>,
}

impl EmbeddedPlan {
    pub(in crate::drivers) fn new(
        driver: &str,
        settings: &Settings,
        operations: &[Operation],
    ) -> Result<Self, ConfigError> {
        let operations =
            operations.iter().map(|operation| EmbeddedOperation::parse(&operation.term)).collect::<Result<_, _>>()?;
        Ok(Self {
            kind: kind(driver, settings)?,
            dir: dir(settings)?,
            sync: sync(settings)?,
            partitions: partitions(settings)?,
            bucket: text(settings, "ombak_bucket")?.unwrap_or_else(|| BUCKET_DEFAULT.into()),
            operations,
            engine: None,
        })
    }

    pub(in crate::drivers) fn describe(&self) -> Vec<String> {
        let kind = match self.kind {
            Kind::Memory => "memory".to_owned(),
            kind => format!("{} in {}", kind.name(), self.dir.display()),
        };
        let sync = match (self.kind, self.sync) {
            (Kind::Memory, _) => "nothing to sync",
            (_, SyncStrategy::OSync) => "each write is synced before it counts",
            _ => "writes are not synced",
        };
        vec![format!("the storage engine in this process: {kind}, {} partitions, {sync}", self.partitions)]
    }

    pub(in crate::drivers) async fn prepare(&mut self) -> Result<Prepared, DriverError> {
        let open = |error: StorageError| DriverError(format!("cannot open the engine: {error}"));
        let factory = self.factory().map_err(open)?;
        let stores = (0..self.partitions).map(|n| factory.open(n)).collect::<Result<_, _>>().map_err(open)?;
        let engine = Engine::start(stores).map_err(|e| DriverError(format!("cannot start a thread: {e}")))?;
        self.engine = Some(Arc::new(engine));
        Ok(Prepared::default())
    }

    fn factory(&self) -> Result<Arc<dyn BackendFactory>, StorageError> {
        let journal = JournalConfig { sync: self.sync, ..JournalConfig::default() };
        let (fs, ledger) = (Arc::new(RealFs), LedgerConfig::default());
        Ok(match self.kind {
            Kind::Memory => Arc::new(MemoryFactory::new(MemoryConfig::default())),
            Kind::Bitcask => Arc::new(BitcaskFactory::new(fs, &self.dir, journal)?),
            Kind::Leveled => Arc::new(LeveledFactory::new(fs, &self.dir, journal, ledger, Arc::new(NoTerms))?),
            Kind::Leveldb => Arc::new(LeveldbFactory::new(fs, &self.dir, journal, ledger, Arc::new(NoTerms))?),
        })
    }

    pub(in crate::drivers) async fn connect(&self) -> Result<EmbeddedWorker, DriverError> {
        match &self.engine {
            Some(engine) => Ok(EmbeddedWorker::new(engine.clone(), &self.bucket, &self.operations)),
            None => Err(DriverError("the engine was not opened".into())),
        }
    }
}

fn kind(driver: &str, settings: &Settings) -> Result<Kind, ConfigError> {
    const KEY: &str = "ombak_backend";
    match settings.get(KEY) {
        None => Kind::of(driver.trim_start_matches("basho_bench_driver_")).ok_or_else(|| {
            ConfigError::setting(
                "driver",
                format!("{driver} does not name an engine; {{{KEY}, bitcask}} names one of {KINDS}"),
            )
        }),
        Some(Term::Atom(name)) => Kind::of(name)
            .ok_or_else(|| ConfigError::setting(KEY, format!("there is no engine '{name}'; the engines are {KINDS}"))),
        Some(other) => Err(ConfigError::setting(KEY, format!("{other} is not an engine; the engines are {KINDS}"))),
    }
}

fn dir(settings: &Settings) -> Result<PathBuf, ConfigError> {
    for key in ["ombak_backend_dir", "bitcask_dir", "eleveldb_dir"] {
        if let Some(dir) = text(settings, key)? {
            return Ok(PathBuf::from(dir));
        }
    }
    Ok(PathBuf::from("ombak-bench-data"))
}

fn sync(settings: &Settings) -> Result<SyncStrategy, ConfigError> {
    const KEY: &str = "bitcask_flags";
    let flags = match settings.get(KEY) {
        None => return Ok(SyncStrategy::None),
        Some(Term::List(flags)) => flags,
        Some(other) => return Err(ConfigError::setting(KEY, format!("{other} is not a list such as [o_sync]"))),
    };
    let mut sync = SyncStrategy::None;
    for flag in flags {
        match flag {
            Term::Atom(name) if name == "o_sync" => sync = SyncStrategy::OSync,
            Term::Atom(name) if name == "read_write" => {}
            other => {
                return Err(ConfigError::setting(KEY, format!("{other} is not supported; o_sync and read_write are")));
            }
        }
    }
    Ok(sync)
}

fn partitions(settings: &Settings) -> Result<u32, ConfigError> {
    const KEY: &str = "ombak_backend_partitions";
    match settings.get(KEY) {
        None => Ok(PARTITIONS_DEFAULT as u32),
        Some(Term::Integer(n @ 1..=PARTITIONS_MAX)) => Ok(*n as u32),
        Some(other) => Err(ConfigError::setting(KEY, format!("{other} is not a number from 1 to {PARTITIONS_MAX}"))),
    }
}

fn text(settings: &Settings, key: &str) -> Result<Option<String>, ConfigError> {
    match settings.get(key) {
        None => Ok(None),
        Some(Term::Text(text)) => Ok(Some(text.clone())),
        Some(Term::Binary(bytes)) => match String::from_utf8(bytes.clone()) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(ConfigError::setting(key, "is not UTF-8 text")),
        },
        Some(other) => Err(ConfigError::setting(key, format!("{other} is not a text such as \"data\""))),
    }
}
