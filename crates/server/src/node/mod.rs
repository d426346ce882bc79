//! A running node, from its settings to the end of the process.
//!
//! [`run`] describes the life of a node from top to bottom. Every reason not to start is one line
//! that says what to do.

mod audit;
mod catching_up;
mod certificates;
mod client_tls;
mod cluster_admin;
mod cluster_text;
mod cluster_warnings;
pub mod dir_access;
mod disk_reserve;
mod exchange_admin;
mod function_admin;
mod functions;
mod handoff_summary;
mod input_searches;
mod listen;
mod live_settings;
pub mod lock;
mod lone_admin;
mod memory_return;
pub mod names;
mod namespaces;
pub mod open_files;
mod opened;
mod partition_admin;
pub mod record;
mod refusal;
mod search;
mod secret;
mod security;
mod settlement_text;
mod signals;
mod starting;
pub mod token;
mod transfer_admin;
mod transfer_progress;
mod transfer_text;
mod watchdog;

use crate::backends::{self, Inventories, Stores, stores_file};
use crate::config::{Effective, Problem, Settings};
use crate::logging::{self, Log};
use cluster_admin::MemberAdmin;
use dir_access::{NodeDirs, foreign_owner};
use functions::NodeFunctions;
pub use functions::WORKER_ARGUMENT;
use listen::{Ports, addresses, exposure, listening, listening_with_tls};
use lock::DataDirLock;
use lone_admin::LoneAdmin;
use names::OwnAddresses;
use ombak_api::admin::{
    AdminContext, AdminToken, BackupJobs, BackupPlace, ClusterAdmin, ConfigEntry, FoldsUnderWay, LiveConfig, NodeInfo,
};
use ombak_api::http::{self, HttpContext, HttpLimits, PageRules, StatsSource};
use ombak_api::pb::{self, PbConfig, PbContext};
use ombak_api::{ClientTls, MemoryBudget, MemoryLimits, NetworkThreads, NodeSecurity};
use ombak_audit::AuditLog;
use ombak_cluster::NodeNames;
use ombak_jobs::JobsConfig;
use ombak_key_queues::KeyQueues;
use ombak_kv::hooks::Hooks;
use ombak_kv::{Kv, KvConfig, check_start};
use ombak_runtime::ServingThreads;
use ombak_searching::Search;
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_tls::Certificates;
use opened::Opened;
pub use opened::has_metadata;
use record::NodeRecord;
pub use refusal::{Refusal, RefusalKind};
use signals::StopSignals;
pub use starting::Starting;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// Bytes that a frame may have in addition to the largest object, for names, options and metadata.
const FRAME_OVERHEAD_BYTES: u64 = 1024 * 1024;

/// The stack of the thread that opens the stores, in bytes. This is the usual size for the main
/// thread of a program.
const OPENING_STACK_BYTES: usize = 8 * 1024 * 1024;

