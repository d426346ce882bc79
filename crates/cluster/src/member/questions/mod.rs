//! What members ask each other about themselves, and what they answer.
//!
//! What it is: the questions and answers, and their bytes: a version and a JSON document. A member
//! answers operators' questions about its transfers, its detection times and its work with the same
//! types.
//!
//! What it is not: it asks nobody and answers nothing. Data does not pass here: replicas have
//! services of their own (`crate::replica`).
//!
//! Invariants:
//! * A question or an answer with an unknown version is refused.
//! * A member that does not know a question refuses it. So a question that a cluster depends on is
//!   asked only of members that have said that they know it (`crate::capabilities`).
//!
//! This room uses no other room of `member`.

pub(super) mod detection_times;
pub(super) mod exchanges;
pub(super) mod question;
pub(super) mod ring_change_facts;
pub(super) mod transfers;
pub(super) mod unsettled_counts;
pub(super) mod who_is;
