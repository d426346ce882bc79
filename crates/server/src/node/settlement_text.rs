//! What `ombak admin cluster settled` answers: whether everything lies where it belongs, and what
//! is missing.

use super::cluster_text::{ring_change_json, ring_change_lines};
use super::exchange_admin::ago;
use crate::wall_clock::now_secs;
use ombak_cluster::{ExchangeRound, MemberStatus, Settlement, Unfinished, Unsettled, UnsettledCounts};
use serde_json::{Value, json};

pub(super) fn settlement_answer(settlement: &Settlement) -> Value {
    json!({
        "settled": settlement.is_settled(),
        "reaped": settlement.is_reaped(),
        "ring_change": settlement.ring_change.as_ref().map(ring_change_json),
        "unfinished": settlement.unfinished.iter().map(unfinished_json).collect::<Vec<_>>(),
        "missing_voters": settlement.missing_voters,
        "do_not_vote": settlement.do_not_vote,
        "needed_to_decide": settlement.needed_to_decide,
        "members": settlement.members.iter().map(member_json).collect::<Vec<_>>(),
        "exchange_round": settlement.exchange_round().map(round_json),
        "awaits_peers": settlement.awaits,
        "text": text(settlement, now_secs()),
    })
}

fn round_json(round: ExchangeRound) -> Value {
    json!({"ended_secs": round.ended_secs, "repaired": round.repaired})
}

fn unfinished_json(of: &Unfinished) -> Value {
    json!({"name": of.member, "status": of.status.to_string()})
}

fn member_json(of: &Unsettled) -> Value {
    let counts = of.counts.unwrap_or_default();
    json!({
        "name": of.member,
        "up": of.counts.is_some(),
        "follows_ring": of.follows_ring,
        "was_told_otherwise": of.was_told_otherwise,
        "partitions_with_hints": counts.partitions_with_hints,
        "owed_marks": counts.owed_marks,
        "filling_classes": counts.filling_classes,
        "transfers": counts.transfers,
        "unreadable_keys": counts.unreadable_keys,
        "versions_lacked": counts.versions_lacked,
        "versions_to_reap": counts.versions_to_reap,
        "looks_for_tombstones": counts.looks_for_tombstones,
        "key_jobs": counts.key_jobs,
        "exchange_round": counts.exchange_round.map(round_json),
    })
}

fn text(settlement: &Settlement, now_secs: u64) -> String {
    let reaping = settlement.members.iter().filter_map(reaping_line);
    let round = settlement.exchange_round().map(|round| round_line(round, now_secs));
    if settlement.is_settled() {
        let mut lines = vec!["TRUE Everything lies where it belongs".to_owned()];
        match settlement.is_reaped() {
            true => lines[0].push_str(", and nothing waits to be reaped"),
            false => lines.extend(reaping.map(|line| format!("     {line}"))),
        }
        lines.extend(round.map(|line| format!("     {line}")));
        return lines.join("\n");
    }
    let awaits = |why: &String| format!("this node is new, and serves nobody yet: {why}");
    let mut lines: Vec<String> = settlement.awaits.iter().map(awaits).collect();
    lines.extend(settlement.ring_change.as_ref().map(ring_change_lines).unwrap_or_default());
    lines.extend(settlement.unfinished.iter().map(unfinished_line));
    lines.extend(settlement.unfinished.iter().filter_map(|of| jobs_line(of, &settlement.members)));
    lines.extend(voters_line(settlement));
    lines.extend(undecided_line(&settlement.needed_to_decide));
    lines.extend(settlement.members.iter().filter(|of| !of.is_settled()).map(member_line));
    lines.extend(reaping);
    lines.extend(round);
    format!("FALSE {}", lines.join("\n      "))
}

/// When all primaries were last compared with each other.
fn round_line(round: ExchangeRound, now_secs: u64) -> String {
    let keys = if round.repaired == 1 { "1 key".to_owned() } else { format!("{} keys", round.repaired) };
    format!("the last full round of exchanges ended {}, and repaired {keys}", ago(round.ended_secs, now_secs))
}

fn unfinished_line(of: &Unfinished) -> String {
    let what = match of.status {
        MemberStatus::Joining => "wants to join; plan and commit that, or clear it",
        MemberStatus::Leaving => "leaves, and hands over what it holds",
        MemberStatus::Exiting => "has handed over everything, and is about to end",
        MemberStatus::Down => "is marked as down; start it, or remove or replace it by force",
        MemberStatus::Valid => "is a member",
    };
    format!("'{}' {what}", of.member)
}

