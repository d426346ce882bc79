//! An analyzer that runs.

use super::char_filters::CharFilter;
use super::compile;
use super::filters::Filter;
use super::splitters::Splitter;
use ombak_search::schema::Analyzer;

/// Code units of UTF-16 that a tokenizer of Lucene 4.10 looks at together. A longer word becomes
/// several.
pub(super) const WORD_UNITS_MAX: usize = 255;

/// Terms of one text. What lies behind them is not found.
const TERMS_MAX: usize = 1 << 22;

/// A term of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The term.
    pub text: String,
    /// Its place in the text, counted in words.
    pub position: u32,
    /// Whether the tokenizer found it right behind the word before it, with nothing between them.
    pub(super) is_joined: bool,
}

impl Token {
    /// A term with something before it that is no word.
    pub(super) fn new(text: String, position: u32) -> Self {
        Self { text, position, is_joined: false }
    }
}

/// What a text is analysed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Document,
    Query,
}

/// An analyzer that runs.
#[derive(Clone, Debug)]
pub struct Chain {
    char_filters: Vec<CharFilter>,
    splitter: Splitter,
    filters: Vec<Filter>,
    purpose: Purpose,
}

impl Chain {
    /// The chain that makes the terms of documents.
    pub fn for_documents(analyzer: &Analyzer) -> Self {
        Self::new(analyzer, Purpose::Document)
    }

    /// The chain that makes the terms of queries.
    pub fn for_queries(analyzer: &Analyzer) -> Self {
        Self::new(analyzer, Purpose::Query)
    }

    fn new(analyzer: &Analyzer, purpose: Purpose) -> Self {
        // What has no effect is told by `analysis_notes`.
        let mut notes = Vec::new();
        let mut splitter = compile::splitter(&analyzer.tokenizer, &mut notes);
        // In Solr this filter splits what the tokenizer leaves in one piece.
        let has_thai_filter = analyzer.filters.iter().any(|filter| filter.name == "ThaiWordFilter");
        if has_thai_filter && matches!(splitter, Splitter::Standard) {
            splitter = Splitter::Thai;
        }
        Self {
            char_filters: analyzer
                .char_filters
                .iter()
                .filter_map(|part| compile::char_filter(part, &mut notes))
                .collect(),
            splitter,
            filters: analyzer.filters.iter().filter_map(|part| compile::filter(part, &mut notes)).collect(),
            purpose,
        }
    }

    /// The terms of a text.
    pub fn terms(&self, text: &str) -> Vec<Token> {
        self.terms_and_end(text).0
    }

    /// The terms of a text, and the position behind its last word, which may be one that is left
    /// out.
    pub fn terms_and_end(&self, text: &str) -> (Vec<Token>, u32) {
        let mut text = std::borrow::Cow::Borrowed(text);
        for filter in &self.char_filters {
            text = std::borrow::Cow::Owned(filter.apply(&text));
        }
        let mut tokens = self.splitter.split(&text, self.purpose);
        let mut left_out_at_end: u32 = 0;
        for filter in &self.filters {
            let end = end_of(&tokens);
            tokens = filter.apply(tokens);
            if filter.leaves_out_words() {
                left_out_at_end = left_out_at_end.saturating_add(end.saturating_sub(end_of(&tokens)));
            }
        }
        let end = end_of(&tokens).saturating_add(left_out_at_end);
        tokens.retain(|token| !token.text.is_empty());
        tokens.truncate(TERMS_MAX);
        (tokens, end)
    }

    /// A prefix or a piece of a pattern as the terms are written: only what changes single
    /// characters is applied, as in Solr.
    pub fn normalized(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for filter in self.char_filters.iter().filter(|filter| filter.is_for_pieces()) {
            text = filter.apply(&text);
        }
        if self.splitter.is_lower_casing() {
            text = text.to_lowercase();
        }
        for filter in &self.filters {
            if let Filter::Normalize(normalizer) = filter {
                text = normalizer.apply(&text);
            }
        }
        text
    }

    /// Whether the words of this chain are pieces of what a reader takes for a word, so that a word
    /// of a query is a phrase of them.
    pub fn splits_words(&self) -> bool {
        self.splitter.splits_words()
    }
}

/// The position behind the last word.
fn end_of(tokens: &[Token]) -> u32 {
    tokens.last().map_or(0, |token| token.position.saturating_add(1))
}
