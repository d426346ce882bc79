//! Rules that are broken on purpose are found by the same runs that otherwise break none.

use ombak_kv::{BrokenRule, break_rule};
use ombak_sim::run_seed;

/// The seeds among which each broken rule is found.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=200;

/// Runs seeds until one breaks a rule, and returns what it says. `first` is only where it was found
/// last, to save time.
fn found_by_a_seed(rule: BrokenRule, first: u64) -> String {
    found_as(rule, "", first)
}

/// The same, for a violation whose text has certain words.
fn found_as(rule: BrokenRule, words: &str, first: u64) -> String {
    assert!(SEEDS.contains(&first));
    for seed in std::iter::once(first).chain(SEEDS.filter(|seed| *seed != first)) {
        // The switch counts for this thread alone, and a run stays on its thread.
        break_rule(Some(rule));
        let report = run_seed(seed);
        break_rule(None);
        if let Some(text) = report.violation.map(|it| it.to_string()).filter(|text| text.contains(words)) {
            println!("{rule:?}: seed {seed}: {text}");
            return text;
        }
    }
    panic!("no seed of {SEEDS:?} has noticed that this rule is broken: {rule:?}")
}

#[test]
fn an_actor_that_is_used_again_is_found() {
    let violation = found_by_a_seed(BrokenRule::EachRunHasItsOwnActor, 5);
    assert!(violation.contains("one event id names"), "{violation}");
}

#[test]
fn a_replica_that_drops_siblings_is_found() {
    let violation = found_by_a_seed(BrokenRule::ReplicasKeepSiblings, 1);
    assert!(violation.contains("no disk has it") || violation.contains("differ"), "{violation}");
}

#[test]
fn a_forwarded_put_that_is_executed_late_is_found() {
    let violation = found_by_a_seed(BrokenRule::ForwardedPutsAreNeverLate, 3);
    assert!(violation.contains("was not executed in time"), "{violation}");
}

