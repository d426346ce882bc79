//! Reads a schema from XML: types first, then fields, then copies, whatever their order is.

use super::analyzer::{Analyzer, CHAR_FILTERS, Component, FILTERS, TOKENIZERS};
use super::copy_field::{CopyField, Name};
use super::field::Field;
use super::field_type::{Class, FieldType, Kind};
use super::limits::{ENTRIES_MAX, FILTERS_MAX, NAME_BYTES_MAX, SCHEMA_BYTES_MAX};
use super::name_pattern::NamePattern;
use super::problem::{Remark, Remarks, SchemaError};
use super::properties::Properties;
use super::tree::Schema;
use super::yz_fields;
use crate::query::Operator;
use crate::xml::read_xml;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The version of schemas that Riak takes.
const VERSION: &str = "1.5";

/// Attributes of a type that say how Solr lays out its index, or what only Solr does.
const TYPE_ATTRIBUTES_WITHOUT_EFFECT: &[&str] =
    &["precisionStep", "subFieldSuffix", "subFieldType", "dimension", "postingsFormat", "docValuesFormat", "omitTf"];

pub(super) fn read(xml: &[u8]) -> Result<Schema, SchemaError> {
    if xml.len() > SCHEMA_BYTES_MAX {
        return Err(SchemaError::TooLong);
    }
    let text = std::str::from_utf8(xml).map_err(|_| SchemaError::NotUtf8)?;
    let document = read_xml(text)?;
    let mut reader = Reader::new(&document);
    reader.elements();
    reader.finish()
}

struct Reader<'d> {
    document: &'d Document<'d>,
    /// Where the lines end. The library would count them again for each remark.
    line_ends: Vec<usize>,
    types: BTreeMap<String, Arc<FieldType>>,
    schema: Schema,
    /// Types that cannot be used, and whether that was told as a problem. Riak's default schema has
    /// some that no field uses.
    unusable: BTreeMap<String, (Remark, bool)>,
    /// Why the type that is being read cannot be used.
    failure: Option<Remark>,
    unique_key: Option<String>,
    problems: Remarks,
    notes: Remarks,
}

impl<'d> Reader<'d> {
    fn new(document: &'d Document<'d>) -> Self {
        let schema = Schema {
            name: document.root_element().attribute("name").unwrap_or_default().to_owned(),
            fields: BTreeMap::new(),
            dynamic_fields: Vec::new(),
            copies: Vec::new(),
            default_search_field: None,
            default_operator: Operator::Or,
            notes: Vec::new(),
        };
        let line_ends = document.input_text().match_indices('\n').map(|(at, _)| at).collect();
        Self {
            document,
            line_ends,
            types: BTreeMap::new(),
            schema,
            unusable: BTreeMap::new(),
            failure: None,
            unique_key: None,
            problems: Remarks::default(),
            notes: Remarks::default(),
        }
    }

    fn line(&self, node: Node<'_, '_>) -> u32 {
        let before = self.line_ends.partition_point(|end| *end < node.range().start);
        u32::try_from(before).map_or(u32::MAX, |before| before + 1)
    }

    fn problem(&mut self, node: Node<'_, '_>, what: impl Into<String>) {
        self.problems.add(self.line(node), what);
    }

    fn note(&mut self, node: Node<'_, '_>, what: impl Into<String>) {
        self.notes.add(self.line(node), what);
    }

    /// The type that is being read cannot be used.
    fn cannot(&mut self, node: Node<'_, '_>, what: impl Into<String>) {
        if self.failure.is_none() {
            self.failure = Some(Remark { line: self.line(node), what: what.into() });
        }
    }

