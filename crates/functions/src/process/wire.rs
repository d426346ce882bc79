//! What crosses between a node and a process for functions.
//!
//! Each message is a frame: the number of bytes that follow (u32), the kind (u8), and fields.
//! Numbers are little-endian. A text is its length in bytes (u32) and UTF-8. Both ends are the same
//! build of the same program; [`VERSION`] is checked because a person may start such a process.

use ombak_script::{ErrorKind, Limits, Log, ScriptError};
use std::io::{self, Read};
use std::time::Duration;

/// The version of these messages.
pub(super) const VERSION: u8 = 1;

/// How much longer than the memory of a function a frame may be. JSON writes one byte of a text as
/// up to six.
const FRAME_SHARE: usize = 8;
/// What every frame may have.
const FRAME_BYTES_MIN: usize = 8 << 20;

/// A buffer of frames that has grown beyond this is given back after each use.
pub(super) const BUFFER_BYTES_KEPT: usize = 256 << 10;

/// The maximum length of a frame to or from functions with these limits.
pub(super) fn frame_bytes_max(limits: &Limits) -> usize {
    limits.memory_bytes_max.saturating_mul(FRAME_SHARE).clamp(FRAME_BYTES_MIN, u32::MAX as usize)
}

/// The kinds of frames.
pub(super) mod kind {
    /// To the process: version (u8), whether it gives way (u8), memory (u64) and stack (u64) in
    /// bytes, and how many sessions there may be (u32). Answered with `DONE`, or `REFUSED`.
    pub(in super::super) const BEGIN: u8 = 1;
    /// To the process: number of the session (u32), time in ns (u64), libraries (u32 and texts),
    /// whether a source follows (u8), and the source or the name. Answered with `DONE` or `FAILED`.
    pub(in super::super) const OPEN: u8 = 2;
    /// To the process: number of the session (u32), the time of each call and of all calls in ns
    /// (u64 each), the number of arguments of each call (u32), the number of calls (u32), and the
    /// arguments. Answered with a `RESULT` for each call and `DONE`. It makes no call after one
    /// that fails, or after the time of all calls.
    pub(in super::super) const CALL: u8 = 3;
    /// To the process: number of a session (u32) that forgets what calls have left. Not answered.
    pub(in super::super) const RESET: u8 = 4;
    /// To the process: number of a session (u32) that ends. Not answered.
    pub(in super::super) const CLOSE: u8 = 5;
    /// From the process: whether there is a result (u8), and the result.
    pub(in super::super) const RESULT: u8 = 16;
    /// From the process: an error: kind (u8), message, line (u32), source. In answer to `OPEN` and
    /// in place of a `RESULT`.
    pub(in super::super) const FAILED: u8 = 17;
    /// From the process: the lines of the log (u32 and texts), and how many were dropped (u64).
    pub(in super::super) const DONE: u8 = 18;
    /// From the process: why it cannot serve.
    pub(in super::super) const REFUSED: u8 = 19;
}

/// What one call gave: a JSON text, or nothing that JSON can express.
pub(crate) type Called = Result<Option<String>, ScriptError>;

/// A frame that is being written behind others in a buffer.
pub(super) struct Frame<'a> {
    buffer: &'a mut Vec<u8>,
    begins_at: usize,
}

impl<'a> Frame<'a> {
    pub(super) fn new(buffer: &'a mut Vec<u8>, kind: u8) -> Self {
        let begins_at = buffer.len();
        buffer.extend_from_slice(&[0; 4]);
        buffer.push(kind);
        Self { buffer, begins_at }
    }

    pub(super) fn u8(self, value: u8) -> Self {
        self.buffer.push(value);
        self
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.buffer.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn u64(self, value: u64) -> Self {
        self.buffer.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn time(self, time: Duration) -> Self {
        self.u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn text(self, text: &str) -> Self {
        let this = self.u32(length(text.len()));
        this.buffer.extend_from_slice(text.as_bytes());
        this
    }

    pub(super) fn texts<T: AsRef<str>>(self, texts: impl ExactSizeIterator<Item = T>) -> Self {
        let this = self.u32(length(texts.len()));
        texts.fold(this, |frame, text| frame.text(text.as_ref()))
    }

    pub(super) fn error(self, error: &ScriptError) -> Self {
        self.u8(number_of(error.kind)).text(&error.message).u32(error.line).text(&error.source)
    }

    pub(super) fn log(self, log: &Log) -> Self {
        self.texts(log.lines.iter()).u64(log.dropped)
    }

    /// Writes the length.
    pub(super) fn end(self) {
        let bytes = length(self.buffer.len() - self.begins_at - 4);
        self.buffer[self.begins_at..self.begins_at + 4].copy_from_slice(&bytes.to_le_bytes());
    }
}

/// The length of something in a frame. Who writes a frame has bounded it.
fn length(length: usize) -> u32 {
    assert!(length <= u32::MAX as usize, "a frame is longer than its length can say");
    length as u32
}

/// The fields of a frame that was read.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn u8(&mut self) -> io::Result<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(super) fn u32(&mut self) -> io::Result<u32> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    pub(super) fn u64(&mut self) -> io::Result<u64> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    pub(super) fn time(&mut self) -> io::Result<Duration> {
        self.u64().map(Duration::from_nanos)
    }

    pub(super) fn text(&mut self) -> io::Result<&'a str> {
        let length = self.u32()? as usize;
        std::str::from_utf8(self.bytes(length)?).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }

    pub(super) fn error(&mut self) -> io::Result<ScriptError> {
        let kind = kind_of(self.u8()?).ok_or_else(|| bad("an error has an unknown kind"))?;
        let message = self.text()?.to_owned();
        let line = self.u32()?;
        Ok(ScriptError { kind, message, line, source: self.text()?.to_owned() })
    }

    pub(super) fn log(&mut self) -> io::Result<Log> {
        let mut log = Log::default();
        for _ in 0..self.u32()? {
            log.lines.push_back(self.text()?.to_owned());
        }
        log.dropped = self.u64()?;
        Ok(log)
    }

    fn bytes(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(bytes)
    }
}

/// Reads one frame into the buffer. Returns its kind and its fields.
pub(super) fn read_frame<'a>(
    from: &mut impl Read,
    buffer: &'a mut Vec<u8>,
    bytes_max: usize,
) -> io::Result<(u8, Fields<'a>)> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > bytes_max {
        return Err(bad(&format!("a frame has {length} bytes, and {bytes_max} are allowed")));
    }
    buffer.clear();
    from.take(length as u64).read_to_end(buffer)?;
    if buffer.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (kind, fields) = buffer.split_first().ok_or_else(cut_short)?;
    Ok((*kind, Fields(fields)))
}

pub(super) fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn cut_short() -> io::Error {
    bad("a frame is too short")
}

const fn number_of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Syntax => 1,
        ErrorKind::UnknownFunction => 2,
        ErrorKind::Exception => 3,
        ErrorKind::Time => 4,
        ErrorKind::Memory => 5,
        ErrorKind::Stack => 6,
        ErrorKind::Result => 7,
        ErrorKind::Argument => 8,
    }
}

const fn kind_of(number: u8) -> Option<ErrorKind> {
    Some(match number {
        1 => ErrorKind::Syntax,
        2 => ErrorKind::UnknownFunction,
        3 => ErrorKind::Exception,
        4 => ErrorKind::Time,
        5 => ErrorKind::Memory,
        6 => ErrorKind::Stack,
        7 => ErrorKind::Result,
        8 => ErrorKind::Argument,
        _ => return None,
    })
}
