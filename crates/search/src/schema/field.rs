//! Fields.

use super::field_type::FieldType;
use super::properties::Properties;
use std::sync::Arc;

/// A field, or what all fields are whose names have a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name, or the form of names with its `*`.
    pub name: String,
    /// What its values are.
    pub field_type: Arc<FieldType>,
    /// What it does with values.
    pub properties: Properties,
    /// The value of documents without one.
    pub default: Option<String>,
}

impl Field {
    /// Whether its values are neither searched nor returned.
    pub fn is_ignored(&self) -> bool {
        !self.properties.is_indexed && !self.properties.is_stored
    }
}
