//! The oracle is zlib itself. `cases.txt` has what it gave; `cases/gen.py` writes it.

use super::huffman::Code;
use super::*;

const CASES: &str = include_str!("cases.txt");

fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect::<Option<_>>().unwrap_or_else(|| panic!("no hexadecimal digits: {digits}"))
}

#[test]
fn output_is_zlibs() {
    let mut cases = 0;
    for (line, case) in CASES.lines().enumerate() {
        let fields: Vec<_> = case.split(' ').collect();
        let [kind, input, expected] = fields[..] else { panic!("line {}: not three fields", line + 1) };
        let input = from_hex(input);
        let output = match kind {
            "raw" => deflate_raw(&input),
            "zlib" => zlib(&input),
            _ => panic!("line {}: unknown kind {kind}", line + 1),
        };
        assert_eq!(output, Some(from_hex(expected)), "line {}", line + 1);
        cases += 1;
    }
    assert!(cases > 300, "{cases} cases");
}

#[test]
fn empty_input_has_a_block() {
    assert_eq!(deflate_raw(&[]), Some(vec![3, 0]));
    assert_eq!(zlib(&[]), Some(vec![0x78, 0x9c, 3, 0, 0, 0, 0, 1]));
}

#[test]
fn longest_input_is_compressed_and_longer_is_not() {
    let input = vec![0; INPUT_BYTES_MAX + 1];
    assert!(deflate_raw(&input[1..]).is_some());
    assert!(zlib(&input[1..]).is_some());
    assert_eq!(deflate_raw(&input), None);
    assert_eq!(zlib(&input), None);
}

/// The frequencies of 17 classes of distances in a block of zlib, and its lengths of words. A word
/// of 16 bits would be best. Such an input has 14,640 bytes, so that `cases.txt` does not have it.
#[test]
fn words_of_more_than_15_bits_become_shorter() {
    let frequencies = [0, 0, 0, 0, 0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597];
    let lengths = [0, 0, 0, 0, 0, 15, 15, 15, 15, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1];
    assert_eq!(Code::new(&frequencies, 15).lengths(), lengths);
}

/// The frequencies of the lengths in the header of the same block, and its lengths of words.
#[test]
fn words_of_more_than_7_bits_become_shorter() {
    let frequencies = [0, 2, 1, 1, 1, 1, 1, 1, 28, 95, 54, 3, 1, 1, 0, 1, 20, 1, 0];
    let lengths = [0, 7, 7, 7, 7, 7, 7, 7, 3, 1, 2, 7, 7, 7, 0, 7, 5, 7];
    assert_eq!(Code::new(&frequencies, 7).lengths(), lengths);
}
