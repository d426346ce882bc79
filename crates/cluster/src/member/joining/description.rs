//! What a node that wants to join has to know of the cluster.

use crate::member::error::ClusterError;
use crate::member::ground::Ground;
use crate::member::questions::question::Answer;
use crate::member::ring_change::closing::who_is_not_empty;
use ombak_kv::Holdings;
use ombak_metadata::state::TypeName;
use std::time::Instant;

/// Answers what a node that wants to join has to know.
pub(in crate::member) async fn describe_cluster(ground: &Ground, deadline: Instant) -> Result<Answer, ClusterError> {
    let metadata = ground.followed.get().metadata;
    // The answer has to arrive in time, also if a member does not answer.
    let now = ground.runtime.now();
    let patience = now + deadline.saturating_duration_since(now) / 2;
    let until = patience.min(ground.question_deadline());
    let not_empty = who_is_not_empty(ground, Holdings::Everything, None, until).await;
    Ok(Answer::Cluster {
        name: ground.me.name.clone(),
        node: ground.id(),
        ring_size: ground.kv().ring().size().get(),
        not_empty,
        types: metadata.types().keys().cloned().map(TypeName).collect(),
    })
}
