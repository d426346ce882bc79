//! Bucket types, properties and records of namespaces as the metadata has them, and as the registry
//! of the engine has them.

use crate::Feature;
use ombak_kv::buckets::{BucketRecord, FUNCTIONS, OpenRecord, RecordName, TypeRecord};
use ombak_kv::buckets::{ProposedChange, RecordChange};
use ombak_metadata::state::{
    BucketName, ChangedRecord, Command, Metadata, TakenRecord, TakenType, TypeName, changed_records,
};
use ombak_types::Bucket;
use std::sync::Arc;

/// So many buckets are taken over with one command: an entry of the log has a maximum length.
const TAKEN_MAX: usize = 500;
/// So many records of namespaces are taken over with one command. Values are longer than
/// properties.
const RECORDS_TAKEN_MAX: usize = 50;

impl Feature {
    /// Functions are registered.
    pub const FUNCTIONS: Self = Self {
        capability: "functions.1",
        text: "registered functions",
        namespace: Some(FUNCTIONS),
        is_used_in: |metadata| metadata.has_had_records(FUNCTIONS),
    };

    /// Users, groups, sources and grants. A member that does not know them would let everybody in.
    pub const SECURITY: Self = Self {
        capability: "security.1",
        text: "security",
        namespace: Some(ombak_security::NAMESPACE),
        is_used_in: |metadata| metadata.has_had_records(ombak_security::NAMESPACE),
    };

    /// The metadata has records of any namespace.
    pub const OPEN_RECORDS: Self = Self {
        capability: "records.1",
        text: "records of namespaces in the metadata",
        namespace: None,
        is_used_in: Metadata::has_used_open_records,
    };
}

/// What differs between two states.
pub(crate) fn changed(old: &Metadata, new: &Metadata) -> Vec<RecordChange> {
    changed_records(old, new).into_iter().map(for_registry).collect()
}

/// Everything that a state has.
pub(crate) fn all_records(state: &Metadata) -> Vec<RecordChange> {
    changed(&Metadata::default(), state)
}

fn for_registry(change: ChangedRecord) -> RecordChange {
    match change {
        ChangedRecord::Type(name, record) => {
            let record = record.map(|record| TypeRecord {
                active: record.active,
                overrides: record.overrides,
                version: record.version,
            });
            RecordChange::Type(name, record)
        }
        ChangedRecord::Bucket(bucket, record) => {
            let record = record.map(|record| BucketRecord { overrides: record.overrides, version: record.version });
            RecordChange::Bucket(bucket, record)
        }
        ChangedRecord::Open(name, record) => {
            let name = RecordName { namespace: name.namespace, key: name.key };
            RecordChange::Open(name, record.map(|record| OpenRecord { value: record.value, version: record.version }))
        }
    }
}

/// The command that makes a change. `None` for the removal of a type: types are never removed.
/// Unless all members know the command for records of all namespaces, the record of a change is a
/// function.
pub(crate) fn command(proposed: ProposedChange, knows_records: bool) -> Option<Command> {
    let ProposedChange { change, expected, type_expected, functions: named, unless_named, .. } = proposed;
    let command = match change {
        RecordChange::Type(name, record) => {
            let TypeRecord { active, overrides, .. } = record?;
            Command::PutType { name: TypeName(name), expected, active, overrides: (*overrides).clone() }
        }
        RecordChange::Bucket(bucket, record) => {
            let overrides = record.map(|record| (*record.overrides).clone());
            Command::PutBucket { bucket: name_of(bucket), expected, type_expected, overrides }
        }
        RecordChange::Open(name, record) => {
            let value = record.map(|record| record.value);
            match (function_of(&name), value, expected) {
                (Some(name), None, Some(expected)) if unless_named => Command::DeleteUnnamed { name, expected },
                (Some(name), source, expected) if !knows_records => Command::PutFunction { name, expected, source },
                (_, value, expected) => {
                    let RecordName { namespace, key } = name;
                    Command::PutRecord { namespace, key, expected, value }
                }
            }
        }
    };
    // Without registered functions the command is one that every version knows.
    Some(if named.is_empty() { command } else { Command::WithFunctions { named, command: Box::new(command) } })
}

/// Whether a command that versions without open records know changes the record.
pub(crate) fn is_function(name: &RecordName) -> bool {
    function_of(name).is_some()
}

/// The name of the function that a record is. It is text, as long as only this version and earlier
/// ones have checked it.
fn function_of(name: &RecordName) -> Option<Arc<str>> {
    let is_function = &*name.namespace == FUNCTIONS;
    str::from_utf8(&name.key).ok().filter(|_| is_function).map(Arc::from)
}

