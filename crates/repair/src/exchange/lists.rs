//! Lists of mixes: which versions of some ranges one node holds, and another one lacks.
//!
//! The mixes of all ranges of an exchange are sorted together, and cut into parts by their values.
//! So a part is bounded however full a range is, and the other node can tell what the part is
//! complete for.

use super::client::ListQuestion;

/// Maximum number of mixes of one question.
pub const LIST_MIXES_MAX: usize = 8_192;

/// A version that this node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The number that stands for it in lists.
    pub(crate) mix: u64,
    /// Its place in the append order of this node's store.
    pub(crate) seq: u64,
}

/// Cuts the versions of some ranges into questions. There is one at least: the other node may hold
/// what this one lacks.
pub(crate) fn questions(ranges: &[u32], items: &[Item]) -> Vec<ListQuestion> {
    let mut mixes: Vec<u64> = items.iter().map(|item| item.mix).collect();
    mixes.sort_unstable();
    mixes.dedup();
    let mut questions = Vec::new();
    let mut from = 0;
    let mut rest = &mixes[..];
    loop {
        let (part, left) = rest.split_at(rest.len().min(LIST_MIXES_MAX));
        let is_last = left.is_empty();
        let to = part.last().copied().filter(|_| !is_last).unwrap_or(u64::MAX);
        questions.push(ListQuestion { ranges: ranges.to_vec(), from, to, mixes: part.to_vec() });
        if is_last {
            return questions;
        }
        // Not the last one, so a larger mix follows.
        from = to + 1;
        rest = left;
    }
}

/// The mixes of a list that are not among `own`, which ascend.
pub(crate) fn lacked(list: &ListQuestion, own: &[u64]) -> Vec<u64> {
    list.mixes.iter().copied().filter(|mix| own.binary_search(mix).is_err()).collect()
}

/// Whether a version of this node is one for which the list is complete, and which is not in it:
/// the other node lacks the version.
pub(crate) fn is_lacked_by_sender(list: &ListQuestion, mix: u64) -> bool {
    (list.from..=list.to).contains(&mix) && list.mixes.binary_search(&mix).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(mix: u64) -> Item {
        Item { mix, seq: 1 }
    }

    #[test]
    fn an_empty_list_is_complete_for_everything() {
        let all = questions(&[3], &[]);
        assert_eq!(all, [ListQuestion { ranges: vec![3], from: 0, to: u64::MAX, mixes: Vec::new() }]);
        assert!(is_lacked_by_sender(&all[0], 0) && is_lacked_by_sender(&all[0], u64::MAX));
    }

    #[test]
    fn the_parts_of_a_long_list_are_complete_together() {
        let items: Vec<Item> = (0..20_000).rev().map(|mix| item(mix * 3)).collect();
        let parts = questions(&[0, 9], &items);
        assert_eq!(parts.len(), 3);
        assert_eq!((parts[0].from, parts[2].to), (0, u64::MAX));
        assert!(parts.windows(2).all(|pair| pair[0].to + 1 == pair[1].from));
        assert!(parts.iter().all(|part| part.mixes.len() <= LIST_MIXES_MAX));
        assert_eq!(parts.iter().map(|part| part.mixes.len()).sum::<usize>(), items.len());
        for mix in [1, 8_192 * 3 + 1, 59_999, u64::MAX] {
            assert_eq!(parts.iter().filter(|part| is_lacked_by_sender(part, mix)).count(), 1, "{mix}");
        }
        assert!(!parts.iter().any(|part| is_lacked_by_sender(part, 300)), "the sender holds it");
    }

    #[test]
    fn a_list_tells_what_is_lacked() {
        let list = ListQuestion { ranges: vec![0], from: 0, to: 50, mixes: vec![1, 4, 9] };
        assert_eq!(lacked(&list, &[4, 5]), [1, 9]);
        assert_eq!(lacked(&list, &[1, 4, 9]), [0; 0]);
    }

    #[test]
    fn the_largest_mix_ends_the_last_part() {
        let items: Vec<Item> = (0..=LIST_MIXES_MAX as u64).map(|mix| item(u64::MAX - mix)).collect();
        let parts = questions(&[1], &items);
        assert_eq!((parts.len(), parts[1].mixes.len(), parts[1].to), (2, 1, u64::MAX));
    }
}
