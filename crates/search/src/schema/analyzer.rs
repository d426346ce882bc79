//! Analyzers: how a text becomes terms. Here they are data.

/// How a text becomes terms: filters of characters, a tokenizer, filters of tokens, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analyzer {
    /// Filters of characters.
    pub char_filters: Vec<Component>,
    /// What splits the text.
    pub tokenizer: Component,
    /// Filters of tokens.
    pub filters: Vec<Component>,
}

/// A part of an analyzer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Solr's class without `solr.` and `Factory`, such as `LowerCaseFilter`.
    pub name: String,
    /// The other attributes, as they are written.
    pub arguments: Vec<(String, String)>,
}

impl Component {
    /// The value of an argument.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Analyzer {
    /// What a text field has whose type names no analyzer: the whole text is one term.
    pub fn whole_text() -> Self {
        let tokenizer = Component { name: String::from("KeywordTokenizer"), arguments: Vec::new() };
        Self { char_filters: Vec::new(), tokenizer, filters: Vec::new() }
    }
}

/// Filters of characters that a schema can ask for.
pub(super) const CHAR_FILTERS: &[&str] = &["HTMLStripCharFilter", "PatternReplaceCharFilter", "PersianCharFilter"];

/// Tokenizers that a schema can ask for.
pub(super) const TOKENIZERS: &[&str] = &[
    "ClassicTokenizer",
    "EdgeNGramTokenizer",
    "JapaneseTokenizer",
    "KeywordTokenizer",
    "LetterTokenizer",
    "LowerCaseTokenizer",
    "NGramTokenizer",
    "PathHierarchyTokenizer",
    "PatternTokenizer",
    "StandardTokenizer",
    "ThaiTokenizer",
    "UAX29URLEmailTokenizer",
    "WhitespaceTokenizer",
];

/// Filters of tokens that a schema can ask for.
pub(super) const FILTERS: &[&str] = &[
    "ASCIIFoldingFilter",
    "ArabicNormalizationFilter",
    "ArabicStemFilter",
    "BulgarianStemFilter",
    "CJKBigramFilter",
    "CJKWidthFilter",
    "ClassicFilter",
    "CzechStemFilter",
    "EdgeNGramFilter",
    "ElisionFilter",
    "EnglishMinimalStemFilter",
    "EnglishPossessiveFilter",
    "FinnishLightStemFilter",
    "FrenchLightStemFilter",
    "FrenchMinimalStemFilter",
    "GalicianMinimalStemFilter",
    "GalicianStemFilter",
    "GermanLightStemFilter",
    "GermanMinimalStemFilter",
    "GermanNormalizationFilter",
    "GreekLowerCaseFilter",
    "GreekStemFilter",
    "HindiNormalizationFilter",
    "HindiStemFilter",
    "HungarianLightStemFilter",
    "IndicNormalizationFilter",
    "IndonesianStemFilter",
    "IrishLowerCaseFilter",
    "ItalianLightStemFilter",
    "JapaneseBaseFormFilter",
    "JapaneseKatakanaStemFilter",
    "JapanesePartOfSpeechStopFilter",
    "KStemFilter",
    "KeywordMarkerFilter",
    "LatvianStemFilter",
    "LengthFilter",
    "LowerCaseFilter",
    "NGramFilter",
    "NorwegianLightStemFilter",
    "NorwegianMinimalStemFilter",
    "PatternReplaceFilter",
    "PersianNormalizationFilter",
    "PorterStemFilter",
    "PortugueseLightStemFilter",
    "PortugueseMinimalStemFilter",
    "PortugueseStemFilter",
    "RemoveDuplicatesTokenFilter",
    "ReverseStringFilter",
    "ReversedWildcardFilter",
    "RussianLightStemFilter",
    "SnowballPorterFilter",
    "SoraniNormalizationFilter",
    "SoraniStemFilter",
    "SpanishLightStemFilter",
    "StandardFilter",
    "StemmerOverrideFilter",
    "StopFilter",
    "SwedishLightStemFilter",
    "SynonymFilter",
    "ThaiWordFilter",
    "TrimFilter",
    "TurkishLowerCaseFilter",
    "WordDelimiterFilter",
];
