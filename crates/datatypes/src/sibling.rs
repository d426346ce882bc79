//! What both kinds do with siblings: how the metadata of several becomes that of one, and errors.

use bytes::Bytes;
use ombak_crdt::{BadBytes, Change, Refusal};
use ombak_types::{Error, KindState, Sibling, SiblingMeta, StoreFailure, StoreFailureKind, VectorClock};

/// The metadata of a value that is merged of several: that of the newest. The tag names all of
/// them, so that it changes with each of them.
pub fn merged_meta(siblings: &[Sibling]) -> SiblingMeta {
    let key = |sibling: &&Sibling| (sibling.meta.last_modified, sibling.meta.vtag.clone());
    let Some(newest) = siblings.iter().max_by_key(key) else { return SiblingMeta::default() };
    let mut tags: Vec<&[u8]> = siblings.iter().filter_map(|sibling| sibling.meta.vtag.as_deref()).collect();
    tags.sort_unstable();
    tags.dedup();
    let vtag = if tags.is_empty() { None } else { Some(Bytes::from(tags.join(&b'-'))) };
    let mut events = VectorClock::new();
    siblings.iter().for_each(|sibling| events.merge(&sibling.events()));
    let of_kind = Some(Box::new(KindState { events, summary: Bytes::new() }));
    SiblingMeta { vtag, of_kind, ..newest.meta.clone() }
}

/// The change that an operation carries.
///
/// # Errors
/// The bytes are not a change: another node speaks a later version.
pub fn change_of(operation: &Sibling) -> Result<Change, Error> {
    Change::from_bytes(&operation.value).map_err(|why| Error::Unsupported(format!("the operation is not known: {why}")))
}

/// The error for a value in a store that does not decode.
pub fn damaged(why: BadBytes) -> Error {
    StoreFailure::new(StoreFailureKind::Unreadable, format!("a value of a data type does not decode: {why}")).into()
}

/// The error for an operation that the value does not allow.
pub fn refused(why: Refusal) -> Error {
    Error::OperationRefused(why.to_string())
}