/// Runs a node until it is told to stop. `accepts_loss`: start even if the stores lack data that
/// they had durably stored. The error says whether another start could help. A refused start
/// changes nothing on disk except the lock, the token and the logs.
pub fn run(starting: Starting, effective: &Effective, accepts_loss: bool) -> Result<(), Refusal> {
    let settings = Settings::new(effective).map_err(|problems| Refusal::needs_operator(join(&problems)))?;
    let data_dir = settings.data_dir.clone();
    let Starting { runtime, signals, stop, watchdog } = starting;
    // The lock is taken before the log is opened: a second start must not write to the log of the
    // first.
    let lock = DataDirLock::take(&data_dir)?;
    let dirs = NodeDirs::look(&data_dir, settings.backend.data_roots());
    let log = logging::start(&settings.log).map_err(Refusal::of_file)?;
    let audit = audit::start(settings.audit.as_ref()).map_err(Refusal::of_file)?;
    let certificates = certificates::of_node(&settings).map_err(Refusal::needs_operator)?;
    let for_clients = client_tls::of_node(&settings).map_err(Refusal::needs_operator)?;
    let mut signals =
        signals.renew_on_hangup(&runtime, (log.clone(), audit.clone()), certificates.clone(), for_clients.clone());
    warn_of(effective, &settings);
    let Some(own_addresses) = own_addresses_unless_stopped(&runtime, &settings, &mut signals)? else { return Ok(()) };
    // Ports are taken before any store is opened, so a port that is in use ends the start while
    // nothing has changed on disk.
    let ports = Ports::open(&settings, own_addresses.map(|own| own.listen))?;
    let token = token::of_node(&data_dir)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = NetworkThreads::start(threads).map_err(|e| format!("cannot create threads: {e}"))?;
    let threads = Arc::new(threads);
    let runtime_of_node = Arc::new(ServingThreads::new(threads.handles()));
    let functions =
        NodeFunctions::open(&settings.functions, runtime_of_node.clone()).map_err(Refusal::needs_operator)?;
    let security = security::of_node(for_clients.as_ref(), audit.clone())?;
    let search = search::of_node(&settings.search, runtime_of_node.clone());
    let opening = Opening {
        settings: settings.clone(),
        own_addresses,
        functions: functions.clone(),
        security: Arc::clone(&security),
        search: search.clone(),
        certificates: certificates.clone(),
        accepts_loss,
        runtime: runtime_of_node,
        names: log.names(),
    };
    let Some(opened) = open_unless_stopped(&runtime, opening, &mut signals)? else {
        // The thread that opens the stores runs until the process ends, and it uses the directory
        // until then.
        #[expect(
            clippy::disallowed_methods,
            reason = "the lock must outlive this function, and nobody is left to hold it"
        )]
        std::mem::forget(lock);
        return Ok(());
    };
    for warning in dirs.close_to_others() {
        tracing::warn!("{warning}");
    }
    watchdog.set_limit(settings.shutdown_timeout.saturating_add(watchdog::CLOSE_LIMIT));
    let limited = log.clone();
    runtime.spawn(async move { limited.limit_rates().await });
    runtime.spawn(memory_return::give_back());
    opened.kv().stats().attach(audit.figures());
    if let Some(certificates) = certificates {
        runtime.spawn(certificates::watch_expiry(certificates));
    }
    let tls = client_tls::for_listeners(&settings, for_clients.as_ref(), threads.handles().len());
    if let Some(certificates) = for_clients {
        runtime.spawn(client_tls::watch_ends(certificates));
    }
    let admin = |record: &NodeRecord, stop, key_queues| {
        let node = (&opened, &functions, &security);
        let logs = (log.clone(), audit.clone());
        admin_context(&settings, effective, node, AdminToken::new(token), record, (stop, key_queues), logs)
    };
    if let Some(member) = opened.member() {
        let (member, stop) = (member.clone(), stop.clone());
        runtime.spawn(async move {
            member.left().await;
            stop.send_replace(true);
        });
    }
    let node = (&opened, &security, search);
    let outcome = runtime.block_on(serve(&settings, node, (ports, tls), &threads, signals, stop, admin));
    log.report_left_out();
    functions.stop();
    if let Some(member) = opened.member() {
        // Other nodes are served until here. The stores close with it.
        runtime.block_on(member.stop());
    }
    // They have served other nodes, too.
    drop(threads);
    runtime.shutdown_timeout(settings.shutdown_timeout);
    opened.kv().close();
    audit.settle();
    outcome?;
    tracing::info!("stopped");
    Ok(())
}

/// Checks the files with which a node proves itself to other nodes and to clients, as a start would
/// find them. Nothing is changed. Returns problems and warnings. Each is one line for the operator.
pub fn check_files(settings: &Settings) -> (Vec<String>, Vec<String>) {
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    if settings.peer.is_some() {
        let secret = settings.peer_secret_file.as_deref();
        problems.extend(secret.and_then(|file| secret::check(file, &settings.data_dir).err()));
        problems.extend(certificates::of_node(settings).err());
    }
    match client_tls::of_node(settings) {
        Ok(certificates) => warnings.extend(certificates.iter().flat_map(|read| client_tls::warnings(read))),
        Err(problem) => problems.push(problem),
    }
    (problems, warnings)
}

