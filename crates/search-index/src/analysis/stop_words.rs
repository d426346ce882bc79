//! Lists of words that are left out.

use tantivy::tokenizer::{Language, RawTokenizer, StopWordFilter, TextAnalyzer};

/// A list of words that are left out.
#[derive(Clone)]
pub(super) struct StopWords {
    analyzer: TextAnalyzer,
    /// Whether words are compared in lower case.
    ignores_case: bool,
}

impl std::fmt::Debug for StopWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StopWords").field("ignores_case", &self.ignores_case).finish_non_exhaustive()
    }
}

impl StopWords {
    /// The list that a file of Solr's configuration has; `None` if there is none here.
    pub(super) fn of_file(file: &str, ignores_case: bool) -> Option<Self> {
        let language = file.rsplit('/').next()?.strip_prefix("stopwords_")?.strip_suffix(".txt")?;
        let language = match language {
            "da" => Language::Danish,
            "nl" => Language::Dutch,
            "en" => Language::English,
            "fi" => Language::Finnish,
            "fr" => Language::French,
            "de" => Language::German,
            "hu" => Language::Hungarian,
            "it" => Language::Italian,
            "no" => Language::Norwegian,
            "pt" => Language::Portuguese,
            "ru" => Language::Russian,
            "es" => Language::Spanish,
            "sv" => Language::Swedish,
            _ => return None,
        };
        let filter = StopWordFilter::new(language)?;
        let analyzer = TextAnalyzer::builder(RawTokenizer::default()).filter(filter).build();
        Some(Self { analyzer, ignores_case })
    }

    /// What says whether a word is in the list.
    pub(super) fn checker(&self) -> impl FnMut(&str) -> bool {
        let mut analyzer = self.analyzer.clone();
        let ignores_case = self.ignores_case;
        move |word: &str| {
            if ignores_case && word.chars().any(char::is_uppercase) {
                !analyzer.token_stream(&word.to_lowercase()).advance()
            } else {
                !analyzer.token_stream(word).advance()
            }
        }
    }
}
