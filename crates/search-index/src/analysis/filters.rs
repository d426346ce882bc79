//! What changes, adds or takes out words.

use super::bigrams::pairs;
use super::chain::Token;
use super::grams::Grams;
use super::normalizers::Normalizer;
use super::stop_words::StopWords;
use super::word_delimiter::WordDelimiter;
use frostem::Stemmer;
use regex::Regex;
use std::collections::BTreeSet;
use std::fmt;

/// A filter of words.
#[derive(Clone)]
pub(super) enum Filter {
    Normalize(Normalizer),
    Stem(Stemmer),
    Stop(StopWords),
    /// Takes away an article with an apostrophe before a word.
    Elision(&'static [&'static str]),
    /// Takes away `'s`.
    Possessive,
    /// Takes away `'s`, and the dots of abbreviations.
    Classic,
    Length {
        least: usize,
        most: usize,
    },
    Trim,
    Reverse,
    RemoveDuplicates,
    PatternReplace {
        regex: Regex,
        replacement: String,
        is_all: bool,
    },
    Grams(Grams),
    /// Pairs of Chinese, Japanese and Korean characters.
    Pairs,
    /// Takes away the line at the end of long words in Katakana.
    KatakanaStem {
        chars_min: usize,
    },
    WordDelimiter(WordDelimiter),
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normalize(normalizer) => normalizer.fmt(f),
            _ => f.write_str("Filter"),
        }
    }
}

impl Filter {
    /// Whether the filter leaves out words, whose places stay free.
    pub(super) fn leaves_out_words(&self) -> bool {
        matches!(self, Self::Stop(_) | Self::Length { .. })
    }

    pub(super) fn apply(&self, mut tokens: Vec<Token>) -> Vec<Token> {
        match self {
            Self::Normalize(normalizer) => change(&mut tokens, |word| normalizer.apply(word)),
            Self::Stem(stemmer) => change(&mut tokens, |word| stemmer.stem(word).into_owned()),
            Self::Stop(words) => {
                let mut is_stop = words.checker();
                tokens.retain(|token| !is_stop(&token.text));
            }
            Self::Elision(articles) => change(&mut tokens, |word| without_article(word, articles)),
            Self::Possessive => change(&mut tokens, without_possessive),
            Self::Classic => change(&mut tokens, |word| {
                let word = without_possessive(word);
                if is_acronym(&word) { word.replace('.', "") } else { word }
            }),
            Self::Length { least, most } => {
                tokens.retain(|token| (*least..=*most).contains(&token.text.chars().count()));
            }
            Self::Trim => change(&mut tokens, |word| word.trim().to_owned()),
            Self::Reverse => change(&mut tokens, |word| word.chars().rev().collect()),
            Self::RemoveDuplicates => {
                let mut seen = BTreeSet::new();
                tokens.retain(|token| seen.insert((token.position, token.text.clone())));
            }
            Self::PatternReplace { regex, replacement, is_all } => change(&mut tokens, |word| {
                let times = usize::from(!*is_all);
                regex.replacen(word, times, replacement.as_str()).into_owned()
            }),
            Self::Grams(grams) => {
                let pieces = |token: Token| {
                    let position = token.position;
                    grams.of(&token.text).into_iter().map(move |text| Token::new(text, position))
                };
                tokens = tokens.into_iter().flat_map(pieces).collect();
            }
            Self::Pairs => tokens = pairs(tokens),
            Self::KatakanaStem { chars_min } => change(&mut tokens, |word| without_line(word, *chars_min)),
            Self::WordDelimiter(delimiter) => tokens = delimiter.apply(tokens),
        }
        tokens
    }
}

fn change(tokens: &mut [Token], change: impl Fn(&str) -> String) {
    tokens.iter_mut().for_each(|token| token.text = change(&token.text));
}

fn without_article(word: &str, articles: &[&str]) -> String {
    if let Some((article, rest)) = word.split_once(['\'', '’'])
        && articles.contains(&article.to_lowercase().as_str())
    {
        return rest.to_owned();
    }
    word.to_owned()
}

fn without_possessive(word: &str) -> String {
    let without = ["'s", "'S", "’s", "’S", "＇s", "＇S"].iter().find_map(|end| word.strip_suffix(end));
    without.unwrap_or(word).to_owned()
}

/// `U.S.A.`, and not `example.com`.
fn is_acronym(word: &str) -> bool {
    word.contains('.') && word.split('.').all(|part| part.chars().count() <= 1)
}

fn without_line(word: &str, chars_min: usize) -> String {
    let is_katakana = |c: char| matches!(c, '\u{30a0}'..='\u{30ff}');
    match word.strip_suffix('ー') {
        Some(rest) if word.chars().count() >= chars_min && word.chars().all(is_katakana) => rest.to_owned(),
        _ => word.to_owned(),
    }
}
