//! Phrases, also loose ones and those with several words at one position.
//!
//! A document is found if each place of the phrase has a word in it, so that the words would have
//! to be moved by no more positions than the slop: the positions of the words less their places in
//! the phrase differ by the slop at most. This is Lucene's rule, in which the exchange of two words
//! costs 2. (The library's own rule is another one.) Without a slop, words of the phrase that are
//! left out need a place too: `"the quick fox"` is not found where a text begins with `quick fox`.

use super::execution::Execution;
use super::found_documents::FoundDocuments;
use super::limits::PHRASE_STEPS_MAX;
use super::plan::PhrasePlan;
use crate::error::IndexError;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, TERMINATED};

/// One place of a phrase: the words that can stand there.
struct Place {
    offset: u32,
    words: Vec<SegmentPostings>,
}

impl Place {
    /// The first document from a target on that has one of the words.
    fn seek(&mut self, target: DocId) -> DocId {
        let first = |word: &mut SegmentPostings| if word.doc() < target { word.seek(target) } else { word.doc() };
        self.words.iter_mut().map(first).min().unwrap_or(TERMINATED)
    }

    /// The positions of the words in a document, less the place in the phrase.
    fn shifts(&mut self, document: DocId) -> Vec<i64> {
        let (mut shifts, mut positions) = (Vec::new(), Vec::new());
        for word in self.words.iter_mut().filter(|word| word.doc() == document) {
            word.positions(&mut positions);
            shifts.extend(positions.iter().map(|position| i64::from(*position) - i64::from(self.offset)));
        }
        shifts.sort_unstable();
        shifts.dedup();
        shifts
    }
}

/// The documents of a segment that a phrase finds.
pub(super) fn find(plan: &PhrasePlan, on: &Execution<'_>) -> Result<FoundDocuments, IndexError> {
    let mut found = FoundDocuments::new();
    let Some(mut places) = open(plan, on)? else { return Ok(found) };
    let has_twice = has_word_twice(plan);
    let max_doc = on.reader.max_doc();
    let mut document = 0;
    loop {
        on.step()?;
        // All places move to the farthest of their documents, until they agree.
        let mut farthest = document;
        for place in &mut places {
            farthest = farthest.max(place.seek(farthest));
        }
        if farthest == TERMINATED {
            return Ok(found);
        }
        if farthest == document && places.iter_mut().all(|place| place.seek(document) == document) {
            let mut shifts: Vec<Vec<i64>> = places.iter_mut().map(|place| place.shifts(document)).collect();
            if plan.slop == 0 {
                shifts.iter_mut().for_each(|shifts| shifts.retain(|shift| *shift >= 0));
            }
            let offsets: Vec<i64> = places.iter().map(|place| i64::from(place.offset)).collect();
            let slop = i64::from(plan.slop);
            if if has_twice { is_near_apart(&shifts, &offsets, slop) } else { is_near(&shifts, slop) } {
                found.extend(&[document], max_doc);
            }
            farthest += 1;
        }
        document = farthest;
    }
}

fn open(plan: &PhrasePlan, on: &Execution<'_>) -> Result<Option<Vec<Place>>, IndexError> {
    let inverted = on.reader.inverted_index(on.layout.words)?;
    let mut places = Vec::with_capacity(plan.places.len());
    for (offset, terms) in &plan.places {
        let mut words = Vec::new();
        for term in terms {
            words.extend(inverted.read_postings(term, IndexRecordOption::WithFreqsAndPositions)?);
        }
        if words.is_empty() {
            return Ok(None);
        }
        places.push(Place { offset: *offset, words });
    }
    Ok(Some(places))
}

fn has_word_twice(plan: &PhrasePlan) -> bool {
    let mut terms: Vec<_> = plan.places.iter().flat_map(|(_, terms)| terms).collect();
    let count = terms.len();
    terms.sort_unstable();
    terms.dedup();
    terms.len() < count
}

/// Whether lists have an element each that differ by the slop at most.
fn is_near(lists: &[Vec<i64>], slop: i64) -> bool {
    let mut at = vec![0; lists.len()];
    loop {
        let mut least: Option<(i64, usize)> = None;
        let mut most = i64::MIN;
        for (list, values) in lists.iter().enumerate() {
            let Some(value) = values.get(at[list]) else { return false };
            most = most.max(*value);
            if least.is_none_or(|(least, _)| *value < least) {
                least = Some((*value, list));
            }
        }
        let Some((least, list)) = least else { return false };
        if most - least <= slop {
            return true;
        }
        at[list] += 1;
    }
}

/// The same, where no two elements may be of one position.
fn is_near_apart(lists: &[Vec<i64>], offsets: &[i64], slop: i64) -> bool {
    let mut steps = 0;
    let mut chosen = Vec::with_capacity(lists.len());
    choose(lists, offsets, slop, &mut chosen, &mut steps)
}

fn choose(lists: &[Vec<i64>], offsets: &[i64], slop: i64, chosen: &mut Vec<i64>, steps: &mut usize) -> bool {
    let place = chosen.len();
    let Some(values) = lists.get(place) else { return true };
    let (least, most) = (chosen.iter().min().copied(), chosen.iter().max().copied());
    for value in values {
        *steps += 1;
        if *steps > PHRASE_STEPS_MAX {
            return false;
        }
        let is_near = least.is_none_or(|least| value - least <= slop) && most.is_none_or(|most| most - value <= slop);
        let position = value + offsets[place];
        let is_free = chosen.iter().zip(offsets).all(|(other, offset)| other + offset != position);
        if is_near && is_free {
            chosen.push(*value);
            if choose(lists, offsets, slop, chosen, steps) {
                return true;
            }
            chosen.pop();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_near_if_their_shifts_are() {
        assert!(is_near(&[vec![0, 9], vec![5, 10]], 1));
        assert!(!is_near(&[vec![0, 9], vec![5, 11]], 1));
        assert!(is_near(&[vec![3], vec![1], vec![2]], 2));
        // One word cannot be two.
        assert!(is_near(&[vec![0], vec![-1]], 1));
        assert!(!is_near_apart(&[vec![0], vec![-1]], &[0, 1], 1));
        assert!(is_near_apart(&[vec![0, 1], vec![-1, 0]], &[0, 1], 1));
    }
}
