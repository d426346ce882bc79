//! The functions in JavaScript that operators have registered.
//!
//! They are kept, decided and followed as bucket types are, in the same registry. Nothing here
//! knows JavaScript: whoever registers a function has compiled it.

use super::error::PropsError;
use super::function_record::{FunctionRecord, HookUser};
use super::registry::BucketRegistry;
use super::state::{RecordChange, Snapshot};
use imbl::OrdMap;
use ombak_types::BucketProps;
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::props::Hook;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The longest name, in bytes.
const FUNCTION_NAME_BYTES_MAX: usize = 255;
/// The longest source, in bytes. One entry of the metadata's log holds it, and one message has
/// hundreds of entries.
const FUNCTION_BYTES_MAX: usize = 64 << 10;
/// How many functions can be registered.
const FUNCTIONS_MAX: usize = 1000;
/// How many bytes all sources can have together. Each node has them in memory, and a snapshot of
/// the metadata has them all.
const ALL_BYTES_MAX: usize = 8 << 20;
/// Names that begin with this word and a dot are those of built-in functions.
const RESERVED: &str = "Riak";

/// Functions by name, and what names each function as a hook.
pub type FunctionList = (OrdMap<Arc<str>, FunctionRecord>, BTreeMap<String, Vec<HookUser>>);

impl BucketRegistry {
    /// Registers a function, or replaces its source if that is wanted. The caller has compiled it.
    pub fn put_function(&self, name: &str, source: &str, replaces: bool) -> Result<(), PropsError> {
        Self::check_function(name, source)?;
        let record = FunctionRecord::new(source.into(), 0);
        self.change(|now| {
            let functions = now.functions();
            if !replaces && functions.contains_key(name) {
                return Err(PropsError::FunctionExists);
            }
            check_room(functions, name, source)?;
            Ok(Some(RecordChange::Function(name.into(), Some(record.clone()))))
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
            if !now.functions().contains_key(name) {
                return Err(PropsError::NoFunction);
            }
            match now.hook_users().remove(name).filter(|_| !forced) {
                Some(users) => Err(PropsError::FunctionUsed(users)),
                None => Ok(Some(RecordChange::Function(name.into(), None))),
            }
        })
    }

    /// The registered function with a name.
    pub fn function(&self, name: &str) -> Option<FunctionRecord> {
        self.snapshot().functions().get(name).cloned()
    }

    /// All registered functions by name, and what names each function as a hook, whether it is
    /// registered or not.
    pub fn list_functions(&self) -> FunctionList {
        let now = self.snapshot();
        (now.functions().clone(), now.hook_users())
    }
}

impl Snapshot {
    /// The registered functions.
    pub fn functions(&self) -> &OrdMap<Arc<str>, FunctionRecord> {
        &self.records.functions
    }

    /// The functions that the hooks of a type or bucket name after a change of it, and did not name
    /// before.
    pub(super) fn newly_named(&self, after: &Self, change: &RecordChange) -> impl Iterator<Item = String> + use<> {
        let named = |snapshot: &Self| match change {
            RecordChange::Type(name, _) => snapshot.props_of_type(name).map(|props| names(props)),
            RecordChange::Bucket(bucket, _) => snapshot.props(bucket).ok().map(|props| names(props)),
            RecordChange::Function(..) => None,
        };
        let before = named(self).unwrap_or_default();
        named(after).unwrap_or_default().into_iter().filter(move |name| !before.contains(name))
    }

    /// What names each function as a hook: types, and buckets with hooks of their own.
    fn hook_users(&self) -> BTreeMap<String, Vec<HookUser>> {
        let mut users = BTreeMap::new();
        let default_type = self.default_type_props();
        add_user(&mut users, default_type, || HookUser::Type(DEFAULT_TYPE.into()));
        for name in self.records.types.keys() {
            if let Some(props) = self.props_of_type(name) {
                add_user(&mut users, props, || HookUser::Type(name.clone()));
            }
        }
        for (bucket, record) in &self.records.buckets {
            let has_own = ["precommit", "postcommit"].iter().any(|hooks| record.overrides.contains_key(*hooks));
            if let Ok(props) = self.props(bucket)
                && has_own
            {
                add_user(&mut users, props, || HookUser::Bucket(bucket.clone()));
            }
        }
        users
    }
}

/// The functions that hooks name.
fn names(props: &BucketProps) -> BTreeSet<String> {
    let hooks = props.precommit.iter().chain(&props.postcommit);
    hooks.filter_map(|hook| if let Hook::Named(name) = hook { Some(name.clone()) } else { None }).collect()
}

fn add_user(users: &mut BTreeMap<String, Vec<HookUser>>, props: &BucketProps, user: impl Fn() -> HookUser) {
    for hook in props.precommit.iter().chain(&props.postcommit) {
        if let Hook::Named(name) = hook {
            let of_name = users.entry(name.clone()).or_default();
            if of_name.last() != Some(&user()) {
                of_name.push(user());
            }
        }
    }
}

/// Names are those that jobs and hooks can have: JavaScript's names with dots between them.
fn check_name(name: &str) -> Result<(), PropsError> {
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

fn check_source(source: &str) -> Result<(), PropsError> {
    if source.len() > FUNCTION_BYTES_MAX {
        return Err(PropsError::BadFunction(format!("the source has more than {FUNCTION_BYTES_MAX} bytes")));
    }
    // In JSON such a character takes six bytes.
    if source.chars().any(|c| c.is_ascii_control() && !"\t\n\r".contains(c)) {
        return Err(PropsError::BadFunction("the source has control characters".into()));
    }
    Ok(())
}

fn check_room(functions: &OrdMap<Arc<str>, FunctionRecord>, name: &str, source: &str) -> Result<(), PropsError> {
    let others = || functions.iter().filter(|(other, _)| &***other != name);
    if others().count() >= FUNCTIONS_MAX {
        return Err(PropsError::TooMany(FUNCTIONS_MAX));
    }
    let bytes: usize = others().map(|(_, record)| record.source.len()).sum();
    if bytes + source.len() > ALL_BYTES_MAX {
        return Err(PropsError::BadFunction(format!(
            "the sources of all functions have more than {ALL_BYTES_MAX} bytes"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
