//! Parts of MapReduce jobs over several nodes and real sockets.

use crate::support::{Cluster, PATIENCE, bucket, soon, until};
use bytes::Bytes;
use ombak_functions::{Catalogue, FunctionPool, Lane, NothingRegistered, PoolConfig};
use ombak_jobs::{
    JobFunctions, JobsConfig, PartAnswer, PartClient, PartError, PartNodes, PartRequest, PartWork, PhaseOfPart,
};
use ombak_kv::PutOptions;
use ombak_mapreduce::{Failure, Input, Job, KeyFilter, Values, to_json};
use ombak_runtime::{BoxFuture, JobQueue, NoRandomBytes, Periodic, Runtime, TaskThreads, TokioRuntime};
use ombak_types::etf::Term;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, NodeId, Quorum, StoreFailureKind};
use parking_lot::{Condvar, Mutex};
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// As many as a node works on for others (`PIECES_MAX` of the service).
const PIECES_MAX: usize = 1024;

ombak_functions::function_worker_of_tests!();

/// Stands before the threads for jobs of a node.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    /// How much work may pass; `None`: all.
    left: Option<usize>,
    /// How much work waits before the gate.
    waiting: usize,
}

impl Gate {
    fn let_pass(&self, left: Option<usize>) {
        self.state.lock().left = left;
        self.changed.notify_all();
    }

    fn waiting(&self) -> usize {
        self.state.lock().waiting
    }

    fn pass(&self) {
        let mut state = self.state.lock();
        state.waiting += 1;
        while state.left == Some(0) {
            self.changed.wait(&mut state);
        }
        state.waiting -= 1;
        state.left = state.left.map(|left| left - 1);
    }
}

/// Opens the gate, so that a test that fails ends.
struct OpensAtEnd(Arc<Gate>);

impl Drop for OpensAtEnd {
    fn drop(&mut self) {
        self.0.let_pass(None);
    }
}

/// A real world with a gate before the threads for jobs.
struct GatedRuntime(Arc<Gate>);

struct GatedThreads(Arc<Gate>, Arc<dyn TaskThreads>);

impl TaskThreads for GatedThreads {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let gate = self.0.clone();
        self.1.spawn(Box::pin(async move {
            gate.pass();
            task.await;
        }));
    }

    fn stop(&self) {
        self.1.stop();
    }
}

impl Runtime for GatedRuntime {
    fn now(&self) -> Instant {
        TokioRuntime.now()
    }

    fn wall_clock(&self) -> UnixMicros {
        TokioRuntime.wall_clock()
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
        TokioRuntime.fill_random(bytes)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        TokioRuntime.spawn(task);
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        TokioRuntime.sleep_until(at)
    }

    fn start_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        TokioRuntime.start_pool(name, threads, jobs_max)
    }

    fn start_background_threads(&self, name: &str, threads: usize) -> io::Result<Arc<dyn TaskThreads>> {
        Ok(Arc::new(GatedThreads(self.0.clone(), TokioRuntime.start_background_threads(name, threads)?)))
    }

    fn start_periodic(
        &self,
        name: &str,
        interval: Duration,
        round: Box<dyn FnMut() + Send>,
    ) -> io::Result<Box<dyn Periodic>> {
        TokioRuntime.start_periodic(name, interval, round)
    }
}

/// Nodes with these limits of jobs, and the gate of each.
fn gated(count: usize, jobs: &JobsConfig) -> (Cluster, Vec<Arc<Gate>>) {
    let gates = Mutex::new(Vec::new());
    let cluster = Cluster::configured(count, |parts| {
        let gate = Arc::new(Gate::default());
        gates.lock().push(gate.clone());
        parts.kv.runtime = Arc::new(GatedRuntime(gate));
        parts.jobs = jobs.clone();
    });
    (cluster, gates.into_inner())
}

/// The second node, asked by the first one, with its gate closed. It works on one piece at a time.
fn one_at_a_time() -> (Cluster, Arc<dyn PartClient>, OpensAtEnd) {
    let (cluster, gates) = gated(2, &JobsConfig { parts_at_once_max: 1, ..JobsConfig::default() });
    gates[1].let_pass(Some(0));
    let there = cluster.node(0).peers().part_client(cluster.id(1));
    (cluster, there, OpensAtEnd(gates[1].clone()))
}

