//! The functions in JavaScript that operators have registered: a namespace of records.
//!
//! What it is: [`FunctionsNamespace`] checks names and sources, and finds functions for those who
//! call them. A key is a name, and a value is a source.
//!
//! What it is not: nothing here knows JavaScript. Whoever registers a function has compiled it.

use super::error::PropsError;
use super::function_record::FunctionRecord;
use super::open_record::OpenRecord;
use super::record_namespace::{RecordBounds, RecordNamespace, RecordUpdate};
use arc_swap::ArcSwap;
use imbl::OrdMap;
use std::sync::Arc;

/// The namespace of the functions.
pub const FUNCTIONS: &str = "functions";
/// The longest name, in bytes.
pub(super) const FUNCTION_NAME_BYTES_MAX: usize = 255;
/// The longest source, in bytes. One entry of the metadata's log holds it, and one message has
/// hundreds of entries.
pub(super) const FUNCTION_BYTES_MAX: usize = 64 << 10;
/// How many functions can be registered.
pub(super) const FUNCTIONS_MAX: usize = 1000;
/// How many bytes all sources can have together. Each node has them in memory, and a snapshot of
/// the metadata has them all.
pub(super) const ALL_BYTES_MAX: usize = 8 << 20;
/// Names that begin with this word and a dot are those of built-in functions.
const RESERVED: &str = "Riak";

/// The registered functions of a node, for those who call them. Reading never waits for a change.
#[derive(Debug, Default)]
pub struct FunctionsNamespace {
    now: ArcSwap<OrdMap<Arc<str>, FunctionRecord>>,
}

impl FunctionsNamespace {
    /// The registered function with a name.
    pub fn get(&self, name: &str) -> Option<FunctionRecord> {
        self.now.load().get(name).cloned()
    }
}

impl RecordNamespace for FunctionsNamespace {
    fn name(&self) -> &'static str {
        FUNCTIONS
    }

    fn bounds(&self) -> RecordBounds {
        RecordBounds { records_max: FUNCTIONS_MAX, values_bytes_max: ALL_BYTES_MAX }
    }

    fn validate(&self, key: &[u8], value: &str) -> Result<(), PropsError> {
        // What is no text is no name either.
        check_name(std::str::from_utf8(key).unwrap_or_default())?;
        check_source(value)
    }

    fn full(&self, bounds: RecordBounds) -> PropsError {
        let bytes = bounds.values_bytes_max;
        PropsError::BadFunction(format!("the sources of all functions have more than {bytes} bytes"))
    }

    fn changed(&self, update: RecordUpdate<'_>) {
        let Ok(name) = std::str::from_utf8(update.key) else { return };
        let mut next = OrdMap::clone(&self.now.load());
        match update.new {
            Some(record) => drop(next.insert(name.into(), FunctionRecord::of(record))),
            None => drop(next.remove(name)),
        }
        self.now.store(Arc::new(next));
    }

    fn conflict(&self, key: &[u8], own: &OpenRecord, of_cluster: Option<&OpenRecord>) -> Option<String> {
        let what = match of_cluster {
            Some(of_cluster) if of_cluster.value == own.value => return None,
            Some(_) => "has another source in the cluster. Register the same one there, or delete it here.",
            None => "is registered here, and not in the cluster. Register it there first, or delete it here.",
        };
        Some(format!("the function '{}' {what}", String::from_utf8_lossy(key)))
    }
}

/// Names are those that jobs and hooks can have: JavaScript's names with dots between them.
pub(super) fn check_name(name: &str) -> Result<(), PropsError> {
    let is_name =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_$".contains(&b));
    if name.len() > FUNCTION_NAME_BYTES_MAX || !name.split('.').all(is_name) {
        return Err(PropsError::BadName(
            "a function's name has 1 to 255 bytes: letters, digits, _ and $, with single dots between them",
        ));
    }
    if name.split('.').next() == Some(RESERVED) {
        return Err(PropsError::BadName("names that begin with Riak are those of built-in functions"));
    }
    Ok(())
}

pub(super) fn check_source(source: &str) -> Result<(), PropsError> {
    if source.len() > FUNCTION_BYTES_MAX {
        return Err(PropsError::BadFunction(format!("the source has more than {FUNCTION_BYTES_MAX} bytes")));
    }
    // In JSON such a character takes six bytes.
    if source.chars().any(|c| c.is_ascii_control() && !"\t\n\r".contains(c)) {
        return Err(PropsError::BadFunction("the source has control characters".into()));
    }
    Ok(())
}
