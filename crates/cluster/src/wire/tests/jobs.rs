//! Parts of jobs arrive as they were sent.

use super::bytes_of;
use crate::jobs::messages::{JobAnswer, decode_job_answer, encode_job_answer};
use ombak_jobs::PartAnswer;
use ombak_mapreduce::{Values, compare};
use ombak_types::etf::Term;
use proptest::prelude::*;
use std::cmp::Ordering;

fn term() -> impl Strategy<Value = Term> {
    let plain = prop_oneof![
        (0..300_i64).prop_map(Term::Int),
        any::<i64>().prop_map(Term::Int),
        any::<i32>().prop_map(|n| Term::Float(f64::from(n) / 8.0)),
        "[a-z]{0,3}".prop_map(|text| Term::binary(text.as_bytes())),
        "[a-z]{1,3}".prop_map(|name| Term::atom(&name)),
    ];
    plain.prop_recursive(2, 16, 4, |inner| {
        let terms = prop::collection::vec(inner, 0..4);
        prop_oneof![terms.clone().prop_map(Term::List), terms.prop_map(Term::Tuple)]
    })
}

/// Lists of which many are all small integers, for which Erlang's encoding has a form of its own.
fn results() -> impl Strategy<Value = Vec<Term>> {
    prop_oneof![prop::collection::vec(term(), 0..5), prop::collection::vec((0..256_i64).prop_map(Term::Int), 0..5)]
}

proptest! {
    #[test]
    fn results_arrive_as_they_were_given(results in results(), goes_on in any::<bool>()) {
        let from = goes_on.then(|| "a place".into());
        let given = PartAnswer { results: Values::from(results.clone()), from: from.clone() };
        let sent = bytes_of(&encode_job_answer(JobAnswer::Piece(given)));
        let Ok(JobAnswer::Piece(arrived)) = decode_job_answer(&sent) else { panic!("another answer") };
        prop_assert_eq!((arrived.from, arrived.results.len()), (from, results.len()));
        // A list of small integers may arrive in the other one of its two forms.
        for (a, b) in arrived.results.list().iter().zip(&results) {
            prop_assert_eq!(compare(a, b), Ordering::Equal, "{:?} {:?}", a, b);
        }
    }
}
