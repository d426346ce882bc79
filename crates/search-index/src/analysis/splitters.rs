//! What splits a text into words.

use super::bigrams::pieces_of_run;
use super::chain::{Purpose, Token, WORD_UNITS_MAX};
use super::grams::Grams;
use super::standard::{is_thai, standard_words};
use regex::Regex;

/// What splits a text into words.
#[derive(Clone, Debug)]
pub(super) enum Splitter {
    /// Words as Unicode has them; each Chinese or Japanese character is one.
    Standard,
    /// The same, and runs of Japanese become characters and pairs of them.
    Japanese,
    /// The same for runs of Thai.
    Thai,
    /// The whole text.
    Whole,
    /// Between spaces.
    Whitespace,
    /// Runs of letters, perhaps in lower case.
    Letters { is_lower_casing: bool },
    /// What an expression matches, or what lies between its matches.
    Pattern { regex: Regex, group: Option<usize> },
    /// A path, and all its parents.
    Paths { delimiter: char, replacement: char },
    /// Pieces of the text.
    Grams(Grams),
}

impl Splitter {
    pub(super) fn split(&self, text: &str, purpose: Purpose) -> Vec<Token> {
        match self {
            Self::Standard => parts_of_text(&standard_words(text)),
            Self::Japanese => with_pieces(standard_words(text), super::standard::is_cjk, purpose),
            Self::Thai => with_pieces(standard_words(text), is_thai, purpose),
            Self::Whole => one_by_one(std::iter::once(text).filter(|text| !text.is_empty())),
            Self::Whitespace => one_by_one(text.split_whitespace().flat_map(short_pieces)),
            Self::Letters { is_lower_casing } => {
                let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
                let mut tokens = one_by_one(words.flat_map(short_pieces));
                if *is_lower_casing {
                    tokens.iter_mut().for_each(|token| token.text = token.text.to_lowercase());
                }
                tokens
            }
            Self::Pattern { regex, group: None } => one_by_one(regex.split(text).filter(|word| !word.is_empty())),
            Self::Pattern { regex, group: Some(group) } => {
                let words = regex.captures_iter(text).filter_map(|captures| captures.get(*group));
                one_by_one(words.map(|word| word.as_str()).filter(|word| !word.is_empty()))
            }
            Self::Paths { delimiter, replacement } => paths(text, *delimiter, *replacement),
            Self::Grams(grams) => one_by_one(grams.of(text).iter().map(String::as_str)),
        }
    }

    pub(super) fn is_lower_casing(&self) -> bool {
        matches!(self, Self::Letters { is_lower_casing: true })
    }

    pub(super) fn splits_words(&self) -> bool {
        matches!(self, Self::Japanese | Self::Thai)
    }
}

/// The pieces of a word that Lucene makes of it if it is long: a piece ends once it is full.
fn short_pieces(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let mut units = 0;
        let is_in_piece = |c: char| {
            let is_full = units >= WORD_UNITS_MAX;
            units += c.len_utf16();
            !is_full
        };
        let end = rest.len() - rest.trim_start_matches(is_in_piece).len();
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Words at positions that follow each other.
fn one_by_one<'a>(words: impl Iterator<Item = &'a str>) -> Vec<Token> {
    (0..).zip(words).map(|(position, word)| Token::new(word.to_owned(), position)).collect()
}

/// Parts of a text at positions that follow each other, and which of them join the one before.
fn parts_of_text(words: &[&str]) -> Vec<Token> {
    let mut tokens = one_by_one(words.iter().copied());
    for (token, pair) in tokens.iter_mut().skip(1).zip(words.windows(2)) {
        token.is_joined = pair[0].as_bytes().as_ptr_range().end == pair[1].as_ptr();
    }
    tokens
}

/// Words, of which those in a script without spaces become pieces.
fn with_pieces(words: Vec<&str>, is_in_script: fn(char) -> bool, purpose: Purpose) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut run: Vec<char> = Vec::new();
    let mut run_end = None;
    let mut position = 0;
    for word in words {
        let start = word.as_ptr() as usize;
        let is_piece = word.chars().next().is_some_and(is_in_script);
        if !run.is_empty() && (!is_piece || run_end != Some(start)) {
            position = pieces_of_run(&run, position, purpose == Purpose::Document, &mut tokens);
            run.clear();
        }
        if is_piece {
            run.extend(word.chars());
            run_end = Some(start + word.len());
        } else {
            tokens.push(Token::new(word.to_owned(), position));
            position += 1;
        }
    }
    pieces_of_run(&run, position, purpose == Purpose::Document, &mut tokens);
    tokens
}

/// `a/b/c` becomes `a`, `a/b` and `a/b/c`, all at one position.
fn paths(text: &str, delimiter: char, replacement: char) -> Vec<Token> {
    let mut ends: Vec<usize> =
        text.char_indices().filter(|(at, c)| *c == delimiter && *at > 0).map(|(at, _)| at).collect();
    ends.push(text.len());
    let path = |end: usize| text[..end].replace(delimiter, &replacement.to_string());
    let paths = ends.into_iter().map(path).filter(|path| !path.is_empty());
    paths.map(|text| Token::new(text, 0)).collect()
}
