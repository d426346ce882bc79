//! The commands and refusals that version 1 did not have.

use super::*;
use ombak_fixtures::FrozenMessages;

#[test]
fn commands_and_refusals_have_the_bytes_of_version_2() {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, "commands");
    let (_, ring) = two();
    let goal = NewGoal { removed: vec![C], ns: [1, 3].into(), ..goal(&ring) };
    for (name, command) in [("set_goal", Command::SetGoal(goal)), ("take_step", step(300, 7, Step::Begin))] {
        frozen.check(name, &command, |m| serde_json::to_vec(m).unwrap(), |b| serde_json::from_slice(b));
    }
    frozen.end();
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, "refusals");
    for (name, refusal) in [("no_goal", Refusal::NoGoal("a reason".into())), ("ring_changes", Refusal::RingChanges)] {
        frozen.check(name, &refusal, |m| serde_json::to_vec(m).unwrap(), |b| serde_json::from_slice(b));
    }
    frozen.end();
}
