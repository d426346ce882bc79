//! Tests the read coordinator against a simple model, with random replicas and orders of events.

use crate::coordination::Replica;
use crate::coordination::get::{Answer, Ask, GetAction, GetCore, GetEvent, GetPlan, Lack};
use crate::digest::digest;
use crate::requests::{GetOptions, GetReply};
use ombak_types::object::UnclockedRank;
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, BucketProps, Error, NodeId, Object, Quorum, Sibling, StoreFailure, StoreFailureKind};
use proptest::prelude::*;

/// The index of the first version without a clock in [`versions`].
const UNCLOCKED: usize = 7;

/// The tests do not depend on which node a replica is.
const NODE: NodeId = NodeId::new(1);

/// The version that a replica holds, and its behaviour.
#[derive(Clone, Debug)]
struct Node {
    replica: Replica,
    /// Index into [`versions`]; an index beyond the end means that the replica holds nothing.
    holds: usize,
    full: bool,
    silent: bool,
    /// It answers that its clock is past the deadline.
    late: bool,
    broken: bool,
    /// Heads can be read, but values cannot.
    rotten: bool,
}

impl Node {
    fn version(&self) -> Option<Object> {
        versions().get(self.holds).cloned()
    }

    fn answer(&self, ask: Ask) -> Answer {
        match (self.version(), ask) {
            _ if self.late => Answer::Failed(Error::Timeout),
            _ if self.broken => Answer::Failed(unreadable()),
            (None, _) => Answer::NotFound { full: self.full },
            (Some(_), Ask::Object) if self.rotten => Answer::Failed(unreadable()),
            (Some(object), Ask::Object) => whole(object),
            (Some(object), Ask::Head | Ask::Exchange) => head(object),
        }
    }

    fn unreadable_whole(&self) -> bool {
        self.broken || self.rotten
    }
}

fn whole(object: Object) -> Answer {
    let digest = digest(&object);
    Answer::Object(object, digest)
}

fn head(mut object: Object) -> Answer {
    let digest = digest(&object);
    object.siblings.iter_mut().for_each(|s| s.value.clear());
    Answer::Head(object, digest)
}

/// The versions: first < second; other is concurrent with second; gone is a tombstone that descends
/// second; both is the merge of second and other; top descends all of them; twin has the clock of
/// top, and came from elsewhere; once and again have no clock.
fn versions() -> Vec<Object> {
    let at = UnixMicros(0);
    let put = |local: Option<&Object>, seen: &Object, value: &'static str, actor: &[u8]| {
        let sibling = if value.is_empty() { Sibling::tombstone() } else { Sibling::new(value) };
        let incoming = Object { clock: seen.clock.clone(), siblings: vec![sibling] };
        Object::coordinate(local.cloned(), incoming, &Actor::new(actor), at, true)
    };
    let first = put(None, &Object::default(), "first", b"a");
    let second = put(Some(&first), &first, "second", b"a");
    let other = put(Some(&first), &first, "other", b"b");
    let gone = put(Some(&second), &second, "", b"c");
    let mut both = second.clone();
    both.merge(other.clone());
    let mut all = both.clone();
    all.merge(gone.clone());
    let top = put(Some(&all), &all, "top", b"d");
    let mut twin = top.clone();
    twin.siblings = vec![Sibling::new("twin")];
    let (once, again) = (Object::new(Sibling::new("once")), Object::new(Sibling::new("again")));
    vec![first, second, other, gone, both, top, twin, once, again]
}

fn node() -> impl Strategy<Value = Node> {
    let rarely = || prop::bool::weighted(0.15);
    (0usize..11, any::<bool>(), rarely(), prop::bool::weighted(0.1), rarely(), rarely()).prop_map(
        |(holds, full, silent, late, broken, rotten)| Node {
            replica: Replica::primary(NODE, 0),
            holds,
            full,
            silent,
            late,
            broken: broken && !late,
            // A version without a clock that cannot be read is replaced: it has its own test.
            rotten: rotten && !late && holds < UNCLOCKED,
        },
    )
}

#[derive(Clone, Debug)]
struct Case {
    n: u32,
    nodes: Vec<Node>,
    options: GetOptions,
    local: Option<usize>,
    /// Whether a head that this node has, too, is not sent again.
    compares_heads: bool,
    order: Vec<usize>,
}

