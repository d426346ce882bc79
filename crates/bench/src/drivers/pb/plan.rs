//! The settings of the Protocol Buffers driver.

use super::operation::PbOperation;
use super::probe;
use super::session::PbSession;
use super::worker::PbWorker;
use crate::config::{ConfigError, Operation, Settings};
use crate::drivers::network::{Reasons, SettingsReader, Target, bytes, of_worker};
use crate::drivers::{DriverError, Prepared};
use crate::term::Term;
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT_DEFAULT: Duration = Duration::from_millis(30_000);

/// The highest number of requests in flight on one connection.
const PIPELINE_MAX: u64 = 4096;

/// The driver with its settings.
#[derive(Debug)]
pub struct PbPlan {
    shared: Arc<PbSettings>,
    targets: Vec<Target>,
}

/// The settings that all workers share.
#[derive(Debug)]
pub struct PbSettings {
    /// The operations, by their index.
    pub operations: Vec<PbOperation>,
    /// The bucket type. `None` means the default type.
    pub bucket_type: Option<Vec<u8>>,
    /// The setting `riakc_pb_bucket`.
    pub bucket: Vec<u8>,
    /// The setting `riakc_pb_content_type`.
    pub content_type: Vec<u8>,
    /// The settings `riakc_pb_r` and so on, encoded as requests carry them.
    pub quorums: Quorums,
    /// The setting `pb_timeout_read`.
    pub read_timeout: Duration,
    /// The setting `pb_timeout_write`.
    pub write_timeout: Duration,
    /// The setting `pb_timeout_listkeys`.
    pub list_timeout: Duration,
    /// The setting `pb_timeout_general`.
    pub query_timeout: Duration,
    /// The setting `riakc_pb_pipeline`: how many requests are in flight on each connection.
    pub depth: usize,
    /// The texts of errors from the servers.
    pub reasons: Reasons,
}

/// How many replies a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Riak's names; docs/riak/pb-api.md §3")]
pub struct Quorums {
    pub r: u32,
    pub w: u32,
    pub dw: u32,
    pub rw: u32,
    /// This is sent only if it is configured by its own name. basho_bench does not send it, and its
    /// default (the value of `riakc_pb_replies`) would demand more of a cluster than basho_bench
    /// does.
    pub pr: Option<u32>,
    /// This is treated as `pr` is.
    pub pw: Option<u32>,
}

impl Quorums {
    fn read(read: SettingsReader<'_>) -> Result<Self, ConfigError> {
        let replies = read.quorum("riakc_pb_replies")?.unwrap_or(ombak_types::Quorum::Majority.to_wire());
        let or_replies = |key| read.quorum(key).map(|quorum| quorum.unwrap_or(replies));
        Ok(Self {
            r: or_replies("riakc_pb_r")?,
            w: or_replies("riakc_pb_w")?,
            dw: or_replies("riakc_pb_dw")?,
            rw: or_replies("riakc_pb_rw")?,
            pr: read.quorum("riakc_pb_pr")?,
            pw: read.quorum("riakc_pb_pw")?,
        })
    }
}

impl PbPlan {
    /// Reads the settings of the driver.
    pub fn new(settings: &Settings, operations: &[Operation]) -> Result<Self, ConfigError> {
        let read = SettingsReader(settings);
        let general = read.millis("pb_timeout_general", TIMEOUT_DEFAULT)?;
        let (bucket_type, bucket) = bucket(settings)?;
        let shared = PbSettings {
            operations: operations.iter().map(known).collect::<Result<_, _>>()?,
            bucket_type,
            bucket,
            content_type: read.text("riakc_pb_content_type", "application/octet-stream")?.into_bytes(),
            quorums: Quorums::read(read)?,
            read_timeout: read.millis("pb_timeout_read", general)?,
            write_timeout: read.millis("pb_timeout_write", general)?,
            list_timeout: read.millis("pb_timeout_listkeys", general)?,
            query_timeout: general,
            depth: depth(read, operations)?,
            reasons: Reasons::default(),
        };
        let targets = read.targets("riakc_pb_ips", "riakc_pb_port", 8087)?;
        Ok(Self { shared: Arc::new(shared), targets })
    }

    /// Where the first server answers over HTTP if both of its ports are the usual ones.
    pub fn stats_address(&self) -> Option<String> {
        let first = self.targets.first().filter(|target| target.port == 8087)?;
        Some(format!("{}:8098", first.host))
    }

