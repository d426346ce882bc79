//! Runs a read over the partitions of this node.
//!
//! Hot path. A read that one copy decides, which is what a read is where this node is the only owner, is answered from the
//! bytes of the store; the coordinator is for all others. That both say the same is a property test.

use super::engine::{Engine, check_bucket, check_key, refuse_consistent};
use crate::get::{Answer, Ask, GetAction, GetCore, GetEvent, GetPlan};
use crate::partition::{Access, Failure, Partition};
use crate::quorums::effective_n;
use crate::replica::Replica;
use crate::request::{GetReply, GetRequest, Read};
use ombak_storage::Stored;
use ombak_types::Error;

impl Engine {
    /// One read, from check to reply.
    pub(crate) fn read_now(&self, request: &GetRequest, access: Access) -> Result<Read, Failure> {
        check_bucket(&request.bucket)?;
        check_key(&request.key)?;
        let buckets = self.buckets.now();
        let props = buckets.props(&request.bucket)?;
        refuse_consistent(props)?;
        let n = effective_n(request.options.n_val, props)?;
        let replicas = self.replicas(n);
        let plan = GetPlan { local: Some(0), ..GetPlan::new(&request.options, props, n, &replicas)? };
        let (partition, key) = self.locate(&request.bucket, &request.key, props);
        if plan.head || replicas.len() > 1 {
            return coordinate(partition, &key, plan, &replicas, None, access).map(Read::Reply);
        }
        // The plan was made, so the one copy there is stands for all the positions that were asked for.
        let found = match partition.read(&key, access) {
            Ok(Some(found)) => match partition.single(&key, &found) {
                Ok(Some(single)) if !single.is_deleted() => return Ok(Read::Single(single)),
                Ok(_) => Ok(Some(found)),
                Err(corrupt) => Err(corrupt),
            },
            other => other,
        };
        coordinate(partition, &key, plan, &replicas, Some(found), access).map(Read::Reply)
    }
}

/// Asks the replicas until the read is answered. `read` is what this node has said already.
fn coordinate(
    partition: &Partition,
    key: &[u8],
    plan: GetPlan,
    replicas: &[Replica],
    mut read: Option<Result<Option<Stored>, Failure>>,
    access: Access,
) -> Result<GetReply, Failure> {
    let (mut core, mut actions) = GetCore::start(plan, replicas);
    let mut reply = Err(Error::Timeout);
    let mut failure = None;
    while let Some(action) = actions.pop() {
        match action {
            GetAction::Ask { replica, ask } => {
                let answer = answer(partition, key, ask, read.take(), access, &mut failure)?;
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

fn answer(
    partition: &Partition,
    key: &[u8],
    ask: Ask,
    read: Option<Result<Option<Stored>, Failure>>,
    access: Access,
    failure: &mut Option<Error>,
) -> Result<Answer, Failure> {
    let found = match (ask, read) {
        (Ask::Object, Some(read)) => read
            .and_then(|found| found.map(|found| partition.decode(key, &found)).transpose())
            .map(|o| o.map(Answer::Object)),
        (Ask::Object, None) => partition.get(key, access).map(|o| o.map(Answer::Object)),
        (Ask::Head, _) => partition.head(key, access).map(|o| o.map(Answer::Head)),
    };
    match found {
        Ok(found) => Ok(found.unwrap_or_else(|| Answer::NotFound { full: partition.store().complete() })),
        Err(Failure::WouldBlock) => Err(Failure::WouldBlock),
        Err(Failure::Refused(why)) => {
            *failure = Some(why);
            Ok(Answer::Failed)
        }
    }
}