impl Case {
    /// The answer of a replica after those that have answered.
    fn answer(&self, replica: usize, ask: Ask, plan: &GetPlan, answered: &[usize]) -> Answer {
        let node = &self.nodes[replica];
        let own = self.local.filter(|own| *own != replica && answered.contains(own) && !plan.head);
        match (own, node.answer(ask)) {
            (Some(of), Answer::Head(_, digest)) if self.compares_heads => match self.nodes[of].answer(Ask::Object) {
                Answer::Object(_, its_digest) if its_digest == digest => Answer::Same { of },
                _ => node.answer(ask),
            },
            (_, answer) => answer,
        }
    }
}

fn case() -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec((node(), any::<bool>()), 1..=5);
    let quorums = (0u32..=7, 0u32..=7, 0u32..=4);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<Option<prop::sample::Index>>(), any::<bool>());
    (1u32..=7, nodes, quorums, flags, prop::collection::vec(any::<usize>(), 24)).prop_map(
        |(n, nodes, (r, pr, confirms), (notfound_ok, basic_quorum, head, local, compares_heads), order)| {
            let mut nodes: Vec<Node> = deal(n, nodes);
            nodes.retain(|node| node.replica.positions > 0);
            let options = GetOptions {
                r: Some(Quorum::Count(r % (n + 1))),
                pr: Some(Quorum::Count(pr % (n + 1))),
                node_confirms: Some(Quorum::Count(confirms)),
                notfound_ok: Some(notfound_ok),
                basic_quorum: Some(basic_quorum),
                head,
                ..GetOptions::default()
            };
            let local = local.map(|i| i.index(nodes.len()));
            if let Some(own) = local.and_then(|i| nodes.get_mut(i)) {
                // This node is asked for its values at once, so unreadable values mean that it
                // fails to answer.
                own.broken |= own.rotten && !head;
            }
            Case { n, nodes, options, local, compares_heads, order }
        },
    )
}

/// Position j belongs to node j mod D (docs/design/replication.md §14); some nodes are fallbacks.
fn deal(n: u32, nodes: Vec<(Node, bool)>) -> Vec<Node> {
    let mut out: Vec<Node> = Vec::new();
    let count = nodes.len() as u32;
    for (i, (mut node, primary)) in (0..count).zip(nodes) {
        let positions = (0..n).filter(|j| j % count == i).count() as u32;
        node.replica = if primary { Replica::primary(NODE, positions) } else { Replica::fallback(NODE, positions) };
        out.push(node);
    }
    out
}

/// The verdict of the counts after some first answers, computed in the simplest way.
#[derive(Debug, PartialEq)]
enum Verdict {
    Undecided,
    Met,
    Refused(Option<Error>),
}

/// `is_over`: the time is over, so whoever has not answered is late.
fn verdict(plan: &GetPlan, case: &Case, answered: &[usize], is_over: bool) -> Verdict {
    let (mut ok, mut ok_primaries, mut ok_nodes, mut against, mut failures, mut doubtful) = (0, 0, 0, 0, 0, false);
    let all_owners =
        (0..case.nodes.len()).all(|i| is_over || case.nodes[i].replica.primaries == 0 || answered.contains(&i));
    for node in answered.iter().map(|&i| &case.nodes[i]).filter(|n| !n.late) {
        let is_stand_in = node.replica.primaries == 0;
        let is_missing = !node.broken && node.version().is_none();
        if is_missing && is_stand_in && !all_owners {
            continue;
        }
        doubtful |= is_missing && !is_stand_in && !node.full;
        let missing_counts = (node.full || is_stand_in) && plan.notfound_ok;
        if node.broken || (is_missing && !missing_counts) {
            against += node.replica.positions;
            failures += u32::from(node.broken);
        } else {
            ok += node.replica.positions;
            ok_primaries += node.replica.primaries;
            ok_nodes += 1;
        }
    }
    if ok >= plan.r && ok_primaries >= plan.pr && ok_nodes >= plan.node_confirms {
        return Verdict::Met;
    }
    let all = is_over || answered.len() == case.nodes.len();
    if against < plan.fail_threshold && !all {
        return Verdict::Undecided;
    }
    let any_late = (0..case.nodes.len()).any(|i| case.nodes[i].late || !answered.contains(&i));
    if against < plan.fail_threshold && any_late {
        return Verdict::Refused(Some(Error::Timeout));
    }
    if case.nodes.len() == 1 && failures > 0 {
        return Verdict::Refused(Some(unreadable()));
    }
    let alive = |i: &usize| {
        let node = &case.nodes[*i];
        !node.broken && !node.late && node.version().is_some_and(|v| !v.is_deleted())
    };
    Verdict::Refused(if ok >= plan.r && ok_primaries < plan.pr {
        Some(Error::QuorumUnsatisfied { option: "pr", need: plan.pr, got: ok_primaries })
    } else if ok >= plan.r {
        Some(Error::InsufficientNodes { have: ok_nodes, need: plan.node_confirms })
    } else if failures == 0 && !answered.iter().any(alive) {
        if doubtful && ok_primaries < plan.pr {
            return Verdict::Refused(Some(Error::QuorumUnsatisfied { option: "pr", need: plan.pr, got: ok_primaries }));
        }
        if doubtful && !all {
            return Verdict::Undecided;
        }
        None
    } else {
        Some(Error::QuorumUnsatisfied { option: "r", need: plan.r, got: ok })
    })
}