/// The jobs that a member has to end before it leaves.
fn jobs_line(of: &Unfinished, members: &[Unsettled]) -> Option<String> {
    let counts = members.iter().find(|member| member.member == of.member)?.counts?;
    let (jobs, their, them) = match counts.key_jobs {
        0 => return None,
        1 => ("a job of keys".to_owned(), "its", "it"),
        jobs => (format!("{jobs} jobs of keys"), "their", "them"),
    };
    let is_leaving = matches!(of.status, MemberStatus::Leaving | MemberStatus::Exiting);
    let advice = format!("wait for {their} end, or end {them} with 'ombak admin fold cancel' there");
    is_leaving.then(|| format!("'{}' leaves when it has ended {jobs}: {advice}", of.member))
}

/// The members that are to vote and do not yet. If there are too many of them, the leader of the
/// metadata chooses.
fn voters_line(of: &Settlement) -> Option<String> {
    let names = of.do_not_vote.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let who = match of.missing_voters {
        0 => return None,
        missing if missing == of.do_not_vote.len() => names,
        // The members have changed since the votes were counted.
        _ if names.is_empty() => "some members".to_owned(),
        missing => format!("{missing} of {names}"),
    };
    Some(format!("decisions still lack the votes of {who}: if others were lost now, no change could be decided"))
}

fn undecided_line(needed: &[String]) -> Option<String> {
    let names = needed.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    match needed {
        [] => None,
        [_] => Some(format!("no change of the cluster can be decided before {names} answers")),
        _ => Some(format!("no change of the cluster can be decided before more of {names} answer")),
    }
}

