//! The chains of a schema's text types.

use crate::analysis::{Chain, Token};
use ombak_search::schema::{FieldType, Kind, Schema};
use std::collections::HashMap;

/// The chains of a schema's text types, by the name of the type.
#[derive(Debug, Default)]
pub(crate) struct Analyzers {
    chains: HashMap<String, Chains>,
}

#[derive(Debug)]
struct Chains {
    document: Chain,
    query: Chain,
}

impl Analyzers {
    pub(crate) fn new(schema: &Schema) -> Self {
        let mut chains = HashMap::new();
        for field in schema.fields().chain(schema.dynamic_fields()) {
            let Kind::Text { index, query } = &field.field_type.kind else { continue };
            chains
                .entry(field.field_type.name.clone())
                .or_insert_with(|| Chains { document: Chain::for_documents(index), query: Chain::for_queries(query) });
        }
        Self { chains }
    }

    /// The terms of a text of a document, and the position behind its last word. All types that
    /// fields have are there.
    pub(crate) fn document_terms(&self, field_type: &FieldType, text: &str) -> (Vec<Token>, u32) {
        self.chains.get(&field_type.name).map(|chains| chains.document.terms_and_end(text)).unwrap_or_default()
    }

    /// The chain of the words of a query.
    pub(crate) fn query_chain(&self, field_type: &FieldType) -> Option<&Chain> {
        self.chains.get(&field_type.name).map(|chains| &chains.query)
    }
}
