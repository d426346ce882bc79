//! The thresholds of a write, computed before any replica is asked.

use crate::coordination::{CountedSets, Replica, Tallies, expand, quorum};
use crate::requests::PutOptions;
use ombak_types::{BucketProps, Error};

/// The thresholds of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutPlan {
    /// Number of positions that must have stored the object. An acknowledgement counts for `w` and
    /// `dw` alike.
    pub w: u32,
    /// Number of positions that must have stored the object durably; at least one.
    pub dw: u32,
    /// Number of positions whose owners must have stored the object.
    pub pw: u32,
    /// Number of distinct nodes that must have stored the object.
    pub node_confirms: u32,
    /// The index of the replica that stores first and makes the event; with `None` all replicas get
    /// the unchanged object at once.
    pub coordinator: Option<usize>,
    /// The sets in which each of these must be met.
    pub sets: CountedSets,
}

impl PutPlan {
    /// Checks the options in Riak's order (docs/riak/semantics.md §3.2). `n` comes from the bucket
    /// and the `n_val` option. `replicas` are the nodes that can be asked, each once. The errors
    /// name the lesser count of all `sets`.
    pub fn new(
        options: &PutOptions,
        props: &BucketProps,
        n: u32,
        replicas: &[Replica],
        sets: CountedSets,
    ) -> Result<Self, Error> {
        if replicas.is_empty() {
            return Err(Error::AllNodesDown);
        }
        let up = Tallies::of(sets, replicas.iter().copied()).least();
        let pw = quorum(options.pw, props.pw, n)?;
        let node_confirms = expand(options.node_confirms, props.node_confirms, n);
        if node_confirms > n {
            return Err(Error::NValViolation(n));
        }
        let w = quorum(options.w, props.w, n)?;
        let dw = quorum(options.dw, props.dw, n)?.max(1);
        if pw > up.primaries {
            return Err(Error::QuorumUnsatisfied { option: "pw", need: pw, got: up.primaries });
        }
        let need = w.max(dw).max(pw);
        if need > up.positions {
            return Err(Error::InsufficientVnodes { have: up.positions, need });
        }
        if node_confirms > up.nodes {
            return Err(Error::NodeConfirmsUnsatisfied { need: node_confirms, got: up.nodes });
        }
        Ok(Self { w, dw, pw, node_confirms, coordinator: None, sets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::Weight;
    use ombak_types::{NodeId, Quorum};

    /// The tests do not depend on which node a replica is.
    const NODE: NodeId = NodeId::new(1);

    fn check(f: fn(&mut PutOptions), replicas: &[Replica]) -> Result<PutPlan, Error> {
        let mut options = PutOptions::default();
        f(&mut options);
        PutPlan::new(&options, &BucketProps::default(), 3, replicas, CountedSets::One)
    }

    #[test]
    fn one_node_answers_riaks_errors() {
        let one = [Replica::primary(NODE, 3)];
        for f in [
            (|o| o.w = Some(Quorum::Count(9))) as fn(&mut PutOptions),
            |o| o.dw = Some(Quorum::Count(9)),
            |o| o.pw = Some(Quorum::Count(9)),
            |o| o.node_confirms = Some(Quorum::Count(9)),
        ] {
            assert_eq!(check(f, &one), Err(Error::NValViolation(3)));
        }
        let two = check(|o| o.node_confirms = Some(Quorum::Count(2)), &one);
        assert_eq!(two, Err(Error::NodeConfirmsUnsatisfied { need: 2, got: 1 }));
        assert_eq!(check(|o| o.w = Some(Quorum::Count(0)), &one).map(|p| p.w), Ok(0));
        assert_eq!(check(|o| o.dw = Some(Quorum::Count(0)), &one).map(|p| p.dw), Ok(1));
    }

    #[test]
    fn fallbacks_store_but_own_nothing() {
        let up = [Replica::primary(NODE, 1), Replica::fallback(NODE, 2)];
        let pw = check(|o| o.pw = Some(Quorum::Count(2)), &up);
        assert_eq!(pw, Err(Error::QuorumUnsatisfied { option: "pw", need: 2, got: 1 }));
        assert!(check(|o| o.w = Some(Quorum::All), &up).is_ok());
        assert_eq!(check(|_| (), &[]), Err(Error::AllNodesDown));
        assert_eq!(check(|_| (), &up[..1]), Err(Error::InsufficientVnodes { have: 1, need: 2 }));
    }

    #[test]
    fn the_set_with_fewer_nodes_decides() {
        let there = |positions, primaries| Weight { positions, primaries };
        let up = [
            Replica { other: there(1, 1), ..Replica::primary(NODE, 2) },
            Replica { other: there(1, 0), ..Replica::primary(NODE, 1) },
        ];
        let plan = |f: fn(&mut PutOptions)| {
            let mut options = PutOptions::default();
            f(&mut options);
            PutPlan::new(&options, &BucketProps::default(), 3, &up, CountedSets::Both)
        };
        assert!(plan(|_| ()).is_ok());
        let w = plan(|o| o.w = Some(Quorum::All));
        assert_eq!(w, Err(Error::InsufficientVnodes { have: 2, need: 3 }));
        let pw = plan(|o| o.pw = Some(Quorum::Count(2)));
        assert_eq!(pw, Err(Error::QuorumUnsatisfied { option: "pw", need: 2, got: 1 }));
    }
}
