//! What an operator should know about the configurations of the members when nodes join, and about
//! who decides after a commit.

use super::names::only_reached_from_here;
use crate::config::Value;
use ombak_cluster::{Deciders, DetectionTimes, MemberNode};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The warnings about this node and the other members, each of them one line.
pub async fn of_members(member: &MemberNode) -> Vec<String> {
    let mut warnings = different_times(&member.detection_times().await);
    let (me, metadata) = (member.node().id(), member.metadata());
    let address = |of: &str| of.parse::<SocketAddr>().ok();
    let own = metadata.members().get(&me).and_then(|me| address(&me.peer_address));
    let others = metadata.members().iter().filter(|(node, _)| **node != me);
    let others = others.filter_map(|(_, other)| address(&other.peer_address));
    warnings.extend(own.and_then(|own| only_reached_from_here(own, others)));
    warnings.into_iter().map(|warning| format!("WARNING: {warning}")).collect()
}

/// The number of members that vote in a cluster that can lose one of them.
const VOTERS_MIN: usize = 3;

/// The warning that the loss of a member would end all changes of the cluster; `None` if the
/// cluster can lose any member, or has only one.
pub fn of_deciders(deciders: &Deciders) -> Option<String> {
    let Deciders { voters, members_in_the_end, .. } = deciders;
    if voters.is_empty() || voters.len() >= VOTERS_MIN || *members_in_the_end < 2 {
        return None;
    }
    let names = voters.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" and ");
    let (take, it) = if voters.len() == 1 { ("takes", "it") } else { ("take", "one of them") };
    Some(match *members_in_the_end < VOTERS_MIN {
        true => format!(
            "WARNING: Only {names} {take} part in decisions about the cluster, because it has fewer than {VOTERS_MIN} \
             members. If {it} is lost, nothing about the cluster can be decided any more."
        ),
        false => format!(
            "WARNING: So far only {names} {take} part in decisions about the cluster. If {it} is lost before 'ombak \
             admin cluster settled' prints TRUE, nothing about the cluster can be decided any more."
        ),
    })
}

/// Members whose times of failure detection differ disagree about who is down.
fn different_times(of_members: &[(String, DetectionTimes)]) -> Vec<String> {
    let suspicion_ms = of_members.iter().map(|(name, times)| (name, times.suspicion_ms));
    let probe_period_ms = of_members.iter().map(|(name, times)| (name, times.probe_period_ms));
    let suspicion = different("cluster.suspicion_time", suspicion_ms);
    suspicion.into_iter().chain(different("cluster.probe_period", probe_period_ms)).collect()
}

fn different<'a>(key: &str, of_members: impl Iterator<Item = (&'a String, u64)>) -> Option<String> {
    let mut by_time: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (name, ms) in of_members {
        by_time.entry(ms).or_default().push(format!("'{name}'"));
    }
    if by_time.len() < 2 {
        return None;
    }
    let value = |ms: u64| Value::Duration(Duration::from_millis(ms)).to_string();
    let groups: Vec<String> =
        by_time.iter().map(|(ms, names)| format!("{} on {}", value(*ms), names.join(", "))).collect();
    Some(format!(
        "{key} is {}: members with different values disagree about who is down, so set the same on all",
        groups.join(", and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_member_whose_loss_would_end_all_changes_is_named() {
        let said = |voters: &[&str], members_in_the_end| {
            let voters = voters.iter().map(|name| (*name).to_owned()).collect();
            of_deciders(&Deciders { voters, members_in_the_end, ..Deciders::default() })
        };
        assert!([said(&["a"], 1), said(&["a", "b", "c"], 3), said(&["a", "b", "c"], 2)].iter().all(Option::is_none));
        let small = said(&["a"], 2).unwrap();
        assert!(small.contains("Only 'a' takes part") && small.contains("fewer than 3 members"), "{small}");
        let early = said(&["a"], 3).unwrap();
        assert!(early.contains("So far only 'a' takes part") && early.contains("If it is lost before"), "{early}");
        assert!(said(&["a", "b"], 5).unwrap().contains("only 'a' and 'b' take part"));
    }

    #[test]
    fn members_with_other_times_are_named() {
        let of = |name: &str, probe_period_ms, suspicion_ms| {
            (name.to_owned(), DetectionTimes { probe_period_ms, suspicion_ms })
        };
        assert!(different_times(&[of("a", 350, 1400), of("b", 350, 1400)]).is_empty());
        assert!(different_times(&[]).is_empty());
        let said = different_times(&[of("a", 350, 1400), of("b", 350, 5000), of("c", 350, 1400)]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("cluster.suspicion_time is 1400ms on 'a', 'c', and 5s on 'b': "), "{said:?}");
        assert_eq!(different_times(&[of("a", 350, 1400), of("b", 700, 2800)]).len(), 2);
    }
}
