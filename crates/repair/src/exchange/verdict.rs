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
    /// Nobody can tell in this round. It stays where it is, and goes nowhere.
    Withhold,
}

/// Judges the version at a place of the question, which has a seq in this node's store. It was
/// included up to `marked_seq` at the primary that lacks it now. `witnesses` are all further
/// primaries.
pub(crate) fn judge(place: usize, seq: u64, marked_seq: u64, witnesses: &[Witness]) -> Verdict {
    if is_broken(BrokenRule::DropsNeedAllPrimaries) {
        return if seq <= marked_seq { Verdict::Drop } else { Verdict::Push };
    }
    let answered = |witness: &&Witness| witness.is_full && place < witness.held.len();
    let is_silent = |witness: &Witness| !answered(&witness);
    if witnesses.iter().any(is_silent) && !is_broken(BrokenRule::DropsWaitForAllPrimaries) {
        return Verdict::Withhold;
    }
    let mut is_covered = seq <= marked_seq;
    for witness in witnesses.iter().filter(answered) {
        match witness.held[place] {
            // An older version is no removal: a copy after a removal has a fresh clock.
            KeyHeld::Readable(Held::Same | Held::Covers | Held::Less) => return Verdict::Push,
            KeyHeld::Unreadable => return Verdict::Withhold,
            KeyHeld::Readable(Held::Nothing | Held::Other) => is_covered &= seq <= witness.marked_seq,
        }
    }
    if is_covered { Verdict::Drop } else { Verdict::Push }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEQ: u64 = 60;

    fn full(held: Held) -> Witness {
        Witness { is_full: true, marked_seq: SEQ, held: vec![KeyHeld::Readable(held)] }
    }

    #[test]
    fn a_version_goes_only_if_it_was_everywhere_and_all_lack_it() {
        let filling = Witness { is_full: false, ..full(Held::Same) };
        let unmarked = Witness { marked_seq: SEQ - 1, ..full(Held::Nothing) };
        let unreadable = Witness { held: vec![KeyHeld::Unreadable], ..full(Held::Same) };
        for (witnesses, verdict) in [
            (vec![], Verdict::Drop),
            (vec![full(Held::Nothing)], Verdict::Drop),
            (vec![full(Held::Other), full(Held::Nothing)], Verdict::Drop),
            (vec![full(Held::Nothing), full(Held::Same)], Verdict::Push),
            (vec![full(Held::Covers)], Verdict::Push),
            (vec![full(Held::Less)], Verdict::Push),
            (vec![unmarked], Verdict::Push),
            (vec![full(Held::Same), Witness::silent()], Verdict::Withhold),
            (vec![filling], Verdict::Withhold),
            (vec![unreadable], Verdict::Withhold),
            (vec![Witness { held: Vec::new(), ..full(Held::Same) }], Verdict::Withhold),
        ] {
            assert_eq!(judge(0, SEQ, SEQ, &witnesses), verdict, "{witnesses:?}");
        }
        assert_eq!(judge(0, SEQ, SEQ - 1, &[full(Held::Nothing)]), Verdict::Push, "it may never have been there");
    }
}
