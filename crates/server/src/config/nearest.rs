//! The known name that a misspelt one most likely meant.

/// Names longer than this are not compared: the work grows with the product of the lengths.
const NAME_CHARS_MAX: usize = 128;

/// The candidate that takes the fewest changes to reach from `name`; `None` when all are too different to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    let close_enough = (name.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= close_enough)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, cb) in b.iter().enumerate() {
            let change = last[j] + usize::from(ca != cb);
            let mut best = change.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *ca == b[j - 1] && a[i - 1] == *cb {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_changes() {
        for (a, b, n) in
            [("", "", 0), ("ring_size", "ring_sise", 1), ("ab", "ba", 1), ("kitten", "sitting", 3), ("", "abc", 3)]
        {
            assert_eq!(distance(a, b), n, "{a} {b}");
            assert_eq!(distance(b, a), n, "{b} {a}");
        }
    }

    #[test]
    fn far_names_are_not_offered() {
        let known = ["ring_size", "nodename", "storage_backend"];
        assert_eq!(nearest("storage_backed", known), Some("storage_backend"));
        assert_eq!(nearest("ringsize", known), Some("ring_size"));
        assert_eq!(nearest("completely_else", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
