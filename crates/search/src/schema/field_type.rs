//! Types of fields.

use super::analyzer::Analyzer;
use super::properties::Properties;

/// A type of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// The name.
    pub name: String,
    /// What values are.
    pub kind: Kind,
    /// What fields of the type do, unless they say otherwise.
    pub properties: Properties,
    /// Positions between two values of a text field, which no phrase crosses.
    pub position_increment_gap: u32,
    /// Whether a word of a query that becomes several terms is a phrase.
    pub generates_phrases: bool,
}

/// What the values of a type are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text that is one term as it is.
    String,
    /// `true` or `false`
    Bool,
    /// Integers of 32 bits.
    Int,
    /// Integers of 64 bits.
    Long,
    /// Numbers of 32 bits.
    Float,
    /// Numbers of 64 bits.
    Double,
    /// Instants in milliseconds.
    Date,
    /// Text that is split into terms, in documents and in queries.
    Text {
        /// For documents.
        index: Box<Analyzer>,
        /// For queries.
        query: Box<Analyzer>,
    },
    /// Bytes, written in base64. They are not searched.
    Binary,
    /// A place. It is one term as it is written; distances cannot be searched.
    Location,
    /// A field without values, for sorting by chance.
    Random,
}

/// What is told about a type whose effect is not Solr's.
const LOCATION_NOTE: &str = "places are found as they are written; distances and boxes cannot be searched";

/// What a class of Solr is here.
pub(super) enum Class {
    /// The kind, and perhaps what is different from Solr.
    Known(Kind, Option<&'static str>),
    /// `TextField`, whose analyzers come as elements.
    Text,
    /// `TrieField`, whose kind is in an attribute.
    Trie,
}

impl Class {
    /// The class of a name such as `solr.StrField`.
    pub(super) fn of(class: &str) -> Option<Self> {
        let name = class.strip_prefix("solr.").or_else(|| class.strip_prefix("org.apache.solr.schema."))?;
        let (kind, note) = match name {
            "TextField" => return Some(Self::Text),
            "TrieField" => return Some(Self::Trie),
            "StrField" => (Kind::String, None),
            "UUIDField" => (Kind::String, Some("the value NEW makes no new id")),
            "BoolField" => (Kind::Bool, None),
            "TrieIntField" | "IntPointField" | "SortableIntField" | "IntField" => (Kind::Int, None),
            "TrieLongField" | "LongPointField" | "SortableLongField" | "LongField" => (Kind::Long, None),
            "TrieFloatField" | "FloatPointField" | "SortableFloatField" | "FloatField" => (Kind::Float, None),
            "TrieDoubleField" | "DoublePointField" | "SortableDoubleField" | "DoubleField" => (Kind::Double, None),
            "TrieDateField" | "DatePointField" | "DateField" => (Kind::Date, None),
            "BinaryField" => (Kind::Binary, None),
            "LatLonType" | "PointType" | "GeoHashField" => (Kind::Location, Some(LOCATION_NOTE)),
            "RandomSortField" => (Kind::Random, None),
            _ => return None,
        };
        Some(Self::Known(kind, note))
    }

    /// The kind that the attribute `type` of a `TrieField` names.
    pub(super) fn of_trie(name: &str) -> Option<Kind> {
        Some(match name {
            "integer" => Kind::Int,
            "long" => Kind::Long,
            "float" => Kind::Float,
            "double" => Kind::Double,
            "date" => Kind::Date,
            _ => return None,
        })
    }

    /// The classes that a schema can name, for errors.
    pub(super) const NAMES: &'static str = "StrField, BoolField, TextField, BinaryField, UUIDField, RandomSortField, \
        LatLonType, PointType, GeoHashField, and Trie, Point or plain fields of Int, Long, Float, Double and Date";
}
