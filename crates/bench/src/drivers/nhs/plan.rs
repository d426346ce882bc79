//! The settings of the nhs driver, and what it sets up on the server.

use super::keys::{KeyId, KeyOrder, etf_term};
use super::operation::NhsOperation;
use super::worker::NhsWorker;
use crate::config::{ConfigError, Operation, Settings};
use crate::drivers::http::request::Request;
use crate::drivers::http::session::HttpSession;
use crate::drivers::network::{Reasons, SettingsReader, Target, of_worker};
use crate::drivers::pb::probe;
use crate::drivers::pb::session::PbSession;
use crate::drivers::{DriverError, Prepared};
use crate::term::Term;
use ombak_types::etf;
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT_DEFAULT: Duration = Duration::from_millis(30_000);
const FOLD_TIMEOUT_DEFAULT: Duration = Duration::from_millis(3_600_000);

/// The worker that runs the operations which only one worker runs.
pub const NOMINATED: usize = 7;

/// The largest document, in bytes. No server accepts a larger one.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;

/// The name of a node without a configured name.
const NODE_NAME_DEFAULT: &str = "nonode@nohost";

/// The driver with its settings.
#[derive(Debug)]
pub struct NhsPlan {
    shared: Arc<NhsSettings>,
    pb: Vec<Target>,
    http: Vec<Target>,
    /// The peer cluster for `put_unique_checkrepl`.
    peer: Vec<Target>,
    node_name: etf::Term,
    record_sync: String,
    document_sync: String,
    /// How many nodes must confirm a write.
    node_confirms: u64,
}

/// The settings that all workers share.
#[derive(Debug)]
pub struct NhsSettings {
    /// The operations, by their index.
    pub operations: Vec<NhsOperation>,
    /// The setting `record_bucket`.
    pub records: Vec<u8>,
    /// The setting `document_bucket`.
    pub documents: Vec<u8>,
    /// The setting `pb_timeout_general`.
    pub pb_timeout: Duration,
    /// The setting `http_timeout_general`.
    pub http_timeout: Duration,
    /// The setting `fold_timeout_general`.
    pub fold_timeout: Duration,
    /// The setting `postcode_indexcount`.
    pub postcodes_max: u64,
    /// From `alwaysget`: the highest number of records that a worker writes.
    pub records_max: u64,
    /// From `alwaysget`: a worker reads records only if it has more than this many.
    pub records_min: u64,
    /// From `alwaysget`: the order of the record keys.
    pub record_order: KeyOrder,
    /// From `unique`: the size of each document, in bytes.
    pub document_bytes: usize,
    /// From `unique`: the order of the document keys.
    pub document_order: KeyOrder,
    /// The texts of errors from the servers.
    pub reasons: Reasons,
}