#[test]
fn copies_that_are_given_back_by_partition_are_found() {
    let violation = found_by_a_seed(BrokenRule::HintsGoByClass, 1);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_copy_that_is_removed_unproven_is_found() {
    let violation = found_by_a_seed(BrokenRule::OnlyProvenVersionsAreRemoved, 16);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_proof_that_is_not_synced_is_found() {
    let violation = found_by_a_seed(BrokenRule::ProofsAreSynced, 3);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_round_that_asks_no_other_member_is_found() {
    let violation = found_by_a_seed(BrokenRule::OtherMembersAreAsked, 3);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_vote_that_is_not_synced_is_found() {
    let violation = found_by_a_seed(BrokenRule::ReapingAnswersAreSynced, 38);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_vote_of_a_filling_primary_is_found() {
    let violation = found_by_a_seed(BrokenRule::FillingPrimariesDoNotVote, 3);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_copy_that_passes_a_fence_is_found() {
    let violation = found_by_a_seed(BrokenRule::CopiesAreFenced, 3);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_not_found_of_a_filling_replica_is_found() {
    let _ = found_as(BrokenRule::FillingReplicasProveNoAbsence, "found nothing", 4);
}

#[test]
fn a_lost_tail_that_is_not_noticed_is_found() {
    let violation = found_by_a_seed(BrokenRule::LostTailsAreNoticed, 4);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn an_answer_that_raises_no_fence_is_found() {
    let violation = found_by_a_seed(BrokenRule::AnswersRaiseFences, 15);
    assert!(violation.contains("older than a tombstone"), "{violation}");
}

#[test]
fn a_removal_that_raises_no_fence_is_found() {
    let violation = found_by_a_seed(BrokenRule::RemovalsRaiseFences, 3);
    assert!(violation.contains("older than a tombstone"), "{violation}");
}

#[test]
fn a_refused_copy_that_is_sent_again_is_found() {
    let violation = found_by_a_seed(BrokenRule::RefusedCopiesAreReadAgain, 3);
    assert!(violation.contains("older than a tombstone"), "{violation}");
}

#[test]
fn a_node_that_goes_on_after_a_pause_and_waits_for_nobody_is_found() {
    let _ = found_as(BrokenRule::WakingNodesWait, "after a pause of all owners", 1);
}

#[test]
fn primaries_that_check_no_condition_are_found() {
    let _ = found_as(BrokenRule::PrimariesCheckConditions, "had the same precondition", 6);
}

#[test]
fn primaries_that_check_no_absence_are_found() {
    let _ = found_as(BrokenRule::PrimariesCheckConditions, "for a key without a value", 14);
}

#[test]
fn a_living_value_that_is_preferred_to_a_newer_tombstone_is_found() {
    let _ = found_as(BrokenRule::NewerTombstonesHide, "beside a newer deletion", 12);
}

#[test]
fn a_hidden_value_that_stays_is_found() {
    let _ = found_as(BrokenRule::HiddenValuesAreReplaced, "beside a newer deletion", 2);
}

#[test]
fn a_tombstone_that_is_removed_with_its_time_is_found() {
    let _ = found_as(BrokenRule::TombstonesLoseTheirTimes, "still has its time", 3);
}

#[test]
fn a_bad_sector_that_nothing_repairs_is_found() {
    let _ = found_as(BrokenRule::MediaErrorsAreRepaired, "members still change", 24);
}

#[test]
fn a_changing_home_that_reaps_is_found() {
    let violation = found_by_a_seed(BrokenRule::ChangingHomesReapNothing, 1);
    assert!(violation.contains("its home is changing"), "{violation}");
}

#[test]
fn a_leaver_that_stands_in_is_found() {
    let _ = found_as(BrokenRule::LeaversStandInForNobody, "in the place of another, although it leaves", 3);
}

#[test]
fn a_leaver_that_is_removed_before_it_has_given_all_is_found() {
    let _ = found_as(BrokenRule::LeaversSayWhatTheyHold, "removed because it leaves, and it still holds", 48);
}

#[test]
fn a_full_disk_that_nothing_pays_for_is_found() {
    let violation = found_by_a_seed(BrokenRule::ReservesPayForNotes, 4);
    assert!(violation.contains("still"), "{violation}");
}

#[test]
fn a_leaver_that_keeps_what_it_has_not_proved_is_found() {
    let violation = found_by_a_seed(BrokenRule::LeaversProveWhatTheyKeep, 3);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_removed_node_that_takes_part_again_is_found() {
    let _ = found_as(BrokenRule::RemovedNodesTakeNoPart, "older than a tombstone", 74);
}

#[test]
fn a_newcomer_that_hands_back_before_its_commit_is_found() {
    let _ = found_as(BrokenRule::NewcomersHandBackLater, "whose join is not committed", 2);
}

#[test]
fn a_role_that_clears_what_is_owed_is_found() {
    let violation = found_by_a_seed(BrokenRule::RolesKeepWhatIsOwed, 3);
    assert!(violation.contains("does not owe what it held for others"), "{violation}");
}

#[test]
fn slots_that_flip_one_by_one_are_found() {
    let _ = found_as(BrokenRule::HomesMoveAsAWhole, "they are of no ring", 3);
}

#[test]
fn acknowledgements_that_count_in_one_set_are_found() {
    let violation = found_by_a_seed(BrokenRule::BothSetsCount, 6);
    assert!(violation.contains("primaries of each set had acknowledged it"), "{violation}");
}

#[test]
fn puts_that_go_to_the_set_in_force_alone_are_found() {
    let violation = found_by_a_seed(BrokenRule::PutsReachBothSets, 3);
    assert!(violation.contains("primaries of each set had acknowledged it"), "{violation}");
}

#[test]
fn acknowledgements_by_an_older_placement_are_found() {
    let violation = found_by_a_seed(BrokenRule::WritesAreFenced, 21);
    assert!(violation.contains("primaries of each set had acknowledged it"), "{violation}");
}

#[test]
fn flips_without_proofs_are_found() {
    let violation = found_by_a_seed(BrokenRule::FlipsNeedProofs, 1);
    assert!(violation.contains("lacks what host"), "{violation}");
}

#[test]
fn copies_that_an_old_set_gives_back_early_are_found() {
    let violation = found_by_a_seed(BrokenRule::OldSetsKeepTheirCopies, 2);
    assert!(violation.contains("its home is changing"), "{violation}");
}

#[test]
fn a_copy_that_one_primary_has_proved_is_found() {
    let violation = found_by_a_seed(BrokenRule::AllPrimariesProve, 2);
    assert!(violation.contains("it gave back"), "{violation}");
}

/// What an exchange spreads that a mark covers was removed everywhere else.
#[test]
fn an_exchange_that_pushes_whatever_others_lack_is_found() {
    let violation = found_by_a_seed(BrokenRule::MarksDecideWhatIsPushed, 27);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_doubtful_store_that_gives_is_found() {
    let violation = found_by_a_seed(BrokenRule::DoubtfulStoresOnlyReceive, 53);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_drop_that_asks_one_primary_is_found() {
    let violation = found_by_a_seed(BrokenRule::DropsNeedAllPrimaries, 1);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn sums_that_an_opening_makes_anew_are_found() {
    let violation = found_by_a_seed(BrokenRule::SumsAreCheckedAtOpening, 3);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn filling_with_what_was_removed_is_found() {
    let violation = found_by_a_seed(BrokenRule::FillingLeavesOutTheDead, 112);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_read_that_spreads_what_was_removed_is_found() {
    let violation = found_by_a_seed(BrokenRule::ReadsLeaveItToExchanges, 3);
    assert!(!violation.contains("does not start"), "{violation}");
}

#[test]
fn a_fold_that_erases_what_was_written_later_is_found() {
    let _ = found_as(BrokenRule::ErasesCheckClocks, "began after the fold had found its keys", 10);
}

/// The rules of anti-entropy, for [`search_for_seeds`].
const OF_ANTI_ENTROPY: [BrokenRule; 12] = [
    BrokenRule::MarksDecideWhatIsPushed,
    BrokenRule::MarksNeedProof,
    BrokenRule::MarksNameTokens,
    BrokenRule::MarksFollowSyncs,
    BrokenRule::ToldSeqsAreKept,
    BrokenRule::DoubtfulStoresOnlyReceive,
    BrokenRule::DropsNeedAllPrimaries,
    BrokenRule::DropsWaitForAllPrimaries,
    BrokenRule::FillingLeavesOutTheDead,
    BrokenRule::ReadsLeaveItToExchanges,
    BrokenRule::SumsAreCheckedAtOpening,
    BrokenRule::DifferencesAreSeenTwice,
];

/// Prints for each rule of anti-entropy, or for the one that `OMBAK_SIM_RULE` names, the seeds that
/// find it: up to `OMBAK_SIM_FOUND` of them (3). It goes on from `OMBAK_SIM_FIRST` (1).
#[test]
#[ignore = "it takes long; somebody who needs other seeds calls it"]
fn search_for_seeds() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let wanted = std::env::var("OMBAK_SIM_RULE").ok();
    let (first, found_max) = (number("OMBAK_SIM_FIRST", *SEEDS.start()), number("OMBAK_SIM_FOUND", 3));
    let is_wanted = |rule: &BrokenRule| wanted.as_ref().is_none_or(|wanted| *wanted == format!("{rule:?}"));
    for rule in OF_ANTI_ENTROPY.into_iter().filter(is_wanted) {
        let mut found = 0;
        for seed in first..=*SEEDS.end() {
            break_rule(Some(rule));
            let violation = run_seed(seed).violation;
            break_rule(None);
            if let Some(violation) = violation {
                println!("{rule:?}: seed {seed}: {violation}");
                found += 1;
            }
            if found == found_max {
                break;
            }
        }
        println!("{rule:?}: {found} seeds");
    }
}