    /// Describes the driver in words, one fact per line.
    pub fn describe(&self) -> Vec<String> {
        let shared = &self.shared;
        let targets: Vec<_> = self.targets.iter().map(Target::to_string).collect();
        let bucket_type = shared.bucket_type.as_deref().unwrap_or(b"default");
        let mut lines = vec![
            format!("Protocol Buffers, worker by worker in turn to {}", targets.join(", ")),
            format!("bucket {} of type {}", shared.bucket.escape_ascii(), bucket_type.escape_ascii()),
        ];
        if shared.depth > 1 {
            lines.push(format!("{} requests in flight on each connection", shared.depth));
        }
        lines
    }

    /// Checks that all servers answer, and finds out which operations they do not support.
    pub async fn prepare(&mut self) -> Result<Prepared, DriverError> {
        let mut prepared = Prepared::default();
        for target in &self.targets {
            let mut session = PbSession::open(target, &self.shared.reasons).await?;
            probe::read(&mut session, self.shared.bucket_type.as_deref(), &self.shared.bucket, None).await.map_err(
                |why| DriverError(format!("{target} refuses to read from the bucket of riakc_pb_bucket: {why}")),
            )?;
            if self.targets.first() == Some(target) {
                self.find_unsupported(&mut session, &mut prepared).await?;
            }
        }
        Ok(prepared)
    }

    async fn find_unsupported(&self, session: &mut PbSession, prepared: &mut Prepared) -> Result<(), DriverError> {
        let (bucket_type, bucket) = (self.shared.bucket_type.as_deref(), &self.shared.bucket);
        for (place, operation) in self.shared.operations.iter().enumerate() {
            let why = match operation {
                PbOperation::Unsupported(feature) => Some(format!("ombak-bench has no {feature}")),
                PbOperation::QueryPostcode | PbOperation::QueryDob => {
                    probe::no_indexes(session, bucket_type, bucket).await?
                }
                PbOperation::UpdateWith2i => probe::no_index_entries(session, bucket_type, bucket).await?,
                _ => None,
            };
            prepared.unsupported.extend(why.map(|why| (place, why)));
        }
        Ok(())
    }

    /// Creates the driver's part of worker `worker`.
    pub async fn connect(&self, worker: usize) -> Result<PbWorker, DriverError> {
        let target = of_worker(&self.targets, worker).ok_or_else(|| DriverError("riakc_pb_ips is empty".to_owned()))?;
        let session = PbSession::open(target, &self.shared.reasons).await?;
        Ok(PbWorker::new(worker, session, self.shared.clone()))
    }
}

fn known(operation: &Operation) -> Result<PbOperation, ConfigError> {
    PbOperation::parse(&operation.term).ok_or_else(|| {
        let (label, names) = (&operation.label, PbOperation::names());
        let what = format!("basho_bench_driver_riakc_pb has no operation '{label}'; it has {names}");
        ConfigError::setting("operations", what)
    })
}

/// Parses `Bucket` or `{Type, Bucket}`.
fn bucket(settings: &Settings) -> Result<(Option<Vec<u8>>, Vec<u8>), ConfigError> {
    let (bucket_type, bucket) = match settings.get("riakc_pb_bucket") {
        None => (None, Some(b"test".to_vec())),
        Some(Term::Tuple(pair)) if pair.len() == 2 => (pair.first().map(bytes), pair.get(1).and_then(bytes)),
        Some(term) => (None, bytes(term)),
    };
    let wrong =
        || ConfigError::setting("riakc_pb_bucket", "<<\"bucket\">> or {<<\"type\">>, <<\"bucket\">>} is needed");
    let bucket = bucket.filter(|bucket| !bucket.is_empty()).ok_or_else(wrong)?;
    let bucket_type = bucket_type.map(|name| name.filter(|name| !name.is_empty()).ok_or_else(wrong)).transpose()?;
    Ok((bucket_type.filter(|name| name != b"default"), bucket))
}

fn depth(read: SettingsReader<'_>, operations: &[Operation]) -> Result<usize, ConfigError> {
    let depth = read.count("riakc_pb_pipeline", 1)?;
    if !(1..=PIPELINE_MAX).contains(&depth) {
        let what = format!("a number of requests from 1 to {PIPELINE_MAX} is needed");
        return Err(ConfigError::setting("riakc_pb_pipeline", what));
    }
    for operation in operations {
        if depth > 1 && !known(operation)?.is_one_exchange() {
            let label = &operation.label;
            let what = format!(
                "'{label}' takes more than one request; only get, get_existing, put and delete can be pipelined"
            );
            return Err(ConfigError::setting("riakc_pb_pipeline", what));
        }
    }
    Ok(depth as usize)
}
