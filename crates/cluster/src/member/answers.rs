//! What this node answers to the questions of members.
//!
//! A question belongs to a story, and that story has its answer. This is the list.

use super::admin::exchanges::exchanges_here;
use super::admin::settlement::count_unsettled;
use super::admin::transfers::transfers_here;
use super::error::ClusterError;
use super::ground::AnswersItself;
use super::joining::catching_up::say_whether_secured;
use super::joining::description::describe_cluster;
use super::member_node::Inner;
use super::questions::question::{Answer, Question};
use super::questions::transfers::TransferChange;
use super::ring_change::closing::find_objects;
use ombak_runtime::BoxFuture;
use std::sync::Arc;
use std::time::Instant;

impl Inner {
    /// Answers a question of a member.
    pub async fn answer(self: &Arc<Self>, question: &Question, deadline: Instant) -> Answer {
        if let Some(why) = self.own_directory.older() {
            return Answer::Refused { why: self.own_directory.text(&why) };
        }
        let answered = match question {
            Question::Ring => Ok(Answer::Ring { version: self.kv().placement().version() }),
            Question::RingReport { orders, lineage } => self.ring_change.report_ring(orders, *lineage).await,
            Question::RingChange => Ok(Answer::RingChange(self.ring_change.driven_change().map(Box::new))),
            Question::Cluster => describe_cluster(self, deadline).await,
            Question::Settled => count_unsettled(self).await,
            Question::Transfers => transfers_here(self, TransferChange::default(), false).await,
            Question::ChangeTransfers { change } => transfers_here(self, *change, false).await,
            Question::Exchanges { change } => exchanges_here(self, change.clone()).await,
            Question::DetectionTimes => Ok(Answer::DetectionTimes(self.detection_times)),
            Question::RetryTransfers => transfers_here(self, TransferChange::default(), true).await,
            Question::IsMember { node } => {
                let now = self.followed.get();
                let lineage = now.metadata.lineage().map(|lineage| lineage.id);
                Ok(Answer::IsMember { is_member: now.metadata.members().contains_key(node), index: now.index, lineage })
            }
            Question::IsSecured => say_whether_secured(self),
            Question::Followed { at_least, lineage } => self.say_followed(*at_least, *lineage, deadline).await,
            Question::Objects { r#in, closing, lineage } => {
                let closing = closing.map(|closing| (closing, *lineage));
                find_objects(self, r#in.clone().into(), closing, deadline).await
            }
            Question::Start | Question::GoesOn { .. } | Question::IsOlder { .. } | Question::WhoIs { .. } => {
                Err(ClusterError::refused("a node does not ask that of itself"))
            }
        };
        answered.unwrap_or_else(|why| Answer::Refused { why: why.to_string() })
    }
}

impl AnswersItself for Inner {
    fn answer_itself<'a>(self: Arc<Self>, question: &'a Question, deadline: Instant) -> BoxFuture<'a, Answer> {
        Box::pin(async move { self.answer(question, deadline).await })
    }
}
