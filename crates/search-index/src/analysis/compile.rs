//! What the components of an analyzer are here, and what of them has another effect than in Solr.

use super::char_filters::CharFilter;
use super::filters::Filter;
use super::grams::{GRAM_CHARS_MAX, Grams};
use super::normalizers::Normalizer;
use super::splitters::Splitter;
use super::stems::stemmer_of;
use super::stop_words::StopWords;
use super::word_delimiter::WordDelimiter;
use ombak_search::schema::Component;
use regex::{Regex, RegexBuilder};

/// Bytes that an expression of a schema can take in memory.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// What has another effect than in Solr, each with the component's name.
pub(super) type Notes = Vec<String>;

fn note(component: &Component, what: &str, notes: &mut Notes) {
    notes.push(format!("{}: {what}", component.name));
}

fn flag(component: &Component, name: &str, default: bool) -> bool {
    match component.argument(name) {
        None => default,
        Some(text) => text == "1" || text.eq_ignore_ascii_case("true"),
    }
}

fn number(component: &Component, name: &str, default: usize) -> usize {
    component.argument(name).and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn regex(component: &Component, notes: &mut Notes) -> Option<Regex> {
    let pattern = component.argument("pattern")?;
    let regex = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX).build().ok();
    if regex.is_none() {
        note(component, "the pattern cannot be used here, so this has no effect", notes);
    }
    regex
}

/// Java's `$1` and Rust's are the same, but Rust takes `$1a` for a name.
fn replacement(component: &Component) -> String {
    let text = component.argument("replacement").unwrap_or_default();
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('$') => out.push_str("$$"),
                Some(other) => out.push(other),
                None => {}
            },
            '$' if chars.peek().is_some_and(char::is_ascii_digit) => {
                out.push_str("${");
                out.extend(chars.next());
                out.push('}');
            }
            c => out.push(c),
        }
    }
    out
}

pub(super) fn char_filter(component: &Component, notes: &mut Notes) -> Option<CharFilter> {
    match component.name.as_str() {
        "HTMLStripCharFilter" => Some(CharFilter::HtmlStrip),
        "PersianCharFilter" => Some(CharFilter::Persian),
        "PatternReplaceCharFilter" => regex(component, notes)
            .map(|regex| CharFilter::PatternReplace { regex, replacement: replacement(component) }),
        _ => {
            note(component, "this has no effect", notes);
            None
        }
    }
}

pub(super) fn splitter(component: &Component, notes: &mut Notes) -> Splitter {
    match component.name.as_str() {
        "StandardTokenizer" => Splitter::Standard,
        "ClassicTokenizer" => {
            note(component, "words are those of StandardTokenizer", notes);
            Splitter::Standard
        }
        "UAX29URLEmailTokenizer" => {
            note(component, "addresses are split into words, as by StandardTokenizer", notes);
            Splitter::Standard
        }
        "JapaneseTokenizer" => {
            note(component, "there is no dictionary; words are found by their pairs of characters", notes);
            Splitter::Japanese
        }
        "ThaiTokenizer" => {
            note(component, "there is no dictionary; words are found by their pairs of characters", notes);
            Splitter::Thai
        }
        "KeywordTokenizer" => Splitter::Whole,
        "WhitespaceTokenizer" => Splitter::Whitespace,
        "LetterTokenizer" => Splitter::Letters { is_lower_casing: false },
        "LowerCaseTokenizer" => Splitter::Letters { is_lower_casing: true },
        "EdgeNGramTokenizer" => Splitter::Grams(grams(component, 1, false, notes)),
        "NGramTokenizer" => Splitter::Grams(grams(component, 2, true, notes)),
        "PathHierarchyTokenizer" => path_splitter(component, notes),
        "PatternTokenizer" => match regex(component, notes) {
            Some(regex) => {
                let group = component.argument("group").and_then(|text| text.parse::<usize>().ok());
                Splitter::Pattern { regex, group }
            }
            None => Splitter::Whole,
        },
        _ => {
            note(component, "words are those of StandardTokenizer", notes);
            Splitter::Standard
        }
    }
}

fn path_splitter(component: &Component, notes: &mut Notes) -> Splitter {
    let first = |name: &str| component.argument(name).and_then(|text| text.chars().next());
    if component.argument("skip").is_some() || flag(component, "reverse", false) {
        note(component, "skip and reverse have no effect", notes);
    }
    let delimiter = first("delimiter").unwrap_or('/');
    Splitter::Paths { delimiter, replacement: first("replace").unwrap_or(delimiter) }
}

fn grams(component: &Component, most: usize, is_everywhere: bool, notes: &mut Notes) -> Grams {
    let grams = Grams {
        least: number(component, "minGramSize", 1),
        most: number(component, "maxGramSize", most),
        is_everywhere,
    };
    if grams.most > GRAM_CHARS_MAX {
        note(component, &format!("pieces have at most {GRAM_CHARS_MAX} characters"), notes);
    }
    if component.argument("side") == Some("back") {
        note(component, "pieces begin at the front of words", notes);
    }
    grams
}

