//! What several questions write and read.

use crate::replica::{BadContent, ContentReader, ContentWriter};
use bytes::Bytes;
use ombak_types::Bucket;

/// What nodes of version 1 say that answer coverage questions.
pub(super) const VERSION_1: &str = "coverage.1";

pub(super) fn write_bucket(bucket: &Bucket, out: &mut dyn ContentWriter) {
    out.bytes(&bucket.bucket_type);
    out.bytes(&bucket.name);
}

pub(super) fn read_bucket(content: &mut dyn ContentReader) -> Result<Bucket, BadContent> {
    Ok(Bucket { bucket_type: owned(&content.bytes()?), name: owned(&content.bytes()?) })
}

/// A question lives longer than the bytes that were read together with it.
pub(super) fn owned(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// The number of entries of a piece, which has one at least.
pub(super) fn read_count(content: &mut dyn ContentReader) -> Result<u32, BadContent> {
    match content.varint32()? {
        0 => Err(BadContent("an item is empty")),
        count => Ok(count),
    }
}
