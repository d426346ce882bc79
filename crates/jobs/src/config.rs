//! The limits of the jobs of a node.

use crate::{InputSearches, JobFunctions};
use std::sync::Arc;
use std::time::Duration;

/// The limits of the jobs of a node.
#[derive(Clone)]
pub struct JobsConfig {
    /// Functions in JavaScript; without them, phases in JavaScript fail.
    pub functions: Option<JobFunctions>,
    /// Finds inputs by searches; without it, jobs whose inputs are a search fail.
    pub searches: Option<Arc<dyn InputSearches>>,
    /// How many threads read objects and call built-in functions.
    pub threads: usize,
    /// How many parts a node works on at the same time, of all jobs. Others wait.
    pub parts_at_once_max: usize,
    /// How many parts of one job run at the same time for each node of the cluster.
    pub parts_per_node: usize,
    /// About how many bytes of results a piece of a part has at most.
    pub piece_bytes_max: usize,
    /// How long the work on a piece may take before it is answered as far as it is.
    pub piece_time_max: Duration,
    /// How long the owner of a job waits for a piece before another replica is asked.
    pub answer_time_max: Duration,
    /// How many bytes of keys are collected for a part at once.
    pub keys_bytes_max: usize,
    /// How often an attempt at a part may fail without results between.
    pub attempts_max: u32,
}

impl Default for JobsConfig {
    fn default() -> Self {
        Self {
            functions: None,
            searches: None,
            threads: 2,
            parts_at_once_max: 8,
            parts_per_node: 4,
            piece_bytes_max: 1 << 20,
            piece_time_max: Duration::from_secs(1),
            answer_time_max: Duration::from_secs(60),
            keys_bytes_max: 4 << 20,
            attempts_max: 20,
        }
    }
}