impl NhsPlan {
    /// Reads the settings of the driver.
    pub fn new(settings: &Settings, operations: &[Operation]) -> Result<Self, ConfigError> {
        let read = SettingsReader(settings);
        let (records_max, records_min, record_order) = always_get(settings)?;
        let (document_bytes, document_order) = unique(settings)?;
        let postcodes_max = read.count("postcode_indexcount", 3)?;
        if !(1..=100).contains(&postcodes_max) {
            return Err(ConfigError::setting("postcode_indexcount", "a number from 1 to 100 is needed"));
        }
        let shared = NhsSettings {
            operations: operations.iter().map(known).collect::<Result<_, _>>()?,
            records: bucket(read, "record_bucket", "domainRecord")?,
            documents: bucket(read, "document_bucket", "domainDocument")?,
            pb_timeout: read.millis("pb_timeout_general", TIMEOUT_DEFAULT)?,
            http_timeout: read.millis("http_timeout_general", TIMEOUT_DEFAULT)?,
            fold_timeout: read.millis("fold_timeout_general", FOLD_TIMEOUT_DEFAULT)?,
            postcodes_max,
            records_max,
            records_min,
            record_order,
            document_bytes,
            document_order,
            reasons: Reasons::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            pb: read.targets("pb_ips", "pb_port", 8087)?,
            http: read.targets("http_ips", "http_port", 8098)?,
            peer: read.targets("replpb_ips", "pb_port", 8087)?,
            node_name: node_name(settings)?,
            record_sync: sync(read, "record_sync", "one")?,
            document_sync: sync(read, "document_sync", "backend")?,
            node_confirms: read.count("node_confirms", 2)?,
        })
    }

    /// The address of the first server over HTTP.
    pub fn stats_address(&self) -> Option<String> {
        self.http.first().map(Target::to_string)
    }

    /// Describes the driver in words, one fact per line.
    pub fn describe(&self) -> Vec<String> {
        let shared = &self.shared;
        let list = |targets: &[Target]| targets.iter().map(Target::to_string).collect::<Vec<_>>().join(", ");
        vec![
            format!("Protocol Buffers to {}, queries over HTTP to {}", list(&self.pb), list(&self.http)),
            format!(
                "records in bucket {} (sync_on_write {}): each worker has up to {}, reads them once it has more than {}, {}",
                shared.records.escape_ascii(),
                self.record_sync,
                shared.records_max,
                shared.records_min,
                shared.record_order.word(),
            ),
            format!(
                "documents in bucket {} (sync_on_write {}): {} random bytes each, {}",
                shared.documents.escape_ascii(),
                self.document_sync,
                shared.document_bytes,
                shared.document_order.word(),
            ),
            format!("writes are confirmed by {} nodes", self.node_confirms),
        ]
    }

    /// Checks that the servers are available, sets the properties of the buckets, and finds out
    /// what the servers support.
    pub async fn prepare(&mut self, skip_unsupported: bool) -> Result<Prepared, DriverError> {
        let mut prepared = Prepared::default();
        for target in &self.http {
            HttpSession::open(target, &self.shared.reasons).await?;
        }
        for target in self.pb.iter().skip(1) {
            PbSession::open(target, &self.shared.reasons).await?;
        }
        let first = self.pb.first().cloned().ok_or_else(|| DriverError("pb_ips is empty".to_owned()))?;
        let mut session = PbSession::open(&first, &self.shared.reasons).await?;
        self.confirm(&mut session, skip_unsupported, &mut prepared).await?;
        self.set_props().await?;
        let read = probe::read(&mut session, None, &self.shared.records, None).await;
        read.map_err(|why| refused_read(&first, &why))?;
        self.find_unsupported(&mut session, &mut prepared).await?;
        Ok(prepared)
    }

    /// Sets the two properties of both buckets, with two requests each, as basho_bench does.
    async fn set_props(&self) -> Result<(), DriverError> {
        let target = of_worker(&self.http, 1).ok_or_else(|| DriverError("http_ips is empty".to_owned()))?;
        let mut session = HttpSession::open(target, &self.shared.reasons).await?;
        for (bucket, sync) in [(&self.shared.records, &self.record_sync), (&self.shared.documents, &self.document_sync)]
        {
            let documents = [
                format!("{{\"props\":{{\"node_confirms\":{}}}}}", self.node_confirms),
                format!("{{\"props\":{{\"sync_on_write\":\"{sync}\"}}}}"),
            ];
            for document in documents {
                let host = target.to_string();
                Request::new("PUT", session.begin())
                    .raw(b"/buckets")
                    .segment(bucket)
                    .raw(b"/props")
                    .host(host.as_bytes())
                    .header(b"Content-Type", b"application/json")
                    .body(document.as_bytes());
                let answer = session.exchange(self.shared.http_timeout).await;
                let why = match answer {
                    Ok(answer) if answer.status == 204 => continue,
                    Ok(answer) => session.refused(answer.status).reason(),
                    Err(error) => error.reason(),
                };
                let bucket = bucket.escape_ascii();
                return Err(DriverError(format!("{target} does not set {document} for bucket {bucket}: {why}")));
            }
        }
        Ok(())
    }

    /// Checks whether the server has as many nodes as must confirm a write, and lowers the number
    /// if `lower` is set. The check uses an option of a read request, so that a refused start
    /// leaves the properties of the buckets unchanged.
    async fn confirm(
        &mut self,
        session: &mut PbSession,
        lower: bool,
        prepared: &mut Prepared,
    ) -> Result<(), DriverError> {
        // A value that is not a valid number of nodes is refused by the server when it is set as a
        // property.
        let Ok(node_confirms) = u32::try_from(self.node_confirms) else { return Ok(()) };
        let why = match probe::read(session, None, &self.shared.records, Some(node_confirms)).await {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        let nodes = nodes_of_refusal(&why).ok_or_else(|| refused_read(session.target(), &why))?;
        let (wanted, noun) = (self.node_confirms, if nodes == 1 { "node" } else { "nodes" });
        let what = format!("node_confirms is {wanted} and the server has {nodes} {noun}");
        if !lower {
            return Err(DriverError(format!("{what}: set {{node_confirms, {nodes}}}")));
        }
        prepared.notes.push(format!("{what}: it was set to {nodes}"));
        self.node_confirms = nodes;
        Ok(())
    }

    async fn find_unsupported(&self, session: &mut PbSession, prepared: &mut Prepared) -> Result<(), DriverError> {
        let operations = &self.shared.operations;
        let uses = |which: fn(NhsOperation) -> bool| operations.iter().any(|operation| which(*operation));
        let records = &self.shared.records;
        let (mut no_queries, mut no_entries) = (None, None);
        if uses(NhsOperation::queries_indexes) || uses(NhsOperation::writes_indexes) {
            no_queries = probe::no_indexes(session, None, records).await?;
        }
        if no_queries.is_some() && uses(NhsOperation::writes_indexes) {
            no_entries = probe::no_index_entries(session, None, records).await?;
            if no_entries.is_none() {
                let note = "the server has no secondary indexes, but it takes index entries and stores them with the \
                            objects: the operations that write them are run";
                prepared.notes.push(note.to_owned());
            }
        }
        for (place, operation) in operations.iter().enumerate() {
            let why = match operation {
                NhsOperation::Unsupported(why) => Some((*why).to_owned()),
                operation if operation.queries_indexes() => no_queries.clone(),
                operation if operation.writes_indexes() => no_entries.clone(),
                _ => None,
            };
            prepared.unsupported.extend(why.map(|why| (place, why)));
        }
        if uses(NhsOperation::is_nominated) {
            prepared
                .notes
                .push(format!("only worker {NOMINATED} runs list_keys and force_aae, if there is such a worker"));
        }
        Ok(())
    }

    /// Creates the driver's part of worker `worker`.
    pub async fn connect(&self, worker: usize) -> Result<NhsWorker, DriverError> {
        let reasons = &self.shared.reasons;
        let target = |targets, key: &str| {
            of_worker(targets, worker).cloned().ok_or_else(|| DriverError(format!("{key} is empty")))
        };
        let pb = PbSession::open(&target(&self.pb, "pb_ips")?, reasons).await?;
        let http = target(&self.http, "http_ips")?;
        let checks = self.shared.operations.contains(&NhsOperation::PutUniqueCheckRepl);
        let peer = match of_worker(&self.peer, worker) {
            // As in basho_bench, a peer that cannot be reached disables the check.
            Some(target) if checks => PbSession::open(target, reasons).await.ok(),
            _ => None,
        };
        let key_id = KeyId::new(worker, &self.node_name);
        Ok(NhsWorker::new(worker, key_id, pb, http, peer, self.shared.clone()))
    }
}

