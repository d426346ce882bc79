//! The thresholds of a read, computed before any replica is asked.

use crate::coordination::{Replica, Tally, expand, quorum};
use crate::requests::GetOptions;
use ombak_types::time::UnixMicros;
use ombak_types::{BucketProps, Error};

/// The thresholds of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetPlan {
    /// Number of positions that must answer in favour.
    pub r: u32,
    /// Number of positions whose owners must answer in favour.
    pub pr: u32,
    /// Number of distinct nodes that must answer in favour.
    pub node_confirms: u32,
    /// Number of positions that answer "not found" or fail at which the read is given up.
    pub fail_threshold: u32,
    /// Whether "not found" counts as an answer in favour.
    pub notfound_ok: bool,
    /// The request does not need values.
    pub head: bool,
    /// Values of a kind are shown as they are stored.
    pub as_stored: bool,
    /// Only the newest sibling is returned, because the bucket does not allow siblings.
    pub newest_only: bool,
    /// A live value is preferred to a newer tombstone, because some member removes tombstones that
    /// have their time, and may have left this one behind (docs/design/replication.md §6). The
    /// caller sets it.
    pub prefers_live: bool,
    /// The bucket's `dvv_enabled`. Without it clients see equal contents once.
    pub dvv: bool,
    /// The index of this node among the replicas, if it is one. This node is asked for the whole
    /// object at once.
    pub local: Option<usize>,
    /// The time of the request: values that have expired by then are not shown. The caller sets it;
    /// the default shows all values.
    pub now: UnixMicros,
}

impl GetPlan {
    /// The plan of a read that looks at one copy only.
    pub(crate) const fn of_one_copy(props: &BucketProps, prefers_live: bool, now: UnixMicros) -> Self {
        Self {
            r: 1,
            pr: 0,
            node_confirms: 0,
            fail_threshold: 1,
            notfound_ok: true,
            head: false,
            as_stored: false,
            newest_only: props.is_newest_only(),
            prefers_live,
            dvv: props.dvv_enabled,
            local: None,
            now,
        }
    }

    /// Checks the options in Riak's order (docs/riak/semantics.md §3.1). `n` comes from the bucket
    /// and the `n_val` option. `replicas` are the nodes that can be asked, each once.
    pub fn new(options: &GetOptions, props: &BucketProps, n: u32, replicas: &[Replica]) -> Result<Self, Error> {
        let r = quorum(options.r, props.r, n)?;
        let pr = quorum(options.pr, props.pr, n)?;
        let node_confirms = expand(options.node_confirms, props.node_confirms, n);
        let up = Tally::of(replicas);
        if pr > up.primaries {
            return Err(Error::QuorumUnsatisfied { option: "pr", need: pr, got: up.primaries });
        }
        // At least one node must be asked, even with r=0: otherwise there is no answer.
        if r.max(1) > up.positions {
            return Err(Error::InsufficientVnodes { have: up.positions, need: r.max(1) });
        }
        if node_confirms > up.nodes {
            return Err(Error::InsufficientNodes { have: up.nodes, need: node_confirms });
        }
        let unreachable = n - r.max(pr) + 1;
        let basic_quorum = options.basic_quorum.unwrap_or(props.basic_quorum);
        Ok(Self {
            r,
            pr,
            node_confirms,
            fail_threshold: if basic_quorum { unreachable.min(n / 2 + 1) } else { unreachable },
            notfound_ok: options.notfound_ok.unwrap_or(props.notfound_ok),
            head: options.head,
            as_stored: options.as_stored,
            newest_only: props.is_newest_only(),
            prefers_live: false,
            dvv: props.dvv_enabled,
            local: None,
            now: UnixMicros::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::effective_n;
    use ombak_types::{NodeId, Quorum};

    /// The tests do not depend on which node a replica is.
    const NODE: NodeId = NodeId::new(1);

    fn check(options: GetOptions, replicas: &[Replica]) -> Result<GetPlan, Error> {
        let props = BucketProps::default();
        let n = effective_n(options.n_val, &props)?;
        GetPlan::new(&options, &props, n, replicas)
    }

    #[test]
    fn one_node_answers_riaks_errors() {
        let one = [Replica::primary(NODE, 3)];
        let with = |f: fn(&mut GetOptions)| {
            let mut o = GetOptions::default();
            f(&mut o);
            check(o, &one)
        };
        assert_eq!(with(|o| o.r = Some(Quorum::Count(9))), Err(Error::NValViolation(3)));
        assert_eq!(with(|o| o.pr = Some(Quorum::Count(4))), Err(Error::NValViolation(3)));
        assert_eq!(with(|o| o.n_val = Some(9)), Err(Error::NValViolation(9)));
        assert_eq!(with(|o| o.n_val = Some(0)), Err(Error::NValViolation(0)));
        let confirms = with(|o| o.node_confirms = Some(Quorum::Count(9)));
        assert_eq!(confirms, Err(Error::InsufficientNodes { have: 1, need: 9 }));
        assert_eq!(with(|o| o.r = Some(Quorum::All)).map(|p| p.r), Ok(3));
        assert_eq!(with(|o| o.r = Some(Quorum::Count(0))).map(|p| p.r), Ok(0));
    }

    #[test]
    fn too_few_nodes_up_is_said_before_anybody_is_asked() {
        let fallbacks = [Replica::primary(NODE, 1), Replica::fallback(NODE, 2)];
        let options = GetOptions { pr: Some(Quorum::Count(2)), ..GetOptions::default() };
        assert_eq!(check(options, &fallbacks), Err(Error::QuorumUnsatisfied { option: "pr", need: 2, got: 1 }));
        let strict = [Replica::primary(NODE, 1)];
        assert_eq!(check(GetOptions::default(), &strict), Err(Error::InsufficientVnodes { have: 1, need: 2 }));
        assert_eq!(check(GetOptions::default(), &[]), Err(Error::InsufficientVnodes { have: 0, need: 2 }));
    }

    #[test]
    fn basic_quorum_gives_up_at_a_majority() {
        let replicas = [Replica::primary(NODE, 1), Replica::primary(NODE, 1), Replica::primary(NODE, 1)];
        let mut options = GetOptions { r: Some(Quorum::One), ..GetOptions::default() };
        assert_eq!(check(options.clone(), &replicas).map(|p| p.fail_threshold), Ok(3));
        options.basic_quorum = Some(true);
        assert_eq!(check(options, &replicas).map(|p| p.fail_threshold), Ok(2));
    }
}
