//! What becomes of a version that another primary lacks, and that is not above all marks: it was
//! removed there, or lost there, or it never was there (docs/design/anti-entropy.md §5).

use super::KeyHeld;
use ombak_kv::repair_host::{BrokenRule, is_broken};
use ombak_kv::replica::Held;

/// What a further primary says of some versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    /// Whether it has answered, and is known to hold everything of the class.
    pub(crate) is_full: bool,
    /// Everything in this node's store up to this seq was included there, by a mark that holds.
    pub(crate) marked_seq: u64,
    /// For each version, in the order of the question; empty if it has not answered.
    pub(crate) held: Vec<KeyHeld>,
}

impl Witness {
    /// A primary that has not answered.
    pub(crate) const fn silent() -> Self {
        Self { is_full: false, marked_seq: 0, held: Vec::new() }
    }
}

/// What becomes of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was not removed everywhere, or nobody knows that it was ever at all primaries.
    Push,
    /// It was at all other primaries and is at none of them: it was removed, and goes.
    Drop,
    /// Nobody can tell in this round, or another primary brings a newer version. It stays where it
    /// is, and goes nowhere.
    Withhold,
}

/// A version of this node that another primary lacks, or holds in a way that is no evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lacked {
    /// Its seq in this node's store.
    pub(crate) seq: u64,
    /// Up to this seq everything was included at the primary that lacks it now, by a mark that
    /// holds.
    pub(crate) marked_seq: u64,
    /// Whether it is in doubt here.
    pub(crate) is_in_doubt: bool,
    /// What the other primary holds: nothing that contains the version, or something that it cannot
    /// read.
    pub(crate) held_there: KeyHeld,
}

/// Judges the version at a place of the question. `witnesses` are all further primaries.
pub(crate) fn judge(place: usize, lacked: Lacked, witnesses: &[Witness]) -> Verdict {
    let Lacked { seq, marked_seq, is_in_doubt, held_there } = lacked;
    if is_broken(BrokenRule::DropsNeedAllPrimaries) && held_there.is_lack() {
        return if seq <= marked_seq { Verdict::Drop } else { Verdict::Push };
    }
    let answered = |witness: &&Witness| witness.is_full && place < witness.held.len();
    let is_silent = |witness: &Witness| !answered(&witness);
    if witnesses.iter().any(is_silent) && !is_broken(BrokenRule::DropsWaitForAllPrimaries) {
        return Verdict::Withhold;
    }
    // Who holds a newer version brings that one. The older one was removed, perhaps.
    let is_newer = |witness: &Witness| witness.held[place] == KeyHeld::Readable(Held::Covers);
    if witnesses.iter().filter(answered).any(is_newer) {
        return Verdict::Withhold;
    }
    let (mut has_lack, mut is_covered, mut is_held_somehow) = (false, true, false);
    let of_witnesses = witnesses.iter().filter(answered).map(|witness| (witness.held[place], witness.marked_seq));
    for (held, marked_seq) in [(held_there, marked_seq)].into_iter().chain(of_witnesses) {
        match held {
            // An older version is no removal: a copy after a removal has a fresh clock.
            KeyHeld::Readable(Held::Same | Held::Covers | Held::Less) => return Verdict::Push,
            // It is there, and is no evidence.
            KeyHeld::Unreadable | KeyHeld::InDoubt(Held::Same | Held::Covers | Held::Less) => is_held_somehow = true,
            KeyHeld::Readable(Held::Nothing | Held::Other) | KeyHeld::InDoubt(Held::Nothing | Held::Other) => {
                has_lack = true;
                is_covered &= seq <= marked_seq;
            }
        }
    }
    let is_removed = has_lack && is_covered;
    match () {
        // That one is repaired first. What it cannot read is no lack, so it gets the version.
        () if is_held_somehow && !is_in_doubt && held_there.is_lack() => Verdict::Withhold,
        () if is_held_somehow && !is_in_doubt => Verdict::Push,
        // Nobody knows more than the marks. Otherwise two stores in doubt would wait for each
        // other.
        () if is_held_somehow && is_removed => Verdict::Drop,
        () if is_held_somehow => Verdict::Push,
        () if is_covered || is_in_doubt => Verdict::Drop,
        () => Verdict::Push,
    }
}

/// A version that this node holds for the primaries of its class. It is in doubt, or a mark of the
/// time at which this node was a primary covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// Its seq in this node's store.
    pub(crate) seq: u64,
    /// Whether it is in doubt here.
    pub(crate) is_in_doubt: bool,
    /// The number of nodes that are no primaries any more, and at which the version was, by the
    /// marks for them. Each has proved to the one that took its place what it held.
    pub(crate) former_marks: usize,
}

