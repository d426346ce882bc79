//! The memory that the objects of a walk take.

use ombak_types::object::{IndexEntry, IndexTerm};
use ombak_types::{Object, Sibling};

/// The memory of an object: its values, its metadata, and the structures that describe each piece.
/// For short pieces, these structures are the larger share.
pub(super) fn bytes_held(object: &Object) -> usize {
    size_of_val(object.clock.entries()) + object.siblings.iter().map(sibling_bytes_held).sum::<usize>()
}

fn sibling_bytes_held(sibling: &Sibling) -> usize {
    let meta = &sibling.meta;
    let links: usize = meta.links.iter().map(|link| link.bucket.len() + link.key.len() + link.tag.len()).sum();
    let pairs = meta.user_meta.iter().chain(&meta.extra).map(|(name, value)| name.len() + value.len());
    let terms = meta.indexes.iter().map(|entry| entry.field.len() + term_bytes(entry));
    let described = size_of_val(&meta.links[..])
        + size_of_val(&meta.user_meta[..])
        + size_of_val(&meta.extra[..])
        + size_of_val(&meta.indexes[..]);
    size_of_val(sibling) + sibling.value.len() + links + pairs.sum::<usize>() + terms.sum::<usize>() + described
}

fn term_bytes(entry: &IndexEntry) -> usize {
    match &entry.term {
        IndexTerm::Bin(text) => text.len(),
        IndexTerm::Int(number) => usize::try_from(number.bits() / 8).unwrap_or(usize::MAX),
    }
}
