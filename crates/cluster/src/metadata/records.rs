//! Bucket types, properties and functions as the metadata has them, and as the registry of the
//! engine has them.

use ombak_kv::buckets::{BucketRecord, FunctionRecord, TypeRecord};
use ombak_kv::{ProposedChange, RecordChange};
use ombak_metadata::state::{BucketName, ChangedRecord, Command, Metadata, TakenType, TypeName, changed_records};
use ombak_types::Bucket;

/// So many buckets are taken over with one command: an entry of the log has a maximum length.
const TAKEN_MAX: usize = 500;
/// So many functions are taken over with one command. Sources are longer than properties.
const FUNCTIONS_TAKEN_MAX: usize = 50;

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
        ChangedRecord::Function(name, record) => {
            RecordChange::Function(name, record.map(|record| FunctionRecord::new(record.source, record.version)))
        }
    }
}

/// The command that makes a change. `None` for the removal of a type: types are never removed.
pub(crate) fn command(proposed: ProposedChange) -> Option<Command> {
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
        RecordChange::Function(name, record) => match (record, expected) {
            (None, Some(expected)) if unless_named => Command::DeleteUnnamed { name, expected },
            (record, expected) => Command::PutFunction { name, expected, source: record.map(|record| record.source) },
        },
    };
    // Without registered functions the command is one that every version knows.
    Some(if named.is_empty() { command } else { Command::WithFunctions { named, command: Box::new(command) } })
}

fn name_of(bucket: Bucket) -> BucketName {
    BucketName { r#type: bucket.bucket_type, name: bucket.name }
}

/// The commands with which the metadata takes over the records of a node that was alone: types
/// before the buckets that belong to them.
pub(crate) fn taken_over(records: Vec<RecordChange>) -> Vec<Command> {
    let (mut types, mut buckets, mut functions) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match record {
            RecordChange::Type(name, Some(TypeRecord { active, overrides, .. })) => {
                types.push((TypeName(name), TakenType { active, overrides: (*overrides).clone() }));
            }
            RecordChange::Bucket(bucket, Some(record)) => {
                buckets.push((name_of(bucket), (*record.overrides).clone()));
            }
            RecordChange::Function(name, Some(record)) => functions.push((name, record.source)),
            RecordChange::Type(_, None) | RecordChange::Bucket(_, None) | RecordChange::Function(_, None) => {}
        }
    }
    let take_over = |types: &[_], buckets: &[_], functions: &[_]| Command::TakeOver {
        types: types.to_vec(),
        buckets: buckets.to_vec(),
        functions: functions.to_vec(),
    };
    let of_types = types.chunks(TAKEN_MAX).map(|types| take_over(types, &[], &[]));
    let of_buckets = buckets.chunks(TAKEN_MAX).map(|buckets| take_over(&[], buckets, &[]));
    let of_functions = functions.chunks(FUNCTIONS_TAKEN_MAX).map(|functions| take_over(&[], &[], functions));
    of_types.chain(of_buckets).chain(of_functions).collect()
}