fn name_of(bucket: Bucket) -> BucketName {
    BucketName { r#type: bucket.bucket_type, name: bucket.name }
}

/// The commands with which the metadata takes over the records of a node that was alone: types
/// before the buckets that belong to them.
pub(crate) fn taken_over(records: Vec<RecordChange>) -> Vec<Command> {
    let (mut types, mut buckets, mut functions, mut others) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match record {
            RecordChange::Type(name, Some(TypeRecord { active, overrides, .. })) => {
                types.push((TypeName(name), TakenType { active, overrides: (*overrides).clone() }));
            }
            RecordChange::Bucket(bucket, Some(record)) => {
                buckets.push((name_of(bucket), (*record.overrides).clone()));
            }
            // Functions are taken over as versions without open records know it, so that nodes of
            // such a version can join.
            RecordChange::Open(name, Some(OpenRecord { value, .. })) => match function_of(&name) {
                Some(function) => functions.push((function, value)),
                None => others.push(TakenRecord { namespace: name.namespace, key: name.key, value }),
            },
            RecordChange::Type(_, None) | RecordChange::Bucket(_, None) | RecordChange::Open(_, None) => {}
        }
    }
    let take_over = |types: &[_], buckets: &[_], functions: &[_], records: &[_]| Command::TakeOver {
        types: types.to_vec(),
        buckets: buckets.to_vec(),
        functions: functions.to_vec(),
        records: records.to_vec(),
    };
    let of_types = types.chunks(TAKEN_MAX).map(|types| take_over(types, &[], &[], &[]));
    let of_buckets = buckets.chunks(TAKEN_MAX).map(|buckets| take_over(&[], buckets, &[], &[]));
    let of_functions = functions.chunks(RECORDS_TAKEN_MAX).map(|functions| take_over(&[], &[], functions, &[]));
    let of_others = others.chunks(RECORDS_TAKEN_MAX).map(|records| take_over(&[], &[], &[], records));
    of_types.chain(of_buckets).chain(of_functions).chain(of_others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(namespace: &str, value: Option<&str>, expected: Option<u64>) -> ProposedChange {
        let record = value.map(|value| OpenRecord { value: value.into(), version: 0 });
        let change = RecordChange::Open(RecordName::new(namespace, b"k"), record);
        ProposedChange { change, expected, type_expected: None, moves: None, functions: vec![], unless_named: false }
    }

    #[test]
    fn engine_and_metadata_give_functions_the_same_namespace() {
        assert_eq!(FUNCTIONS, ombak_metadata::state::FUNCTIONS);
    }

    #[test]
    fn functions_have_their_own_command_until_all_members_know_the_other() {
        let put = |namespace: &str, value: Option<&str>, expected| Command::PutRecord {
            namespace: namespace.into(),
            key: "k".into(),
            expected,
            value: value.map(Into::into),
        };
        for (value, expected) in [(Some("s"), None), (Some("s"), Some(7)), (None, Some(7))] {
            let older = Command::PutFunction { name: "k".into(), expected, source: value.map(Into::into) };
            assert_eq!(command(proposed(FUNCTIONS, value, expected), false), Some(older));
            assert_eq!(command(proposed(FUNCTIONS, value, expected), true), Some(put(FUNCTIONS, value, expected)));
            assert_eq!(command(proposed("users", value, expected), true), Some(put("users", value, expected)));
        }
        let unless_named = ProposedChange { unless_named: true, ..proposed(FUNCTIONS, None, Some(7)) };
        let deletion = Command::DeleteUnnamed { name: "k".into(), expected: 7 };
        assert_eq!(command(unless_named.clone(), false), Some(deletion.clone()));
        assert_eq!(command(unless_named, true), Some(deletion));
    }

    /// Such a record is changed with the newer command alone, as those of other namespaces are.
    #[test]
    fn what_has_no_name_that_is_text_is_no_function() {
        assert!(is_function(&RecordName::new(FUNCTIONS, b"f")));
        assert!(!is_function(&RecordName::new(FUNCTIONS, b"\xff")));
        assert!(!is_function(&RecordName::new("users", b"f")));
    }

    /// One entry of the log has a maximum length.
    #[test]
    fn records_are_taken_over_by_parts_and_functions_as_earlier_versions_know_it() {
        let record = |namespace: &str, number: usize| {
            let name = RecordName::new(namespace, number.to_string().as_bytes());
            RecordChange::Open(name, Some(OpenRecord { value: "v".into(), version: 0 }))
        };
        let of = |namespace: &'static str| (0..=RECORDS_TAKEN_MAX).map(move |number| record(namespace, number));
        let counts: Vec<_> = taken_over(of(FUNCTIONS).chain(of("users")).collect())
            .into_iter()
            .map(|command| match command {
                Command::TakeOver { functions, records, .. } => (functions.len(), records.len()),
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(counts, [(RECORDS_TAKEN_MAX, 0), (1, 0), (0, RECORDS_TAKEN_MAX), (0, 1)]);
    }
}
