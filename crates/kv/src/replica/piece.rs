//! A piece of the answer to a coverage question, whatever the question asks.

use super::content::ContentWriter;
use std::any::Any;
use std::fmt;

/// A piece of an answer: a list of entries, of which there is at least one. It can be cut between
/// two entries, so that no message becomes too long.
pub struct CoveragePiece(Box<dyn PieceContent>);

/// What a piece of one kind holds.
pub(crate) trait PieceContent: Any + fmt::Debug + Send + Sync {
    /// The number of the kind, by which another node knows how to read the rest.
    fn number(&self) -> u8;

    /// Writes what stands before the entries of each message.
    fn write_head(&self, _out: &mut dyn ContentWriter) {}

    /// The number of entries.
    fn entries(&self) -> usize;

    /// About how many bytes an entry takes.
    fn bytes_of(&self, at: usize) -> usize;

    /// Writes an entry.
    fn write_entry(&self, at: usize, out: &mut dyn ContentWriter);
}

impl CoveragePiece {
    pub(crate) fn new(content: impl PieceContent) -> Self {
        Self(Box::new(content))
    }

    /// The number of the kind of piece.
    pub fn number(&self) -> u8 {
        self.0.number()
    }

    /// Writes what stands before the entries of each message.
    pub fn write_head(&self, out: &mut dyn ContentWriter) {
        self.0.write_head(out);
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.0.entries()
    }

    /// About how many bytes an entry takes. Entries count from 0.
    pub fn bytes_of(&self, at: usize) -> usize {
        self.0.bytes_of(at)
    }

    /// Writes an entry.
    pub fn write_entry(&self, at: usize, out: &mut dyn ContentWriter) {
        self.0.write_entry(at, out);
    }

    /// What the piece holds, if it is of this kind.
    pub(crate) fn into_content<P: PieceContent>(self) -> Option<P> {
        let content: Box<dyn Any> = self.0;
        content.downcast().ok().map(|content| *content)
    }
}

impl fmt::Debug for CoveragePiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
