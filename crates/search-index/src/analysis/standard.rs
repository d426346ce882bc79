//! Words as Unicode Standard Annex 29 has them, and Lucene's standard tokenizer.
//!
//! Letters and digits belong together, also around `'`, `.` and `:` between letters, around `.`,
//! `,` and `;` between digits, and with `_`. Each character of Chinese and each of Hiragana is a
//! word; Katakana and Thai are words as long as they run.

use super::chain::WORD_UNITS_MAX;

/// What a character is inside words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Letter,
    Hebrew,
    Digit,
    Katakana,
    /// A word of its own.
    Single,
    /// Thai, Lao, Khmer and Burmese: no rule knows their words.
    Run,
    /// Belongs to the character before it.
    Extend,
    /// `_`
    Connector,
    /// Between letters.
    MidLetter,
    /// Between digits.
    MidDigit,
    /// Between letters, and between digits.
    MidBoth,
    /// `'`
    Quote,
    /// `"`, between Hebrew letters.
    DoubleQuote,
    Other,
}

/// Characters of Chinese and Japanese.
pub(super) fn is_cjk(c: char) -> bool {
    is_ideograph(c) || is_hiragana(c) || is_katakana(c)
}

pub(super) fn is_thai(c: char) -> bool {
    matches!(c, '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{2e80}'..='\u{2fd5}' | '\u{3005}' | '\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303b}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}')
}

fn is_katakana(c: char) -> bool {
    matches!(c,
        '\u{3031}'..='\u{3035}' | '\u{309b}' | '\u{309c}' | '\u{30a0}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}')
}

/// Marks above and below letters, and characters that only join or format.
fn is_extend(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{5bf}'
        | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}' | '\u{600}'..='\u{605}'
        | '\u{610}'..='\u{61a}' | '\u{61c}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dd}'
        | '\u{6df}'..='\u{6e4}' | '\u{6e7}' | '\u{6e8}' | '\u{6ea}'..='\u{6ed}' | '\u{900}'..='\u{903}'
        | '\u{93a}'..='\u{93c}' | '\u{93e}'..='\u{94f}' | '\u{951}'..='\u{957}' | '\u{962}' | '\u{963}'
        | '\u{981}'..='\u{983}' | '\u{9bc}' | '\u{9be}'..='\u{9cd}' | '\u{a3c}'..='\u{a4d}'
        | '\u{abc}' | '\u{abe}'..='\u{acd}' | '\u{b3c}' | '\u{b3e}'..='\u{b57}' | '\u{bbe}'..='\u{bcd}'
        | '\u{c3e}'..='\u{c56}' | '\u{cbc}' | '\u{cbe}'..='\u{cd6}' | '\u{d3e}'..='\u{d4d}'
        | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{20d0}'..='\u{20f0}'
        | '\u{3099}' | '\u{309a}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{feff}')
}

/// Numbers that are signs and not digits, such as ² and ½.
fn is_number_sign(c: char) -> bool {
    matches!(c,
        '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{bc}'..='\u{be}' | '\u{2070}'..='\u{209c}' | '\u{2150}'..='\u{215f}'
        | '\u{2460}'..='\u{249b}' | '\u{24ea}'..='\u{24ff}' | '\u{2776}'..='\u{2793}' | '\u{3192}'..='\u{3195}'
        | '\u{3220}'..='\u{3229}' | '\u{3248}'..='\u{324f}' | '\u{3251}'..='\u{325f}' | '\u{3280}'..='\u{3289}'
        | '\u{32b1}'..='\u{32bf}')
}

fn class_of(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' => Class::Letter,
            '0'..='9' => Class::Digit,
            '_' => Class::Connector,
            '\'' => Class::Quote,
            '"' => Class::DoubleQuote,
            '.' => Class::MidBoth,
            ':' => Class::MidLetter,
            ',' | ';' => Class::MidDigit,
            _ => Class::Other,
        };
    }
    match c {
        '\u{b7}' | '\u{387}' | '\u{5f4}' | '\u{2027}' | '\u{fe13}' | '\u{fe55}' | '\u{ff1a}' => Class::MidLetter,
        '\u{37e}' | '\u{589}' | '\u{60c}' | '\u{60d}' | '\u{66c}' | '\u{7f8}' | '\u{2044}' | '\u{fe10}'
        | '\u{fe14}' | '\u{fe50}' | '\u{fe54}' | '\u{ff0c}' | '\u{ff1b}' => Class::MidDigit,
        '\u{2018}' | '\u{2019}' | '\u{2024}' | '\u{fe52}' | '\u{ff07}' | '\u{ff0e}' => Class::MidBoth,
        '\u{203f}' | '\u{2040}' | '\u{2054}' | '\u{fe33}' | '\u{fe34}' | '\u{fe4d}'..='\u{fe4f}' | '\u{ff3f}' => {
            Class::Connector
        }
        '\u{5d0}'..='\u{5ea}' | '\u{5f0}'..='\u{5f2}' | '\u{fb1d}' | '\u{fb1f}'..='\u{fb4f}' => Class::Hebrew,
        c if is_extend(c) => Class::Extend,
        c if is_ideograph(c) || is_hiragana(c) => Class::Single,
        c if is_katakana(c) => Class::Katakana,
        '\u{e01}'..='\u{e3a}'
        | '\u{e40}'..='\u{e4e}'
        | '\u{e81}'..='\u{edf}'
        | '\u{1000}'..='\u{103f}'
        | '\u{1780}'..='\u{17d3}' => Class::Run,
        c if c.is_alphabetic() => Class::Letter,
        c if c.is_numeric() && !is_number_sign(c) => Class::Digit,
        _ => Class::Other,
    }
}

