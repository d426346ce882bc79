//! The answer to a link walk.

use super::super::object::render;
use super::{BYTES_MAX, Found};
use crate::http::multipart::{self, Multipart};
use crate::http::path::Generation;
use crate::http::url;
use bytes::Bytes;
use ombak_types::Bucket;

/// The most that surrounds the header lines and the value of one part, in bytes.
const PART_BYTES_MAX: usize = 64;
/// The most that surrounds the parts of one step, in bytes.
const STEP_BYTES_MAX: usize = 256;

/// What the answer to a walk shows: for each step that is kept, the objects that it found.
pub(super) struct Shown {
    pub(super) steps: Vec<Vec<Found>>,
    /// The key that the walk began at.
    pub(super) key: Bytes,
    pub(super) generation: Generation,
}

/// The header lines and the values of an answer take more than [`BYTES_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Shown {
    /// The memory that the answer needs, in bytes: its length, and a little more.
    pub(super) fn answer_bytes(&self) -> Result<usize, TooLarge> {
        let (mut bytes, mut parts) = (0, 0);
        for found in self.steps.iter().flatten() {
            let Some((headers, value)) = self.part(found) else { continue };
            (bytes, parts) = (bytes + headers.len() + value.len(), parts + 1);
            if bytes > BYTES_MAX {
                return Err(TooLarge);
            }
        }
        Ok(bytes + parts * PART_BYTES_MAX + (self.steps.len() + 1) * STEP_BYTES_MAX)
    }

    /// Makes the answer in memory of so many bytes.
    pub(super) fn assemble(&self, bytes: usize) -> Multipart {
        let mut whole = Multipart::with_capacity(&self.key, bytes);
        for step in &self.steps {
            whole.push_nested(&self.key, |phase| {
                for (headers, value) in step.iter().filter_map(|found| self.part(found)) {
                    phase.push(&headers, value);
                }
            });
        }
        whole
    }

    /// The header lines and the value of the part that shows an object. If it has siblings, the
    /// part shows the first one and names the others.
    fn part<'f>(&self, found: &'f Found) -> Option<(Vec<u8>, &'f Bytes)> {
        let sibling = found.object.siblings.first()?;
        let bucket = Bucket::untyped(found.bucket.clone());
        let mut location = match self.generation {
            Generation::Riak => format!("/riak/{}/{}", url::quote(&found.bucket), url::quote(&found.key)),
            _ => format!("/buckets/{}/keys/{}", url::quote(&found.bucket), url::quote(&found.key)),
        };
        let tags: Vec<_> = found
            .object
            .siblings
            .iter()
            .map(|s| String::from_utf8_lossy(s.meta.vtag.as_deref().unwrap_or_default()).into_owned())
            .collect();
        let mut headers = format!("X-Riak-Vclock: {}\r\n", render::clock_text(&found.object.clock));
        if let [first, _, ..] = tags.as_slice() {
            location = format!("{location}?vtag={first}");
            headers += &format!("X-Riak-Sibling-VTags: {}\r\n", tags.join(","));
        }
        headers += &format!("Location: {location}\r\n");
        let mut headers = headers.into_bytes();
        headers.extend_from_slice(&multipart::sibling_headers(sibling, &bucket, self.generation));
        Some((headers, &sibling.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::{Object, Sibling};

    #[test]
    fn an_answer_takes_the_memory_that_was_counted() {
        let found = |n: usize| Found {
            bucket: "b".into(),
            key: n.to_string().into(),
            object: Object::new(Sibling::new(vec![b'v'; n])),
        };
        for (parts, steps) in [(0, 1), (1, 1), (100, 3)] {
            let steps = (0..steps).map(|_| (0..parts).map(found).collect()).collect();
            let shown = Shown { steps, key: "k".into(), generation: Generation::Buckets };
            let bytes = shown.answer_bytes().expect("it is small");
            let answer = shown.assemble(bytes);
            assert!(answer.capacity() <= bytes, "it did not grow");
            assert!(answer.finish().len() <= bytes);
        }
    }
}
