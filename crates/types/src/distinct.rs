//! Checks of lists while the program is compiled: that no two entries of a registry have one name
//! or one number. A registry calls these functions in a constant, so a name or number that is used
//! twice does not compile.
//!
//! `==` and iterators do not work in constants, hence the loops.

use crate::same_text::is_same_text;

/// The place of the first of `texts` that is `text`; the length of the list if there is none.
pub const fn place_of_text(text: &str, texts: &[&str]) -> usize {
    let mut at = 0;
    while at < texts.len() && !is_same_text(texts[at], text) {
        at += 1;
    }
    at
}

/// The place of the first of `numbers` that is `number`; the length of the list if there is none.
pub const fn place_of_number(number: u16, numbers: &[u16]) -> usize {
    let mut at = 0;
    while at < numbers.len() && numbers[at] != number {
        at += 1;
    }
    at
}

/// Whether no text stands in the list twice.
pub const fn are_distinct_texts(texts: &[&str]) -> bool {
    let mut at = 0;
    while at < texts.len() {
        if place_of_text(texts[at], texts) != at {
            return false;
        }
        at += 1;
    }
    true
}

/// Whether no number stands in the list twice.
pub const fn are_distinct_numbers(numbers: &[u16]) -> bool {
    let mut at = 0;
    while at < numbers.len() {
        if place_of_number(numbers[at], numbers) != at {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_that_of_the_first_one() {
        assert_eq!(place_of_text("b", &["a", "b", "b"]), 1);
        assert_eq!(place_of_text("", &["a", "b"]), 2);
        assert_eq!(place_of_number(7, &[7, 8, 7]), 0);
        assert_eq!(place_of_number(9, &[7, 8, 7]), 3);
    }

    #[test]
    fn one_that_stands_twice_is_seen_wherever_it_stands() {
        for texts in [&["a", "b", "a"][..], &["a", "a"], &["c", "a", "b", "b"]] {
            assert!(!are_distinct_texts(texts), "{texts:?}");
        }
        for texts in [&[][..], &["a"], &["a", "b", "", "ab"]] {
            assert!(are_distinct_texts(texts), "{texts:?}");
        }
        for numbers in [&[1, 2, 1][..], &[1, 1], &[3, 1, 2, 2]] {
            assert!(!are_distinct_numbers(numbers), "{numbers:?}");
        }
        for numbers in [&[][..], &[0], &[1, 2, 3, 257]] {
            assert!(are_distinct_numbers(numbers), "{numbers:?}");
        }
    }
}