fn unreadable() -> Error {
    StoreFailure::new(StoreFailureKind::Unreadable, "on purpose").into()
}

/// Everything that was observed during a read.
struct Run {
    reply: Result<GetReply, Error>,
    /// The verdict when the counts decided for the first time.
    verdict: Verdict,
    /// The replicas that had answered when the reply was given.
    answered_at_reply: Vec<usize>,
    repairs: Vec<(usize, Object)>,
    all_answered: bool,
    timed_out: bool,
}

fn run(case: &Case, plan: GetPlan) -> Run {
    let replicas: Vec<Replica> = case.nodes.iter().map(|n| n.replica).collect();
    let (mut core, first) = GetCore::start(plan, &replicas);
    let mut run = Run {
        reply: Err(Error::Overload),
        verdict: Verdict::Undecided,
        answered_at_reply: Vec::new(),
        repairs: Vec::new(),
        all_answered: false,
        timed_out: false,
    };
    let (mut pending, mut answered): (Vec<(usize, Ask)>, Vec<usize>) = (Vec::new(), Vec::new());
    let (mut replies, mut done) = (0, false);
    let mut order = case.order.iter().cycle();
    let mut actions = first;
    loop {
        for action in actions {
            assert!(!done, "something follows Done");
            match action {
                GetAction::Ask { replica, ask } => {
                    assert!(!pending.iter().any(|(i, _)| *i == replica), "asked twice at once");
                    pending.push((replica, ask));
                }
                GetAction::Reply(reply) => {
                    replies += 1;
                    run.reply = reply;
                    run.answered_at_reply.clone_from(&answered);
                }
                GetAction::Repair { replica, object, lack } => {
                    let node = &case.nodes[replica];
                    assert_eq!(lack == Lack::Missing, node.version().is_none() && !node.broken);
                    assert!(lack != Lack::Unreadable || node.unreadable_whole());
                    run.repairs.push((replica, object));
                }
                GetAction::Done => done = true,
            }
        }
        if done {
            break;
        }
        let awake: Vec<usize> = (0..pending.len()).filter(|&i| !case.nodes[pending[i].0].silent).collect();
        let event = if awake.is_empty() {
            run.timed_out = true;
            if run.verdict == Verdict::Undecided {
                run.verdict = verdict(&plan, case, &answered, true);
            }
            GetEvent::Timeout
        } else {
            let (replica, ask) = pending.remove(awake[order.next().unwrap() % awake.len()]);
            if !answered.contains(&replica) {
                answered.push(replica);
            }
            if run.verdict == Verdict::Undecided {
                run.verdict = verdict(&plan, case, &answered, false);
            }
            GetEvent::Answer { replica, answer: case.answer(replica, ask, &plan, &answered) }
        };
        actions = core.on(event);
    }
    assert_eq!(replies, 1, "one reply");
    assert!(core.on(GetEvent::Timeout).is_empty(), "nothing after Done");
    run.all_answered = answered.len() == case.nodes.len();
    run
}

