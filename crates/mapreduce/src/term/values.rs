//! Values of a phase, with their size.

use super::bytes_held;
use ombak_types::etf::Term;

/// Values of a phase. Their size is known, so that who passes them on need not visit each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    list: Vec<Term>,
    bytes: usize,
}

impl From<Vec<Term>> for Values {
    /// Visits all values.
    fn from(list: Vec<Term>) -> Self {
        Self { bytes: list.iter().map(bytes_held).sum(), list }
    }
}

impl Values {
    /// How many values these are.
    pub const fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The bytes that they hold; see [`bytes_held`].
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The values, borrowed.
    pub fn list(&self) -> &[Term] {
        &self.list
    }

    /// The values, owned.
    pub fn into_list(self) -> Vec<Term> {
        self.list
    }

    /// Adds values at the end.
    pub fn append(&mut self, mut values: Self) {
        self.bytes += values.bytes;
        self.list.append(&mut values.list);
    }

    /// The same values in batches of at most `bytes_max`, or of one value that is larger.
    pub(crate) fn in_batches(self, bytes_max: usize) -> Vec<Self> {
        if self.bytes <= bytes_max {
            return vec![self];
        }
        let (mut batches, mut last) = (Vec::new(), Self::default());
        for value in self.list {
            let bytes = bytes_held(&value);
            if !last.is_empty() && last.bytes + bytes > bytes_max {
                batches.push(std::mem::take(&mut last));
            }
            last.bytes += bytes;
            last.list.push(value);
        }
        batches.push(last);
        batches
    }

    /// All values of these batches, in their order.
    pub fn concat(batches: Vec<Self>) -> Vec<Term> {
        let count = batches.iter().map(Self::len).sum::<usize>();
        let mut batches = batches.into_iter().map(Self::into_list);
        let Some(mut all) = batches.next() else { return Vec::new() };
        // The first batch may be most of what a phase may hold. A list that doubled its room would
        // take three times as much while it is copied.
        all.reserve_exact(count - all.len());
        batches.for_each(|mut batch| all.append(&mut batch));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(range: std::ops::Range<i64>) -> Values {
        range.map(Term::Int).collect::<Vec<_>>().into()
    }

    #[test]
    fn batches_keep_the_order_and_the_size() {
        let all = numbers(0..10);
        let one = bytes_held(&Term::Int(0));
        assert_eq!((all.len(), all.bytes()), (10, 10 * one));
        for (bytes_max, expected) in [(0, 10), (one, 10), (3 * one, 4), (10 * one, 1), (usize::MAX, 1)] {
            let batches = all.clone().in_batches(bytes_max);
            assert_eq!(batches.len(), expected, "{bytes_max}");
            assert_eq!(batches.iter().map(Values::bytes).sum::<usize>(), all.bytes());
            assert!(batches.iter().all(|batch| batch.bytes() <= bytes_max.max(one)));
            assert_eq!(Values::concat(batches), all.list());
        }
        assert_eq!(Values::concat(vec![Values::default(), numbers(0..2), numbers(2..3)]), numbers(0..3).into_list());
        assert_eq!(Values::concat(Vec::new()), []);
        let mut both = numbers(0..4);
        both.append(numbers(4..10));
        assert_eq!(both, all);
    }
}
