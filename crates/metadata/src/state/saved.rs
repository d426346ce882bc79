//! The saved form of the state: JSON, with a version.

use super::functions::FUNCTIONS;
use super::metadata::Metadata;
use super::open_records::OpenRecords;
use super::raft_id::RaftId;
use super::records::{BucketName, BucketRecord, ClosedPart, Lineage, Member, TypeName, TypeRecord};
use super::saved_records::{SavedFunctions, SavedRecords};
use ombak_ring::Ring;
use ombak_ring::placement::Placement;
use ombak_types::{Bucket, NodeId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The version that is written while all homes got their ring at once. Version 1 of the program
/// reads it.
const FORMAT_OF_A_RING: u32 = 1;
/// The version that is written once homes have changed step by step.
const FORMAT_OF_A_PLACEMENT: u32 = 2;
/// The version that is written once a member has a location. It may have a ring or a placement.
const FORMAT_OF_LOCATIONS: u32 = 3;
/// The version that is written once a function was registered. It has all that the others have.
const FORMAT_OF_FUNCTIONS: u32 = 4;
/// The version that is written once a command changed a record that versions without open records
/// do not know. It has the records of all namespaces in place of the functions.
const FORMAT_OF_RECORDS: u32 = 5;

/// Why bytes are not a saved state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSavedMetadata {
    /// A later version of the program saved it.
    #[error("has format {0}, and this version of ombak reads the formats {FORMAT_OF_A_RING} to {FORMAT_OF_RECORDS}")]
    Format(u32),
    /// It does not decode.
    #[error("is damaged ({0})")]
    Damaged(String),
}

#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    lineage: Option<Lineage>,
    members: Vec<(NodeId, Member)>,
    removed: Vec<NodeId>,
    used_logs: Vec<RaftId>,
    ring: Option<Ring>,
    /// Formats 2 to 5 may have it in place of the ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    placement: Option<Placement>,
    staged: Arc<Value>,
    staged_version: u64,
    types: Vec<(TypeName, TypeRecord)>,
    buckets: Vec<(BucketName, BucketRecord)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closing: Option<u64>,
    /// The format stays the same: a version that does not know this could not go on anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closed_part: Option<ClosedPart>,
    /// Only format 4 has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    functions: Option<SavedFunctions>,
    /// Only format 5 has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    records: Option<SavedRecords>,
}

impl Metadata {
    /// The saved form. Equal states have equal bytes.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let bucket_name =
            |bucket: &Bucket| BucketName { r#type: bucket.bucket_type.clone(), name: bucket.name.clone() };
        let placement = self.placement.as_deref().filter(|placement| !placement.is_of_ring());
        let ring = self.ring().filter(|_| placement.is_none());
        let format = match placement {
            _ if self.has_used_open_records() => FORMAT_OF_RECORDS,
            _ if self.has_had_records(FUNCTIONS) => FORMAT_OF_FUNCTIONS,
            _ if self.has_locations() => FORMAT_OF_LOCATIONS,
            Some(_) => FORMAT_OF_A_PLACEMENT,
            None => FORMAT_OF_A_RING,
        };
        serde_json::to_vec(&Saved {
            format,
            lineage: self.lineage.clone(),
            members: self.members.iter().map(|(node, member)| (*node, member.clone())).collect(),
            removed: self.removed.iter().copied().collect(),
            used_logs: self.used_logs.iter().copied().collect(),
            ring: ring.map(|ring| (**ring).clone()),
            placement: placement.cloned(),
            staged: self.staged.clone(),
            staged_version: self.staged_version,
            types: self.types.iter().map(|(name, record)| (TypeName(name.clone()), record.clone())).collect(),
            buckets: self.buckets.iter().map(|(bucket, record)| (bucket_name(bucket), record.clone())).collect(),
            closing: self.closing,
            closed_part: self.closed_part.clone(),
            functions: if format == FORMAT_OF_FUNCTIONS { self.open.to_saved_functions() } else { None },
            records: (format == FORMAT_OF_RECORDS).then(|| self.open.to_saved()),
        })
    }

    /// Reads the saved form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadSavedMetadata> {
        let damaged = |e: serde_json::Error| BadSavedMetadata::Damaged(e.to_string());
        // The version is read first, so that a later one is reported as such and not as damage.
        let FormatOnly { format } = serde_json::from_slice(bytes).map_err(damaged)?;
        if !(FORMAT_OF_A_RING..=FORMAT_OF_RECORDS).contains(&format) {
            return Err(BadSavedMetadata::Format(format));
        }
        let saved: Saved = serde_json::from_slice(bytes).map_err(damaged)?;
        let placement = match (saved.ring, saved.placement) {
            (ring, None) => ring.map(|ring| Placement::of_ring(Arc::new(ring))),
            (None, placement) => placement,
            (Some(_), Some(_)) => return Err(BadSavedMetadata::Damaged("it has a ring and a placement".into())),
        };
        let open = match (saved.functions, saved.records) {
            (functions, None) => functions.map(OpenRecords::from).unwrap_or_default(),
            (None, Some(records)) => OpenRecords::from(records),
            (Some(_), Some(_)) => return Err(BadSavedMetadata::Damaged("it has functions beside its records".into())),
        };
        let bucket = |name: BucketName| Bucket { bucket_type: name.r#type, name: name.name };
        Ok(Self {
            lineage: saved.lineage,
            members: saved.members.into_iter().collect(),
            removed: saved.removed.into_iter().collect(),
            used_logs: saved.used_logs.into_iter().collect(),
            placement: placement.map(Arc::new),
            staged: saved.staged,
            staged_version: saved.staged_version,
            types: saved.types.into_iter().map(|(name, record)| (name.0, record)).collect(),
            buckets: saved.buckets.into_iter().map(|(name, record)| (bucket(name), record)).collect(),
            closing: saved.closing,
            closed_part: saved.closed_part,
            open,
        })
    }
}
