//! XML: the names of elements inside each other are joined with dots, and the name of an attribute
//! follows the one of its element and `@`. Prefixes of namespaces do not count.

use super::error::ExtractError;
use super::pair::{Pairs, Path};
use crate::xml::read_xml;
use roxmltree::Node;

const SEPARATOR: &str = ".";

pub(super) fn extract(text: &str, pairs: &mut Pairs) -> Result<(), ExtractError> {
    let document = read_xml(text)?;
    visit(document.root_element(), &mut Path::default(), pairs)
}

/// Collects an element and what is in it. The reader bounds how deep elements nest.
fn visit(element: Node<'_, '_>, path: &mut Path, pairs: &mut Pairs) -> Result<(), ExtractError> {
    let separator = if path.as_str().is_empty() { "" } else { SEPARATOR };
    let before = path.enter(separator, element.tag_name().name())?;
    for attribute in element.attributes() {
        pairs.push_text(&format!("{}@{}", path.as_str(), attribute.name()), attribute.value())?;
    }
    for child in element.children() {
        if child.is_element() {
            visit(child, path, pairs)?;
        } else if child.is_text() {
            let text = child.text().unwrap_or_default();
            if !text.bytes().all(|byte| byte.is_ascii_whitespace()) {
                pairs.push_text(path.as_str(), text)?;
            }
        }
    }
    path.leave(before);
    Ok(())
}