    fn elements(&mut self) {
        let root = self.document.root_element();
        if root.tag_name().name() != "schema" {
            self.problem(root, "the outermost element is schema");
            return;
        }
        if root.attribute("version") != Some(VERSION) {
            self.problem(root, format!("schema 'version' attribute must be {VERSION}"));
        }
        // Sections are optional since Solr 4.8.
        let is_section = |node: &Node<'_, '_>| matches!(node.tag_name().name(), "types" | "fields");
        let entries: Vec<Node<'_, '_>> = root
            .children()
            .filter(Node::is_element)
            .flat_map(|child| if is_section(&child) { child.children().collect() } else { vec![child] })
            .filter(Node::is_element)
            .collect();
        if entries.len() > ENTRIES_MAX {
            self.problem(root, format!("a schema has at most {ENTRIES_MAX} fields, types and copies"));
            return;
        }
        for entry in &entries {
            if matches!(entry.tag_name().name(), "fieldType" | "fieldtype") {
                self.field_type(*entry);
                if let (Some(failure), Some(name)) = (self.failure.take(), entry.attribute("name")) {
                    self.unusable.insert(name.to_owned(), (failure, false));
                }
            }
        }
        for entry in &entries {
            self.field_or_setting(*entry);
        }
        self.schema.dynamic_fields.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.length_chars()));
        for entry in &entries {
            if entry.tag_name().name() == "copyField" {
                self.copy_field(*entry);
            }
        }
    }

    fn field_or_setting(&mut self, node: Node<'_, '_>) {
        let text = node.text().unwrap_or_default().trim();
        match node.tag_name().name() {
            "fieldType" | "fieldtype" | "copyField" => {}
            "field" => self.field(node),
            "dynamicField" => self.dynamic_field(node),
            "uniqueKey" => self.unique_key = Some(text.to_owned()),
            "defaultSearchField" => self.schema.default_search_field = Some(text.to_owned()),
            "solrQueryParser" => match node.attribute("defaultOperator").map(Operator::of) {
                Some(Some(operator)) => self.schema.default_operator = operator,
                _ => self.problem(node, "the attribute defaultOperator of solrQueryParser is AND or OR"),
            },
            "similarity" => self.note(node, "similarity has no effect; scores are those of BM25"),
            other => {
                let what = format!(
                    "the element {} is unknown; a schema has fieldType, field, dynamicField, copyField, uniqueKey, \
                     defaultSearchField and solrQueryParser",
                    shown(other)
                );
                self.problem(node, what);
            }
        }
    }

    /// The value of an attribute that has to be there.
    fn needed<'n>(&mut self, node: Node<'n, '_>, name: &str) -> Option<&'n str> {
        let value = node.attribute(name).filter(|value| !value.is_empty());
        match value {
            None => {
                let element = node.tag_name().name().to_owned();
                self.problem(node, format!("{element} needs the attribute {name}"));
            }
            Some(long) if long.len() > NAME_BYTES_MAX => {
                self.problem(node, format!("the attribute {name} has at most {NAME_BYTES_MAX} bytes"));
                return None;
            }
            Some(_) => {}
        }
        value
    }

    fn field_type(&mut self, node: Node<'_, '_>) {
        let (Some(name), Some(class)) = (self.needed(node, "name"), self.needed(node, "class")) else { return };
        let Some(class) = Class::of(class) else {
            let what = format!("the class {} is not supported; supported are {}", shown(class), Class::NAMES);
            return self.cannot(node, what);
        };
        let Some(kind) = self.kind(node, name, class) else { return };
        let mut field_type = FieldType {
            name: name.to_owned(),
            kind,
            properties: Properties::DEFAULT,
            position_increment_gap: 0,
            generates_phrases: false,
        };
        for attribute in node.attributes() {
            self.type_attribute(node, &mut field_type, attribute.name(), attribute.value());
        }
        if self.types.insert(name.to_owned(), Arc::new(field_type)).is_some() {
            self.problem(node, format!("the type {} is there twice", shown(name)));
        }
    }

    fn kind(&mut self, node: Node<'_, '_>, type_name: &str, class: Class) -> Option<Kind> {
        match class {
            Class::Known(kind, note) => {
                if let Some(note) = note {
                    self.note(node, format!("type {}: {note}", shown(type_name)));
                }
                Some(kind)
            }
            Class::Trie => {
                let kind = node.attribute("type").and_then(Class::of_trie);
                if kind.is_none() {
                    self.problem(node, "the attribute type of a TrieField is integer, long, float, double or date");
                }
                kind
            }
            Class::Text => Some(self.text_kind(node)),
        }
    }

    fn type_attribute(&mut self, node: Node<'_, '_>, field_type: &mut FieldType, name: &str, value: &str) {
        match name {
            "name" | "class" => {}
            "type" if node.attribute("class").is_some_and(|class| class.ends_with("TrieField")) => {}
            "positionIncrementGap" => match value.parse() {
                Ok(gap) => field_type.position_increment_gap = gap,
                Err(_) => self.problem(node, "positionIncrementGap is a number"),
            },
            "autoGeneratePhraseQueries" => field_type.generates_phrases = value.eq_ignore_ascii_case("true"),
            known if TYPE_ATTRIBUTES_WITHOUT_EFFECT.contains(&known) => {}
            _ if field_type.properties.set(name, value) => {}
            _ => self.problem(node, format!("the attribute {} of a type is unknown", shown(name))),
        }
    }

    /// The analyzers of a text type. One without a type is for both, and one alone too.
    fn text_kind(&mut self, node: Node<'_, '_>) -> Kind {
        let (mut index, mut query) = (None, None);
        for child in node.children().filter(Node::is_element) {
            if child.tag_name().name() == "similarity" {
                self.note(child, "similarity has no effect; scores are those of BM25");
                continue;
            }
            if child.tag_name().name() != "analyzer" {
                self.problem(child, "a type has the elements analyzer and similarity");
                continue;
            }
            let Some(analyzer) = self.analyzer(child) else { continue };
            match child.attribute("type") {
                None | Some("index") => index = Some(analyzer),
                Some("query") => query = Some(analyzer),
                Some("multiterm") => self.note(child, "the analyzer for patterns has no effect"),
                Some(_) => self.problem(child, "the type of an analyzer is index, query or multiterm"),
            }
        }
        let index = index.or_else(|| query.clone()).unwrap_or_else(Analyzer::whole_text);
        let query = query.unwrap_or_else(|| index.clone());
        Kind::Text { index: Box::new(index), query: Box::new(query) }
    }

    fn analyzer(&mut self, node: Node<'_, '_>) -> Option<Analyzer> {
        if node.attribute("class").is_some() {
            self.cannot(node, "an analyzer has elements tokenizer and filter here, and no class");
            return None;
        }
        let (mut char_filters, mut tokenizer, mut filters) = (Vec::new(), None, Vec::new());
        for child in node.children().filter(Node::is_element) {
            match child.tag_name().name() {
                "charFilter" => char_filters.extend(self.component(child, CHAR_FILTERS)),
                "tokenizer" if tokenizer.is_some() => self.problem(child, "an analyzer has one tokenizer"),
                "tokenizer" => tokenizer = Some(self.component(child, TOKENIZERS)?),
                "filter" => filters.extend(self.component(child, FILTERS)),
                _ => self.problem(child, "an analyzer has the elements charFilter, tokenizer and filter"),
            }
        }
        if char_filters.len() + filters.len() > FILTERS_MAX {
            self.problem(node, format!("an analyzer has at most {FILTERS_MAX} filters"));
            return None;
        }
        let Some(tokenizer) = tokenizer else {
            self.cannot(node, "an analyzer needs a tokenizer");
            return None;
        };
        Some(Analyzer { char_filters, tokenizer, filters })
    }

    fn component(&mut self, node: Node<'_, '_>, known: &[&str]) -> Option<Component> {
        let class = self.needed(node, "class")?;
        let short = class.rsplit('.').next().unwrap_or(class);
        let name = short.strip_suffix("Factory").unwrap_or(short);
        if !known.contains(&name) {
            let what = format!("the class {} is not supported; supported are {}", shown(class), known.join(", "));
            self.cannot(node, what);
            return None;
        }
        let arguments = node.attributes().filter(|attribute| attribute.name() != "class");
        let arguments = arguments.map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned()));
        let arguments: Vec<(String, String)> = arguments.collect();
        if arguments.iter().any(|(_, value)| value.len() > NAME_BYTES_MAX) {
            self.problem(node, format!("an attribute has at most {NAME_BYTES_MAX} bytes"));
            return None;
        }
        Some(Component { name: name.to_owned(), arguments })
    }

    fn any_field(&mut self, node: Node<'_, '_>) -> Option<Field> {
        let (name, type_name) = (self.needed(node, "name")?, self.needed(node, "type")?);
        if let Some((failure, is_told)) = self.unusable.get_mut(type_name) {
            if !std::mem::replace(is_told, true) {
                let what = format!("{} (the field {} has the type {})", failure.what, shown(name), shown(type_name));
                self.problems.add(failure.line, what);
            }
            return None;
        }
        let Some(field_type) = self.types.get(type_name).cloned() else {
            self.problem(node, format!("the type {} is not there; a fieldType declares it", shown(type_name)));
            return None;
        };
        let mut properties = field_type.properties;
        for attribute in node.attributes() {
            let is_known = matches!(attribute.name(), "name" | "type" | "default")
                || properties.set(attribute.name(), attribute.value());
            if !is_known {
                self.problem(node, format!("the attribute {} of a field is unknown", shown(attribute.name())));
            }
        }
        let default = node.attribute("default").map(str::to_owned);
        if default.as_ref().is_some_and(|default| default.len() > NAME_BYTES_MAX) {
            self.problem(node, format!("a default has at most {NAME_BYTES_MAX} bytes"));
            return None;
        }
        Some(Field { name: name.to_owned(), field_type, properties, default })
    }

    fn field(&mut self, node: Node<'_, '_>) {
        let Some(field) = self.any_field(node) else { return };
        if field.name.contains('*') {
            return self.problem(node, "the name of a field has no *; a dynamicField has one");
        }
        let name = field.name.clone();
        if self.schema.fields.insert(name.clone(), field).is_some() {
            self.problem(node, format!("the field {} is there twice", shown(&name)));
        }
    }

    fn dynamic_field(&mut self, node: Node<'_, '_>) {
        let Some(field) = self.any_field(node) else { return };
        let Some(pattern) = NamePattern::read(&field.name) else {
            return self.problem(node, "the name of a dynamicField has one *, at its beginning or its end");
        };
        if field.properties.is_required || field.default.is_some() {
            return self.problem(node, "a dynamicField is not required and has no default");
        }
        if self.schema.dynamic_fields.iter().any(|(known, _)| *known == pattern) {
            return self.problem(node, format!("the dynamicField {} is there twice", shown(&field.name)));
        }
        self.schema.dynamic_fields.push((pattern, field));
    }

    fn copy_field(&mut self, node: Node<'_, '_>) {
        let (Some(source), Some(dest)) = (self.needed(node, "source"), self.needed(node, "dest")) else { return };
        let (Some(source), Some(dest)) = (Name::of(source), Name::of(dest)) else {
            return self.problem(node, "source and dest have one * at most, at the beginning or the end");
        };
        let chars_max = match node.attribute("maxChars").map(str::parse::<usize>) {
            None | Some(Ok(0)) => None,
            Some(Ok(chars_max)) => Some(chars_max),
            Some(Err(_)) => return self.problem(node, "maxChars is a number"),
        };
        if let Name::Exact(name) = &source
            && self.schema.field(name).is_none()
        {
            return self.problem(node, format!("the source {} is no field and fits no dynamicField", shown(name)));
        }
        let dest_name = match (&source, &dest) {
            (_, Name::Exact(name)) => name.clone(),
            (Name::Exact(_), Name::Pattern(_)) => {
                return self.problem(node, "a dest with * needs a source with *");
            }
            // Any name of the form will do.
            (Name::Pattern(_), Name::Pattern(pattern)) => pattern.with("x"),
        };
        if yz_fields::YZ_FIELDS.iter().any(|(own, _)| *own == dest_name) {
            return self.problem(node, format!("the dest {dest_name} is Riak's own"));
        }
        if self.schema.field(&dest_name).is_none() {
            return self.problem(node, format!("the dest {} is no field and fits no dynamicField", shown(&dest_name)));
        }
        self.schema.copies.push(CopyField { source, dest, chars_max });
    }

    fn finish(mut self) -> Result<Schema, SchemaError> {
        let root = self.document.root_element();
        let line = self.line(root);
        if self.unique_key.as_deref() != Some(yz_fields::UNIQUE_KEY) {
            self.problem(root, format!("<uniqueKey>{}</uniqueKey> is needed", yz_fields::UNIQUE_KEY));
        }
        yz_fields::check(&self.schema, line, &mut self.problems);
        if let Some(name) = self.schema.default_search_field.clone()
            && self.schema.field(&name).is_none()
        {
            self.problem(root, format!("the defaultSearchField {} is no field", shown(&name)));
        }
        let problems = self.problems.into_list();
        if !problems.is_empty() {
            return Err(SchemaError::Problems(problems));
        }
        for (failure, _) in self.unusable.into_values() {
            self.notes.add(failure.line, format!("no field uses this type, so it is left out: {}", failure.what));
        }
        self.schema.notes = self.notes.into_list();
        Ok(self.schema)
    }
}

/// A name in an error, not longer than fits.
fn shown(name: &str) -> String {
    const SHOWN_CHARS: usize = 64;
    name.chars().take(SHOWN_CHARS).collect()
}
