//! The fields that Riak needs.

use super::field::Field;
use super::field_type::Kind;
use super::problem::Remarks;
use super::tree::Schema;

/// The unique key of documents.
pub const UNIQUE_KEY: &str = "_yz_id";

/// The type of the fields that Riak needs.
pub(super) const YZ_TYPE: &str = "_yz_str";

/// The fields that Riak needs, and whether they must be stored.
pub const YZ_FIELDS: &[(&str, bool)] = &[
    (UNIQUE_KEY, true),
    ("_yz_ed", false),
    ("_yz_pn", false),
    ("_yz_fpn", false),
    ("_yz_vtag", false),
    ("_yz_rk", true),
    ("_yz_rt", true),
    ("_yz_rb", true),
    ("_yz_err", false),
];

/// Checks the fields that Riak needs. The line is that of what lacks them.
pub(super) fn check(schema: &Schema, line: u32, problems: &mut Remarks) {
    for (name, is_stored) in YZ_FIELDS {
        match schema.fields.get(*name) {
            Some(field) if is_good(field, *is_stored) => {}
            _ => problems.add(line, format!("missing field: {}", wanted(name, *is_stored))),
        }
    }
}

fn is_good(field: &Field, is_stored: bool) -> bool {
    let properties = field.properties;
    field.field_type.name == YZ_TYPE
        && field.field_type.kind == Kind::String
        && field.field_type.properties.sorts_missing_last
        && properties.is_indexed
        && !properties.is_multi_valued
        && (properties.is_stored || !is_stored)
        && (properties.is_required || field.name != UNIQUE_KEY)
}

/// The element that is needed.
fn wanted(name: &str, is_stored: bool) -> String {
    let stored = if is_stored { " stored=\"true\"" } else { "" };
    let required = if name == UNIQUE_KEY { " required=\"true\"" } else { "" };
    format!(
        "<field name=\"{name}\" type=\"{YZ_TYPE}\" indexed=\"true\"{stored} multiValued=\"false\"{required}/> is needed, \
         with <fieldType name=\"{YZ_TYPE}\" class=\"solr.StrField\" sortMissingLast=\"true\"/>"
    )
}
