//! Sends requests over a connection and reads their answers, one at a time.

use crate::drivers::DriverError;
use crate::drivers::network::{Connection, ExchangeError, Reasons, Target};
use httparse::{EMPTY_HEADER, Status};
use std::time::Duration;
use tokio::time::Instant;

/// The highest number of headers in an answer. An object has one for each index entry.
const HEADERS_MAX: usize = 128;

/// The longest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 256 << 10;

/// The longest line between two chunks, in bytes.
const LINE_BYTES_MAX: usize = 4 << 10;

/// How much of a body is kept, in bytes: enough to recognise it and to quote an error.
const TEXT_BYTES: usize = 1 << 10;

/// How much of a long body is awaited at once, in bytes.
const BODY_BYTES_STEP: usize = 128 << 10;

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The length of the body, in bytes.
    pub body_bytes: u64,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClosed,
}

/// The parts of a response head that matter here.
#[derive(Clone, Copy, Debug)]
struct Head {
    status: u16,
    framing: Framing,
    close: bool,
}

/// A connection that speaks HTTP/1.1.
#[derive(Debug)]
pub struct HttpSession {
    connection: Connection,
    reasons: Reasons,
    /// Whether the connection was lost before the last request was answered.
    unanswered: bool,
    /// Whether the connection has already carried an answer. The server may have closed it since,
    /// which is not a failure.
    reused: bool,
    /// The value of `X-Riak-Vclock` in the last answer.
    vclock: Vec<u8>,
    /// The beginning of the last body.
    text: Vec<u8>,
}

impl HttpSession {
    /// Opens a connection to a server.
    pub async fn open(target: &Target, reasons: &Reasons) -> Result<Self, DriverError> {
        let connection = Connection::open(target, "server that speaks HTTP").await?;
        Ok(Self::of(connection, reasons))
    }

    /// Creates a session that connects when it is first used.
    pub fn closed(target: &Target, reasons: &Reasons) -> Self {
        Self::of(Connection::closed(target), reasons)
    }

    fn of(connection: Connection, reasons: &Reasons) -> Self {
        let reasons = reasons.clone();
        Self { connection, reasons, unanswered: false, reused: false, vclock: Vec::new(), text: Vec::new() }
    }

