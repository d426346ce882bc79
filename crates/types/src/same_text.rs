//! Comparison of texts while the program is compiled.

/// Whether two texts are the same. `==` does not work in constants.
pub(crate) const fn is_same_text(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
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
    fn texts_are_compared_as_a_whole() {
        for (one, other) in [("", ""), ("a.1", "a.1"), ("a.1", "a.2"), ("a", "a.1"), ("", "a")] {
            assert_eq!(is_same_text(one, other), one == other);
            assert_eq!(is_same_text(other, one), one == other);
        }
    }
}
