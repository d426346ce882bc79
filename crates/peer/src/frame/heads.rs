//! The heads of requests and answers.

use super::decode::FrameError;
use crate::cursor::Cursor;
use crate::error::RefusalCode;
use crate::identity::RingVersion;

/// How urgent a request is. An answer has the priority of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Heartbeats and what keeps the cluster together. It goes before everything else.
    Control,
    /// What a client waits for.
    Request,
    /// What nobody waits for, such as hints and transfers.
    Bulk,
}

impl Priority {
    /// All priorities, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Control, Self::Request, Self::Bulk];

    /// The place in [`Priority::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Control => 0,
            Self::Request => 1,
            Self::Bulk => 2,
        }
    }
}

/// What a request says before its body.
///
/// ```text
/// service u16, priority u8, reserved u8 (0), window u32, body_len u32,
/// ring lineage u64, ring number u64, born i64, deadline i64
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The number of the service.
    pub service: u16,
    /// How urgent the request and its answer are.
    pub priority: Priority,
    /// How many bytes of items the caller takes before it has given more credit. Zero asks for a
    /// single answer.
    pub window_bytes: u32,
    /// The length of the body in bytes.
    pub body_bytes: u32,
    /// The version of the ring that the sender acted on.
    pub ring: RingVersion,
    /// When the request came into being, on the sender's clock in microseconds.
    pub born_us: i64,
    /// When the request is of no use any more, on the sender's clock in microseconds.
    pub deadline_us: i64,
}

impl RequestHead {
    /// The encoded length.
    pub const BYTES: usize = 44;

    /// The bytes of the head.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[0..2].copy_from_slice(&self.service.to_le_bytes());
        out[2] = self.priority.index() as u8;
        out[4..8].copy_from_slice(&self.window_bytes.to_le_bytes());
        out[8..12].copy_from_slice(&self.body_bytes.to_le_bytes());
        out[12..20].copy_from_slice(&self.ring.lineage.to_le_bytes());
        out[20..28].copy_from_slice(&self.ring.number.to_le_bytes());
        out[28..36].copy_from_slice(&self.born_us.to_le_bytes());
        out[36..44].copy_from_slice(&self.deadline_us.to_le_bytes());
        out
    }

    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, FrameError> {
        let service = cursor.u16()?;
        let priority = *Priority::ALL.get(usize::from(cursor.u8()?)).ok_or(FrameError::Priority)?;
        if cursor.u8()? != 0 {
            return Err(FrameError::Reserved);
        }
        Ok(Self {
            service,
            priority,
            window_bytes: cursor.u32()?,
            body_bytes: cursor.u32()?,
            ring: RingVersion { lineage: cursor.u64()?, number: cursor.u64()? },
            born_us: cursor.i64()?,
            deadline_us: cursor.i64()?,
        })
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerStatus {
    /// The service answered.
    Done,
    /// A queue is full, and the request was not executed.
    Overload,
    /// The request was refused.
    Refused(RefusalCode),
    /// The request may have been executed, and its answer is lost.
    Lost,
}

/// What an answer says before its body.
///
/// ```text
/// status u8, reserved u8 (0), code u16, body_len u32
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerHead {
    /// How the request ended.
    pub status: AnswerStatus,
    /// The length of the body in bytes.
    pub body_bytes: u32,
}

impl AnswerHead {
    /// The encoded length.
    pub const BYTES: usize = 8;

    /// The bytes of the head.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let (status, code) = match self.status {
            AnswerStatus::Done => (0, 0),
            AnswerStatus::Overload => (1, 0),
            AnswerStatus::Refused(code) => (2, code.0),
            AnswerStatus::Lost => (3, 0),
        };
        let mut out = [0; Self::BYTES];
        out[0] = status;
        out[2..4].copy_from_slice(&u16::to_le_bytes(code));
        out[4..8].copy_from_slice(&self.body_bytes.to_le_bytes());
        out
    }

    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, FrameError> {
        let (status, reserved, code) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
        let status = match (status, reserved, code) {
            (0, 0, 0) => AnswerStatus::Done,
            (1, 0, 0) => AnswerStatus::Overload,
            (2, 0, code) => AnswerStatus::Refused(RefusalCode(code)),
            (3, 0, 0) => AnswerStatus::Lost,
            _ => return Err(FrameError::Status),
        };
        Ok(Self { status, body_bytes: cursor.u32()? })
    }
}