fn check_reply(case: &Case, plan: &GetPlan, run: &Run) -> Result<(), TestCaseError> {
    match (&run.verdict, &run.reply) {
        (Verdict::Refused(Some(error)), reply) => prop_assert_eq!(reply, &Err(error.clone())),
        (Verdict::Refused(None), reply) => {
            prop_assert!(matches!(reply, Ok(GetReply::NotFound { .. })), "{:?}", reply);
        }
        (Verdict::Undecided, reply) => prop_assert!(false, "no verdict, but {:?}", reply),
        (Verdict::Met, Err(Error::Timeout)) => {
            prop_assert!(case.nodes.iter().any(|n| n.silent || n.late));
        }
        (Verdict::Met, Err(error)) => {
            prop_assert!(matches!(error, Error::Storage(_)), "{:?}", error);
            prop_assert!(case.nodes.iter().any(Node::unreadable_whole), "nothing was rotten");
        }
        (Verdict::Met, Ok(reply)) => check_found(case, plan, run, reply)?,
    }
    Ok(())
}

/// A successful reply descends everything that the replicas had answered, and holds the right
/// values.
fn check_found(case: &Case, plan: &GetPlan, run: &Run, reply: &GetReply) -> Result<(), TestCaseError> {
    let readable = run.answered_at_reply.iter().map(|&i| &case.nodes[i]).filter(|n| !n.broken && !n.late);
    let mut seen = Object::default();
    for version in readable.filter_map(Node::version) {
        seen.merge(version);
    }
    match reply {
        GetReply::Found(object) => {
            prop_assert!(!object.is_deleted());
            prop_assert!(object.clock.same_events(&seen.clock), "{:?} is not {:?}", object, seen);
            let values = |o: &Object| {
                let mut v: Vec<_> = o.siblings.iter().map(|s| s.value.clone()).collect();
                v.sort();
                v
            };
            if plan.head {
                prop_assert!(object.siblings.iter().all(|s| s.value.is_empty()));
            } else {
                prop_assert_eq!(values(object), values(&seen));
            }
        }
        GetReply::NotFound { tombstone: Some(clock) } => {
            prop_assert!(seen.is_deleted() && !seen.siblings.is_empty());
            prop_assert!(clock.same_events(&seen.clock));
        }
        GetReply::NotFound { tombstone: None } => prop_assert!(seen.siblings.is_empty()),
    }
    Ok(())
}

