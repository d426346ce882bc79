//! The owner of a job: the node that the client asked.

mod asking;
mod job_course;
mod keys;

use crate::counts::JobEnd;
use crate::jobs::Inner;
use crate::part::{PartAnswer, PartError};
use asking::Troubles;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use job_course::JobCourse;
use keys::{Found, KeySource};
use ombak_kv::admin::EndedJob;
use ombak_mapreduce::{
    Attempt, BucketAccess, Failure, Inputs, Job, JobRun, Order, Phase, PhaseFailure, RunLimits, Source, Values,
};
use ombak_runtime::{BoxFuture, RuntimeExt, within};
use ombak_types::etf::Term;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, NodeId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Results of a phase, for the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The number of the phase, beginning with 0. A job without phases gives its inputs as phase 0.
    pub phase: usize,
    /// Some of its results; never none.
    pub values: Vec<Term>,
}

/// A job that runs. It makes results when they are asked for; dropping it ends the job.
pub struct RunningJob {
    node: Arc<Inner>,
    job: Arc<Job>,
    run: JobRun,
    /// The number of the job. No two jobs have the same.
    id: u128,
    /// The n of the bucket whose keys are the inputs.
    n: u32,
    begun: UnixMicros,
    deadline: Instant,
    keys: KeySource,
    events: FuturesUnordered<BoxFuture<'static, Event>>,
    troubles: Troubles,
    /// The nodes that have worked on the job.
    nodes: BTreeSet<NodeId>,
    /// Whether the job could not begin.
    is_refused: bool,
    has_ended: bool,
    course: JobCourse,
}

/// What a running job waits for.
enum Event {
    /// A node has answered, or will not.
    Part {
        attempt: Attempt,
        node: NodeId,
        outcome: Result<PartAnswer, PartError>,
    },
    /// A lost attempt may be repeated.
    Lost {
        attempt: Attempt,
        why: Error,
    },
    Reduced {
        phase: usize,
        results: Result<Values, Failure>,
    },
    Keys(Found),
}

