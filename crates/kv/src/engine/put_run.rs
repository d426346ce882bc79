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
use std::time::Instant;

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
    deadline: Option<Instant>,
    pending: FuturesUnordered<BoxFuture<'static, PutEvent>>,
}

impl PutRun {
    pub(super) fn new(
        engine: Arc<Engine>,
        core: PutCore,
        replicas: &RequestReplicas,
        version: Version,
        deadline: Option<Instant>,
    ) -> Self {
        let clients = replicas.list.iter().map(|replica| engine.replica_client(replica.node)).collect();
        Self { engine, core, clients, version, deadline, pending: FuturesUnordered::new() }
    }

    /// Executes what the coordinator has asked for so far, tells it what became of this node's
    /// copy, and runs until the client can be answered. The other replicas are served to their end,
    /// also after that.
    pub(super) async fn answer(mut self, first: PutActions, local: PutEvent) -> Result<(), Error> {
        let mut outcome = self.execute(first);
        let actions = self.core.on(local);
        outcome = self.execute(actions).or(outcome);
        while outcome.reply.is_none() && !outcome.done {
            outcome = self.step().await;
        }
        if !outcome.done {
            let runtime = self.engine.config.runtime.clone();
            runtime.spawn(Box::pin(async move { while !self.step().await.done {} }));
        }
        outcome.reply.unwrap_or(Err(Error::Timeout))
    }

    async fn step(&mut self) -> Outcome {
        let ended = within(&*self.engine.config.runtime, self.deadline, self.pending.next()).await;
        let event = match ended {
            Ok(Some(event)) => event,
            // Without a pending store no further answer can come.
            Ok(None) | Err(_) => PutEvent::Timeout,
        };
        let actions = self.core.on(event);
        self.execute(actions)
    }

    fn execute(&mut self, actions: PutActions) -> Outcome {
        let mut outcome = Outcome::default();
        for action in actions {
            match action {
                PutAction::Store { replica } => self.store(replica),
                PutAction::Reply(said) => outcome.reply = Some(said),
                PutAction::Done => outcome.done = true,
                // This node has coordinated before the run began.
                PutAction::Coordinate { .. } => {}
            }
        }
        outcome
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
            deadline: self.deadline,
        });
        self.pending.push(Box::pin(async move {
            match store.await {
                Ok(_) => PutEvent::Stored { replica },
                Err(error) => PutEvent::Failed { replica, error },
            }
        }));
    }
}

/// What some actions of the coordinator amount to.
#[derive(Default)]
struct Outcome {
    reply: Option<Result<(), Error>>,
    done: bool,
}

impl Outcome {
    fn or(self, earlier: Self) -> Self {
        Self { reply: self.reply.or(earlier.reply), done: self.done || earlier.done }
    }
}