/// Logs what an operator should know about the settings.
fn warn_of(effective: &Effective, settings: &Settings) {
    for warning in &effective.warnings {
        tracing::warn!("{warning}");
    }
    for warning in settings.backend.warnings(effective) {
        tracing::warn!("{warning}");
    }
    if let Some(shortage) = open_files::shortage(open_files::raise_limit(), settings) {
        tracing::warn!("{shortage}");
    }
    if let Some(warning) = foreign_owner(&settings.data_dir) {
        tracing::warn!("{warning}");
    }
    for warning in settings.for_clients().filter_map(exposure) {
        tracing::warn!("{warning}");
    }
}

/// What a node is opened with.
struct Opening {
    settings: Settings,
    own_addresses: Option<OwnAddresses>,
    functions: NodeFunctions,
    security: Arc<NodeSecurity>,
    search: Option<Arc<Search>>,
    certificates: Option<Arc<Certificates>>,
    accepts_loss: bool,
    runtime: Arc<ServingThreads>,
    /// Where the node notes the names of the other nodes for the log.
    names: Arc<NodeNames>,
}

/// Resolves the names of the settings, which may take a while. `Ok(None)` if a signal came first.
fn own_addresses_unless_stopped(
    runtime: &Runtime,
    settings: &Settings,
    signals: &mut StopSignals,
) -> Result<Option<Option<OwnAddresses>>, Refusal> {
    runtime.block_on(async {
        tokio::select! {
            biased;
            signal = signals.received() => {
                tracing::info!("stopped on {signal} while the node was starting");
                Ok(None)
            }
            own = names::own_addresses(settings) => Ok(Some(own?)),
        }
    })
}

/// Opens the engine, which may take minutes, on a thread of its own. Returns `None` if a signal
/// told the node to stop before the engine was open. In that case the process may end at any
/// moment, which the stores survive as they survive `kill -9`.
fn open_unless_stopped(
    runtime: &Runtime,
    opening: Opening,
    signals: &mut StopSignals,
) -> Result<Option<Opened>, Refusal> {
    let told_to_stop = |signal| tracing::info!("stopped on {signal} while the node was starting");
    if let Some(signal) = runtime.block_on(signals.already_received()) {
        told_to_stop(signal);
        return Ok(None);
    }
    let (tell, opened) = oneshot::channel();
    let tasks = runtime.handle().clone();
    std::thread::Builder::new()
        .name("ombak-open".into())
        .stack_size(OPENING_STACK_BYTES)
        .spawn(move || drop(tell.send(open_node(&opening, &tasks))))
        .map_err(|e| format!("cannot create threads: {e}"))?;
    runtime.block_on(async {
        tokio::select! {
            biased;
            signal = signals.received() => {
                told_to_stop(signal);
                Ok(None)
            }
            opened = opened => {
                opened.map_err(|_| "the stores could not be opened: this is an error in ombak")?.map(Some)
            }
        }
    })
}