fn refused_read(target: &Target, why: &str) -> DriverError {
    DriverError(format!("{target} refuses to read a record: {why}"))
}

/// The number of nodes, from the error of a server that has fewer nodes than must confirm
/// (docs/riak/pb-api.md §1.1).
fn nodes_of_refusal(text: &str) -> Option<u64> {
    let numbers = text.strip_prefix("{insufficient_nodes,")?.strip_suffix('}')?;
    let (nodes, _) = numbers.split_once(",need,")?;
    nodes.parse().ok().filter(|&nodes| nodes > 0)
}

fn known(operation: &Operation) -> Result<NhsOperation, ConfigError> {
    NhsOperation::parse(&operation.term).ok_or_else(|| {
        let (label, names) = (&operation.label, NhsOperation::names());
        ConfigError::setting("operations", format!("basho_bench_driver_nhs has no operation '{label}'; it has {names}"))
    })
}

fn bucket(read: SettingsReader<'_>, key: &str, default: &str) -> Result<Vec<u8>, ConfigError> {
    let name = read.text(key, default)?.into_bytes();
    if name.is_empty() { Err(ConfigError::setting(key, "a bucket's name is needed")) } else { Ok(name) }
}

fn sync(read: SettingsReader<'_>, key: &str, default: &str) -> Result<String, ConfigError> {
    let word = read.text(key, default)?;
    if ["one", "all", "backend"].contains(&word.as_str()) {
        return Ok(word);
    }
    Err(ConfigError::setting(key, "one of \"one\", \"all\" and \"backend\" is needed"))
}

fn node_name(settings: &Settings) -> Result<etf::Term, ConfigError> {
    let name = match settings.get("node_name") {
        None => Some(etf::Term::atom(NODE_NAME_DEFAULT)),
        Some(term) => etf_term(term),
    };
    name.ok_or_else(|| ConfigError::setting("node_name", "a name is needed, such as testnode1"))
}

/// Parses `{alwaysget, {Max, Min, Order}}`.
fn always_get(settings: &Settings) -> Result<(u64, u64, KeyOrder), ConfigError> {
    let wrong = || ConfigError::setting("alwaysget", "{MaxKeysPerWorker, MinKeysPerWorker, Order} is needed");
    let Some(term) = settings.get("alwaysget") else { return Ok((1, 1, KeyOrder::Growing)) };
    let Term::Tuple(parts) = term else { return Err(wrong()) };
    let [Term::Integer(max), Term::Integer(min), order] = &parts[..] else { return Err(wrong()) };
    let (Ok(max @ 1..), Ok(min)) = (u64::try_from(*max), u64::try_from(*min)) else { return Err(wrong()) };
    Ok((max, min, KeyOrder::parse("alwaysget", order)?))
}

/// Parses `{unique, {ValueBytes, Order}}`.
fn unique(settings: &Settings) -> Result<(usize, KeyOrder), ConfigError> {
    let wrong = || ConfigError::setting("unique", "{ValueBytes, Order} is needed, with at least one byte");
    let Some(term) = settings.get("unique") else { return Ok((8_000, KeyOrder::Growing)) };
    let Term::Tuple(parts) = term else { return Err(wrong()) };
    let [Term::Integer(bytes), order] = &parts[..] else { return Err(wrong()) };
    let bytes =
        u64::try_from(*bytes).ok().filter(|bytes| (1..=DOCUMENT_BYTES_MAX).contains(bytes)).ok_or_else(wrong)?;
    Ok((bytes as usize, KeyOrder::parse("unique", order)?))
}
