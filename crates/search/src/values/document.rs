//! The fields of a document, from the pairs of a value.

use super::bad_value::BadDocument;
use super::value::{Value, value_of};
use crate::dates::Date;
use crate::extract::{Extracted, Pair};
use crate::schema::{Copied, Field, Schema, YZ_FIELDS};
use std::collections::BTreeSet;

/// Values of a document, with copies.
pub const DOCUMENT_VALUES_MAX: usize = 65_536;

/// Bytes of the names and values of a document, with copies.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// A field of Solr that documents do not set.
const VERSION_FIELD: &str = "_version_";

/// The fields of a document, without those that Riak needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentFields {
    /// Names and values in the order of the pairs, each followed by its copies, and defaults last.
    pub values: Vec<(String, Value)>,
}

impl DocumentFields {
    /// The fields that pairs have in a schema. `now` is for date math.
    ///
    /// # Errors
    /// A value does not fit, a name is no field, a field has several values and is not
    /// multi-valued, or a field that is required has none. Solr then refuses the document too.
    pub fn read(schema: &Schema, pairs: &[Pair], now: Date) -> Result<Self, BadDocument> {
        let mut reader = Reader { schema, now, values: Vec::new(), seen: BTreeSet::new(), entries: 0, bytes: 0 };
        for pair in pairs {
            reader.pair(pair)?;
        }
        reader.defaults()?;
        Ok(Self { values: reader.values })
    }
}

struct Reader<'a> {
    schema: &'a Schema,
    now: Date,
    values: Vec<(String, Value)>,
    /// The names that have a value, also where it is not kept.
    seen: BTreeSet<String>,
    entries: usize,
    bytes: usize,
}

impl Reader<'_> {
    /// Adds a value and its copies. A name that is no field can still be copied.
    fn pair(&mut self, pair: &Pair) -> Result<(), BadDocument> {
        let mut is_used = false;
        if let Some(field) = self.schema.field(&pair.name) {
            is_used = true;
            self.add(field, &pair.name, &pair.value)?;
        }
        for copy in self.schema.copies(&pair.name) {
            let field = self.schema.field(&copy.name).ok_or_else(|| BadDocument::UnknownField(copy.name.clone()))?;
            is_used = true;
            self.add(field, &copy.name, &cut(&pair.value, &copy))?;
        }
        if is_used { Ok(()) } else { Err(BadDocument::UnknownField(pair.name.clone())) }
    }

    fn add(&mut self, field: &Field, name: &str, extracted: &Extracted) -> Result<(), BadDocument> {
        if name == VERSION_FIELD || YZ_FIELDS.iter().any(|(own, _)| *own == name) {
            return Err(BadDocument::Reserved(name.to_owned()));
        }
        self.entries += 1;
        self.bytes += name.len() + if let Extracted::Text(text) = extracted { text.len() } else { 0 };
        if self.entries > DOCUMENT_VALUES_MAX || self.bytes > DOCUMENT_BYTES_MAX {
            return Err(BadDocument::TooLarge);
        }
        if !self.seen.contains(name) {
            self.seen.insert(name.to_owned());
        } else if !field.properties.is_multi_valued {
            return Err(BadDocument::SeveralValues(name.to_owned()));
        }
        let value = value_of(field, extracted, self.now)
            .map_err(|reason| BadDocument::Value { field: name.to_owned(), reason })?;
        self.values.extend(value.map(|value| (name.to_owned(), value)));
        Ok(())
    }

    /// Adds the defaults of fields without a value. A required field has one now.
    fn defaults(&mut self) -> Result<(), BadDocument> {
        for field in self.schema.fields() {
            let is_own = YZ_FIELDS.iter().any(|(own, _)| *own == field.name);
            if is_own || self.seen.contains(&field.name) {
                continue;
            }
            if let Some(default) = &field.default {
                self.add(field, &field.name, &Extracted::Text(default.clone()))?;
            } else if field.properties.is_required {
                return Err(BadDocument::Missing(field.name.clone()));
            }
        }
        Ok(())
    }
}

