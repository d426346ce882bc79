//! Runs the rest of a write, after this node has stored its copy, over the replicas of other nodes.

use super::engine::Engine;
use super::stored_form::StoredForm;
use crate::coordination::put::{PutAction, PutActions, PutCore, PutEvent};
use crate::replica::{ReplicaClient, ReplicaStore, RequestReplicas, StoreKind};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_runtime::{BoxFuture, within};
use ombak_types::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a run serves the replicas of other nodes, at most.
const RUN_MAX: Duration = Duration::from_secs(30);

/// Maximum of the bytes of versions that runs hold for replicas which have not answered. Beyond it,
/// puts are refused before anything is executed.
const HELD_BYTES_MAX: u64 = 256 << 20;
/// What a run takes besides its version, in bytes.
const RUN_BYTES: u64 = 2 << 10;

/// The share of one run in the bytes that all runs hold.
struct HeldBytes {
    engine: Arc<Engine>,
    bytes: u64,
}

impl HeldBytes {
    fn count(engine: &Arc<Engine>, version: &Version) -> Self {
        let bytes = RUN_BYTES + (version.form.head.len() + version.form.body.len()) as u64;
        engine.put_run_bytes.fetch_add(bytes, Ordering::SeqCst);
        Self { engine: engine.clone(), bytes }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.engine.put_run_bytes.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

/// Refuses a put while the runs of earlier ones hold too much.
pub(crate) fn check_room(engine: &Engine) -> Result<(), Error> {
    let held = engine.put_run_bytes.load(Ordering::SeqCst);
    if held > HELD_BYTES_MAX { Err(Error::Overload) } else { Ok(()) }
}

/// The version that the other replicas get.
pub(super) struct Version {
    pub(super) partition: u32,
    pub(super) key: Bytes,
    pub(super) form: StoredForm,
    pub(super) kind: StoreKind,
    /// Whether each replica syncs the version before it answers.
    pub(super) synced: bool,
}

/// One active write over several replicas.
pub(super) struct PutRun {
    engine: Arc<Engine>,
    core: PutCore,
    clients: Vec<Arc<dyn ReplicaClient>>,
    version: Version,
    /// When the run ends, whether all replicas have answered or not. The limit of the client is no
    /// reason to leave a replica without the version, because its event exists.
    ends_at: Instant,
    pending: FuturesUnordered<BoxFuture<'static, PutEvent>>,
    /// Takes the reply, until it is sent.
    reply: Option<oneshot::Sender<Result<(), Error>>>,
}

impl PutRun {
    /// Runs beside the caller, and to its end also if the caller goes away. It executes what the
    /// coordinator has asked for so far, tells it what became of this node's copy, and serves the
    /// other replicas. Returns the receiver of the reply.
    pub(super) fn start(
        engine: &Arc<Engine>,
        core: PutCore,
        replicas: &RequestReplicas,
        version: Version,
        first: PutActions,
        local: PutEvent,
    ) -> oneshot::Receiver<Result<(), Error>> {
        let clients = replicas.list.iter().map(|replica| engine.replica_client(replica.node)).collect();
        let (reply, receiver) = oneshot::channel();
        let (runtime, pending) = (engine.config.runtime.clone(), FuturesUnordered::new());
        let ends_at = runtime.now() + RUN_MAX;
        let held = HeldBytes::count(engine, &version);
        let mut run = Self { engine: engine.clone(), core, clients, version, ends_at, pending, reply: Some(reply) };
        runtime.spawn(Box::pin(async move {
            let mut done = run.execute(first);
            let actions = run.core.on(local);
            done |= run.execute(actions);
            while !done {
                done = run.step().await;
            }
            drop(held);
        }));
        receiver
    }

    /// Waits for the next answer. Returns whether nothing follows.
    async fn step(&mut self) -> bool {
        let ended = within(&*self.engine.config.runtime, Some(self.ends_at), self.pending.next()).await;
        let event = match ended {
            Ok(Some(event)) => event,
            // Without a pending store no further answer can come.
            Ok(None) | Err(_) => PutEvent::Timeout,
        };
        let actions = self.core.on(event);
        self.execute(actions)
    }

    fn execute(&mut self, actions: PutActions) -> bool {
        let mut done = false;
        for action in actions {
            match action {
                PutAction::Store { replica } => self.store(replica),
                PutAction::Reply(said) => {
                    if let Some(reply) = self.reply.take() {
                        // Sending fails when the caller has gone away.
                        let _ = reply.send(said);
                    }
                }
                PutAction::Done => done = true,
                // This node has coordinated before the run began.
                PutAction::Coordinate { .. } => {}
            }
        }
        done
    }

    fn store(&mut self, replica: usize) {
        let version = &self.version;
        let store = self.clients[replica].store(ReplicaStore {
            partition: version.partition,
            key: version.key.clone(),
            head: version.form.head.clone(),
            body: version.form.body.clone(),
            kind: version.kind,
            synced: version.synced,
            deadline: Some(self.ends_at),
        });
        self.pending.push(Box::pin(async move {
            match store.await {
                Ok(_) => PutEvent::Stored { replica },
                Err(error) => PutEvent::Failed { replica, error },
            }
        }));
    }
}