/// Reports that the node is ready, and serves until it is told to stop.
async fn serve(
    settings: &Settings,
    (opened, security, search): (&Opened, &Arc<NodeSecurity>, Option<Arc<Search>>),
    (ports, tls): (Ports, Option<ClientTls>),
    threads: &Arc<NetworkThreads>,
    signals: StopSignals,
    stop: watch::Sender<bool>,
    admin: impl FnOnce(&NodeRecord, watch::Sender<bool>, KeyQueues) -> AdminContext,
) -> Result<(), String> {
    let record = NodeRecord::of_this_process(&settings.node_name, addresses(&ports.http), addresses(&ports.pb));
    let record = record.with_https(addresses(&ports.https));

    let (kv, map_reduce) = (opened.kv(), opened.jobs());
    let stopping = stop.subscribe();
    let memory = MemoryLimits { bytes_max: settings.request_memory_bytes, ..MemoryLimits::default() };
    let memory = MemoryBudget::new(memory);
    let key_queues = KeyQueues::new(kv, settings.key_queues);
    key_queues.start();
    let admin = AdminContext { search: search.clone(), ..admin(&record, stop.clone(), key_queues.clone()) };
    let http_context = HttpContext::new(
        kv.clone(),
        settings.jobs,
        http_limits(settings),
        stats_source(settings),
        Some(admin),
        Arc::clone(threads),
    );
    let http_context = http_context.with_map_reduce(map_reduce.clone()).with_key_queues(key_queues.clone());
    let http_context = http_context.with_pages(page_rules(settings)).with_memory(memory.clone());
    let http_context = http_context.with_security(Arc::clone(security), settings.monitoring_addresses.clone());
    let http_context = match search.clone() {
        Some(search) => http_context.with_search(search),
        None => http_context,
    };
    let http_context = Arc::new(http_context);
    let pb_context = Arc::new(PbContext {
        kv: kv.clone(),
        map_reduce,
        key_queues,
        search,
        config: PbConfig { start_tls: tls.clone(), ..pb_config(settings, security) },
        memory,
        threads: Arc::clone(threads),
    });
    // Nobody could connect before, so who can connect is answered.
    let (http, pb) = (listening(ports.http)?, listening(ports.pb)?);
    let https = listening_with_tls(ports.https, tls.as_ref())?;
    let mut servers = JoinSet::new();
    for listener in http.into_iter().chain(https) {
        servers.spawn(http::serve(listener, Arc::clone(&http_context), stopping.clone()));
    }
    for listener in pb {
        servers.spawn(pb::serve(listener, Arc::clone(&pb_context), stopping.clone()));
    }

    let data_dir = &settings.data_dir;
    record.write(data_dir).map_err(|e| cannot_write(&NodeRecord::path(data_dir), &e))?;
    match opened.member().filter(|member| member.awaits().is_some()).cloned() {
        None => announce(&record, data_dir),
        Some(member) => {
            say(&format!("{} waits for its peers, and serves nobody yet; its log says what to do", record.name));
            let (record, data_dir) = (record, data_dir.clone());
            tokio::spawn(async move {
                if member.until_decided().await {
                    announce(&record, &data_dir);
                }
            });
        }
    }
    let reason = told_to_stop(signals, stopping).await;
    tracing::info!("stopping on {reason}");
    stop.send_replace(true);
    if let Err(error) = NodeRecord::remove(data_dir) {
        tracing::warn!(%error, "cannot remove running.json");
    }
    while let Some(ended) = servers.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a listener ended unexpectedly");
        }
    }
    Ok(())
}

/// Waits for a signal or until `stopping` becomes true, and returns which of the two it was.
async fn told_to_stop(mut signals: StopSignals, mut stopping: watch::Receiver<bool>) -> &'static str {
    tokio::select! {
        signal = signals.received() => signal,
        _ = stopping.wait_for(|stop| *stop) => "an administrator's request",
    }
}

/// Opens the node that the settings describe, alone or as a member of a cluster. The caller holds
/// the lock of the data directory.
fn open_node(opening: &Opening, tasks: &Handle) -> Result<Opened, Refusal> {
    let config = engine_config(&opening.settings, opening.accepts_loss)?;
    let search = opening.search.as_ref();
    let namespaces = namespaces::of_node(&opening.functions, &opening.security, search);
    let hooks = Hooks { commit: Some(opening.functions.hooks()), namespaces, ..config.hooks };
    let hooks = search::hooks_with(search, hooks);
    let mut config = KvConfig { runtime: opening.runtime.clone(), hooks, ..config };
    if let Some(reserve) = disk_reserve::of_node(&opening.settings) {
        config.fs = disk_reserve::file_system(&reserve);
        tasks.spawn(disk_reserve::keep_whole(reserve));
    }
    let functions = Some(opening.functions.of_jobs());
    let jobs = JobsConfig { functions, searches: search::of_jobs(search), ..JobsConfig::default() };
    let among_peers = opening.own_addresses.map(|own| (own, opening.certificates.clone()));
    let opened = Opened::open(&opening.settings, among_peers, config, jobs, opening.names.clone(), tasks)?;
    if let Some(search) = search {
        search.attach(opened.kv());
    }
    opening.functions.show_figures(opened.kv());
    if let Some(member) = opened.member() {
        catching_up::before_serving(member, &opening.security, tasks);
    }
    Ok(opened)
}

