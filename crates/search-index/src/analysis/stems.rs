//! Which stemmer a filter of Solr has here.

use frostem::{Algorithm, Stemmer};

/// The stemmer of a filter, and whether it is the one that Solr has.
pub(super) fn stemmer_of(filter: &str, language: Option<&str>) -> Option<(Stemmer, bool)> {
    let (algorithm, is_same) = match filter {
        "SnowballPorterFilter" => (snowball(language.unwrap_or("English"))?, true),
        "PorterStemFilter" => (Algorithm::Porter, true),
        "KStemFilter" | "EnglishMinimalStemFilter" => (Algorithm::Porter, false),
        "ArabicStemFilter" => (Algorithm::Arabic, false),
        "CzechStemFilter" => (Algorithm::Czech, false),
        "FinnishLightStemFilter" => (Algorithm::Finnish, false),
        "FrenchLightStemFilter" | "FrenchMinimalStemFilter" => (Algorithm::French, false),
        "GermanLightStemFilter" | "GermanMinimalStemFilter" => (Algorithm::German, false),
        "GreekStemFilter" => (Algorithm::Greek, false),
        "HindiStemFilter" => (Algorithm::Hindi, false),
        "HungarianLightStemFilter" => (Algorithm::Hungarian, false),
        "IndonesianStemFilter" => (Algorithm::Indonesian, false),
        "ItalianLightStemFilter" => (Algorithm::Italian, false),
        "NorwegianLightStemFilter" | "NorwegianMinimalStemFilter" => (Algorithm::Norwegian, false),
        "PortugueseLightStemFilter" | "PortugueseMinimalStemFilter" | "PortugueseStemFilter" => {
            (Algorithm::Portuguese, false)
        }
        "RussianLightStemFilter" => (Algorithm::Russian, false),
        "SpanishLightStemFilter" => (Algorithm::Spanish, false),
        "SwedishLightStemFilter" => (Algorithm::Swedish, false),
        _ => return None,
    };
    Some((Stemmer::new(algorithm), is_same))
}

/// The stemmer of a language, by Solr's name of it.
fn snowball(language: &str) -> Option<Algorithm> {
    Some(match language {
        "Armenian" => Algorithm::Armenian,
        "Basque" => Algorithm::Basque,
        "Catalan" => Algorithm::Catalan,
        "Danish" => Algorithm::Danish,
        // Solr has the older one of the two.
        "Dutch" => Algorithm::DutchPorter,
        "English" => Algorithm::English,
        "Finnish" => Algorithm::Finnish,
        "French" => Algorithm::French,
        "German" | "German2" => Algorithm::German,
        "Hungarian" => Algorithm::Hungarian,
        "Irish" => Algorithm::Irish,
        "Italian" => Algorithm::Italian,
        "Lovins" => Algorithm::Lovins,
        "Norwegian" => Algorithm::Norwegian,
        "Porter" => Algorithm::Porter,
        "Portuguese" => Algorithm::Portuguese,
        "Romanian" => Algorithm::Romanian,
        "Russian" => Algorithm::Russian,
        "Spanish" => Algorithm::Spanish,
        "Swedish" => Algorithm::Swedish,
        "Turkish" => Algorithm::Turkish,
        _ => return None,
    })
}