impl RunningJob {
    pub(crate) fn new(node: Arc<Inner>, job: Job, access: Option<Arc<dyn BucketAccess>>) -> Self {
        let mut refused = None;
        let mut id = [0; 16];
        if let Err(error) = node.runtime.fill_random(&mut id) {
            refused = Some(Failure::Other(error.to_string()));
        }
        let (mut n, mut source) = (0, Source::Keys);
        let course = JobCourse::begin(node.runtime.now());
        let deadline = course.began + job.timeout;
        let mut keys = KeySource::default();
        match KeySource::of(&node, &job, deadline) {
            Ok(Found::Share { n: of_bucket, homes }) => (n, source) = (of_bucket, Source::Shares(homes)),
            Ok(Found::Source(found)) => keys = found,
            Ok(_) => {}
            Err(failure) => refused = Some(failure),
        }
        let nodes = node.kv.placement().nodes().len().max(1);
        let limits = RunLimits {
            parts_at_once_max: node.config.parts_per_node.max(1).saturating_mul(nodes),
            attempts_max: node.config.attempts_max,
            ..RunLimits::default()
        };
        let mut run = JobRun::new(&job, source, limits).with_access(access);
        let is_refused = refused.is_some();
        node.counts.job_begins(is_refused);
        if let Some(failure) = refused {
            run.stop(failure);
        }
        let begun = node.kv.wall_clock();
        let (id, job) = (u128::from_le_bytes(id), Arc::new(job));
        let (events, troubles) = (FuturesUnordered::new(), Troubles::default());
        Self {
            node,
            job,
            run,
            id,
            n,
            begun,
            deadline,
            keys,
            events,
            troubles,
            nodes: BTreeSet::new(),
            is_refused,
            has_ended: false,
            course,
        }
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The next results; `None` when the job has succeeded. After a failure the job has ended.
    pub async fn next(&mut self) -> Option<Result<Output, Failure>> {
        self.course.goes_on(self.node.runtime.now());
        while !self.has_ended {
            while let Some(order) = self.run.next_order() {
                match order {
                    Order::Run { attempt, work, from, map, prereduce } => {
                        self.ask(attempt, work, from, map, prereduce);
                    }
                    // The work ends when nobody waits for it any more, at the end of the job.
                    Order::Stop(_) => {}
                    Order::Reduce { phase, values } => self.reduce(phase, values),
                    Order::Give { phase, values } => {
                        self.course.rests(self.node.runtime.now());
                        return Some(Ok(Output { phase, values }));
                    }
                    Order::End(result) => {
                        self.end(if result.is_ok() { JobEnd::Succeeded } else { JobEnd::Failed });
                        return result.err().map(Err);
                    }
                }
            }
            if !self.feed() {
                self.wait().await;
            }
        }
        None
    }

    /// Waits for something to happen.
    async fn wait(&mut self) {
        let runtime = self.node.runtime.clone();
        let waits_from = runtime.now();
        let event = within(&*runtime, Some(self.deadline), self.events.next()).await;
        self.course.parts_time += runtime.now().saturating_duration_since(waits_from);
        match event {
            Err(_) => self.run.stop(Failure::Timeout),
            Ok(None) => self.run.stop(Failure::Other("the job waits for nobody".to_owned())),
            Ok(Some(event)) => self.take(event),
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Part { attempt, outcome: Ok(answer), .. } => {
                self.course.answered += 1;
                self.troubles.over(attempt.part);
                self.run.part_done(attempt, answer.results, answer.from);
            }
            Event::Part { attempt, outcome: Err(PartError::Failed(failure)), .. } => {
                self.run.part_failed(attempt, failure);
            }
            Event::Part { attempt, node, outcome: Err(PartError::Lost(error)) } => {
                tracing::info!(peer = %node, part = attempt.part, %error, "a part of a job is tried again");
                let pause = self.troubles.failed(attempt.part, node);
                let over = self.node.runtime.sleep(pause);
                self.events.push(Box::pin(async move {
                    over.await;
                    Event::Lost { attempt, why: error }
                }));
            }
            Event::Lost { attempt, why } => {
                self.node.counts.piece_redone();
                self.run.part_lost(attempt, &why.to_string());
            }
            Event::Reduced { phase, results } => self.run.reduced(phase, results),
            Event::Keys(found) => self.take_keys(found),
        }
    }

    fn reduce(&mut self, phase: usize, values: Vec<Values>) {
        let (node, job, id, deadline) = (self.node.clone(), self.job.clone(), self.id, self.deadline);
        self.events.push(Box::pin(async move {
            let results = match job.phases.get(phase) {
                Some(Phase::Reduce { function, arg, .. }) => {
                    node.local().reduce((id, phase), function, arg, values, deadline).await
                }
                _ => Err(Failure::Phase(PhaseFailure::of_reduce(phase, "not a reduce phase"))),
            };
            Event::Reduced { phase, results }
        }));
    }

    /// Ends all work for the job, here and at other nodes.
    fn end(&mut self, how: JobEnd) {
        self.has_ended = true;
        if !self.is_refused {
            self.node.counts.job_ended(how);
            self.note_course(how);
        }
        self.events.clear();
        self.keys = KeySource::default();
        self.node.local().drop_later(self.run.take_leftovers());
        // Reduce functions have run here.
        self.nodes.insert(self.node.kv.identity().node_id);
        for node in std::mem::take(&mut self.nodes) {
            self.node.runtime.spawn(self.node.part_client(node).end_job(self.id));
        }
    }

    /// Logs the job if it was slow.
    fn note_course(&mut self, how: JobEnd) {
        self.course.goes_on(self.node.runtime.now());
        let JobCourse { began, parts_time, client_time, asked, answered, .. } = self.course;
        let bucket = self.job.buckets().next();
        self.node.kv.note_job(&EndedJob {
            bucket: bucket.as_ref(),
            began,
            parts_time,
            client_time,
            parts: (asked, answered),
            result: how.name(),
        });
    }

    fn inputs(&self) -> &Inputs {
        &self.job.inputs
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(JobEnd::Abandoned);
        }
    }
}
