//! The parts that nodes answer.

use super::part::Part;
use crate::cli::admin_client::{RequestError, fetch};
use crate::cli::target::Target;
use futures_util::future::join_all;
use hyper::StatusCode;
use std::time::{Duration, Instant};

/// How long a node has for each answer. All are asked for at the same time.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The resources of a node, and the files that they become.
const RESOURCES: &[(&str, &str)] = &[
    ("/admin/v1/node", "status.json"),
    ("/admin/v1/config", "running-config.json"),
    ("/admin/v1/vnodes", "vnodes.json"),
    ("/admin/v1/top", "top.json"),
    ("/admin/v1/scrub", "scrub.json"),
    ("/admin/v1/backup", "backup.json"),
    ("/admin/v1/bucket-types", "bucket-types.json"),
    ("/admin/v1/functions", "functions.json"),
    ("/admin/v1/cluster/status", "cluster/status.json"),
    ("/admin/v1/cluster/member-status", "cluster/member-status.json"),
    ("/admin/v1/cluster/ring-status", "cluster/ring-status.json"),
    ("/admin/v1/cluster/ring-ready", "cluster/ring-ready.json"),
    ("/admin/v1/cluster/settled", "cluster/settled.json"),
    ("/admin/v1/cluster/partitions", "cluster/partitions.json"),
    ("/admin/v1/cluster/transfers", "cluster/transfers.json"),
    ("/admin/v1/cluster/handoff", "cluster/handoff.json"),
    ("/admin/v1/cluster/handoff-details", "cluster/handoff-details.json"),
    ("/admin/v1/cluster/transfer-limit", "cluster/transfer-limit.json"),
    ("/stats", "stats.json"),
    ("/metrics", "metrics.txt"),
    ("/health/live", "health-live.txt"),
    ("/health/ready", "health-ready.txt"),
];

/// Asks a node for everything. The files lie in `dir`.
pub(super) async fn parts(target: &Target, dir: &str) -> Vec<Part> {
    join_all(RESOURCES.iter().map(|(resource, file)| part(target, resource, format!("{dir}/{file}")))).await
}

async fn part(target: &Target, resource: &str, path: String) -> Part {
    let began = Instant::now();
    let content = match tokio::time::timeout(ANSWER_TIME, fetch(target, resource)).await {
        Err(_) => Err(format!("no answer within {} s", ANSWER_TIME.as_secs())),
        Ok(Err(RequestError::NoUsableAnswer(why))) => Err(why),
        Ok(Err(RequestError::Refused { message, .. })) => Err(message),
        // What a node that is not ready says of its health is of interest.
        Ok(Ok((status, body))) if status.is_success() || status == StatusCode::SERVICE_UNAVAILABLE => Ok(body.to_vec()),
        Ok(Ok((status, body))) => Err(format!("{status}: {}", String::from_utf8_lossy(&body).trim())),
    };
    Part::new(path, content, began)
}