/// Exactly the owners that are behind are repaired, with the merged version.
fn check_repairs(case: &Case, run: &Run) -> Result<(), TestCaseError> {
    let mut newest = Object::default();
    for version in case.nodes.iter().filter(|n| !n.broken && !n.late).filter_map(Node::version) {
        newest.merge(version);
    }
    let anybody_late = case.nodes.iter().any(|n| n.late);
    let behind = |n: &Node| match n.version() {
        // Fallbacks are not repaired.
        _ if n.late || n.replica.primaries == 0 => false,
        // What a replica cannot read is replaced when nobody else can have anything newer.
        _ if n.broken => !anybody_late && !newest.siblings.is_empty(),
        Some(version) if n.rotten => newest.clock.dominates(&version.clock),
        Some(version) => digest(&version) != digest(&newest),
        None => !newest.siblings.is_empty(),
    };
    let expected: Vec<usize> = (0..case.nodes.len()).filter(|&i| behind(&case.nodes[i])).collect();
    let repaired: Vec<usize> = run.repairs.iter().map(|(i, _)| *i).collect();
    prop_assert_eq!(repaired, expected);
    for (_, object) in &run.repairs {
        prop_assert!(object.clock.same_events(&newest.clock));
        prop_assert!(object.siblings.iter().all(|s| s.meta.deleted || !s.value.is_empty()), "{:?}", object);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_read_follows_the_model(case in case()) {
        let replicas: Vec<Replica> = case.nodes.iter().map(|n| n.replica).collect();
        // The bucket allows siblings, so that the reply shows all known values.
        let props = BucketProps { n_val: case.n, allow_mult: true, dvv_enabled: true, ..BucketProps::default() };
        let Ok(plan) = GetPlan::new(&case.options, &props, case.n, &replicas) else { return Ok(()) };
        let plan = GetPlan { local: case.local, ..plan };
        let run = run(&case, plan);
        check_reply(&case, &plan, &run)?;
        if run.all_answered && !run.timed_out && !case.nodes.iter().any(|n| n.rotten) {
            check_repairs(&case, &run)?;
        }
    }
}

fn two_replicas() -> (GetCore, Object, Object) {
    let props = BucketProps { n_val: 2, allow_mult: true, dvv_enabled: true, ..BucketProps::default() };
    let replicas = [Replica::primary(NODE, 1), Replica::primary(NODE, 1)];
    let plan = GetPlan::new(&GetOptions::default(), &props, 2, &replicas).unwrap();
    let (core, _) = GetCore::start(plan, &replicas);
    (core, versions()[0].clone(), versions()[1].clone())
}

fn answer(core: &mut GetCore, replica: usize, answer: Answer) -> Vec<GetAction> {
    core.on(GetEvent::Answer { replica, answer }).to_vec()
}

/// The rule of docs/design/replication.md §13 (b).
#[test]
fn a_body_older_than_its_head_is_asked_for_elsewhere() {
    let (mut core, first, second) = two_replicas();
    assert_eq!(answer(&mut core, 0, head(second.clone())), []);
    let ask = |replica| GetAction::Ask { replica, ask: Ask::Object };
    assert_eq!(answer(&mut core, 1, head(second.clone())), [ask(0)]);
    assert_eq!(answer(&mut core, 0, whole(first)), [ask(1)]);
    let reply = GetAction::Reply(Ok(GetReply::Found(second.clone())));
    let repair = GetAction::Repair { replica: 0, object: second.clone(), lack: Lack::Unreadable };
    assert_eq!(answer(&mut core, 1, whole(second)), [reply, repair, GetAction::Done]);
}

#[test]
fn an_ancestor_is_never_answered_for_a_version_that_nobody_can_read() {
    let (mut core, first, second) = two_replicas();
    answer(&mut core, 0, whole(first));
    answer(&mut core, 1, head(second));
    let actions = answer(&mut core, 1, Answer::Failed(unreadable()));
    assert!(matches!(actions[..], [GetAction::Reply(Err(Error::Storage(_))), GetAction::Done]), "{actions:?}");
}

/// Two values of a `write_once` key were written at once. A replica whose value is to stay cannot
/// read it: the other value takes its place.
#[test]
fn of_two_values_without_a_clock_the_readable_one_stays() {
    let (once, again) = (versions()[UNCLOCKED].clone(), versions()[UNCLOCKED + 1].clone());
    let rank = |object: &Object| UnclockedRank::new(object, digest(object));
    let (stays, goes) = if rank(&once) > rank(&again) { (once, again) } else { (again, once) };
    let ask = |replica| GetAction::Ask { replica, ask: Ask::Object };
    let found = |object: &Object| GetAction::Reply(Ok(GetReply::Found(object.clone())));
    let (mut core, ..) = two_replicas();
    answer(&mut core, 0, head(goes.clone()));
    assert_eq!(answer(&mut core, 1, head(stays.clone())), [ask(1)]);
    let repair = GetAction::Repair { replica: 0, object: stays.clone(), lack: Lack::Older };
    assert_eq!(answer(&mut core, 1, whole(stays.clone())), [found(&stays), repair, GetAction::Done]);
    let (mut core, ..) = two_replicas();
    answer(&mut core, 0, head(goes.clone()));
    answer(&mut core, 1, head(stays));
    assert_eq!(answer(&mut core, 1, Answer::Failed(unreadable())), [ask(0)]);
    let repair = GetAction::Repair { replica: 1, object: goes.clone(), lack: Lack::Unreadable };
    assert_eq!(answer(&mut core, 0, whole(goes.clone())), [found(&goes), repair, GetAction::Done]);
}

/// A read of three replicas that agree asks for one body and repairs nothing.
#[test]
fn replicas_that_agree_cost_no_further_question() {
    for version in versions() {
        let mut core = three([true; 3], &GetOptions::default());
        answer(&mut core, 0, whole(version.clone()));
        let replied = answer(&mut core, 1, head(version.clone()));
        assert!(matches!(replied[..], [GetAction::Reply(_)]), "{replied:?}");
        assert_eq!(answer(&mut core, 2, head(version)), [GetAction::Done]);
    }
}

fn three(primaries: [bool; 3], options: &GetOptions) -> GetCore {
    let props = BucketProps { allow_mult: true, dvv_enabled: true, ..BucketProps::default() };
    let replica = |owns| if owns { Replica::primary(NODE, 1) } else { Replica::fallback(NODE, 1) };
    let replicas = primaries.map(replica);
    let plan = GetPlan::new(options, &props, 3, &replicas).unwrap();
    GetCore::start(plan, &replicas).0
}

const NOTHING: Answer = Answer::NotFound { full: true };

/// The rule of docs/design/replication.md §14: one of three owners is up and slow.
#[test]
fn stand_ins_do_not_outvote_an_owner_that_is_slow() {
    let mut core = three([true, false, false], &GetOptions::default());
    assert_eq!(answer(&mut core, 1, NOTHING), []);
    assert_eq!(answer(&mut core, 2, NOTHING), [], "the owner has not answered");
    let first = versions()[0].clone();
    let ask = GetAction::Ask { replica: 0, ask: Ask::Object };
    assert_eq!(answer(&mut core, 0, head(first.clone())), [ask]);
    let found = GetAction::Reply(Ok(GetReply::Found(first.clone())));
    assert_eq!(answer(&mut core, 0, whole(first)), [found, GetAction::Done]);
    // When the owner is late, what the stand-ins say counts.
    for late in [GetEvent::Answer { replica: 0, answer: Answer::Failed(Error::Timeout) }, GetEvent::Timeout] {
        let mut core = three([true, false, false], &GetOptions::default());
        answer(&mut core, 1, NOTHING);
        answer(&mut core, 2, NOTHING);
        let absent = GetAction::Reply(Ok(GetReply::NotFound { tombstone: None }));
        assert_eq!(core.on(late).to_vec(), [absent, GetAction::Done]);
    }
}

/// The rule of docs/design/replication.md §1: a wiped disk proves nothing.
#[test]
fn an_owner_that_may_lack_something_proves_no_absence() {
    let mut core = three([true; 3], &GetOptions::default());
    let filling = Answer::NotFound { full: false };
    assert_eq!(answer(&mut core, 0, filling.clone()), []);
    assert_eq!(answer(&mut core, 1, filling.clone()), [], "two of three may have lost it");
    let first = versions()[0].clone();
    let refused = Err(Error::QuorumUnsatisfied { option: "r", need: 2, got: 1 });
    assert_eq!(answer(&mut core, 2, head(first)).first(), Some(&GetAction::Reply(refused)), "it is not absent");
    let strict = GetOptions { pr: Some(Quorum::Count(2)), ..GetOptions::default() };
    let mut core = three([true; 3], &strict);
    answer(&mut core, 0, filling.clone());
    answer(&mut core, 1, NOTHING);
    let failed = answer(&mut core, 2, Answer::Failed(StoreFailure::internal("on purpose").into()));
    // The only owner that is up has lost its disk, and stand-ins cannot know what the others have.
    let strict_one = GetOptions { pr: Some(Quorum::Count(1)), ..GetOptions::default() };
    let mut wiped = three([true, false, false], &strict_one);
    answer(&mut wiped, 1, NOTHING);
    answer(&mut wiped, 2, NOTHING);
    let unproven = Err(Error::QuorumUnsatisfied { option: "pr", need: 1, got: 0 });
    assert_eq!(answer(&mut wiped, 0, filling).first(), Some(&GetAction::Reply(unproven)));
    let unmet = Err(Error::QuorumUnsatisfied { option: "r", need: 2, got: 1 });
    assert_eq!(failed, [GetAction::Reply(unmet), GetAction::Done]);
}

#[test]
fn a_read_that_every_queue_refused_may_be_repeated() {
    let mut core = three([true; 3], &GetOptions::default());
    answer(&mut core, 0, Answer::Failed(Error::Overload));
    let busy = StoreFailure::new(StoreFailureKind::Busy, "on purpose").into();
    assert_eq!(answer(&mut core, 1, Answer::Failed(busy)), [GetAction::Reply(Err(Error::Overload))]);
}