/// What a member has still to do that keeps the cluster from being settled.
fn member_line(of: &Unsettled) -> String {
    let Some(counts) = of.counts else { return format!("'{}' does not answer", of.member) };
    let mut open: Vec<String> = [
        (counts.partitions_with_hints, "partitions with hints"),
        (counts.owed_marks, "owed marks"),
        (counts.filling_classes, "filling classes"),
        (counts.transfers, "transfers"),
        (counts.unreadable_keys, "keys that it cannot read ('ombak admin cluster unreadable-keys')"),
        (counts.versions_lacked, "tombstones or expired values that another node lacks"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    if !of.follows_ring {
        open.push("does not follow the newest ring yet".into());
    }
    if open.is_empty() && of.was_told_otherwise {
        open.push("has handed over what it held for others, and this node has not heard so yet".into());
    }
    format!("'{}': {}", of.member, open.join(", "))
}

/// What waits on a member for its removal alone. It does not keep the cluster from being settled.
fn reaping_line(of: &Unsettled) -> Option<String> {
    let UnsettledCounts { versions_to_reap, looks_for_tombstones, .. } =
        of.counts.filter(|counts| !counts.is_reaped())?;
    let mut open = Vec::new();
    if versions_to_reap > 0 {
        open.push(format!("{versions_to_reap} tombstones or expired values to reap"));
    }
    if looks_for_tombstones {
        open.push("looks through its stores for tombstones".to_owned());
    }
    Some(format!("beside that, '{}': {}", of.member, open.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_cluster::RingChangeFacts;

    fn member(counts: UnsettledCounts) -> Unsettled {
        Unsettled { member: "a@h".into(), follows_ring: true, counts: Some(counts), ..Unsettled::default() }
    }

    #[test]
    fn what_is_missing_is_named() {
        let silent = Unsettled { member: "b@h".into(), ..Unsettled::default() };
        let counts = Some(UnsettledCounts { key_jobs: 2, ..UnsettledCounts::default() });
        let behind = Unsettled { member: "c@h".into(), counts, ..Unsettled::default() };
        let told = Unsettled { member: "d@h".into(), follows_ring: true, was_told_otherwise: true, ..behind.clone() };
        let counts = UnsettledCounts { owed_marks: 2, versions_to_reap: 3, ..UnsettledCounts::default() };
        let change =
            RingChangeFacts { driver: Some("a@h".into()), homes: 64, done: 48, changing: 8, ..Default::default() };
        let settlement = Settlement {
            ring_change: Some(change),
            unfinished: vec![Unfinished { member: "c@h".into(), status: MemberStatus::Leaving }],
            members: vec![member(counts), silent, behind, told],
            missing_voters: 2,
            do_not_vote: vec!["b@h".into(), "c@h".into(), "d@h".into()],
            needed_to_decide: vec!["b@h".into()],
            awaits: Some("its peers are silent".into()),
        };
        let answer = settlement_answer(&settlement);
        let expected = "FALSE this node is new, and serves nobody yet: its peers are silent
      The ring changes: 48 of 64 partitions have their new owners, 8 are on their way.
      'c@h' leaves, and hands over what it holds
      'c@h' leaves when it has ended 2 jobs of keys: wait for their end, or end them with 'ombak admin fold cancel' there
      decisions still lack the votes of 2 of 'b@h', 'c@h', 'd@h': if others were lost now, no change could be decided
      no change of the cluster can be decided before 'b@h' answers
      'a@h': 2 owed marks
      'b@h' does not answer
      'c@h': does not follow the newest ring yet
      'd@h': has handed over what it held for others, and this node has not heard so yet
      beside that, 'a@h': 3 tombstones or expired values to reap";
        assert_eq!(answer["text"], expected);
        assert_eq!((&answer["settled"], &answer["reaped"]), (&json!(false), &json!(false)));
        assert_eq!(answer["ring_change"]["left"], 16);
        assert_eq!(answer["unfinished"], json!([{"name": "c@h", "status": "leaving"}]));
        assert_eq!(answer["members"][1]["up"], false);
        assert_eq!(answer["members"][2]["follows_ring"], false);
    }

    #[test]
    fn the_members_whose_votes_are_missing_are_named() {
        let line = |missing_voters, do_not_vote: &[&str]| {
            let do_not_vote = do_not_vote.iter().map(|name| (*name).to_owned()).collect();
            let settlement = Settlement { missing_voters, do_not_vote, ..Settlement::default() };
            voters_line(&settlement).unwrap_or_default()
        };
        assert_eq!(line(0, &[]), "");
        assert!(line(2, &["b@h", "c@h"]).contains("the votes of 'b@h', 'c@h': if"));
        assert!(line(2, &["b@h", "c@h", "d@h"]).contains("the votes of 2 of 'b@h', 'c@h', 'd@h': if"));
        assert!(line(1, &[]).contains("the votes of some members: if"));
        let two = undecided_line(&["a@h".into(), "b@h".into()]).unwrap();
        assert!(two.ends_with("before more of 'a@h', 'b@h' answer"), "{two}");
    }

    #[test]
    fn the_last_round_of_exchanges_is_told() {
        let exchange_round = Some(ExchangeRound { ended_secs: 100, repaired: 1 });
        let counts = UnsettledCounts { exchange_round, ..UnsettledCounts::default() };
        let at_rest = Settlement { members: vec![member(counts)], ..Settlement::default() };
        let expected = "TRUE Everything lies where it belongs, and nothing waits to be reaped\n     the last full round \
                        of exchanges ended 5 min ago, and repaired 1 key";
        assert_eq!(text(&at_rest, 400), expected);
        let answer = settlement_answer(&at_rest);
        assert_eq!(answer["exchange_round"], json!({"ended_secs": 100, "repaired": 1}));
        assert_eq!(answer["members"][0]["exchange_round"]["repaired"], 1);
        assert_eq!(settlement_answer(&Settlement::default())["exchange_round"], Value::Null);
    }

    #[test]
    fn a_cluster_that_only_reaps_is_settled() {
        let at_rest = Settlement { members: vec![member(UnsettledCounts::default())], ..Settlement::default() };
        let text = "TRUE Everything lies where it belongs, and nothing waits to be reaped";
        assert_eq!(settlement_answer(&at_rest)["text"], text);
        let counts = UnsettledCounts { versions_to_reap: 3, looks_for_tombstones: true, ..UnsettledCounts::default() };
        let answer = settlement_answer(&Settlement { members: vec![member(counts)], ..Settlement::default() });
        let text = "TRUE Everything lies where it belongs\n     beside that, 'a@h': 3 tombstones or expired values to \
                    reap, looks through its stores for tombstones";
        assert_eq!(answer["text"], text);
        assert_eq!((&answer["settled"], &answer["reaped"]), (&json!(true), &json!(false)));
    }
}
