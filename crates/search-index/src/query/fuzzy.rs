//! Terms like a word.

/// A word, and how many characters of a term may be different. A change, an addition, an omission
/// and an exchange of two neighbours count as one, as in Lucene. Lucene takes the 50 best terms
/// only; here all are taken.
#[derive(Clone, Debug)]
pub(crate) struct Fuzzy {
    word: Vec<char>,
    edits: usize,
}

impl Fuzzy {
    pub(crate) fn new(word: &str, edits: u8) -> Self {
        Self { word: word.chars().collect(), edits: usize::from(edits) }
    }

    pub(crate) fn is_match(&self, term: &str) -> bool {
        let chars: Vec<char> = term.chars().take(self.word.len() + self.edits + 1).collect();
        if chars.len().abs_diff(self.word.len()) > self.edits {
            return false;
        }
        let distance = self.distance(&chars);
        // Lucene wants fewer edits than the shorter of the two has characters.
        distance <= self.edits && (distance == 0 || distance < chars.len().min(self.word.len()))
    }

    /// The number of edits, or a larger number than are allowed.
    fn distance(&self, term: &[char]) -> usize {
        let mut before = vec![0; term.len() + 1];
        let mut row: Vec<usize> = (0..=term.len()).collect();
        let mut next = before.clone();
        for (i, a) in self.word.iter().enumerate() {
            next[0] = i + 1;
            for (j, b) in term.iter().enumerate() {
                let mut least = (row[j] + usize::from(a != b)).min(row[j + 1] + 1).min(next[j] + 1);
                if i > 0 && j > 0 && *a == term[j - 1] && self.word[i - 1] == *b {
                    least = least.min(before[j - 1] + 1);
                }
                next[j + 1] = least;
            }
            if next.iter().all(|edits| *edits > self.edits) {
                return self.edits + 1;
            }
            std::mem::swap(&mut before, &mut row);
            std::mem::swap(&mut row, &mut next);
        }
        row[term.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_as_in_lucene() {
        for (word, edits, term, is_match) in [
            ("bryan", 0, "bryan", true),
            ("bryan", 1, "brian", true),
            ("bryan", 1, "rbyan", true),
            ("bryan", 1, "ryan", true),
            ("bryan", 1, "bryans", true),
            ("bryan", 1, "brxxn", false),
            ("bryan", 2, "brxxn", true),
            ("bryan", 2, "brynax", true),
            ("bryan", 2, "brynxa", false),
            ("bryan", 2, "bryanxyz", false),
            ("ca", 2, "abc", false),
            ("caxx", 2, "acxx", true),
            ("ab", 2, "cd", false),
            ("ab", 1, "ac", true),
            ("a", 1, "b", false),
            ("é", 1, "éa", false),
            ("éa", 1, "é", false),
            ("éab", 1, "éa", true),
        ] {
            assert_eq!(Fuzzy::new(word, edits).is_match(term), is_match, "{word}~{edits} {term}");
        }
    }
}