pub(super) fn filter(component: &Component, notes: &mut Notes) -> Option<Filter> {
    let name = component.name.as_str();
    if let Some(normalizer) = normalizer(component, notes) {
        return Some(Filter::Normalize(normalizer));
    }
    if let Some((stemmer, is_same)) = stemmer_of(name, component.argument("language")) {
        if !is_same {
            note(component, "the stemmer is that of the Snowball project", notes);
        }
        if component.argument("protected").is_some() {
            note(component, "the list of protected words is empty here", notes);
        }
        return Some(Filter::Stem(stemmer));
    }
    match name {
        "StopFilter" => stop_filter(component, notes),
        "ElisionFilter" => Some(Filter::Elision(articles(component, notes))),
        "EnglishPossessiveFilter" => Some(Filter::Possessive),
        "ClassicFilter" => Some(Filter::Classic),
        "LengthFilter" => {
            Some(Filter::Length { least: number(component, "min", 0), most: number(component, "max", usize::MAX) })
        }
        "TrimFilter" => Some(Filter::Trim),
        "ReverseStringFilter" => Some(Filter::Reverse),
        "RemoveDuplicatesTokenFilter" => Some(Filter::RemoveDuplicates),
        "PatternReplaceFilter" => regex(component, notes).map(|regex| Filter::PatternReplace {
            regex,
            replacement: replacement(component),
            is_all: component.argument("replace") != Some("first"),
        }),
        "NGramFilter" => Some(Filter::Grams(grams(component, 2, true, notes))),
        "EdgeNGramFilter" => Some(Filter::Grams(grams(component, 1, false, notes))),
        "CJKBigramFilter" => Some(Filter::Pairs),
        "JapaneseKatakanaStemFilter" => Some(Filter::KatakanaStem { chars_min: number(component, "minimumLength", 4) }),
        "WordDelimiterFilter" => Some(Filter::WordDelimiter(word_delimiter(component, notes))),
        // Lucene's does nothing either. Patterns that begin with * need no reversed words here.
        "StandardFilter" | "ReversedWildcardFilter" => None,
        "ThaiWordFilter" => {
            note(component, "there is no dictionary; words are found by their pairs of characters", notes);
            None
        }
        _ => {
            note(component, "this has no effect", notes);
            None
        }
    }
}

fn normalizer(component: &Component, notes: &mut Notes) -> Option<Normalizer> {
    Some(match component.name.as_str() {
        "LowerCaseFilter" => Normalizer::LowerCase,
        "GreekLowerCaseFilter" => Normalizer::GreekLowerCase,
        "IrishLowerCaseFilter" => Normalizer::IrishLowerCase,
        "TurkishLowerCaseFilter" => Normalizer::TurkishLowerCase,
        "ASCIIFoldingFilter" => {
            note(component, "letters of Latin scripts are folded, and no other characters", notes);
            Normalizer::AsciiFolding
        }
        "ArabicNormalizationFilter" => Normalizer::Arabic,
        "PersianNormalizationFilter" => Normalizer::Persian,
        "SoraniNormalizationFilter" => Normalizer::Sorani,
        "GermanNormalizationFilter" => Normalizer::German,
        "HindiNormalizationFilter" => {
            note(component, "the most frequent changes only", notes);
            Normalizer::Hindi
        }
        "CJKWidthFilter" => Normalizer::CjkWidth,
        _ => return None,
    })
}

fn stop_filter(component: &Component, notes: &mut Notes) -> Option<Filter> {
    let file = component.argument("words")?;
    let words = StopWords::of_file(file, flag(component, "ignoreCase", false));
    // Solr's stopwords.txt has no words.
    if words.is_none() && file != "stopwords.txt" {
        note(component, &format!("the list {file} is empty here"), notes);
    }
    words.map(Filter::Stop)
}

fn articles(component: &Component, notes: &mut Notes) -> &'static [&'static str] {
    let file = component.argument("articles").unwrap_or_default();
    match file.rsplit('/').next().unwrap_or_default() {
        "contractions_ca.txt" => &["d", "l", "m", "n", "s", "t"],
        "contractions_ga.txt" => &["d", "m", "b"],
        "contractions_it.txt" => &[
            "c", "l", "all", "dall", "dell", "nell", "sull", "coll", "pell", "gl", "agl", "dagl", "degl", "negl",
            "sugl", "un", "m", "t", "s", "v", "d",
        ],
        "contractions_fr.txt" | "" => {
            &["l", "m", "t", "qu", "n", "s", "j", "d", "c", "jusqu", "quoiqu", "lorsqu", "puisqu"]
        }
        _ => {
            note(component, &format!("the list {file} is empty here"), notes);
            &[]
        }
    }
}

fn word_delimiter(component: &Component, notes: &mut Notes) -> WordDelimiter {
    if component.argument("protected").is_some() || component.argument("types").is_some() {
        note(component, "protected and types have no effect", notes);
    }
    WordDelimiter {
        has_word_parts: flag(component, "generateWordParts", true),
        has_number_parts: flag(component, "generateNumberParts", true),
        joins_words: flag(component, "catenateWords", false),
        joins_numbers: flag(component, "catenateNumbers", false),
        joins_all: flag(component, "catenateAll", false),
        keeps_original: flag(component, "preserveOriginal", false),
        splits_on_case: flag(component, "splitOnCaseChange", true),
        splits_on_digits: flag(component, "splitOnNumerics", true),
        strips_possessive: flag(component, "stemEnglishPossessive", true),
    }
}
