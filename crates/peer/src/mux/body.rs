//! A body that is to be sent.

use bytes::Bytes;
use smallvec::SmallVec;

/// The bytes of a request or an answer, in parts that are sent one after the other without being
/// copied together. The receiver sees one body.
#[derive(Clone, Debug, Default)]
pub struct Body {
    parts: SmallVec<[Bytes; 2]>,
    bytes: usize,
}

impl Body {
    /// An empty body.
    pub fn new() -> Self {
        Self::default()
    }

    /// A body with one more part.
    pub fn with(mut self, part: impl Into<Bytes>) -> Self {
        let part = part.into();
        self.bytes += part.len();
        if !part.is_empty() {
            self.parts.push(part);
        }
        self
    }

    /// The length of all parts in bytes.
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The parts, none of which is empty.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// Takes all parts.
    pub(super) fn take_parts(&mut self) -> impl Iterator<Item = Bytes> {
        self.bytes = 0;
        self.parts.drain(..)
    }

    /// Takes at most `max` bytes off the first part.
    pub(super) fn take_front(&mut self, max: usize) -> Bytes {
        let Some(first) = self.parts.first_mut() else { return Bytes::new() };
        let taken = first.split_to(first.len().min(max));
        if first.is_empty() {
            self.parts.remove(0);
        }
        self.bytes -= taken.len();
        taken
    }
}

impl<B: Into<Bytes>> From<B> for Body {
    fn from(bytes: B) -> Self {
        Self::new().with(bytes)
    }
}