/// Opens the engine of a node that is alone and does not serve. The caller holds the lock of the
/// data directory.
pub fn open_engine(settings: &Settings, accepts_loss: bool) -> Result<Kv, String> {
    let config = engine_config(settings, accepts_loss).map_err(|refusal| refusal.text)?;
    Kv::open(config).map_err(|e| e.to_string())
}

/// Prepares the engine that the settings describe. The caller holds the lock of the data directory.
/// Every check that can refuse the start runs before anything is changed.
fn engine_config(settings: &Settings, accepts_loss: bool) -> Result<KvConfig, Refusal> {
    let data_dir = &settings.data_dir;
    let inventories = Inventories::new(data_dir, accepts_loss);
    let compared = stores_file::compare(data_dir, &settings.backend, &inventories).map_err(Refusal::needs_operator)?;
    let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
    check_start(&fs, data_dir, &settings.node_name, settings.ring_size, &settings.default_props)?;
    backends::check(&settings.backend, &inventories)?;
    for warning in &compared.warnings {
        tracing::warn!("{warning}");
    }
    compared.write(data_dir, &inventories)?;
    let Stores { factory, choice } = backends::open(&settings.backend, &inventories)?;
    Ok(KvConfig {
        ring_size: settings.ring_size,
        default_props: settings.default_props.clone(),
        delete_mode: settings.delete_mode,
        queries: settings.queries,
        slow_request: settings.slow_request,
        limits: settings.limits,
        requests_max: settings.requests_max,
        timeout: settings.request_timeout,
        io_threads: settings.io_threads,
        worker_pools: settings.worker_pools,
        participates_in_coverage: settings.participates_in_coverage,
        transfer: settings.transfer,
        trees: settings.trees,
        scrub: settings.scrub,
        without_majority: settings.without_majority,
        read_repair: settings.read_repair,
        replica_memory_bytes: settings.request_memory_bytes,
        backend_choice: choice,
        // They are how a node finds out what happened to its files, whatever it was built with.
        tolerates_sums_differences: true,
        hooks: Hooks { kinds: ombak_datatypes::kinds(), ..Hooks::default() },
        ..KvConfig::new(&settings.node_name, &settings.data_dir, factory)
    })
}

fn admin_context(
    settings: &Settings,
    effective: &Effective,
    (opened, functions, security): (&Opened, &NodeFunctions, &Arc<NodeSecurity>),
    token: AdminToken,
    record: &NodeRecord,
    (stop, key_queues): (watch::Sender<bool>, KeyQueues),
    (log, audit): (Log, AuditLog),
) -> AdminContext {
    let data_dir = std::fs::canonicalize(&settings.data_dir).unwrap_or_else(|_| settings.data_dir.clone());
    let node = NodeInfo {
        name: record.name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        pid: record.pid,
        http: record.http.clone(),
        https: record.https.clone(),
        pb: record.pb.clone(),
        peer: settings.peer.as_ref().and_then(|peer| peer.on.address()),
        encrypts_peers: settings.peer_certificates.is_some(),
        data_dir: data_dir.display().to_string(),
        backend: settings.backend.name(),
        ring_size: settings.ring_size,
        started: Instant::now(),
    };
    let kv = opened.kv().clone();
    AdminContext {
        kv: kv.clone(),
        node,
        config: LiveConfig::new(
            config_entries(effective),
            Box::new(move |key, value| live_settings::change(&log, &kv, key, value)),
        ),
        stop,
        token,
        backups: BackupJobs::default(),
        key_queues,
        folds: FoldsUnderWay::default(),
        search: None,
        backup_place: backup_place(settings),
        cluster: cluster_admin(opened),
        functions: Arc::new(functions.clone()),
        security: Some(Arc::clone(security)),
        audit,
    }
}

