//! Writes the only block of a stream (RFC 1951 §3.2): stored, with the fixed codes, or with codes
//! of its own that a header describes. The kind with the fewest bytes is taken.
//!
//! zlib compares lengths in whole bytes and counts four bytes of a stored block's head. It prefers
//! a stored block to the others if they are equal, then the fixed codes.

use super::bits::BitWriter;
use super::huffman::Code;
use super::matches::{Match, Symbol};
use std::sync::LazyLock;

/// The first three bits of the block: it is the last, and has one of three kinds.
const STORED: usize = 0b001;
const FIXED: usize = 0b011;
const DYNAMIC: usize = 0b101;
const KIND_BITS: usize = 3;

/// The symbols of the first code: the 256 bytes, the end of the block, and classes of lengths.
const LITERALS: usize = 286;
const END: usize = 256;
const FIRST_LENGTH: usize = 257;

/// The shortest length of each class, and how many bits tell the lengths of a class apart.
const LENGTHS: [u16; 29] =
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS: [usize; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/// The symbols of the second code are classes of distances. These are the shortest distances and
/// the numbers of bits. Two more classes need longer inputs.
const DISTANCES: [u16; 28] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
    8193, 12289,
];
const DISTANCE_BITS: [usize; 28] =
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12];

/// The length of the longest word of a block's own codes, and of the code that describes them.
const WORD_BITS_MAX: usize = 15;
const RUN_WORD_BITS_MAX: usize = 7;

/// The symbols of the code that describes codes: the lengths 0 to 15, three to six more of the last
/// length, and shorter and longer runs of 0.
const RUNS: usize = 19;
const REPEAT: usize = 16;
const ZEROS: usize = 17;
const MORE_ZEROS: usize = 18;
/// The order in which the header has the lengths of that code's words.
const RUN_ORDER: [usize; RUNS] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const RUN_LENGTHS_MIN: usize = 4;

static FIXED_CODES: LazyLock<Codes> = LazyLock::new(Codes::fixed);

/// A block and what is counted in it.
pub struct Block<'a> {
    input: &'a [u8],
    symbols: &'a [Symbol],
    /// How often each symbol of the two codes occurs.
    literals: [usize; LITERALS],
    distances: [usize; DISTANCES.len()],
    /// How many bits beside the words of the codes the symbols have.
    extra_bits: usize,
}

impl<'a> Block<'a> {
    /// Returns the block of an input that the symbols stand for.
    pub fn new(input: &'a [u8], symbols: &'a [Symbol]) -> Self {
        let (literals, distances) = ([0; LITERALS], [0; DISTANCES.len()]);
        let mut block = Self { input, symbols, literals, distances, extra_bits: 0 };
        for &symbol in symbols {
            match symbol {
                Symbol::Literal(byte) => block.literals[usize::from(byte)] += 1,
                Symbol::Match(Match { length, distance }) => {
                    let (length, distance) = (class(&LENGTHS, length), class(&DISTANCES, distance));
                    block.literals[FIRST_LENGTH + length] += 1;
                    block.distances[distance] += 1;
                    block.extra_bits += LENGTH_BITS[length] + DISTANCE_BITS[distance];
                }
            }
        }
        block.literals[END] = 1;
        block
    }

    /// Writes the block.
    pub fn write(&self, bits: &mut BitWriter) {
        let own = Codes {
            literals: Code::new(&self.literals, WORD_BITS_MAX),
            distances: Code::new(&self.distances, WORD_BITS_MAX),
        };
        let header = Header::new(&own);
        let dynamic_bytes = (KIND_BITS + header.total_bits() + self.total_bits(&own)).div_ceil(8);
        let fixed_bytes = (KIND_BITS + self.total_bits(&FIXED_CODES)).div_ceil(8);
        if self.input.len() + 4 <= dynamic_bytes.min(fixed_bytes) {
            self.write_stored(bits);
        } else if fixed_bytes <= dynamic_bytes {
            bits.push(FIXED, KIND_BITS);
            self.write_symbols(&FIXED_CODES, bits);
        } else {
            bits.push(DYNAMIC, KIND_BITS);
            header.write(bits);
            self.write_symbols(&own, bits);
        }
    }

    fn total_bits(&self, codes: &Codes) -> usize {
        codes.literals.total_bits(&self.literals) + codes.distances.total_bits(&self.distances) + self.extra_bits
    }

    fn write_stored(&self, bits: &mut BitWriter) {
        bits.push(STORED, KIND_BITS);
        // The length has 16 bits.
        let [low, high, ..] = self.input.len().to_le_bytes();
        bits.push_bytes(&[low, high, !low, !high]);
        bits.push_bytes(self.input);
    }

