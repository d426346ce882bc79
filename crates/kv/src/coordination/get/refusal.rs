//! The answer to the client of a read that too few replicas favour.

use super::copies::Copies;
use super::newest::Newest;
use super::plan::GetPlan;
use super::votes::Votes;
use crate::requests::GetReply;
use ombak_types::Error;

/// The answer while too few replicas are in favour, if no further answer can change it.
pub(super) fn unmet(plan: &GetPlan, votes: &mut Votes, copies: &mut Copies) -> Option<Result<GetReply, Error>> {
    let against = votes.missing.positions + votes.failed.positions;
    if against >= plan.fail_threshold {
        let refusal = refusal(plan, votes, copies);
        // An owner that does not know whether it has everything proves no absence.
        let is_unproven = votes.is_doubtful && matches!(refusal, Ok(GetReply::NotFound { .. }));
        return (!is_unproven || copies.all_answered()).then_some(refusal);
    }
    if !copies.all_answered() {
        return None;
    }
    Some(if copies.is_anything_late() { Err(Error::Timeout) } else { refusal(plan, votes, copies) })
}

fn refusal(plan: &GetPlan, votes: &mut Votes, copies: &mut Copies) -> Result<GetReply, Error> {
    // The error of the only replica says more than a missed quorum.
    if copies.len() == 1
        && let Some(error) = votes.failure.take()
    {
        return Err(error);
    }
    let ok = votes.ok;
    if votes.failed.positions > 0 && votes.only_busy {
        return Err(Error::Overload);
    }
    if ok.positions >= plan.r && ok.primaries < plan.pr {
        return Err(Error::QuorumUnsatisfied { option: "pr", need: plan.pr, got: ok.primaries });
    }
    if ok.positions >= plan.r {
        return Err(Error::InsufficientNodes { have: ok.nodes, need: plan.node_confirms });
    }
    if votes.failed.positions == 0 && !copies.has_live(plan.now) {
        return absence(plan, votes, copies);
    }
    Err(Error::QuorumUnsatisfied { option: "r", need: plan.r, got: ok.positions })
}

/// The answer if no replica failed and none has anything alive.
fn absence(plan: &GetPlan, votes: &Votes, copies: &mut Copies) -> Result<GetReply, Error> {
    let got = votes.ok.primaries;
    // Whoever asks for owners wants no absence that an owner could not prove (§1).
    if votes.is_doubtful && got < plan.pr {
        return Err(Error::QuorumUnsatisfied { option: "pr", need: plan.pr, got });
    }
    let tombstone = match copies.newest(plan.head) {
        Newest::Ready(object, _) => Some(object.clock),
        _ => None,
    };
    Ok(GetReply::NotFound { tombstone })
}
