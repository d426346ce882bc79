//! The log of a copy: what was put since its base was written.

use crate::codec::{self, Codec, Reader, Writer};
use crate::{BadBytes, Clock, Delta, Precision, Record, Request, State};
use bytes::Bytes;
use ombak_types::props::DataType;
use ombak_types::{Actor, VectorClock};

/// The bytes of records that are kept with the object's head, and written again with each put. When
/// there are more, they are sealed.
pub const TAIL_BYTES_MAX: usize = 8 << 10;

/// A base of up to this many bytes has no log: it is kept with the object's head.
pub const INLINE_BYTES_MAX: usize = 8 << 10;

/// A log of up to this many bytes is not folded, unless the base is kept with the head.
pub const LOG_BYTES_MIN: usize = 4 << 10;

/// A log is folded when it has more than this part of the base's bytes.
pub const LOG_PART: usize = 8;

/// What is known of a copy without reading its value, and what was put since the value was written.
///
/// A copy is a *base*, which is a whole state, and a log of records. The newest records are the
/// tail. Older ones are in sealed segments, which are never written again. Folding merges the
/// records into the base, and empties the log.
///
/// Invariants: Each record builds only on the base and on records before it. `clock` has seen what
/// `sealed` has seen, and that what `folded` has seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    kind: DataType,
    /// What the base has seen.
    folded: VectorClock,
    /// What the base and the sealed segments have seen.
    sealed: VectorClock,
    /// What the copy has seen.
    clock: VectorClock,
    /// What the value has seen: the context of sets and maps.
    seen: Clock,
    /// The precision of a HyperLogLog.
    precision: Option<Precision>,
    segments: u64,
    sealed_bytes: u64,
    tail: Vec<Bytes>,
    tail_bytes: usize,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is in the log.
    Taken,
    /// The copy has it already.
    Known,
    /// The copy has not seen what it builds on: what lies between, or the whole state, is needed.
    MissingPast,
    /// It is of another data type than the value.
    WrongType,
}

/// What another copy lacks of this one.
#[derive(Clone, Debug, PartialEq)]
pub enum Lacks {
    /// Records of the tail, in their order.
    Records(Vec<Record>),
    /// Records of the sealed segments too; [`Log::lacks_of`] finds them.
    Segments,
    /// More than the log has: it needs the whole state.
    State,
}

/// Why a log and its base do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLog {
    /// The bytes of a record are damaged.
    #[error("a record is damaged: {0}")]
    Record(#[from] BadBytes),
    /// A record does not fit the base, or a segment is missing.
    #[error("a record does not fit the base")]
    Gap,
}

impl Log {
    /// The empty log of a base.
    pub fn new(folded: VectorClock, base: &State) -> Self {
        let seen = base.context().cloned().unwrap_or_default();
        let precision = if let State::Hll(hll) = base { Some(hll.precision()) } else { None };
        Self {
            kind: base.kind(),
            sealed: folded.clone(),
            clock: folded.clone(),
            folded,
            seen,
            precision,
            segments: 0,
            sealed_bytes: 0,
            tail: Vec::new(),
            tail_bytes: 0,
        }
    }

    /// The data type.
    pub fn kind(&self) -> DataType {
        self.kind
    }

    /// What the copy has seen: the object's clock.
    pub fn clock(&self) -> &VectorClock {
        &self.clock
    }

    /// What the base has seen.
    pub fn folded(&self) -> &VectorClock {
        &self.folded
    }

    /// What the value has seen: the context for clients, and where the dots of requests go on.
    pub fn seen(&self) -> &Clock {
        &self.seen
    }

    /// How many sealed segments there are.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// The bytes of all records.
    pub fn bytes(&self) -> usize {
        self.tail_bytes.saturating_add(usize::try_from(self.sealed_bytes).unwrap_or(usize::MAX))
    }

    /// Whether the tail is to be sealed.
    pub fn must_seal(&self) -> bool {
        self.tail_bytes > TAIL_BYTES_MAX
    }

    /// Whether the log is to be folded into a base of so many bytes.
    pub fn must_fold(&self, base_bytes: usize) -> bool {
        let bytes_max = if base_bytes <= INLINE_BYTES_MAX { 0 } else { LOG_BYTES_MIN.max(base_bytes / LOG_PART) };
        self.bytes() > bytes_max
    }

    /// What a request changes, if that does not depend on more than the log knows. `None`: the
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

