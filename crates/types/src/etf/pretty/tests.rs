//! Terms in lines, as OTP 25 writes them with `~p`: each line of the file has a term in the
//! external format and its text, both in hexadecimal digits.

use super::Pretty;
use crate::etf::{Term, decode};

fn bytes(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn lines_break_where_erlang_breaks_them() {
    let examples = include_str!("examples.txt");
    assert!(examples.lines().count() >= 40);
    for example in examples.lines() {
        let (term, text) = example.split_once(' ').unwrap();
        let term = decode(&bytes(term)).unwrap();
        // Erlang writes Latin-1.
        let text: String = bytes(text).into_iter().map(char::from).collect();
        assert_eq!(Pretty { term: &term, bytes_max: usize::MAX }.to_string(), text, "{term:?}");
    }
}

#[test]
fn a_text_is_cut() {
    let term = Term::string(&[b'x'; 200]);
    let cut = |bytes_max| Pretty { term: &term, bytes_max }.to_string();
    assert_eq!(cut(10), "\"xxxxxxxxx...");
    assert_eq!(cut(202), format!("{}...", &term.to_string()[..202]));
    assert_eq!(cut(203), term.to_string());
    let term = Term::string("é".repeat(9).chars().map(|c| c as u8).collect::<Vec<_>>().as_slice());
    assert_eq!(Pretty { term: &term, bytes_max: 4 }.to_string(), "\"é...");
}