/// Judges a version that this node holds for the primaries of its class, which are all of these. A
/// version in doubt is withheld while one of them has it in doubt, too, or cannot read it: that
/// primary decides.
pub(crate) fn judge_foreign(place: usize, copy: Foreign, primaries: &[Witness]) -> Verdict {
    let Foreign { seq, is_in_doubt, former_marks } = copy;
    let unmarked = primaries.iter().filter(|primary| seq > primary.marked_seq).count();
    let is_removed = is_in_doubt || unmarked <= former_marks;
    let of_primary = |primary: &Witness| primary.held.get(place).copied().filter(|_| primary.is_full);
    let held: Option<Vec<KeyHeld>> = primaries.iter().map(of_primary).collect();
    let is_held = |held: &KeyHeld| matches!(held, KeyHeld::Readable(Held::Same | Held::Covers | Held::Less));
    match held.filter(|held| !held.is_empty()) {
        Some(held) if held.iter().any(is_held) => Verdict::Push,
        Some(held) if held.iter().all(|held| held.is_lack()) && is_removed => Verdict::Drop,
        Some(_) if !is_in_doubt => Verdict::Push,
        Some(_) | None => Verdict::Withhold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEQ: u64 = 60;
    const NOTHING: KeyHeld = KeyHeld::Readable(Held::Nothing);
    const COVERED: Lacked = Lacked { seq: SEQ, marked_seq: SEQ, is_in_doubt: false, held_there: NOTHING };
    const UNMARKED: Lacked = Lacked { marked_seq: SEQ - 1, ..COVERED };

    fn full(held: Held) -> Witness {
        Witness { is_full: true, marked_seq: SEQ, held: vec![KeyHeld::Readable(held)] }
    }

    #[test]
    fn a_version_goes_only_if_it_was_everywhere_and_all_lack_it() {
        let filling = Witness { is_full: false, ..full(Held::Same) };
        let unmarked = Witness { marked_seq: SEQ - 1, ..full(Held::Nothing) };
        let unreadable = Witness { held: vec![KeyHeld::Unreadable], ..full(Held::Same) };
        let mixed = vec![unreadable.clone(), full(Held::Same)];
        for (witnesses, verdict) in [
            (vec![], Verdict::Drop),
            (vec![full(Held::Nothing)], Verdict::Drop),
            (vec![full(Held::Other), full(Held::Nothing)], Verdict::Drop),
            (vec![full(Held::Nothing), full(Held::Same)], Verdict::Push),
            (vec![full(Held::Less)], Verdict::Push),
            (vec![full(Held::Covers)], Verdict::Withhold),
            (vec![full(Held::Same), full(Held::Covers)], Verdict::Withhold),
            (vec![unmarked], Verdict::Push),
            (vec![full(Held::Same), Witness::silent()], Verdict::Withhold),
            (vec![filling], Verdict::Withhold),
            (vec![unreadable], Verdict::Withhold),
            (mixed, Verdict::Push),
            (vec![Witness { held: Vec::new(), ..full(Held::Same) }], Verdict::Withhold),
        ] {
            assert_eq!(judge(0, COVERED, &witnesses), verdict, "{witnesses:?}");
        }
        assert_eq!(judge(0, UNMARKED, &[full(Held::Nothing)]), Verdict::Push, "it may never have been there");
    }

    #[test]
    fn a_copy_in_doubt_goes_if_all_lack_it_whatever_the_marks_say() {
        let lacked = Lacked { is_in_doubt: true, ..UNMARKED };
        let unmarked = Witness { marked_seq: 0, ..full(Held::Nothing) };
        assert_eq!(judge(0, lacked, std::slice::from_ref(&unmarked)), Verdict::Drop);
        assert_eq!(judge(0, lacked, &[unmarked.clone(), full(Held::Same)]), Verdict::Push, "it was not removed");
        assert_eq!(judge(0, lacked, &[unmarked.clone(), full(Held::Covers)]), Verdict::Withhold, "it is replaced");
        assert_eq!(judge(0, lacked, &[unmarked, Witness::silent()]), Verdict::Withhold);
    }

    #[test]
    fn what_the_other_primary_cannot_read_is_no_lack() {
        let lacked = Lacked { held_there: KeyHeld::Unreadable, ..COVERED };
        for held in [KeyHeld::Unreadable, NOTHING, KeyHeld::InDoubt(Held::Same)] {
            let witness = Witness { held: vec![held], ..full(Held::Same) };
            assert_eq!(judge(0, lacked, &[witness]), Verdict::Push, "{held:?}");
        }
        assert_eq!(judge(0, lacked, &[Witness::silent()]), Verdict::Withhold);
    }

    #[test]
    fn a_copy_in_doubt_that_is_held_for_others_goes_where_one_of_them_has_it() {
        let with = |held: KeyHeld| Witness { held: vec![held], ..full(Held::Same) };
        let [nothing, other] = [Held::Nothing, Held::Other].map(full);
        for (primaries, verdict) in [
            (vec![], Verdict::Withhold),
            (vec![nothing.clone(), other.clone()], Verdict::Drop),
            (vec![nothing.clone(), full(Held::Same)], Verdict::Push),
            (vec![full(Held::Covers)], Verdict::Push),
            (vec![full(Held::Same), Witness::silent()], Verdict::Withhold),
            (vec![nothing.clone(), Witness { is_full: false, ..nothing.clone() }], Verdict::Withhold),
            (vec![nothing.clone(), with(KeyHeld::Unreadable)], Verdict::Withhold),
            (vec![nothing, with(KeyHeld::InDoubt(Held::Same))], Verdict::Withhold),
        ] {
            let copy = Foreign { seq: SEQ, is_in_doubt: true, former_marks: 0 };
            assert_eq!(judge_foreign(0, copy, &primaries), verdict, "{primaries:?}");
        }
    }

    #[test]
    fn a_foreign_copy_goes_if_it_was_at_all_primaries_or_at_those_before_them() {
        let [nothing, same] = [Held::Nothing, Held::Same].map(full);
        let new = Witness { marked_seq: 0, ..nothing.clone() };
        let unreadable = Witness { held: vec![KeyHeld::Unreadable], ..nothing.clone() };
        for (former_marks, primaries, verdict) in [
            (0, vec![nothing.clone(), nothing.clone()], Verdict::Drop),
            (0, vec![nothing.clone(), new.clone()], Verdict::Push),
            (1, vec![nothing.clone(), new.clone()], Verdict::Drop),
            (1, vec![new.clone(), new], Verdict::Push),
            (1, vec![nothing.clone(), same], Verdict::Push),
            (1, vec![nothing.clone(), unreadable], Verdict::Push),
            (1, vec![nothing.clone(), Witness::silent()], Verdict::Withhold),
            (1, vec![Witness { is_full: false, ..nothing }], Verdict::Withhold),
        ] {
            let copy = Foreign { seq: SEQ, is_in_doubt: false, former_marks };
            assert_eq!(judge_foreign(0, copy, &primaries), verdict, "{former_marks} {primaries:?}");
        }
    }

    /// Of two stores in doubt neither waits for the other one.
    #[test]
    fn marks_decide_about_a_copy_that_is_in_doubt_at_two_primaries() {
        let lacked = Lacked { is_in_doubt: true, ..COVERED };
        for held in [KeyHeld::InDoubt(Held::Same), KeyHeld::Unreadable] {
            let witness = Witness { held: vec![held], marked_seq: 0, ..full(Held::Same) };
            assert_eq!(judge(0, lacked, std::slice::from_ref(&witness)), Verdict::Drop, "{held:?}");
            let unmarked = Lacked { marked_seq: SEQ - 1, ..lacked };
            assert_eq!(judge(0, unmarked, std::slice::from_ref(&witness)), Verdict::Push, "{held:?}");
            let held_there = Lacked { held_there: held, ..lacked };
            assert_eq!(judge(0, held_there, &[]), Verdict::Push, "{held:?}");
            assert_eq!(judge(0, lacked, &[witness, full(Held::Same)]), Verdict::Push, "{held:?}");
        }
    }

    #[test]
    fn a_copy_in_doubt_is_no_evidence() {
        let in_doubt = |held| Witness { held: vec![KeyHeld::InDoubt(held)], ..full(Held::Same) };
        for held in [Held::Same, Held::Covers, Held::Less] {
            assert_eq!(judge(0, COVERED, &[in_doubt(held)]), Verdict::Withhold, "{held:?}");
            assert_eq!(judge(0, COVERED, &[in_doubt(held), full(Held::Same)]), Verdict::Push, "{held:?}");
        }
        assert_eq!(judge(0, COVERED, &[in_doubt(Held::Other)]), Verdict::Drop);
    }
}