/// Who carries out commands about the cluster.
fn cluster_admin(opened: &Opened) -> Arc<dyn ClusterAdmin> {
    match opened {
        Opened::Alone(kv, _) => Arc::new(LoneAdmin(kv.clone())),
        Opened::Member(member) => Arc::new(MemberAdmin(member.clone())),
    }
}

fn backup_place(settings: &Settings) -> BackupPlace {
    let mut node_dirs = vec![settings.data_dir.clone()];
    node_dirs.extend(settings.backend.data_roots().map(Path::to_path_buf));
    BackupPlace { root: settings.backup_dir.clone(), node_dirs }
}

/// The values in force as data, for the administration interface and `ombak config effective`.
pub fn config_entries(effective: &Effective) -> Vec<ConfigEntry> {
    let entry = |s: &crate::config::Setting| {
        let value = s.value.as_ref().map(ToString::to_string).unwrap_or_default();
        ConfigEntry { key: s.key.clone(), value, origin: s.origin.to_string() }
    };
    effective.shown().map(entry).collect()
}

fn http_limits(settings: &Settings) -> HttpLimits {
    HttpLimits {
        connections_max: settings.http_connections_max,
        head_timeout: settings.http_header_timeout,
        body_bytes_max: usize::try_from(settings.limits.bytes_max).unwrap_or(usize::MAX),
        drain_timeout: settings.shutdown_timeout,
        ..HttpLimits::default()
    }
}

fn page_rules(settings: &Settings) -> PageRules {
    let listeners = settings.http.iter().chain(&settings.https).map(|on| on.address);
    PageRules::new(&settings.http_allowed_origins, &settings.http_allowed_hosts, listeners)
}

fn stats_source(settings: &Settings) -> StatsSource {
    let mut dirs = vec![settings.data_dir.clone()];
    dirs.extend(settings.backend.data_roots().map(Path::to_path_buf));
    StatsSource { backend: settings.backend.name(), dirs }
}

fn pb_config(settings: &Settings, security: &Arc<NodeSecurity>) -> PbConfig {
    let defaults = PbConfig::default();
    let largest = usize::try_from(settings.limits.bytes_max.saturating_add(FRAME_OVERHEAD_BYTES)).unwrap_or(usize::MAX);
    PbConfig {
        connections_max: settings.pb_connections_max,
        frame_bytes_max: defaults.frame_bytes_max.max(largest),
        drain_timeout: settings.shutdown_timeout,
        nagle: settings.pb_nagle,
        keepalive: settings.pb_keepalive,
        jobs: settings.jobs,
        security: Some(Arc::clone(security)),
        policy: Some(Arc::<NodeSecurity>::clone(security)),
        ..defaults
    }
}

/// Prints the one line on standard output that says the node is ready. The program that started the
/// node may wait for it.
fn announce(record: &NodeRecord, data_dir: &Path) {
    let list = |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let (http, https, pb) = (list(&record.http), list(&record.https), list(&record.pb));
    let dir = data_dir.display();
    tracing::info!(node = record.name, http, https, protobuf = pb, data = %dir, "ready");
    let https = if https.is_empty() { https } else { format!("HTTPS {https}, ") };
    let listens = format!("HTTP {http}, {https}Protocol Buffers {pb}");
    say(&format!("{} is ready: {listens}, data in {dir}, pid {}", record.name, record.pid));
}

/// Prints a line on standard output, of which the log has the content.
fn say(line: &str) {
    // An error is ignored: standard output may be closed.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn cannot_write(path: &Path, e: &std::io::Error) -> String {
    format!("cannot write {}: {}", path.display(), lock::explain(e))
}

/// All problems of a configuration, one line each.
pub fn join(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