fn number(cluster: &Cluster, node: usize, name: &str) -> u64 {
    let numbers = cluster.node(node).kv().stats().numbers();
    numbers.into_iter().find(|(is, _)| is == name).unwrap().1
}

/// How many pieces a node has taken and not done.
fn under_way(cluster: &Cluster, node: usize) -> u64 {
    number(cluster, node, "ombak_job_pieces_active") + number(cluster, node, "ombak_job_pieces_waiting")
}

/// A piece that reads one key, which does not exist.
fn piece(deadline: Instant) -> PartRequest {
    let map = json!({"map": {"language": "erlang", "module": "riak_kv_mapreduce", "function": "map_object_value",
                             "arg": "filter_notfound"}});
    let job = json!({"inputs": "b", "query": [map]}).to_string();
    let phase = Job::from_json(job.as_bytes()).unwrap().phases.remove(0);
    let keys = vec![Input::new(bucket(), Bytes::from_static(b"missing"))];
    let map = Some(PhaseOfPart { number: 0, phase });
    PartRequest { job: 1, work: PartWork::Keys(keys), from: None, map, prereduce: None, deadline }
}

/// A piece whose deadline passes after the test has given up.
fn patient() -> PartRequest {
    piece(Instant::now() + 10 * PATIENCE)
}

/// Asks a node for a piece, and decodes it.
fn piece_of(
    node: &Arc<dyn PartClient>,
    request: PartRequest,
) -> impl Future<Output = Result<PartAnswer, PartError>> + use<> {
    let piece = node.piece(request);
    async move { piece.await?.read() }
}

type Piece = JoinHandle<Result<PartAnswer, PartError>>;

fn nothing() -> Result<PartAnswer, PartError> {
    Ok(PartAnswer { results: Values::default(), from: None })
}

fn is_unreachable(outcome: &Result<PartAnswer, PartError>) -> bool {
    matches!(outcome, Err(PartError::Lost(Error::Storage(why))) if why.kind == StoreFailureKind::Unreachable)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_beyond_the_bound_are_refused_and_the_others_done() {
    let (cluster, there, gate) = one_at_a_time();
    let pieces: Vec<Piece> = (0..PIECES_MAX).map(|_| tokio::spawn(piece_of(&there, patient()))).collect();
    until("all pieces are there", || under_way(&cluster, 1) == PIECES_MAX as u64).await;
    assert_eq!(soon(piece_of(&there, patient())).await, Err(PartError::Lost(Error::Overload)));
    assert_eq!(cluster.node(1).replica_counts().refused_overload, 1);
    gate.0.let_pass(None);
    for piece in pieces {
        assert_eq!(soon(piece).await.unwrap(), nothing());
    }
    assert_eq!(soon(piece_of(&there, patient())).await, nothing(), "there is room again");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_ends_what_it_does_and_refuses_more() {
    let (cluster, there, gate) = one_at_a_time();
    let begun: Piece = tokio::spawn(piece_of(&there, patient()));
    until("the piece begins", || gate.0.waiting() == 1).await;
    let cluster = Arc::new(cluster);
    let stop = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.node(1).stop().await }
    });
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        let further = soon(piece_of(&there, piece(Instant::now() + Duration::from_millis(20)))).await;
        if is_unreachable(&further) {
            break;
        }
        assert!(Instant::now() < give_up_at, "{further:?}");
    }
    assert!(!begun.is_finished() && !stop.is_finished());
    gate.0.let_pass(None);
    assert_eq!(soon(begun).await.unwrap(), nothing());
    soon(stop).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_piece_that_does_not_begin_in_time_is_the_end_of_its_job() {
    let (cluster, there, gate) = one_at_a_time();
    let begun: Piece = tokio::spawn(piece_of(&there, patient()));
    until("the piece begins", || gate.0.waiting() == 1).await;
    let late = soon(piece_of(&there, piece(Instant::now() + Duration::from_millis(50)))).await;
    // Either node may be the first to know.
    let is_late = matches!(late, Err(PartError::Failed(Failure::Timeout) | PartError::Lost(Error::Timeout)));
    assert!(is_late, "{late:?}");
    until("nothing waits", || number(&cluster, 1, "ombak_job_pieces_waiting") == 0).await;
    gate.0.let_pass(None);
    assert_eq!(soon(begun).await.unwrap(), nothing());
    cluster.stop().await;
}

