//! Runs a read over the partitions of this node.

use super::engine::{Engine, check_bucket, check_key, refuse_consistent};
use crate::get::{Answer, Ask, GetAction, GetCore, GetEvent, GetPlan};
use crate::partition::{Access, Failure, Partition};
use crate::quorums::effective_n;
use crate::request::{GetReply, GetRequest};
use ombak_types::Error;

impl Engine {
    /// One read, from check to reply.
    pub(crate) fn get_now(&self, request: &GetRequest, access: Access) -> Result<GetReply, Failure> {
        check_bucket(&request.bucket)?;
        check_key(&request.key)?;
        let props = self.buckets.props(&request.bucket)?;
        refuse_consistent(&props)?;
        let n = effective_n(request.options.n_val, &props)?;
        let replicas = self.replicas(n);
        let plan = GetPlan { local: Some(0), ..GetPlan::new(&request.options, &props, n, &replicas)? };
        let (partition, key) = self.locate(&request.bucket, &request.key, &props);
        let (mut core, mut actions) = GetCore::start(plan, &replicas);
        let mut reply = Err(Error::Timeout);
        let mut failure = None;
        while let Some(action) = actions.pop() {
            match action {
                GetAction::Ask { replica, ask } => {
                    let answer = answer(partition, &key, ask, access, &mut failure)?;
                    actions.extend(core.on(GetEvent::Answer { replica, answer }));
                }
                GetAction::Reply(said) => reply = said,
                // This node holds the only copy there is.
                GetAction::Repair { .. } | GetAction::Done => {}
            }
        }
        // The reason of the only replica says more than that a quorum was missed.
        match (reply, failure) {
            (Err(Error::QuorumUnsatisfied { .. } | Error::InsufficientNodes { .. }), Some(why)) => Err(why.into()),
            (reply, _) => reply.map_err(Failure::from),
        }
    }
}

fn answer(
    partition: &Partition,
    key: &[u8],
    ask: Ask,
    access: Access,
    failure: &mut Option<Error>,
) -> Result<Answer, Failure> {
    let read = match ask {
        Ask::Object => partition.get(key, access).map(|o| o.map(Answer::Object)),
        Ask::Head => partition.head(key, access).map(|o| o.map(Answer::Head)),
    };
    match read {
        Ok(found) => Ok(found.unwrap_or_else(|| Answer::NotFound { full: partition.store().complete() })),
        Err(Failure::WouldBlock) => Err(Failure::WouldBlock),
        Err(Failure::Refused(why)) => {
            *failure = Some(why);
            Ok(Answer::Failed)
        }
    }
}
