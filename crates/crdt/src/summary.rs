//! What is known of a large value without reading it.

use crate::codec::{self, Codec, Reader, Writer};
use crate::{BadBytes, Clock, Delta, Precision, Request, State};
use bytes::Bytes;
use ombak_types::Actor;
use ombak_types::props::DataType;

/// Deltas of up to this many bytes are added to a state before a whole state is written again.
const ADDED_BYTES_MIN: u64 = 4 << 10;

/// A whole state is written again when the added deltas have more than this part of its bytes.
const ADDED_PART: u64 = 8;

/// What is known of a value that is stored as a state, the *base*, and the deltas that were added
/// to it: enough to add a further one.
///
/// Invariant: `seen` is the clock of the state that base and deltas have together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    kind: DataType,
    seen: Clock,
    /// The precision of a HyperLogLog.
    precision: Option<Precision>,
    base_bytes: u64,
    added_bytes: u64,
}

impl Summary {
    /// The summary of a state that takes so many bytes, without deltas.
    pub fn of(state: &State, base_bytes: u64) -> Self {
        let seen = state.context().cloned().unwrap_or_default();
        let precision = if let State::Hll(hll) = state { Some(hll.precision()) } else { None };
        Self { kind: state.kind(), seen, precision, base_bytes, added_bytes: 0 }
    }

    /// The data type.
    pub fn kind(&self) -> DataType {
        self.kind
    }

    /// The bytes of base and deltas together.
    pub fn value_bytes(&self) -> usize {
        usize::try_from(self.base_bytes.saturating_add(self.added_bytes)).unwrap_or(usize::MAX)
    }

    /// How many actors have changed the value; `None` for types that do not know them.
    pub fn actor_count(&self) -> Option<usize> {
        matches!(self.kind, DataType::Set | DataType::Map).then(|| self.seen.len())
    }

    /// What a request changes, if that does not depend on more than is known here. `None`: the
    /// value must be read. A HyperLogLog is lowered to `precision`, which is the one of the bucket.
    pub fn delta(
        &self,
        request: &Request,
        precision: Precision,
        actor: &Actor,
        context: Option<&Clock>,
    ) -> Option<Delta> {
        let precision = self.precision.map_or(precision, |known| known.min(precision));
        Delta::without_state(request, &self.seen, precision, actor, context)
    }

    /// Notes a delta that takes so many bytes. Returns false, and notes nothing, if it builds on
    /// what the value has not seen, or is of another data type.
    pub fn add(&mut self, delta: &Delta, bytes: u64) -> bool {
        let clocks = delta.clocks();
        if delta.kind() != self.kind || clocks.is_some_and(|(before, _)| !self.seen.descends(before)) {
            return false;
        }
        if let Some((_, after)) = clocks {
            self.seen.merge(after);
        }
        if let Delta::Hll(delta) = delta {
            self.precision = self.precision.map(|known| known.min(delta.precision));
        }
        self.added_bytes = self.added_bytes.saturating_add(bytes);
        true
    }

    /// Whether the deltas are to be folded into the base: a reader would have to merge too many.
    pub fn must_fold(&self) -> bool {
        self.added_bytes > ADDED_BYTES_MIN.max(self.base_bytes / ADDED_PART)
    }

    /// The bytes beside the object's clock in a store or a message.
    pub fn to_bytes(&self) -> Bytes {
        codec::encode(self)
    }

    /// Reads such bytes.
    ///
    /// # Errors
    /// The bytes are not a summary, or one of a version that is not known.
    pub fn from_bytes(bytes: &Bytes) -> Result<Self, BadBytes> {
        codec::decode(bytes)
    }
}

impl Codec for Summary {
    fn write(&self, out: &mut Writer) {
        self.kind.write(out);
        self.seen.write(out);
        out.byte(self.precision.map_or(0, Precision::bits));
        out.number(self.base_bytes.into());
        out.number(self.added_bytes.into());
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let (kind, seen) = (DataType::read(from)?, Clock::read(from)?);
        let precision = match from.byte()? {
            0 => None,
            bits => Some(Precision::new(bits.into()).ok_or(BadBytes::Unexpected("precision"))?),
        };
        Ok(Self { kind, seen, precision, base_bytes: from.small()?, added_bytes: from.small()? })
    }
}

#[cfg(test)]
mod tests;
