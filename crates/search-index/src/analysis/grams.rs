//! Pieces of words.

/// Pieces of a word of several lengths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grams {
    pub(super) least: usize,
    pub(super) most: usize,
    /// Whether pieces begin at every character, or only at the first one.
    pub(super) is_everywhere: bool,
}

/// The longest piece. Solr has no limit, and a document would become the square of its size.
pub(super) const GRAM_CHARS_MAX: usize = 64;

impl Grams {
    /// The pieces, by their beginnings and then by their lengths.
    pub(super) fn of(self, word: &str) -> Vec<String> {
        let ends: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
        let chars = ends.len() - 1;
        let starts = if self.is_everywhere { chars } else { usize::from(chars > 0) };
        let mut grams = Vec::new();
        for start in 0..starts {
            for length in self.least.max(1)..=self.most.min(GRAM_CHARS_MAX).min(chars - start) {
                grams.push(word[ends[start]..ends[start + length]].to_owned());
            }
        }
        grams
    }
}
