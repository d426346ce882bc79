//! Finds the known name that a mistyped name probably means.

use strsim::generic_levenshtein;

/// The name in `known` that is closest to `word`, if it is close enough: at most a third of the
/// longer one's characters must change. Differences in letter case and between `-` and `_` are
/// ignored. Of equally close names the first is returned.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = folded(word)?;
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let Some(candidate) = folded(name) else { continue };
        let edits_max = word.len().max(candidate.len()).div_ceil(3);
        let edits = generic_levenshtein(&word, &candidate);
        if edits <= edits_max && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Maximum length of a word in bytes. Longer words are not mistyped names, and the time of the
/// comparison is quadratic in the lengths.
const WORD_BYTES_MAX: usize = 128;

fn folded(word: &str) -> Option<Vec<u8>> {
    let fold = |b: u8| if b == b'-' { b'_' } else { b.to_ascii_lowercase() };
    (word.len() <= WORD_BYTES_MAX).then(|| word.bytes().map(fold).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_name() {
        let known = ["n_val", "allow_mult", "last_write_wins", "r"];
        assert_eq!(nearest("nval", known), Some("n_val"));
        assert_eq!(nearest("allow-mult", known), Some("allow_mult"));
        assert_eq!(nearest("LastWriteWins", known), Some("last_write_wins"));
        assert_eq!(nearest("something_else", known), None);
        assert_eq!(nearest(&"n".repeat(10_000), known), None);
    }
}