    /// Begins a request and returns the buffer to write it to.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.unanswered = false;
        self.connection.begin()
    }

    /// Whether [`HttpSession::exchange`] would send the last request again.
    pub const fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// The vector clock of the last answer.
    pub fn vclock(&self) -> Option<&[u8]> {
        Some(&self.vclock[..]).filter(|vclock| !vclock.is_empty())
    }

    /// The beginning of the body of the last answer.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The error for an answer with an unexpected status.
    pub fn refused(&self, status: u16) -> ExchangeError {
        let line = self.text.split(|&byte| byte == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
        let text = format!("http_error {status} {}", String::from_utf8_lossy(line));
        ExchangeError::Answer(self.reasons.of(text.trim_end().as_bytes()))
    }

    /// Closes the connection. The next use opens it again.
    pub fn close(&mut self) {
        self.connection.close();
        self.reused = false;
    }

    /// Sends the request and reads the answer to its end. After [`ExchangeError::Disconnected`]
    /// this may be called again, which sends the request again. A connection that was closed while
    /// no request was in flight is reopened silently.
    pub async fn exchange(&mut self, limit: Duration) -> Result<Answer, ExchangeError> {
        let was_reused = std::mem::take(&mut self.reused);
        let mut exchanged = self.attempt(limit).await;
        if exchanged == Err((ExchangeError::Disconnected, Progress::Nothing)) && was_reused {
            exchanged = self.attempt(limit).await;
        }
        let exchanged = exchanged.map_err(|(error, _)| error);
        self.unanswered = exchanged == Err(ExchangeError::Disconnected);
        match &exchanged {
            Ok(_) => {
                self.connection.worked();
                self.reused = self.connection.is_open();
            }
            Err(_) => self.connection.close(),
        }
        exchanged
    }

    async fn attempt(&mut self, limit: Duration) -> Result<Answer, (ExchangeError, Progress)> {
        self.connection.reopen().await.map_err(|error| (error, Progress::Nothing))?;
        let deadline = Instant::now() + limit;
        if self.connection.unread().is_empty() {
            self.connection.transfer(deadline).await.map_err(|error| (error, Progress::Nothing))?;
            self.answer(deadline).await.map_err(|error| (error, Progress::Something))
        } else {
            Err((ExchangeError::answer("an answer that nobody asked for"), Progress::Something))
        }
    }

    async fn answer(&mut self, deadline: Instant) -> Result<Answer, ExchangeError> {
        self.text.clear();
        self.vclock.clear();
        let head = loop {
            match self.head()? {
                Some(head) if head.status >= 200 => break head,
                // An interim status such as 100 Continue. The final answer follows.
                Some(_) => {}
                None if self.connection.unread().len() > HEAD_BYTES_MAX => {
                    return Err(ExchangeError::answer("an answer with too long a head"));
                }
                None => self.connection.transfer(deadline).await?,
            }
        };
        let body_bytes = match head.framing {
            Framing::Length(bytes) => self.skip(bytes, deadline).await.map(|()| bytes)?,
            Framing::Chunked => self.skip_chunks(deadline).await?,
            Framing::UntilClosed => self.skip_rest(deadline).await?,
        };
        if head.close {
            self.connection.close();
        }
        Ok(Answer { status: head.status, body_bytes })
    }

    /// Takes the head of an answer; `None` if it is not complete yet.
    fn head(&mut self) -> Result<Option<Head>, ExchangeError> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(self.connection.unread());
        let Status::Complete(head_bytes) = parsed.map_err(|_| ExchangeError::answer("an answer that is no HTTP"))?
        else {
            return Ok(None);
        };
        let status = response.code.unwrap_or_default();
        let mut head = Head { status, framing: Framing::UntilClosed, close: response.version == Some(0) };
        for header in response.headers.iter() {
            let is = |name| header.name.eq_ignore_ascii_case(name);
            if is("content-length") && head.framing != Framing::Chunked {
                let length = std::str::from_utf8(header.value).ok().and_then(|text| text.trim().parse().ok());
                head.framing = Framing::Length(length.ok_or(ExchangeError::answer("an answer of no known length"))?);
            } else if is("transfer-encoding") && header.value.eq_ignore_ascii_case(b"chunked") {
                head.framing = Framing::Chunked;
            } else if is("connection") {
                head.close |= header.value.eq_ignore_ascii_case(b"close");
            } else if is("x-riak-vclock") {
                self.vclock.clear();
                self.vclock.extend_from_slice(header.value);
            }
        }
        if matches!(status, 100..=199 | 204 | 304) {
            head.framing = Framing::Length(0);
        }
        self.connection.take(head_bytes);
        Ok(Some(head))
    }

    /// Takes this many bytes of the body and keeps the first ones.
    async fn skip(&mut self, bytes: u64, deadline: Instant) -> Result<(), ExchangeError> {
        let mut left = bytes;
        loop {
            left -= self.skip_unread(left) as u64;
            if left == 0 {
                return Ok(());
            }
            self.connection.expect(usize::try_from(left).unwrap_or(usize::MAX).min(BODY_BYTES_STEP));
            self.connection.transfer(deadline).await?;
        }
    }

    /// Takes the bytes of the body that have arrived, at most `bytes_max`.
    fn skip_unread(&mut self, bytes_max: u64) -> usize {
        let unread = self.connection.unread();
        let bytes = unread.len().min(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        let kept = bytes.min(TEXT_BYTES - self.text.len().min(TEXT_BYTES));
        self.text.extend_from_slice(unread.get(..kept).unwrap_or_default());
        self.connection.take(bytes);
        bytes
    }

    async fn skip_chunks(&mut self, deadline: Instant) -> Result<u64, ExchangeError> {
        let mut body_bytes = 0u64;
        loop {
            let bytes = self.chunk_bytes(deadline).await?;
            if bytes == 0 {
                break;
            }
            body_bytes = body_bytes.saturating_add(bytes);
            self.skip(bytes, deadline).await?;
            if self.line_bytes(deadline).await? > 2 {
                return Err(BAD_CHUNK);
            }
        }
        // An empty line ends the trailers.
        while self.line_bytes(deadline).await? > 2 {}
        Ok(body_bytes)
    }

    async fn chunk_bytes(&mut self, deadline: Instant) -> Result<u64, ExchangeError> {
        loop {
            match httparse::parse_chunk_size(self.connection.unread()) {
                Ok(Status::Complete((line_bytes, chunk_bytes))) => {
                    self.connection.take(line_bytes);
                    return Ok(chunk_bytes);
                }
                Ok(Status::Partial) if self.connection.unread().len() < LINE_BYTES_MAX => {
                    self.connection.transfer(deadline).await?;
                }
                _ => return Err(BAD_CHUNK),
            }
        }
    }

    /// Takes a line and returns its length with the line end.
    async fn line_bytes(&mut self, deadline: Instant) -> Result<usize, ExchangeError> {
        loop {
            let unread = self.connection.unread();
            if let Some(end) = unread.iter().position(|&byte| byte == b'\n') {
                self.connection.take(end + 1);
                return Ok(end + 1);
            }
            if unread.len() > LINE_BYTES_MAX {
                return Err(BAD_CHUNK);
            }
            self.connection.transfer(deadline).await?;
        }
    }

    async fn skip_rest(&mut self, deadline: Instant) -> Result<u64, ExchangeError> {
        let mut body_bytes = 0u64;
        loop {
            body_bytes += self.skip_unread(u64::MAX) as u64;
            match self.connection.transfer(deadline).await {
                Ok(()) => {}
                Err(ExchangeError::Disconnected) => return Ok(body_bytes),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether any byte of an answer had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Nothing,
    Something,
}

const BAD_CHUNK: ExchangeError = ExchangeError::answer("an answer in chunks that cannot be read");