    /// Takes a record of a put, here or at another coordinator.
    pub fn offer(&mut self, record: &Record) -> Offered {
        if self.clock.contains(&record.dot) {
            return Offered::Known;
        }
        if record.delta.kind() != self.kind {
            return Offered::WrongType;
        }
        let clocks = record.delta.clocks();
        if !self.clock.descends(&record.before) || clocks.is_some_and(|(before, _)| !self.seen.descends(before)) {
            return Offered::MissingPast;
        }
        self.clock.merge(&VectorClock::from_entries([record.dot.clone()]));
        if let Some((_, after)) = clocks {
            self.seen.merge(after);
        }
        if let Delta::Hll(delta) = &record.delta {
            self.precision = self.precision.map(|known| known.min(delta.precision));
        }
        let bytes = record.to_bytes();
        self.tail_bytes += bytes.len();
        self.tail.push(bytes);
        Offered::Taken
    }

    /// Empties the tail into a segment, and returns its bytes. The caller stores them under the
    /// number that [`Log::segments`] had before.
    pub fn seal(&mut self) -> Bytes {
        let segment = codec::encode(&self.tail);
        self.sealed = self.clock.clone();
        self.segments += 1;
        self.sealed_bytes += segment.len() as u64;
        self.tail.clear();
        self.tail_bytes = 0;
        segment
    }

    /// What a copy with a clock lacks, as far as the tail tells.
    ///
    /// # Errors
    /// A record is damaged.
    pub fn lacks(&self, clock: &VectorClock) -> Result<Lacks, BadLog> {
        if !clock.descends(&self.folded) {
            return Ok(Lacks::State);
        }
        if !clock.descends(&self.sealed) {
            return Ok(Lacks::Segments);
        }
        Ok(Lacks::Records(self.lacks_of(clock, &[])?))
    }

    /// The records that a copy with a clock lacks, which has seen what the base has seen.
    ///
    /// # Errors
    /// A record is damaged.
    pub fn lacks_of(&self, clock: &VectorClock, segments: &[Bytes]) -> Result<Vec<Record>, BadLog> {
        let mut lacked = Vec::new();
        self.each(segments, |record| {
            if !clock.contains(&record.dot) {
                lacked.push(record);
            }
            Ok(())
        })?;
        Ok(lacked)
    }

    /// Merges all records into the base. The segments come in the order of their numbers.
    ///
    /// # Errors
    /// [`BadLog`]: the base is then partly merged, and of no use.
    pub fn fold_into(&self, base: &mut State, segments: &[Bytes]) -> Result<(), BadLog> {
        if segments.len() as u64 != self.segments {
            return Err(BadLog::Gap);
        }
        self.each(segments, |record| base.merge_delta(&record.delta).map_err(|_| BadLog::Gap))
    }

    fn each(&self, segments: &[Bytes], mut take: impl FnMut(Record) -> Result<(), BadLog>) -> Result<(), BadLog> {
        for segment in segments {
            for bytes in codec::decode::<Vec<Bytes>>(segment)? {
                take(Record::from_bytes(&bytes)?)?;
            }
        }
        for bytes in &self.tail {
            take(Record::from_bytes(bytes)?)?;
        }
        Ok(())
    }

    /// The bytes that are kept with the object's head.
    pub fn to_bytes(&self) -> Bytes {
        codec::encode(self)
    }

    /// Reads such bytes.
    ///
    /// # Errors
    /// The bytes are not a log, or one of a version that is not known.
    pub fn from_bytes(bytes: &Bytes) -> Result<Self, BadBytes> {
        codec::decode(bytes)
    }
}

impl Codec for Log {
    fn write(&self, out: &mut Writer) {
        self.kind.write(out);
        self.folded.write(out);
        self.sealed.write(out);
        self.clock.write(out);
        self.seen.write(out);
        out.byte(self.precision.map_or(0, Precision::bits));
        out.number(self.segments.into());
        out.number(self.sealed_bytes.into());
        self.tail.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let kind = DataType::read(from)?;
        let (folded, mut sealed, mut clock) =
            (VectorClock::read(from)?, VectorClock::read(from)?, VectorClock::read(from)?);
        sealed.merge(&folded);
        clock.merge(&sealed);
        let seen = Clock::read(from)?;
        let precision = match from.byte()? {
            0 => None,
            bits => Some(Precision::new(bits.into()).ok_or(BadBytes::Unexpected("precision"))?),
        };
        let (segments, sealed_bytes) = (from.small()?, from.small()?);
        let tail = Vec::<Bytes>::read(from)?;
        let tail_bytes = tail.iter().map(Bytes::len).sum();
        Ok(Self { kind, folded, sealed, clock, seen, precision, segments, sealed_bytes, tail, tail_bytes })
    }
}

#[cfg(test)]
mod rules;
#[cfg(test)]
mod tests;
