//! What changes single characters of words, in documents, queries and pieces of patterns.

use super::folding;

/// A change of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Normalizer {
    LowerCase,
    GreekLowerCase,
    IrishLowerCase,
    TurkishLowerCase,
    AsciiFolding,
    Arabic,
    Persian,
    Sorani,
    German,
    Hindi,
    /// Full-width letters and half-width Katakana.
    CjkWidth,
}

impl Normalizer {
    pub(super) fn apply(self, word: &str) -> String {
        match self {
            Self::LowerCase => lower(word),
            Self::GreekLowerCase => word.chars().map(greek).collect(),
            Self::IrishLowerCase => irish(word),
            Self::TurkishLowerCase => turkish(word),
            Self::AsciiFolding => folding::fold(word),
            Self::Arabic => word.chars().filter_map(arabic).collect(),
            Self::Persian => word.chars().filter_map(persian).collect(),
            Self::Sorani => word.chars().filter_map(sorani).collect(),
            Self::German => german(word),
            Self::Hindi => word.chars().filter_map(hindi).collect(),
            Self::CjkWidth => cjk_width(word),
        }
    }
}

/// Lower case as Java has it for single characters: one character stays one.
fn lower(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    word.chars().map(lower_char).collect()
}

fn lower_char(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        // İ is i and a dot above it in Rust; Java's single character is i.
        (Some(first), Some(_)) => first,
        _ => c,
    }
}

fn greek(c: char) -> char {
    match lower_char(c) {
        'ς' => 'σ',
        'ά' => 'α',
        'έ' => 'ε',
        'ή' => 'η',
        'ί' | 'ϊ' | 'ΐ' => 'ι',
        'ό' => 'ο',
        'ύ' | 'ϋ' | 'ΰ' => 'υ',
        'ώ' => 'ω',
        other => other,
    }
}

/// A small n or t before a capital vowel stays apart: nAthair becomes n-athair.
fn irish(word: &str) -> String {
    let mut chars = word.chars();
    let is_split = matches!(chars.next(), Some('n' | 't'))
        && matches!(chars.next(), Some('A' | 'E' | 'I' | 'O' | 'U' | 'Á' | 'É' | 'Í' | 'Ó' | 'Ú'));
    if is_split { format!("{}-{}", &word[..1], lower(&word[1..])) } else { lower(word) }
}

fn turkish(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            'I' if chars.peek() == Some(&'\u{307}') => {
                chars.next();
                out.push('i');
            }
            'I' => out.push('ı'),
            'İ' => out.push('i'),
            c => out.push(lower_char(c)),
        }
    }
    out
}

fn arabic(c: char) -> Option<char> {
    match c {
        // Marks above letters, and the line that only stretches.
        '\u{64b}'..='\u{652}' | '\u{640}' => None,
        '\u{622}' | '\u{623}' | '\u{625}' => Some('\u{627}'),
        '\u{649}' => Some('\u{64a}'),
        '\u{629}' => Some('\u{647}'),
        c => Some(c),
    }
}

fn persian(c: char) -> Option<char> {
    match c {
        '\u{6cc}' | '\u{6d2}' => Some('\u{64a}'),
        '\u{6a9}' => Some('\u{643}'),
        '\u{6c0}' | '\u{6c1}' => Some('\u{647}'),
        '\u{654}' => None,
        c => Some(c),
    }
}

fn sorani(c: char) -> Option<char> {
    match c {
        '\u{64a}' | '\u{649}' => Some('\u{6cc}'),
        '\u{643}' => Some('\u{6a9}'),
        '\u{6be}' | '\u{647}' => Some('\u{647}'),
        '\u{692}' => Some('\u{695}'),
        '\u{640}' | '\u{64b}'..='\u{652}' | '\u{200c}' => None,
        c => Some(c),
    }
}

/// Umlauts in both ways of writing them become the plain vowel, and ß becomes ss.
fn german(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut before = ' ';
    for c in word.chars() {
        let is_second = c == 'e' && matches!(before, 'a' | 'o' | 'u') && !out_is_exempt(&out, before);
        match c {
            'ä' => out.push('a'),
            'ö' => out.push('o'),
            'ü' => out.push('u'),
            'ß' => out.push_str("ss"),
            _ if is_second => {}
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// `ue` behind a vowel or q is no umlaut, as in Quelle and neue.
fn out_is_exempt(out: &str, before: char) -> bool {
    before == 'u' && out.chars().rev().nth(1).is_some_and(|c| matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'q' | 'y'))
}

/// The most frequent changes of Lucene's filters for Indic scripts and for Hindi.
fn hindi(c: char) -> Option<char> {
    match c {
        // Joiners, the nukta, and the virama at the end of words.
        '\u{200c}' | '\u{200d}' | '\u{93c}' | '\u{94d}' => None,
        '\u{901}' => Some('\u{902}'),
        '\u{929}' => Some('\u{928}'),
        '\u{931}' => Some('\u{930}'),
        '\u{934}' => Some('\u{933}'),
        '\u{958}' => Some('\u{915}'),
        '\u{959}' => Some('\u{916}'),
        '\u{95a}' => Some('\u{917}'),
        '\u{95b}' => Some('\u{91c}'),
        '\u{95c}' => Some('\u{921}'),
        '\u{95d}' => Some('\u{922}'),
        '\u{95e}' => Some('\u{92b}'),
        '\u{95f}' => Some('\u{92f}'),
        '\u{90d}' | '\u{90e}' => Some('\u{90f}'),
        '\u{911}' | '\u{912}' => Some('\u{913}'),
        '\u{906}' => Some('\u{905}'),
        '\u{908}' => Some('\u{907}'),
        '\u{90a}' => Some('\u{909}'),
        '\u{940}' => Some('\u{93f}'),
        '\u{942}' => Some('\u{941}'),
        c => Some(c),
    }
}

/// The Katakana of U+FF66 to U+FF9D.
const HALF_WIDTH: &str =
    "ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン";

fn cjk_width(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        match c {
            '\u{ff01}'..='\u{ff5e}' => out.push(char::from_u32(c as u32 - 0xfee0).unwrap_or(c)),
            '\u{ff66}'..='\u{ff9d}' => out.extend(HALF_WIDTH.chars().nth(c as usize - 0xff66)),
            // The marks of voiced sounds change the character before them.
            '\u{ff9e}' | '\u{ff9f}' => match out.chars().next_back().and_then(|before| voiced(before, c == '\u{ff9e}'))
            {
                Some(changed) => {
                    out.pop();
                    out.push(changed);
                }
                None => out.push(if c == '\u{ff9e}' { '\u{3099}' } else { '\u{309a}' }),
            },
            c => out.push(c),
        }
    }
    out
}

fn voiced(c: char, is_dakuten: bool) -> Option<char> {
    let step = match (c, is_dakuten) {
        ('ウ', true) => return Some('ヴ'),
        (
            'カ' | 'キ' | 'ク' | 'ケ' | 'コ' | 'サ' | 'シ' | 'ス' | 'セ' | 'ソ' | 'タ' | 'チ' | 'ツ' | 'テ' | 'ト',
            true,
        )
        | ('ハ' | 'ヒ' | 'フ' | 'ヘ' | 'ホ', true) => 1,
        ('ハ' | 'ヒ' | 'フ' | 'ヘ' | 'ホ', false) => 2,
        _ => return None,
    };
    char::from_u32(c as u32 + step)
}
