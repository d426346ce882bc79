//! Tests of stores through their public face, in one program, because each program takes seconds to
//! link.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod append_marks;
mod backup;
mod boundaries;
mod change_feed;
mod closing;
mod common;
mod contract;
mod expiry;
mod faults;
mod format;
mod format_2;
mod full_disk;
mod identity;
mod large_objects;
mod lost_seqs;
mod media_errors;
mod merge_guards;
mod metamorphic;
mod missing_parts;
mod openings;
mod power_cut;
mod scrub;
mod seqs;
mod sync_interval;
mod terms_check;
mod upkeep;
mod verify;