    fn write_symbols(&self, codes: &Codes, bits: &mut BitWriter) {
        for &symbol in self.symbols {
            match symbol {
                Symbol::Literal(byte) => codes.literals.write(usize::from(byte), bits),
                Symbol::Match(Match { length, distance }) => {
                    let class_of_length = class(&LENGTHS, length);
                    codes.literals.write(FIRST_LENGTH + class_of_length, bits);
                    bits.push(usize::from(length - LENGTHS[class_of_length]), LENGTH_BITS[class_of_length]);
                    let class_of_distance = class(&DISTANCES, distance);
                    codes.distances.write(class_of_distance, bits);
                    bits.push(usize::from(distance - DISTANCES[class_of_distance]), DISTANCE_BITS[class_of_distance]);
                }
            }
        }
        codes.literals.write(END, bits);
    }
}

/// Returns the class of a value, which is not less than the first class's least.
fn class(leasts: &[u16], value: u16) -> usize {
    leasts.partition_point(|&least| least <= value) - 1
}

/// The two codes of a block.
struct Codes {
    literals: Code,
    distances: Code,
}

impl Codes {
    /// Returns the codes that need no header (RFC 1951 §3.2.6).
    fn fixed() -> Self {
        let literals = [[8; 144].as_slice(), &[9; 112], &[7; 24], &[8; 8]].concat();
        Self { literals: Code::from_lengths(literals), distances: Code::from_lengths(vec![5; 30]) }
    }
}

/// The description of a block's own codes (RFC 1951 §3.2.7).
struct Header {
    literals: usize,
    distances: usize,
    runs: Vec<Run>,
    frequencies: [usize; RUNS],
    code: Code,
}

impl Header {
    fn new(codes: &Codes) -> Self {
        let (literals, distances) = (codes.literals.lengths(), codes.distances.lengths());
        let mut runs = Vec::new();
        push_runs(literals, &mut runs);
        push_runs(distances, &mut runs);
        let mut frequencies = [0; RUNS];
        for run in &runs {
            frequencies[run.symbol] += 1;
        }
        let code = Code::new(&frequencies, RUN_WORD_BITS_MAX);
        Self { literals: literals.len(), distances: distances.len(), runs, frequencies, code }
    }

    fn total_bits(&self) -> usize {
        let extra_bits: usize = self.runs.iter().map(Run::extra_bits).sum();
        5 + 5 + 4 + 3 * self.run_lengths().len() + self.code.total_bits(&self.frequencies) + extra_bits
    }

    /// Returns the lengths of the words of the code that describes the codes, in the order of the
    /// header. Zeros at the end are left out.
    fn run_lengths(&self) -> Vec<usize> {
        let mut lengths = RUN_ORDER.map(|symbol| self.code.lengths().get(symbol).copied().unwrap_or(0)).to_vec();
        while lengths.len() > RUN_LENGTHS_MIN && lengths.last() == Some(&0) {
            lengths.pop();
        }
        lengths
    }

    fn write(&self, bits: &mut BitWriter) {
        let run_lengths = self.run_lengths();
        bits.push(self.literals - FIRST_LENGTH, 5);
        bits.push(self.distances - 1, 5);
        bits.push(run_lengths.len() - RUN_LENGTHS_MIN, 4);
        for length in run_lengths {
            bits.push(length, 3);
        }
        for run in &self.runs {
            self.code.write(run.symbol, bits);
            bits.push(run.extra, run.extra_bits());
        }
    }
}

/// A length of a word, or a run of lengths.
struct Run {
    symbol: usize,
    /// By how much the run is longer than the shortest of its kind.
    extra: usize,
}

impl Run {
    fn extra_bits(&self) -> usize {
        match self.symbol {
            REPEAT => 2,
            ZEROS => 3,
            MORE_ZEROS => 7,
            _ => 0,
        }
    }
}

/// Divides the lengths of a code's words into runs. No run reaches from one code into the next.
fn push_runs(lengths: &[usize], runs: &mut Vec<Run>) {
    for same in lengths.chunk_by(PartialEq::eq) {
        let length = same[0];
        let (repeats, repeats_max) = if length == 0 { (same, 138) } else { (&same[1..], 6) };
        if length > 0 {
            runs.push(Run { symbol: length, extra: 0 });
        }
        for chunk in repeats.chunks(repeats_max) {
            match chunk.len() {
                count @ 0..3 => runs.extend((0..count).map(|_| Run { symbol: length, extra: 0 })),
                count if length > 0 => runs.push(Run { symbol: REPEAT, extra: count - 3 }),
                count @ 3..11 => runs.push(Run { symbol: ZEROS, extra: count - 3 }),
                count => runs.push(Run { symbol: MORE_ZEROS, extra: count - 11 }),
            }
        }
    }
}
