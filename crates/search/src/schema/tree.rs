//! A schema.

use super::copy_field::{Copied, CopyField};
use super::field::Field;
use super::name_pattern::NamePattern;
use super::problem::{Remark, SchemaError};
use super::reader;
use crate::query::Operator;
use std::collections::BTreeMap;

/// Which fields documents have, and what they do with values.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The name that it gives itself.
    pub name: String,
    pub(super) fields: BTreeMap<String, Field>,
    /// The longest pattern first; of two that are equally long, the one that is written first.
    pub(super) dynamic_fields: Vec<(NamePattern, Field)>,
    pub(super) copies: Vec<CopyField>,
    /// The field of words without one, if the query names none either.
    pub default_search_field: Option<String>,
    /// What connects clauses that nothing connects, if the query does not say.
    pub default_operator: Operator,
    /// What has another effect than in Solr.
    pub notes: Vec<Remark>,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// It is no schema, it lacks fields that Riak needs, or it asks for what Ombak cannot do.
    pub fn read(xml: &[u8]) -> Result<Self, SchemaError> {
        reader::read(xml)
    }

    /// The field of a name: the one with this name, or the longest pattern that matches it.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let dynamic = || self.dynamic_fields.iter().find(|(pattern, _)| pattern.matched(name).is_some());
        self.fields.get(name).or_else(|| dynamic().map(|(_, field)| field))
    }

    /// The copies of a value with a name, in the order of the schema.
    pub fn copies<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Copied> + 'a {
        self.copies.iter().filter_map(move |copy| copy.copied(name))
    }

    /// The fields with exact names, by name.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.values()
    }

    /// The fields with patterns, the longest pattern first.
    pub fn dynamic_fields(&self) -> impl Iterator<Item = &Field> {
        self.dynamic_fields.iter().map(|(_, field)| field)
    }
}
