//! What operators see of exchanges between primaries, and what they change about them.

use super::transfers::{OfMember, Whom, members_of};
use crate::member::error::ClusterError;
use crate::member::ground::Ground;
use crate::member::member_node::MemberNode;
use crate::member::questions::exchanges::{ExchangeChange, MemberExchanges};
use crate::member::questions::question::{Answer, Question};
use futures_util::future::join_all;

impl MemberNode {
    /// Changes the exchanges of members, until they stop, and tells them, in the order of the
    /// members. A member of an earlier version refuses the question.
    pub async fn exchanges(
        &self,
        whom: &Whom,
        change: ExchangeChange,
    ) -> Result<Vec<OfMember<MemberExchanges>>, ClusterError> {
        let inner = &self.inner;
        let members = members_of(inner, whom)?;
        let (question, deadline) = (Question::Exchanges { change }, inner.question_deadline());
        let answers = join_all(members.iter().map(|node| inner.ask(*node, &question, deadline))).await;
        let of = |(node, answer)| {
            let answer = match answer {
                Ok(Answer::Exchanges(exchanges)) => Ok(*exchanges),
                Ok(_) => Err("it gave another answer".to_owned()),
                Err(why) => Err(why),
            };
            OfMember { node, name: inner.name_of(node), answer }
        };
        Ok(members.into_iter().zip(answers).map(of).collect())
    }
}

/// Answers what the exchanges of this node are, after it has carried out a change.
pub(in crate::member) async fn exchanges_here(ground: &Ground, change: ExchangeChange) -> Result<Answer, ClusterError> {
    let repair = ground.repair().clone();
    let changed = ground.blocking(move || {
        let has_changed = change.apply_to(&repair)?;
        Ok::<_, ombak_types::Error>(MemberExchanges { has_changed, ..MemberExchanges::of(&repair) })
    });
    let now = changed.await?.map_err(|why| ClusterError::refused(why.to_string()))?;
    Ok(Answer::Exchanges(Box::new(now)))
}