/// The gate stays closed, so no piece ends by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_end_when_nobody_waits_for_them() {
    let (cluster, there, gate) = one_at_a_time();
    let pieces: Vec<Piece> = (0..3).map(|_| tokio::spawn(piece_of(&there, patient()))).collect();
    until("one begins and two wait", || gate.0.waiting() == 1 && under_way(&cluster, 1) == 3).await;
    pieces.iter().for_each(Piece::abort);
    until("the pieces end", || under_way(&cluster, 1) == 0).await;
    assert_eq!(number(&cluster, 1, "ombak_job_pieces"), 0);
    drop(gate);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_end_when_their_peer_disconnects() {
    let (cluster, there, gate) = one_at_a_time();
    let pieces: Vec<Piece> = (0..3).map(|_| tokio::spawn(piece_of(&there, patient()))).collect();
    until("one begins and two wait", || gate.0.waiting() == 1 && under_way(&cluster, 1) == 3).await;
    cluster.node(0).transport().stop();
    for piece in pieces {
        assert!(matches!(soon(piece).await.unwrap(), Err(PartError::Lost(_))));
    }
    until("the pieces end", || under_way(&cluster, 1) == 0).await;
    drop(gate);
    cluster.stop().await;
}

async fn fill(cluster: &Cluster, count: usize) {
    let all = PutOptions { w: Some(Quorum::All), ..PutOptions::default() };
    for n in 0..count {
        soon(cluster.put(n % cluster.nodes.len(), &format!("k{n}"), &n.to_string(), all.clone())).await.unwrap();
    }
}

/// The second node has given some results, and dies while it works on more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_piece_is_redone_by_another_replica_when_a_node_dies_and_no_result_counts_twice() {
    const KEYS: usize = 400;
    let (cluster, gates) = gated(3, &JobsConfig { piece_bytes_max: 1, ..JobsConfig::default() });
    let gate = OpensAtEnd(gates[1].clone());
    fill(&cluster, KEYS).await;
    gate.0.let_pass(Some(2));
    let map = json!({"map": {"language": "erlang", "module": "riak_kv_mapreduce", "function": "map_object_value"}});
    let job = json!({"inputs": "b", "query": [map]}).to_string();
    let mut running = cluster.node(0).jobs().run(Job::from_json(job.as_bytes()).unwrap(), None);
    let results = tokio::spawn(async move {
        let mut results = Vec::new();
        while let Some(output) = running.next().await {
            results.extend(output.unwrap().values.iter().map(|value| to_json(value).unwrap()));
        }
        results.sort();
        results
    });
    until("it dies in the middle", || number(&cluster, 1, "ombak_job_pieces") > 0 && gate.0.waiting() > 0).await;
    assert_eq!(number(&cluster, 0, "ombak_job_pieces_redone"), 0);
    let dead: NodeId = cluster.id(1);
    cluster.node(1).transport().stop();
    cluster.beliefs.set_down(dead, true);
    let results = soon(results).await.unwrap();
    let mut expected: Vec<String> = (0..KEYS).map(|n| format!("\"{n}\"")).collect();
    expected.sort();
    assert_eq!(results, expected);
    assert!(number(&cluster, 0, "ombak_job_pieces_redone") > 0);
    drop(gate);
    cluster.stop().await;
}

/// While no replica of a key is up, the node that was asked stands in, as for a get.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_whose_replicas_are_down_are_not_found() {
    let cluster = Cluster::of(4);
    fill(&cluster, 20).await;
    let key = (0..20).map(|n| format!("k{n}")).find(|key| !cluster.holders(key).contains(&0)).unwrap();
    for holder in cluster.holders(&key) {
        cluster.beliefs.set_down(cluster.id(holder), true);
    }
    let map = json!({"map": {"language": "erlang", "module": "riak_kv_mapreduce", "function": "map_object_value",
                             "arg": "filter_notfound"}});
    let job = json!({"inputs": [["b", key]], "query": [map]}).to_string();
    let mut running = cluster.node(0).jobs().run(Job::from_json(job.as_bytes()).unwrap(), None);
    assert_eq!(soon(running.next()).await, None);
    cluster.stop().await;
}

