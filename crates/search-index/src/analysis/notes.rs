//! What in the analyzers of a schema has another effect than in Solr.

use super::compile::{self, Notes};
use ombak_search::schema::{Analyzer, Kind, Schema};
use std::collections::BTreeSet;

/// What in the analyzers of a schema has another effect than in Solr: for each type that a field
/// has, its component and the effect. Who takes a schema tells them.
pub fn analysis_notes(schema: &Schema) -> Vec<String> {
    let mut notes = BTreeSet::new();
    for field in schema.fields().chain(schema.dynamic_fields()) {
        if let Kind::Text { index, query } = &field.field_type.kind {
            for what in notes_of(index).into_iter().chain(notes_of(query)) {
                notes.insert(format!("type {}: {what}", field.field_type.name));
            }
        }
    }
    notes.into_iter().collect()
}

fn notes_of(analyzer: &Analyzer) -> Notes {
    let mut notes = Notes::new();
    for component in &analyzer.char_filters {
        compile::char_filter(component, &mut notes);
    }
    compile::splitter(&analyzer.tokenizer, &mut notes);
    for component in &analyzer.filters {
        compile::filter(component, &mut notes);
    }
    notes
}

/// Whether a filter has an effect here.
#[cfg(test)]
pub(crate) fn has_effect(component: &ombak_search::schema::Component, notes: &mut Vec<String>) -> bool {
    compile::filter(component, notes).is_some()
}
