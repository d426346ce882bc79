//! Divides an input into literals and matches, as zlib does at level 6.
//!
//! The search is lazy: a match waits until the search at the next position has found none that is
//! longer. All limits of the search are part of the result, because another limit finds other
//! matches.
//!
//! Two properties of zlib look like accidents and are kept. Position 0 is never the start of a
//! match, because zlib's chains end with 0. Positions whose hashes collide are on one chain, and
//! they count towards the limit of the search even though they cannot match.

/// The lengths of the shortest and the longest match.
const MATCH_BYTES_MIN: u16 = 3;
const MATCH_BYTES_MAX: u16 = 258;

/// A search looks at this many positions, and at a quarter of them if the match that waits is good.
const CANDIDATES_MAX: usize = 128;
/// The length of a match that is good.
const GOOD_BYTES: u16 = 8;
/// The length of a match that is taken without a search at the next position.
const LAZY_BYTES: u16 = 16;
/// The length of a match that ends the search.
const NICE_BYTES: u16 = 128;
/// The greatest distance of a match of three bytes. A more distant one costs more than literals.
const DISTANCE_OF_SHORTEST_MAX: u16 = 4096;

const HASH_BITS: usize = 15;

/// A byte, or a copy of earlier bytes.
#[derive(Clone, Copy)]
pub enum Symbol {
    Literal(u8),
    Match(Match),
}

/// A copy of bytes. The length is in 3..=258. The distance is at least 1.
#[derive(Clone, Copy)]
pub struct Match {
    pub length: u16,
    pub distance: u16,
}

/// The search in one input. Chains lead from a position to earlier ones whose hash is the same.
pub struct Matcher<'a> {
    input: &'a [u8],
    input_bytes: u16,
    /// The last position with each hash. 0 stands for none.
    heads: Vec<u16>,
    /// The position on the chain before each position. 0 stands for none.
    before: Vec<u16>,
}

impl<'a> Matcher<'a> {
    /// Returns `None` if the positions of the input do not fit into 16 bits.
    pub fn new(input: &'a [u8]) -> Option<Self> {
        let input_bytes = u16::try_from(input.len()).ok()?;
        Some(Self { input, input_bytes, heads: vec![0; 1 << HASH_BITS], before: vec![0; input.len()] })
    }

    /// Returns the symbols that stand for the input.
    pub fn symbols(mut self) -> Vec<Symbol> {
        let mut symbols = Vec::with_capacity(self.input.len());
        // The symbol that the byte before the position starts, unless a match that is taken covers
        // it.
        let mut waiting = None;
        let mut position = 0;
        while position < self.input_bytes {
            let candidate = self.insert(position);
            let found = self.search(candidate, position, waiting);
            if let (Some(Symbol::Match(taken)), None) = (waiting, found) {
                symbols.push(Symbol::Match(taken));
                let end = position - 1 + taken.length;
                for covered in position + 1..end {
                    self.insert(covered);
                }
                waiting = None;
                position = end;
                continue;
            }
            if waiting.is_some() {
                symbols.push(Symbol::Literal(self.byte(position - 1)));
            }
            waiting = Some(found.map_or(Symbol::Literal(self.byte(position)), Symbol::Match));
            position += 1;
        }
        // A match waits for at least two more bytes, so that this is a literal.
        symbols.extend(waiting);
        symbols
    }

    /// Puts the position at the head of its chain, and returns the head before. No chain has the
    /// last two positions: too few bytes for a match are there.
    fn insert(&mut self, position: u16) -> u16 {
        let Some(&[first, second, third]) = self.input[usize::from(position)..].first_chunk() else {
            return 0;
        };
        let mixed = usize::from(first) << 10 ^ usize::from(second) << 5 ^ usize::from(third);
        let head = &mut self.heads[mixed % (1 << HASH_BITS)];
        let candidate = std::mem::replace(head, position);
        self.before[usize::from(position)] = candidate;
        candidate
    }

    /// Returns the first of the longest matches at the position if it is longer than the one that
    /// waits.
    fn search(&self, candidate: u16, position: u16, waiting: Option<Symbol>) -> Option<Match> {
        let waiting_bytes = match waiting {
            Some(Symbol::Match(waiting)) => waiting.length,
            _ => MATCH_BYTES_MIN - 1,
        };
        if waiting_bytes >= LAZY_BYTES {
            return None;
        }
        let found = self.search_chain(candidate, position, waiting_bytes)?;
        let too_far = found.length == MATCH_BYTES_MIN && found.distance > DISTANCE_OF_SHORTEST_MAX;
        (!too_far).then_some(found)
    }

    /// Returns the first of the longest matches if it is longer than `best_bytes`.
    fn search_chain(&self, mut candidate: u16, position: u16, mut best_bytes: u16) -> Option<Match> {
        let left_bytes = self.input_bytes - position;
        let match_bytes_max = left_bytes.min(MATCH_BYTES_MAX);
        let enough_bytes = left_bytes.min(NICE_BYTES);
        let candidates_max = if best_bytes >= GOOD_BYTES { CANDIDATES_MAX / 4 } else { CANDIDATES_MAX };
        let mut best = None;
        for _ in 0..candidates_max {
            if candidate == 0 || best_bytes >= match_bytes_max {
                break;
            }
            // Most candidates differ in the byte that would make them the best.
            if self.byte(candidate + best_bytes) == self.byte(position + best_bytes) {
                let length = self.common_bytes(candidate, position, match_bytes_max);
                if length > best_bytes {
                    best = Some(Match { length, distance: position - candidate });
                    best_bytes = length;
                }
                if length >= enough_bytes {
                    break;
                }
            }
            candidate = self.before[usize::from(candidate)];
        }
        best
    }

    /// Returns how many bytes at the two positions are the same, up to a maximum.
    fn common_bytes(&self, one: u16, other: u16, bytes_max: u16) -> u16 {
        (0..bytes_max).find(|&at| self.byte(one + at) != self.byte(other + at)).unwrap_or(bytes_max)
    }

    fn byte(&self, position: u16) -> u8 {
        self.input[usize::from(position)]
    }
}