/// A node that is asked for keys which lie elsewhere must not answer that there are none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_piece_of_keys_that_lie_elsewhere_is_lost() {
    let cluster = Cluster::of(3);
    fill(&cluster, 20).await;
    let kv = cluster.node(0).kv();
    let here = |node: usize, home| kv.share(home, 1).nodes.contains(&cluster.id(node));
    for home in 0..kv.homes() {
        let request = |node: usize| {
            let ring = cluster.node(node).kv().share(home, 1).ring;
            let work = PartWork::Share {
                bucket: bucket(),
                home,
                n: 1,
                ring,
                begun: TokioRuntime.wall_clock(),
                filter: KeyFilter::default(),
            };
            PartRequest { work, map: None, ..patient() }
        };
        for node in 1..3 {
            let there = cluster.node(0).peers().part_client(cluster.id(node));
            let piece = soon(piece_of(&there, request(node))).await;
            assert_eq!(piece.is_ok(), here(node, home), "node {node}, home {home}: {piece:?}");
        }
    }
    cluster.stop().await;
}

/// The results of a piece can be small integers alone. Erlang's encoding has a form of its own for
/// such a list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_numbers_arrive_from_other_nodes() {
    const KEYS: usize = 100;
    let cluster = Cluster::of(3);
    fill(&cluster, KEYS).await;
    let count =
        json!({"reduce": {"language": "erlang", "module": "riak_kv_mapreduce", "function": "reduce_count_inputs"}});
    let job = json!({"inputs": "b", "query": [count]}).to_string();
    let mut running = cluster.node(0).jobs().run(Job::from_json(job.as_bytes()).unwrap(), None);
    let mut results = Vec::new();
    while let Some(output) = soon(running.next()).await {
        results.extend(output.unwrap().values);
    }
    assert_eq!(results, [Term::Int(KEYS as i64)]);
    let elsewhere: u64 = (1..3).map(|node| number(&cluster, node, "ombak_job_pieces")).sum();
    assert!(elsewhere > 0, "other nodes have done pieces");
    assert_eq!(number(&cluster, 0, "ombak_job_pieces_redone"), 0);
    cluster.stop().await;
}

/// A node that was away is back, and its store does not take yet what it has missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_does_not_ask_a_replica_that_is_known_to_have_missed_writes() {
    const KEYS: usize = 100;
    let cluster = Cluster::of(3);
    cluster.nodes[2].faults.hold_puts(true);
    cluster.beliefs.set_down(cluster.id(2), true);
    for n in 0..KEYS {
        soon(cluster.put(0, &format!("k{n}"), &n.to_string(), PutOptions::default())).await.unwrap();
    }
    cluster.beliefs.set_down(cluster.id(2), false);
    let map = json!({"map": {"language": "erlang", "module": "riak_kv_mapreduce", "function": "map_object_value"}});
    let job = json!({"inputs": "b", "query": [map]}).to_string();
    let mut running = cluster.node(0).jobs().run(Job::from_json(job.as_bytes()).unwrap(), None);
    let mut results = 0;
    while let Some(output) = soon(running.next()).await {
        results += output.unwrap().values.len();
    }
    assert_eq!((cluster.stored(2, "k0"), results), (None, KEYS));
    cluster.nodes[2].faults.hold_puts(false);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_forget_a_job_when_its_owner_leaves_it() {
    let pools = Mutex::new(Vec::new());
    let cluster = Cluster::configured(3, |parts| {
        let pool = FunctionPool::new(Arc::new(TokioRuntime), PoolConfig::default(), program());
        let catalogue = Catalogue::new(Arc::new(NothingRegistered), Vec::new(), false);
        pools.lock().push(pool.clone());
        let functions = Some(JobFunctions { pool, catalogue });
        parts.jobs = JobsConfig { functions, piece_bytes_max: 1, parts_per_node: 16, ..JobsConfig::default() };
    });
    let pools = pools.into_inner();
    fill(&cluster, 300).await;
    let map = json!({"map": {"language": "javascript", "name": "Riak.mapValues"}});
    let job = json!({"inputs": "b", "query": [map]}).to_string();
    let mut running = cluster.node(0).jobs().run(Job::from_json(job.as_bytes()).unwrap(), None);
    let sessions = |pool: &FunctionPool| pool.open_sessions(Lane::Map);
    while !pools.iter().all(|pool| sessions(pool) > 0) {
        soon(running.next()).await.expect("the job ends before all nodes have worked on it").unwrap();
    }
    drop(running);
    until("no node keeps a session", || pools.iter().all(|pool| sessions(pool) == 0)).await;
    assert_eq!(number(&cluster, 0, "ombak_jobs_abandoned"), 1);
    cluster.stop().await;
}
