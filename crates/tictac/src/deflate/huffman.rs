//! Makes prefix codes from the frequencies of symbols, as zlib makes them.
//!
//! Many codes are equally short. This one depends on the order in which zlib's heap gives out nodes
//! of equal frequency, and on the way in which zlib shortens codes that are too long.

use super::bits::BitWriter;
use std::iter::repeat_n;

/// The length of the longest code word that DEFLATE has, in bits.
const WORD_BITS_MAX: usize = 15;

/// A prefix code. Symbols are numbered from 0.
pub struct Code {
    /// The length of each symbol's word in bits. 0 stands for no word. The last one is not 0.
    lengths: Vec<usize>,
    /// The words. Their first bit is the lowest.
    words: Vec<u16>,
}

impl Code {
    /// Returns the code for the frequencies, with words of at most `bits_max` bits, which are at
    /// most 15. The code has at least two words, even if fewer symbols occur.
    pub fn new(frequencies: &[usize], bits_max: usize) -> Self {
        let mut tree = Tree::new(frequencies);
        tree.join();
        Self::from_lengths(tree.lengths(bits_max))
    }

    /// Returns the code that the lengths of the words define (RFC 1951 §3.2.2).
    pub fn from_lengths(lengths: Vec<usize>) -> Self {
        let mut counts = [0; WORD_BITS_MAX + 1];
        for &length in lengths.iter().filter(|&&length| length > 0) {
            counts[length] += 1;
        }
        let mut next_words = [0_u16; WORD_BITS_MAX + 1];
        for length in 1..WORD_BITS_MAX {
            next_words[length + 1] = (next_words[length] + counts[length]) << 1;
        }
        let words = lengths.iter().map(|&length| {
            if length == 0 {
                return 0;
            }
            let word = next_words[length];
            next_words[length] += 1;
            word.reverse_bits() >> (16 - length)
        });
        let words = words.collect();
        Self { lengths, words }
    }

    /// Returns the lengths of the words of all symbols up to the last one that has a word.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Returns how many bits the words of all symbols have together.
    pub fn total_bits(&self, frequencies: &[usize]) -> usize {
        frequencies.iter().zip(&self.lengths).map(|(frequency, length)| frequency * length).sum()
    }

    /// Writes the word of a symbol, which must have one.
    pub fn write(&self, symbol: usize, bits: &mut BitWriter) {
        bits.push(usize::from(self.words[symbol]), self.lengths[symbol]);
    }
}

/// A Huffman tree. Its first nodes are the leaves, one for each symbol up to the last that occurs.
/// The nodes that join two others follow.
struct Tree {
    leaves: usize,
    frequencies: Vec<usize>,
    /// How many levels are below each node.
    depths: Vec<usize>,
    parents: Vec<usize>,
    /// A binary heap of the nodes without a parent. The least frequent node is at its top.
    heap: Vec<usize>,
    /// The nodes that left the heap, in this order. Each node is before its parent.
    removed: Vec<usize>,
}

impl Tree {
    /// Returns the leaves. zlib never makes fewer than two. If fewer symbols occur, it adds others:
    /// those after the last, but only of the first three, or else symbol 0.
    fn new(frequencies: &[usize]) -> Self {
        let mut heap: Vec<_> = (0..frequencies.len()).filter(|&symbol| frequencies[symbol] > 0).collect();
        let mut leaves = heap.last().map_or(0, |last| last + 1);
        let mut frequencies = frequencies[..leaves].to_vec();
        while heap.len() < 2 {
            let forced = if leaves < 3 { leaves } else { 0 };
            leaves = leaves.max(forced + 1);
            frequencies.resize(leaves, 0);
            frequencies[forced] = 1;
            heap.push(forced);
        }
        Self { leaves, frequencies, depths: vec![0; leaves], parents: vec![0; leaves], heap, removed: Vec::new() }
    }

    /// Joins the two least frequent nodes until one is left.
    fn join(&mut self) {
        for place in (0..self.heap.len() / 2).rev() {
            self.sift_down(place);
        }
        while self.heap.len() > 1 {
            let one = self.heap.swap_remove(0);
            self.sift_down(0);
            let other = self.heap[0];
            let parent = self.parents.len();
            self.frequencies.push(self.frequencies[one] + self.frequencies[other]);
            self.depths.push(self.depths[one].max(self.depths[other]) + 1);
            self.parents.push(0);
            self.parents[one] = parent;
            self.parents[other] = parent;
            self.removed.extend([one, other]);
            self.heap[0] = parent;
            self.sift_down(0);
        }
        self.removed.append(&mut self.heap);
    }

    /// Moves the node at a place of the heap down until no node below it is before it.
    fn sift_down(&mut self, mut place: usize) {
        let node = self.heap[place];
        loop {
            let mut below = 2 * place + 1;
            if below + 1 < self.heap.len() && self.is_before(self.heap[below + 1], self.heap[below]) {
                below += 1;
            }
            if below >= self.heap.len() || self.is_before(node, self.heap[below]) {
                break;
            }
            self.heap[place] = self.heap[below];
            place = below;
        }
        self.heap[place] = node;
    }

    /// Whether one node leaves the heap before the other. Both do if they are equal in all.
    fn is_before(&self, one: usize, other: usize) -> bool {
        (self.frequencies[one], self.depths[one]) <= (self.frequencies[other], self.depths[other])
    }

    /// Returns the length of each leaf's code word, which is its distance from the root unless that
    /// exceeds the maximum.
    fn lengths(&self, bits_max: usize) -> Vec<usize> {
        let mut lengths = vec![0; self.parents.len()];
        let mut counts = [0; WORD_BITS_MAX + 1];
        let mut cut = 0;
        // The first is the root.
        for &node in self.removed.iter().rev().skip(1) {
            let length = lengths[self.parents[node]] + 1;
            lengths[node] = length.min(bits_max);
            if length > bits_max {
                cut += 1;
            }
            if node < self.leaves {
                counts[lengths[node]] += 1;
            }
        }
        lengths.truncate(self.leaves);
        if cut > 0 {
            make_room(&mut counts, bits_max, cut);
            self.assign(&counts, &mut lengths);
        }
        lengths
    }

    /// Gives the longest words to the leaves that left the heap first.
    fn assign(&self, counts: &[usize; WORD_BITS_MAX + 1], lengths: &mut [usize]) {
        let leaves = self.removed.iter().filter(|&&node| node < self.leaves);
        let longest_first = (1..=WORD_BITS_MAX).rev().flat_map(|length| repeat_n(length, counts[length]));
        for (&leaf, length) in leaves.zip(longest_first) {
            lengths[leaf] = length;
        }
    }
}

/// Changes how many words have each length until all words fit, after `cut` nodes, leaves and
/// others, got the greatest length instead of a greater one. Each step lengthens a shorter word by
/// one bit, which makes room for another word beside it, and takes that one from the longest. A
/// step undoes two of the cuts.
fn make_room(counts: &mut [usize; WORD_BITS_MAX + 1], bits_max: usize, cut: usize) {
    for _ in 0..cut.div_ceil(2) {
        let Some(length) = (1..bits_max).rev().find(|&length| counts[length] > 0) else {
            break;
        };
        counts[length] -= 1;
        counts[length + 1] += 2;
        counts[bits_max] -= 1;
    }
}
