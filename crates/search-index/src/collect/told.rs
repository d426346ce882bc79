//! What is told of documents.

use super::top::Top;
use crate::error::IndexError;
use crate::layout::Layout;
use crate::stored_fields;
use ombak_search::answer::{Document, FieldValues};
use ombak_search::merge::Hit;
use ombak_search::request::FieldList;
use ombak_search::schema::Schema;
use std::collections::HashMap;
use tantivy::schema::Value as _;
use tantivy::{DocAddress, Searcher, TantivyDocument};

/// Tells documents.
pub(crate) struct Told<'a> {
    pub(crate) searcher: &'a Searcher,
    pub(crate) layout: &'a Layout,
    pub(crate) schema: &'a Schema,
    pub(crate) fields: &'a FieldList,
    pub(crate) is_over: &'a (dyn Fn() -> bool + Sync),
    /// Bytes of the stored fields of all hits.
    pub(crate) bytes_max: usize,
}

impl Told<'_> {
    /// The hits with their fields.
    pub(crate) fn hits(&self, top: Top) -> Result<Vec<Hit>, IndexError> {
        let mut bytes = 0;
        let mut wanted: HashMap<String, bool> = HashMap::new();
        // Stored fields lie in compressed blocks, so neighbours are read together.
        let mut places: Vec<usize> = (0..top.candidates.len()).collect();
        places.sort_by_key(|place| top.candidates.get(*place).map(|candidate| candidate.address));
        let mut candidates = top.candidates;
        for place in places {
            if (self.is_over)() {
                return Err(IndexError::TimedOut);
            }
            let Some(candidate) = candidates.get_mut(place) else { continue };
            let stored = self.stored(candidate.address)?;
            bytes += stored.len();
            let most = self.bytes_max;
            if bytes > most {
                let text = format!(
                    "the documents of the answer have more than {most} bytes together, which is the most; ask for fewer \
                     rows"
                );
                return Err(IndexError::TooCostly(text));
            }
            let damaged = || IndexError::Damaged(String::from("a stored document cannot be read"));
            let fields = stored_fields::from_bytes(&stored).ok_or_else(damaged)?;
            let score = self.fields.has_score.then_some(candidate.score);
            candidate.hit.document = Document { fields: self.told(fields, &mut wanted), score };
        }
        Ok(candidates.into_iter().map(|candidate| candidate.hit).collect())
    }

    /// The bytes of the stored fields of a document.
    fn stored(&self, address: DocAddress) -> Result<Vec<u8>, IndexError> {
        let document: TantivyDocument = self.searcher.doc(address)?;
        let stored = document.get_first(self.layout.stored).and_then(|value| value.as_bytes().map(<[u8]>::to_vec));
        Ok(stored.unwrap_or_default())
    }

    fn told(&self, fields: stored_fields::Fields, wanted: &mut HashMap<String, bool>) -> Vec<(String, FieldValues)> {
        let mut told = Vec::new();
        for (name, mut values) in fields {
            let is_wanted = *wanted.entry(name.clone()).or_insert_with(|| self.fields.wants(&name));
            let Some(field) = self.schema.field(&name).filter(|_| is_wanted) else { continue };
            let values = if field.properties.is_multi_valued {
                FieldValues::Many(values)
            } else {
                let Some(value) = values.pop() else { continue };
                FieldValues::One(value)
            };
            told.push((name, values));
        }
        told
    }
}
