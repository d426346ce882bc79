//! The Levenshtein distance of two texts, in bytes.

/// The distance, if it is at most `distance_max`. Takes time proportional to the product of the
/// lengths, but gives up as soon as the distance is known to be larger.
pub(super) fn distance(a: &[u8], b: &[u8], distance_max: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > distance_max {
        return None;
    }
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, &x) in a.iter().enumerate() {
        let mut diagonal = above[0];
        above[0] = row + 1;
        for (column, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = above[column + 1];
            above[column + 1] = replaced.min(above[column] + 1).min(diagonal + 1);
        }
        if above.iter().min().is_some_and(|least| *least > distance_max) {
            return None;
        }
    }
    above.last().copied().filter(|found| *found <= distance_max)
}
