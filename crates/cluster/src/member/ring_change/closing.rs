//! Changes that only an empty cluster, bucket or type survives: every member refuses writes to it
//! and proves that it holds nothing of it, the change takes effect, and the members take writes
//! again.
//!
//! Only the metadata opens again. A member that opened by itself, after some time without a
//! majority, could take writes before the entry of the change takes effect late. So without a
//! majority the bucket or type stays closed, or the whole cluster if its nodes change.

use crate::member::error::ClusterError;
use crate::member::ground::{Followed, Ground};
use crate::member::questions::question::{Answer, Place, Question};
use futures_util::future::join_all;
use ombak_kv::Holdings;
use ombak_metadata::state::{ClosedPart, Command, Member, MemberStatus, Refusal};
use ombak_metadata::{MetadataNode, ProposeError};
use ombak_types::NodeId;
use std::sync::Arc;
use std::time::Instant;

/// Carries out a command while no member holds an object in `holdings`. Returns the index of
/// its entry. After an error the command has no effect, unless the error says that this is
/// unknown.
pub(in crate::member) async fn while_empty(
    ground: &Ground,
    holdings: Holdings,
    command: Command,
) -> Result<u64, ClusterError> {
    let (metadata, deadline) = (ground.metadata_node(), ground.command_deadline());
    let close = match Place::from(holdings.clone()) {
        Place::Everywhere => Command::CloseWrites,
        Place::Type(name) => Command::ClosePart { part: ClosedPart::Type(name) },
        Place::Bucket(bucket) => Command::ClosePart { part: ClosedPart::Bucket(bucket) },
    };
    let closing = match metadata.propose(close, deadline).await {
        Err(ProposeError::Refused(Refusal::WritesClosed)) => {
            return Err(ClusterError::refused(
                "Another change of the cluster is under way. Try again in a few moments.",
            ));
        }
        decided => decided?,
    };
    let outcome = prove_and_change(ground, &metadata, closing, holdings, command, deadline).await;
    if outcome.is_err() {
        let until = ground.question_deadline();
        // The members end the closing by themselves if this does not.
        let _ = metadata.propose(Command::OpenWrites { closing }, until).await;
    }
    outcome
}

async fn prove_and_change(
    ground: &Ground,
    metadata: &Arc<MetadataNode>,
    closing: u64,
    holdings: Holdings,
    command: Command,
    deadline: Instant,
) -> Result<u64, ClusterError> {
    let problems = who_is_not_empty(ground, holdings, Some(closing), deadline).await;
    if let Some(problem) = problems.first() {
        return Err(ClusterError::refused(format!("Failed: {problem}")));
    }
    Ok(metadata.propose(Command::WhileClosed { closing, command: Box::new(command) }, deadline).await?)
}

/// Asks all members whether they hold an object. Returns a sentence for each member that does,
/// or that does not answer. With a closing, an answer also proves that the member takes no
/// writes.
pub(in crate::member) async fn who_is_not_empty(
    ground: &Ground,
    holdings: Holdings,
    closing: Option<u64>,
    deadline: Instant,
) -> Vec<String> {
    let metadata = ground.metadata_node().metadata();
    // An operator said that the cluster changes without a member that is down. What it holds it
    // hands to the primaries when it returns.
    let counts = |member: &Member| member.status != MemberStatus::Down;
    let members: Vec<NodeId> =
        metadata.members().iter().filter(|(_, member)| counts(member)).map(|(node, _)| *node).collect();
    let lineage = metadata.lineage().map(|lineage| lineage.id);
    let question = Question::Objects { r#in: Place::from(holdings), closing, lineage };
    let answers = members.iter().map(|node| ground.ask(*node, &question, deadline));
    let answers = join_all(answers).await;
    let problem = |(node, answer): (&NodeId, Result<Answer, String>)| {
        let name = ground.name_of(*node);
        match answer {
            Ok(Answer::Objects { found: None }) => None,
            Ok(Answer::Objects { found: Some(partition) }) => Some(format!(
                "'{name}' holds objects or tombstones (for example in partition {partition}). This \
                 change is possible only while no member holds anything."
            )),
            Ok(_) => Some(format!("'{name}' gave another answer than was asked for.")),
            Err(why) => Some(format!("Node '{name}' is not reachable! ({why})")),
        }
    };
    members.iter().zip(answers).filter_map(problem).collect()
}

/// Answers whether this node holds an object.
pub(in crate::member) async fn find_objects(
    ground: &Ground,
    holdings: Holdings,
    closing: Option<(u64, Option<u64>)>,
    deadline: Instant,
) -> Result<Answer, ClusterError> {
    if let Some((closing, lineage)) = closing {
        // A state is followed only after the last write that began before it has ended.
        // The same index in another lineage is another entry.
        let is_same = |now: &Followed| lineage.is_none() || now.metadata.lineage().map(|known| known.id) == lineage;
        let is_closed = ground.followed.wait_for(|now| is_same(now) && now.metadata.closing() == Some(closing));
        let waited = ombak_runtime::within(&*ground.runtime, Some(deadline), is_closed).await;
        if !matches!(waited, Ok(Some(_))) || !ground.kv().is_closed_to_writes(&holdings) {
            return Err(ClusterError::refused("it does not know of the change yet"));
        }
    }
    let kv = ground.kv().clone();
    let found = ground.blocking(move || kv.find_object(&holdings)).await??;
    Ok(Answer::Objects { found })
}
