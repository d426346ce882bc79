//! The questions of members, and their answers, that version 1 did not have.

use crate::member::questions::question::{Answer, Question, SameMember, decode, encode};
use crate::member::{
    DetectionTimes, ExchangeChange, ExchangeOfClass, ExchangeRound, ExchangeThatWaits, MemberExchanges,
    RingChangeFacts, RingObstacle, UnsettledCounts,
};
use ombak_fixtures::FrozenMessages;
use ombak_ring::RingVersion;
use ombak_ring::placement::{LackingHome, ProofOrder, ProvedHome, Report};
use ombak_types::NodeId;

const NODE: NodeId = NodeId::new(0x0102_0304_0506_0708);

#[test]
fn questions_and_answers_have_the_bytes_of_version_2() {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, "member-questions");
    let orders = vec![ProofOrder { home: 300, begun: 7, to: [NODE].into() }];
    for (name, question) in [
        ("ring_report", Question::RingReport { orders, lineage: 7 }),
        ("ring_change", Question::RingChange),
        ("detection_times", Question::DetectionTimes),
        ("exchanges", Question::Exchanges { change: ExchangeChange::Nothing }),
        ("exchanges/suspend", Question::Exchanges { change: ExchangeChange::Suspend }),
        ("exchanges/interval", Question::Exchanges { change: ExchangeChange::Interval(300) }),
        ("exchanges/repair", Question::Exchanges { change: ExchangeChange::StartNodeRepair { reason: "r".into() } }),
        ("is_secured", Question::IsSecured),
        ("who_is", Question::WhoIs { name: "a@h".into(), address: "h:8099".into() }),
    ] {
        frozen.check(name, &question, |m| encode(m).to_vec(), decode);
    }
    frozen.end();
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, "member-answers");
    let report = Report {
        confirmed: RingVersion { lineage: 7, number: 300 },
        proved: vec![ProvedHome { home: 300, begun: 7, full: [3].into() }],
        lacking: vec![LackingHome { home: 301, ns: [1, 3].into() }],
        takes_no_copies: false,
    };
    let facts = RingChangeFacts {
        driver: Some("a@h".into()),
        homes: 64,
        done: 16,
        changing: 8,
        obstacles: vec![RingObstacle { why: "a reason".into(), homes: 2 }],
        driven_secs: 300,
        done_meanwhile: 5,
    };
    let same = SameMember { node: NODE, name: "a@h".into(), address: "h:8099".into() };
    let round = ExchangeRound { ended_secs: 1_700_000_000, repaired: 301 };
    let times = DetectionTimes { probe_period_ms: 350, suspicion_ms: 1_400 };
    for (name, answer) in [
        ("detection_times", Answer::DetectionTimes(Some(times))),
        ("detection_times/none", Answer::DetectionTimes(None)),
        ("exchanges", Answer::Exchanges(Box::new(exchanges()))),
        ("exchanges/off", Answer::Exchanges(Box::default())),
        (
            "exchanges/waiting",
            Answer::Exchanges(Box::new(MemberExchanges { waiting: waiting(), ..Default::default() })),
        ),
        ("settled/round", Answer::Settled(UnsettledCounts { exchange_round: Some(round), ..Default::default() })),
        ("settled/jobs", Answer::Settled(UnsettledCounts { key_jobs: 300, ..Default::default() })),
        ("ring_report", Answer::RingReport(Box::new(report))),
        ("ring_change", Answer::RingChange(Some(Box::new(facts)))),
        ("ring_change/none", Answer::RingChange(None)),
        ("is_secured", Answer::IsSecured { is_secured: true }),
        ("who_is", Answer::WhoIs { members: 5, same: Some(same) }),
        ("who_is/nobody", Answer::WhoIs { members: 1, same: None }),
    ] {
        frozen.check(name, &answer, |m| encode(m).to_vec(), decode);
    }
    frozen.end();
}

fn waiting() -> Vec<ExchangeThatWaits> {
    let of = |node: Option<NodeId>, name: Option<&str>| ExchangeThatWaits {
        partition: 300,
        n_val: 3,
        node,
        name: name.map(str::to_owned),
        why: "a reason".into(),
    };
    vec![of(Some(NODE), Some("a@h")), of(None, None)]
}

fn exchanges() -> MemberExchanges {
    MemberExchanges {
        state: "active".into(),
        interval_ms: 480_000,
        concurrency: 2,
        bytes_per_second: 300,
        exchanges_in_round: 301,
        left_of_round: 302,
        round_ended_secs: Some(1_700_000_000),
        round_repaired: 303,
        node_repair: Some("a reason".into()),
        has_changed: true,
        exchanges: vec![ExchangeOfClass {
            partition: 300,
            n_val: 3,
            node: NODE,
            included_secs: Some(1_700_000_001),
            ended: 304,
            comparisons: 305,
            failures: 306,
            repaired: 307,
            repaired_last: 308,
            repaired_max: 309,
            dropped: 310,
            withheld: 311,
            bytes: 312,
        }],
        waiting: Vec::new(),
    }
}
