//! Comparisons, pushes and rounds of reaping, with what is answered.

use super::*;
use ombak_kv::ClassId;
use ombak_kv::replica::{
    AskRequest, Compare, Compared, Give, GivePass, Giving, Held, HeldVersion, Ordered, Push, Pushed, RangeSum,
    ReapOrder, ReapReply, Reapable, RemoveRequest, Round, StoredVersion, Summarize, Summary, Vote, VoteRequest,
};
use ombak_ring::RingVersion;
use ombak_types::NodeId;

const CLASS: ClassId = ClassId { partition: 300, n: 3 };
const RING: RingVersion = RingVersion { lineage: DIGEST, number: 300 };

fn copy() -> ReplicaStore {
    ReplicaStore {
        partition: 300,
        n: 3,
        ring: NO_RING,
        key: "a key".into(),
        head: "the head".into(),
        body: "the body".into(),
        stored_secs: None,
        kind: StoreKind { dvv: true, values: 0 },
        mode: StoreMode::Merge,
        noted: Some(COUNTER),
        synced: true,
        deadline: None,
    }
}

fn check_transfers(frozen: &mut FrozenMessages) {
    let version = |clock| HeldVersion { key: "a key".into(), digest: DIGEST, clock };
    let versions = vec![version(a_clock()), version(VectorClock::new())];
    let give = Give {
        class: CLASS,
        to: NodeId::new(DIGEST),
        order: 9,
        ranges: 1024,
        wanted: vec![0, 300],
        pass: GivePass::All,
    };
    let push = Push { class: CLASS, copies: vec![copy()], synced: true, checksum: None };
    for (name, question) in [
        ("compare", TransferQuestion::Compare(Compare { class: CLASS, versions, synced: true })),
        ("push", TransferQuestion::Push(push)),
        ("summarize", TransferQuestion::Summarize(Summarize { class: CLASS, ranges: 1024, synced: false })),
        ("give", TransferQuestion::Give(give)),
    ] {
        let name = format!("transfer_question/{name}");
        check(frozen, &name, &question, encode_transfer_question, decode_transfer_question);
    }
    let compared = Compared { home_version: RING, is_full: true, held: Held::ALL.to_vec(), counter: COUNTER };
    check(frozen, "compared", &compared, encode_compared, decode_compared);
    let stored = vec![Ok(StoredVersion { digest: DIGEST }), Err(Error::Overload)];
    let pushed = Pushed { home_version: RING, stored, counter: COUNTER };
    check(frozen, "pushed", &pushed, encode_pushed, decode_pushed);
    let ranges = vec![RangeSum { versions: 300, sum: DIGEST }, RangeSum { versions: 0, sum: 0 }];
    check(frozen, "summary", &Summary { home_version: RING, ranges, told: Vec::new() }, encode_summary, decode_summary);
    for (name, giving) in [("working", Giving::Working), ("done", Giving::Done)] {
        check(frozen, &format!("giving/{name}"), &giving, encode_giving, decode_giving);
    }
}

fn check_reaping(frozen: &mut FrozenMessages) {
    let round = Round { partition: 300, n_val: 3, ring: NO_RING, number: DIGEST };
    let reapable = Reapable { key: "a key".into(), digest: DIGEST, clock: a_clock() };
    let ask = |floor| ReapQuestion::Ask(AskRequest { round, keys: vec!["a key".into(), "b".into()], floor });
    for (name, question) in [
        ("vote", ReapQuestion::Vote(VoteRequest { round, versions: vec![reapable] })),
        ("ask", ask(UnixMicros(0))),
        ("ask_with_floor", ask(UnixMicros(300))),
        (
            "remove",
            ReapQuestion::Remove(RemoveRequest { round, versions: vec![("a key".into(), DIGEST)], told: Vec::new() }),
        ),
    ] {
        check(frozen, &format!("reap_question/{name}"), &question, encode_reap_question, decode_reap_question);
    }
    let votes = ReapReply { answers: vec![Vote::Same, Vote::Less, Vote::Other], counter: COUNTER, told: None };
    check(frozen, "votes", &votes, encode_votes, decode_votes);
    let answers = ReapReply { answers: vec![true, false], counter: COUNTER, told: None };
    check(frozen, "reap_answers", &answers, encode_reap_answers, decode_reap_answers);
}

pub(super) fn check_all(frozen: &mut FrozenMessages) {
    check_transfers(frozen);
    check_reaping(frozen);
}

pub(super) fn check_version_2(frozen: &mut FrozenMessages) {
    let tombstones = vec![("a key".into(), a_clock()), ("b".into(), VectorClock::new())];
    let order = ReapOrder { partition: 300, n_val: 3, ring: NO_RING, tombstones };
    check(frozen, "reap_order", &order, encode_reap_order, decode_reap_order);
    let ordered = vec![Ordered::Gone, Ordered::Waits, Ordered::Changed];
    check(frozen, "ordered", &ordered, |answers: &Vec<Ordered>| encode_ordered(answers), decode_ordered);
}