/// The words of a text, as parts of it.
pub(super) fn standard_words(text: &str) -> Vec<&str> {
    let chars: Vec<(usize, Class)> = text.char_indices().map(|(at, c)| (at, class_of(c))).collect();
    let mut words = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let start = chars[at].0;
        // What is longer is cut anyway, and no piece may look at the whole rest of a long text.
        let ahead = chars.len().min(at + 2 * WORD_UNITS_MAX);
        let (mut end_at, mut is_word) = piece_end(&chars[..ahead], at);
        // A character has at most two code units.
        if end_at - at > WORD_UNITS_MAX / 2 {
            let window_end_at = at + chars_of_window(&text[start..]);
            if end_at > window_end_at {
                (end_at, is_word) = piece_end(&chars[..window_end_at], at);
            }
        }
        let end = chars.get(end_at).map_or(text.len(), |(end, _)| *end);
        if is_word {
            words.push(&text[start..end]);
        }
        at = end_at;
    }
    words
}

/// The end of what begins at a place, and whether it is a word.
fn piece_end(chars: &[(usize, Class)], at: usize) -> (usize, bool) {
    match chars[at].1 {
        Class::Letter | Class::Hebrew | Class::Digit | Class::Katakana | Class::Connector => word_end(chars, at),
        Class::Single => (skip_extend(chars, at + 1), true),
        Class::Run => (run_end(chars, at), true),
        _ => (at + 1, false),
    }
}

/// How many characters at the beginning of a text the tokenizer looks at together.
fn chars_of_window(text: &str) -> usize {
    let mut units = 0;
    text.chars()
        .take_while(|c| {
            units += c.len_utf16();
            units <= WORD_UNITS_MAX
        })
        .count()
}

fn skip_extend(chars: &[(usize, Class)], mut at: usize) -> usize {
    while chars.get(at).is_some_and(|(_, class)| *class == Class::Extend) {
        at += 1;
    }
    at
}

fn run_end(chars: &[(usize, Class)], mut at: usize) -> usize {
    while chars.get(at).is_some_and(|(_, class)| matches!(class, Class::Run | Class::Extend)) {
        at += 1;
    }
    at
}

/// The end of a word that begins at a place, and whether it has a letter or digit.
fn word_end(chars: &[(usize, Class)], start: usize) -> (usize, bool) {
    let class_at = |at: usize| chars.get(at).map_or(Class::Other, |(_, class)| *class);
    let is_letter = |class: Class| matches!(class, Class::Letter | Class::Hebrew);
    let mut before = class_at(start);
    let mut is_word = before != Class::Connector;
    let mut at = skip_extend(chars, start + 1);
    loop {
        let here = class_at(at);
        let joins = match (before, here) {
            (Class::Connector, Class::Letter | Class::Hebrew | Class::Digit | Class::Katakana) => true,
            (_, Class::Connector) => true,
            (Class::Katakana, Class::Katakana) => true,
            (before, here) if is_letter(before) || before == Class::Digit => is_letter(here) || here == Class::Digit,
            _ => false,
        };
        if joins {
            is_word |= here != Class::Connector;
            before = here;
            at = skip_extend(chars, at + 1);
            continue;
        }
        let behind_at = skip_extend(chars, at + 1);
        let behind = class_at(behind_at);
        let joins_two = match here {
            Class::MidLetter => is_letter(before) && is_letter(behind),
            Class::MidDigit => before == Class::Digit && behind == Class::Digit,
            Class::MidBoth | Class::Quote => {
                (is_letter(before) && is_letter(behind)) || (before == Class::Digit && behind == Class::Digit)
            }
            Class::DoubleQuote => before == Class::Hebrew && behind == Class::Hebrew,
            _ => false,
        };
        if joins_two {
            before = behind;
            at = skip_extend(chars, behind_at + 1);
            continue;
        }
        if here == Class::Quote && before == Class::Hebrew {
            at += 1;
        }
        return (at, is_word);
    }
}
