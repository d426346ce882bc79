//! What a node counts about jobs: those that its clients gave it, and its work on parts of any.

use ombak_stats::{Feature, Figure, Number, Spiral, Sum};

/// The counts of the jobs of a node.
#[derive(Debug, Default)]
pub(crate) struct JobCounts {
    begun: Spiral,
    refused: Spiral,
    active: Sum,
    failed: Sum,
    abandoned: Sum,
    /// Pieces of parts that were asked for once more.
    redone: Sum,
    /// Pieces on which this node has worked to their end.
    pub(crate) pieces: Sum,
    pub(crate) pieces_waiting: Sum,
    pub(crate) pieces_active: Sum,
    /// Those of them that map objects.
    pub(crate) maps_active: Sum,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobEnd {
    Succeeded,
    Failed,
    /// Its client left.
    Abandoned,
}

impl JobEnd {
    /// The word in log lines.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "ok",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

impl JobCounts {
    /// A job begins, unless its inputs were refused.
    pub(crate) fn job_begins(&self, is_refused: bool) {
        if is_refused {
            self.refused.add(1);
        } else {
            self.begun.add(1);
            self.active.add(1);
        }
    }

    /// A job that was not refused has ended.
    pub(crate) fn job_ended(&self, how: JobEnd) {
        self.active.subtract(1);
        match how {
            JobEnd::Succeeded => {}
            JobEnd::Failed => self.failed.add(1),
            JobEnd::Abandoned => self.abandoned.add(1),
        }
    }

    /// A piece has no answer and is asked for once more.
    pub(crate) fn piece_redone(&self) {
        self.redone.add(1);
    }
}

impl Feature for JobCounts {
    fn figures(&self) -> Vec<Figure<'_>> {
        let figure =
            |name: &str, metric, help, number| Figure { name: name.to_owned(), metric, label: None, help, number };
        let total = |name, metric, help, sum: &Sum| figure(name, metric, help, Number::Total(sum.get()));
        let gauge = |name, metric, help, sum: &Sum| figure(name, metric, help, Number::Gauge(sum.get()));
        vec![
            figure("pipeline_create", "jobs_total", "MapReduce jobs begun.", Number::OneAndCount(&self.begun)),
            figure(
                "pipeline_create_error",
                "jobs_refused_total",
                "MapReduce jobs that could not begin.",
                Number::OneAndCount(&self.refused),
            ),
            gauge("pipeline_active", "jobs_active", "MapReduce jobs under way.", &self.active),
            gauge(
                "executing_mappers",
                "job_maps_active",
                "Pieces of jobs under way that map objects.",
                &self.maps_active,
            ),
            total("ombak_jobs_failed", "jobs_failed_total", "MapReduce jobs that began and failed.", &self.failed),
            total(
                "ombak_jobs_abandoned",
                "jobs_abandoned_total",
                "MapReduce jobs whose clients left before the end.",
                &self.abandoned,
            ),
            total(
                "ombak_job_pieces_redone",
                "job_pieces_redone_total",
                "Pieces of jobs asked for once more, because a node gave no answer.",
                &self.redone,
            ),
            total("ombak_job_pieces", "job_pieces_total", "Pieces of jobs done by this node.", &self.pieces),
            gauge(
                "ombak_job_pieces_active",
                "job_pieces_active",
                "Pieces of jobs under way here.",
                &self.pieces_active,
            ),
            gauge(
                "ombak_job_pieces_waiting",
                "job_pieces_waiting",
                "Pieces of jobs that wait because this node works on enough others.",
                &self.pieces_waiting,
            ),
        ]
    }
}