/// What a copy has of a value.
fn cut(value: &Extracted, copy: &Copied) -> Extracted {
    match (value, copy.chars_max) {
        (Extracted::Text(text), Some(chars_max)) => Extracted::Text(text.chars().take(chars_max).collect()),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Extractor;
    use crate::schema::{DEFAULT_SCHEMA_XML, default_schema};
    use crate::values::BadValue;
    use proptest::prelude::*;

    fn read_with(schema: &Schema, json: &str) -> Result<Vec<(String, Value)>, BadDocument> {
        let pairs = Extractor::Json.extract(json.as_bytes()).unwrap();
        DocumentFields::read(schema, &pairs, Date::from_unix_ms(0).unwrap()).map(|fields| fields.values)
    }

    fn read(json: &str) -> Result<Vec<(String, Value)>, BadDocument> {
        read_with(&default_schema().unwrap(), json)
    }

    /// The default schema with more entries.
    fn schema_with(entries: &str) -> Schema {
        Schema::read(DEFAULT_SCHEMA_XML.replace("</fields>", &format!("{entries}</fields>")).as_bytes()).unwrap()
    }

    fn string(name: &str, value: &str) -> (String, Value) {
        (name.to_owned(), Value::String(value.to_owned()))
    }

    #[test]
    fn a_document_has_the_values_of_its_fields() {
        let values = read(r#"{"name_s":"x","age_i":7,"tags_ss":["a","b"],"other":[1,{"deep":2}],"in":{"ok_b":true}}"#);
        let expected = vec![
            string("name_s", "x"),
            ("age_i".to_owned(), Value::Int(7)),
            string("tags_ss", "a"),
            string("tags_ss", "b"),
            ("in.ok_b".to_owned(), Value::Bool(true)),
        ];
        assert_eq!(values, Ok(expected));
    }

    #[test]
    fn an_array_in_a_field_with_one_value_is_an_error() {
        assert_eq!(read(r#"{"a_s":["x","y"]}"#), Err(BadDocument::SeveralValues("a_s".into())));
        assert_eq!(read(r#"{"a_s":["x"]}"#), Ok(vec![string("a_s", "x")]));
        assert_eq!(read(r#"[{"a_i":1},{"a_i":2}]"#), Err(BadDocument::SeveralValues("a_i".into())));
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error() {
        let bad = BadDocument::Value { field: "a_i".into(), reason: BadValue::Int };
        assert_eq!(read(r#"{"b_s":"x","a_i":"one"}"#), Err(bad));
    }

    #[test]
    fn fields_of_riak_cannot_be_set() {
        for (name, _) in YZ_FIELDS {
            assert_eq!(read(&format!("{{\"{name}\":\"x\"}}")), Err(BadDocument::Reserved((*name).into())));
        }
        assert_eq!(read(r#"{"_version_":1}"#), Err(BadDocument::Reserved("_version_".into())));
        let schema =
            schema_with("<copyField source=\"*_s\" dest=\"*_yz_rb\"/><dynamicField name=\"*_yz_rb\" type=\"string\"/>");
        assert_eq!(read_with(&schema, r#"{"_s":"x"}"#), Err(BadDocument::Reserved("_yz_rb".into())));
    }

    #[test]
    fn copies_and_defaults_are_values_too() {
        let schema = schema_with(
            "<field name=\"all_ss\" type=\"string\" multiValued=\"true\"/><field name=\"one\" type=\"string\"/>\
             <field name=\"kind\" type=\"string\" default=\"none\"/><field name=\"at\" type=\"date\" default=\"NOW\"/>\
             <copyField source=\"*_s\" dest=\"all_ss\" maxChars=\"2\"/><copyField source=\"*_i\" dest=\"one\"/>",
        );
        let now = ("at".to_owned(), Value::Date(Date::from_unix_ms(0).unwrap()));
        let expected = vec![
            string("a_s", "xyz"),
            string("all_ss", "xy"),
            string("b_s", "é"),
            string("all_ss", "é"),
            now,
            string("kind", "none"),
        ];
        assert_eq!(read_with(&schema, r#"{"a_s":"xyz","b_s":"é"}"#), Ok(expected));
        assert_eq!(read_with(&schema, r#"{"a_i":1,"b_i":2}"#), Err(BadDocument::SeveralValues("one".into())));
    }

    #[test]
    fn required_and_unknown_fields_are_told() {
        let schema = schema_with("<field name=\"must\" type=\"string\" required=\"true\"/>");
        assert_eq!(read_with(&schema, "{}"), Err(BadDocument::Missing("must".into())));
        assert!(read_with(&schema, r#"{"must":"x"}"#).is_ok());
        let strict = DEFAULT_SCHEMA_XML.replace("<dynamicField name=\"*\" type=\"ignored\"/>", "");
        let strict = Schema::read(strict.as_bytes()).unwrap();
        assert_eq!(read_with(&strict, r#"{"x":1}"#), Err(BadDocument::UnknownField("x".into())));
    }

    #[test]
    fn copies_cannot_make_a_document_large() {
        let copies = "<copyField source=\"*_s\" dest=\"*_ss\"/>".repeat(100);
        let schema = schema_with(&copies);
        let members: Vec<String> = (0..1_000).map(|n| format!("\"a{n}_s\":\"x\"")).collect();
        assert_eq!(read_with(&schema, &format!("{{{}}}", members.join(","))), Err(BadDocument::TooLarge));
    }

    proptest! {
        #[test]
        fn whatever_is_extracted_gives_values_or_an_error(
            names in prop::collection::vec("(a|b|_yz_rk|counter)?(_s|_ss|_i|_d|_dt|_b|_p|_t|_ig)?", 0..6),
            texts in prop::collection::vec("(-?[0-9]{1,12}(\\.[0-9])?|NOW/DAY|true|[a-z,]{0,4}|1,2)", 6),
        ) {
            let schema = default_schema().unwrap();
            let pair = |(name, text): (&String, &String)| Pair { name: name.clone(), value: Extracted::Text(text.clone()) };
            let pairs: Vec<Pair> = names.iter().zip(&texts).map(pair).collect();
            if let Ok(fields) = DocumentFields::read(&schema, &pairs, Date::from_unix_ms(0).unwrap()) {
                for (name, _) in &fields.values {
                    let count = fields.values.iter().filter(|(other, _)| other == name).count();
                    prop_assert!(count == 1 || schema.field(name).unwrap().properties.is_multi_valued);
                }
            }
        }
    }
}
