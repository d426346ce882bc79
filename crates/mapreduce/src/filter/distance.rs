//! The Levenshtein distance of two texts, in bytes.

use super::step::Over;

/// After so many cells it is looked whether the work is still wanted.
const CELLS_AT_ONCE: usize = 1 << 14;

/// More than any distance.
const FAR: usize = usize::MAX / 2;

/// The distance, if it is at most `distance_max`. Takes time proportional to the length of `a` and
/// the smaller one of `distance_max` and the length of `b`, and memory for `b`. It gives up as soon
/// as the distance is known to be larger.
pub(super) fn distance(
    a: &[u8],
    b: &[u8],
    distance_max: usize,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<usize>, Over> {
    if a.len().abs_diff(b.len()) > distance_max {
        return Ok(None);
    }
    // Cells that are further from the diagonal than this are larger than the maximum.
    let band = distance_max.min(a.len().max(b.len()));
    let mut above: Vec<usize> = (0..=b.len()).map(|column| if column <= band { column } else { FAR }).collect();
    let mut cells = 0;
    for (row, &x) in (1..).zip(a) {
        let (first, last) = (usize::saturating_sub(row, band), (row + band).min(b.len()));
        let (mut diagonal, mut left) = match first {
            0 => (std::mem::replace(&mut above[0], row), row),
            _ => (above[first - 1], FAR),
        };
        let mut least = left;
        for column in first.max(1)..=last {
            let replaced = diagonal + usize::from(x != b[column - 1]);
            diagonal = above[column];
            left = replaced.min(left + 1).min(diagonal + 1);
            above[column] = left;
            least = least.min(left);
        }
        if least > distance_max {
            return Ok(None);
        }
        cells += last - first + 1;
        if cells >= CELLS_AT_ONCE {
            cells = 0;
            if is_over() {
                return Err(Over);
            }
        }
    }
    Ok(above.last().copied().filter(|found| *found <= distance_max))
}
