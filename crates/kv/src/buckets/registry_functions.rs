//! Registers, deletes and lists functions.
//!
//! A function is changed as every record is. What is special is that hooks name functions: a
//! function that a hook names is deleted by force only.

use super::error::PropsError;
use super::function_record::{FunctionRecord, HookUser};
use super::functions::{FUNCTIONS, check_name, check_source};
use super::open_record::{OpenRecord, RecordName};
use super::registry::BucketRegistry;
use super::registry_records::RecordEdit;
use super::state::{RecordChange, Snapshot};
use imbl::OrdMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Functions by name, and what names each function as a hook.
pub type FunctionList = (OrdMap<Arc<str>, FunctionRecord>, BTreeMap<String, Vec<HookUser>>);

impl BucketRegistry {
    /// Registers a function, or replaces its source if that is wanted. The caller has compiled it.
    pub fn put_function(&self, name: &str, source: &str, replaces: bool) -> Result<(), PropsError> {
        Self::check_function(name, source)?;
        let source: Arc<str> = source.into();
        self.change_record(FUNCTIONS, name.as_bytes(), |present| match present {
            Some(_) if !replaces => Err(PropsError::FunctionExists),
            _ => Ok(RecordEdit::Set(source.clone())),
        })
    }

    /// Checks what can be checked of a function without compiling it.
    pub fn check_function(name: &str, source: &str) -> Result<(), PropsError> {
        check_name(name)?;
        check_source(source)
    }

    /// Deletes a function. Unless it is `forced`, a function that a hook names is kept. A hook that
    /// is set at the same moment either comes first and keeps the function, or is refused.
    pub fn delete_function(&self, name: &str, forced: bool) -> Result<(), PropsError> {
        self.change_if(!forced, |now| {
            if now.function(name).is_none() {
                return Err(PropsError::NoFunction);
            }
            match now.hook_users().remove(name).filter(|_| !forced) {
                Some(users) => Err(PropsError::FunctionUsed(users)),
                None => Ok(Some(RecordChange::Open(RecordName::new(FUNCTIONS, name.as_bytes()), None))),
            }
        })
    }

    /// The registered function with a name, for operators.
    pub fn function(&self, name: &str) -> Option<FunctionRecord> {
        self.snapshot().function(name).map(FunctionRecord::of)
    }

    /// All registered functions by name, and what names each function as a hook, whether it is
    /// registered or not.
    pub fn list_functions(&self) -> FunctionList {
        let now = self.snapshot();
        let records = now.records_of(FUNCTIONS).into_iter().flatten();
        let name = |key: &[u8]| -> Arc<str> { String::from_utf8_lossy(key).into() };
        (records.map(|(key, record)| (name(key), FunctionRecord::of(record))).collect(), now.hook_users())
    }
}

impl Snapshot {
    /// The record of the registered function with a name.
    pub(super) fn function(&self, name: &str) -> Option<&OpenRecord> {
        self.records.open.get(FUNCTIONS, name.as_bytes())
    }
}

#[cfg(test)]
mod tests;
