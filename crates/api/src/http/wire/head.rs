//! Parses request heads: the start line and the header lines (RFC 9112 §2, §3, §5).
//!
//! Lines follow the rules of `httparse`: they may end in a bare LF. A header that is folded over
//! several lines, white space before a colon, or a control character makes a head malformed.

use super::framing::{Framing, FramingLines};
use super::request_lines::RequestLines;
use super::target::{TARGET_BYTES_MAX, Target};
use bytes::BytesMut;
use http::{Method, StatusCode};
use httparse::{Error as ParseError, Header, ParserConfig, Status};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The number of header lines for which there is room at first. A head with more lines is parsed
/// again, with room for the highest allowed number.
const LINES_USUAL: usize = 32;

/// A request without its body.
#[derive(Debug)]
pub struct Head {
    /// The method.
    pub method: Method,
    /// The address.
    pub target: Target,
    /// The header lines.
    pub lines: RequestLines,
    /// Whether the client uses HTTP/1.1; otherwise it uses HTTP/1.0.
    pub is_http_11: bool,
    /// The end of the body.
    pub framing: Framing,
    /// Whether the client may send another request after this one.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// It is not a valid request head, or readers could disagree about the length of its body.
    Malformed,
    /// It has more bytes or header lines than allowed.
    TooLarge,
    /// Its address is too long.
    UriTooLong,
    /// Its body has an unknown transfer coding.
    UnknownCoding,
}

impl HeadError {
    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::UnknownCoding => StatusCode::NOT_IMPLEMENTED,
        }
    }
}

/// Parses the heads on one connection.
#[derive(Clone, Debug)]
pub struct HeadParser {
    bytes_max: usize,
    lines_max: usize,
    /// The number of bytes at the front that have been searched and hold no complete head.
    looked_at: usize,
}

impl HeadParser {
    /// Creates a parser for heads of at most `bytes_max` bytes and `lines_max` header lines.
    pub fn new(bytes_max: usize, lines_max: usize) -> Self {
        Self { bytes_max, lines_max, looked_at: 0 }
    }

    /// Splits the next head off the front of `input`; `None` if more bytes are needed. A head that
    /// arrives byte by byte is not parsed again for each byte.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Head>, HeadError> {
        if input.is_empty() {
            return Ok(None);
        }
        let may_be_whole = self.looked_at == 0 || ends_within(input, self.looked_at);
        if may_be_whole && let Some(head) = self.parse(input)? {
            self.looked_at = 0;
            return Ok(Some(head));
        }
        if input.len() >= self.bytes_max {
            return Err(HeadError::TooLarge);
        }
        self.looked_at = input.len();
        Ok(None)
    }

    fn parse(&self, input: &mut BytesMut) -> Result<Option<Head>, HeadError> {
        let mut usual = [const { MaybeUninit::uninit() }; LINES_USUAL];
        let room = LINES_USUAL.min(self.lines_max);
        let found = match Parsed::of(input, &mut usual[..room], self.bytes_max) {
            Err(HeadError::TooLarge) if room < self.lines_max => {
                Parsed::of(input, &mut vec![MaybeUninit::uninit(); self.lines_max], self.bytes_max)?
            }
            found => found?,
        };
        match found {
            Some(parsed) => parsed.cut_off(input).map(Some),
            None => Ok(None),
        }
    }
}

/// Whether an empty line, which ends a head, ends after the first `before` bytes.
fn ends_within(bytes: &[u8], before: usize) -> bool {
    let unseen = &bytes[before.saturating_sub(3)..];
    unseen.iter().enumerate().any(|(at, byte)| {
        let after = &unseen[at + 1..];
        *byte == b'\n' && (after.starts_with(b"\n") || after.starts_with(b"\r\n"))
    })
}

/// A parsed head whose bytes are still in the input.
struct Parsed {
    bytes: usize,
    method: Method,
    target: Range<usize>,
    is_http_11: bool,
    lines: RequestLines,
    said: Said,
}

impl Parsed {
    /// Parses the head at the front of `bytes`; `None` if it is not complete. `room` limits the
    /// number of header lines.
    fn of<'b>(
        bytes: &'b [u8],
        room: &mut [MaybeUninit<Header<'b>>],
        bytes_max: usize,
    ) -> Result<Option<Self>, HeadError> {
        let mut request = httparse::Request::new(&mut []);
        let length = match ParserConfig::default().parse_request_with_uninit_headers(&mut request, bytes, room) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return Ok(None),
            Err(ParseError::TooManyHeaders) => return Err(HeadError::TooLarge),
            Err(_) => return Err(HeadError::Malformed),
        };
        let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
            return Err(HeadError::Malformed);
        };
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| HeadError::Malformed)?;
        if length > bytes_max {
            return Err(HeadError::TooLarge);
        }
        if target.len() > TARGET_BYTES_MAX {
            return Err(HeadError::UriTooLong);
        }
        let target_at = target.as_ptr() as usize - bytes.as_ptr() as usize;
        let (mut lines, mut said) = (RequestLines::new(), Said::default());
        for line in request.headers.iter() {
            said.hear(line.name.as_bytes(), line.value)?;
            lines.push(bytes, line.name.as_bytes(), line.value).map_err(|_| HeadError::Malformed)?;
        }
        let target = target_at..target_at + target.len();
        Ok(Some(Self { bytes: length, method, target, is_http_11: version == 1, lines, said }))
    }

    /// Splits the head off the front of `input`. It shares the memory of the input.
    fn cut_off(self, input: &mut BytesMut) -> Result<Head, HeadError> {
        let Self { method, is_http_11, mut lines, said, .. } = self;
        let bytes = input.split_to(self.bytes).freeze();
        let target = Target::read(bytes.slice(self.target)).map_err(|_| HeadError::Malformed)?;
        lines.attach(bytes);
        Ok(Head {
            method,
            target,
            lines,
            is_http_11,
            framing: said.framing.decide(is_http_11)?,
            keep_alive: said.connection.keep_alive(is_http_11),
            expects_continue: said.expects_continue && is_http_11,
        })
    }
}

/// The header lines that concern the request itself and its connection.
#[derive(Default)]
struct Said {
    framing: FramingLines,
    connection: ConnectionLines,
    expects_continue: bool,
    has_host: bool,
}

impl Said {
    fn hear(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        match name.len() {
            // With two `Host` lines, different readers could choose different hosts.
            4 if is(b"host") && std::mem::replace(&mut self.has_host, true) => return Err(HeadError::Malformed),
            6 if is(b"expect") => self.expects_continue = value.eq_ignore_ascii_case(b"100-continue"),
            10 if is(b"connection") => self.connection.add(value),
            14 if is(b"content-length") => self.framing.content_length(value)?,
            17 if is(b"transfer-encoding") => self.framing.transfer_encoding(value),
            _ => {}
        }
        Ok(())
    }
}

/// The options in the `Connection` lines of a request.
#[derive(Default)]
struct ConnectionLines {
    close: bool,
    keep_alive: bool,
}

impl ConnectionLines {
    fn add(&mut self, value: &[u8]) {
        for token in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn keep_alive(&self, is_http_11: bool) -> bool {
        !self.close && (is_http_11 || self.keep_alive)
    }
}

#[cfg(test)]
mod unit {
    use super::super::request_lines::LineName;
    use super::*;

    fn parse(text: &str) -> Result<Option<Head>, HeadError> {
        HeadParser::new(1000, 40).next(&mut BytesMut::from(text))
    }

    fn head(text: &str) -> Head {
        parse(text).expect("a head that is taken").expect("a whole head")
    }

    #[test]
    fn a_head_is_cut_off_what_follows() {
        let mut input =
            BytesMut::from("\r\nPUT /b?r=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nA: b\r\na: c\r\n\r\nabcGET /");
        let mut parser = HeadParser::new(1000, 40);
        let head = parser.next(&mut input).unwrap().unwrap();
        assert_eq!(
            (head.method, head.target.path(), head.target.query_bytes()),
            (Method::PUT, "/b", Some("r=1".into()))
        );
        assert_eq!((head.framing, head.keep_alive, head.is_http_11), (Framing::Length(3), true, true));
        assert_eq!(head.lines.all(LineName::new("a")).collect::<Vec<_>>(), [b"b", b"c"]);
        assert_eq!(&input[..], b"abcGET /");
        input.truncate(0);
        assert!(parser.next(&mut input).unwrap().is_none());
    }

    #[test]
    fn the_client_says_whether_another_request_follows() {
        for (version, lines, expected) in [
            ("1.1", "", true),
            ("1.1", "Connection: Close\r\n", false),
            ("1.1", "Connection: keep-alive, close\r\n", false),
            ("1.1", "Connection: close\r\nConnection: keep-alive\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
            ("1.0", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ] {
            let head = head(&format!("GET / HTTP/{version}\r\n{lines}\r\n"));
            assert_eq!(head.keep_alive, expected, "{version} {lines}");
        }
        assert!(head("PUT / HTTP/1.1\r\nExpect: 100-Continue\r\n\r\n").expects_continue);
        assert!(!head("PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expects_continue);
    }

    #[test]
    fn what_readers_could_take_differently_is_malformed() {
        for bad in [
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding:\x0bchunked\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: 3\r\n Transfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\0\r\n\r\n",
            "GET / HTTP/1.1\r\nA\r\n\r\n",
            "GET / HTTP/2.0\r\n\r\n",
            "GET /\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            "G\x01T / HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(parse(bad).err(), Some(HeadError::Malformed), "{bad:?}");
        }
        let coded = "PUT / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
        assert_eq!(parse(coded).err(), Some(HeadError::UnknownCoding));
    }

    #[test]
    fn addresses_have_all_their_forms() {
        assert_eq!(head("GET http://a:1/b?c HTTP/1.1\r\n\r\n").target.path(), "/b");
        assert_eq!(head("OPTIONS * HTTP/1.1\r\n\r\n").target.path(), "*");
        assert_eq!(head("CONNECT a:1 HTTP/1.1\r\n\r\n").method, Method::CONNECT);
        assert_eq!(head("GET /b HTTP/1.1\nA: b\n\n").lines.get(LineName::new("a")), Some(&b"b"[..]));
    }

    #[test]
    fn heads_are_bounded() {
        let of = |lines: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(lines));
        assert_eq!(head(&of(33)).lines.len(), 33);
        assert_eq!(head(&of(40)).lines.len(), 40);
        assert_eq!(parse(&of(41)).err(), Some(HeadError::TooLarge));
        let of = |bytes: usize| format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(bytes - 23));
        assert_eq!((of(1000).len(), head(&of(1000)).lines.len()), (1000, 1));
        assert_eq!(parse(&of(1001)).err(), Some(HeadError::TooLarge));
        assert_eq!(parse(&of(2000)[..1000]).err(), Some(HeadError::TooLarge));
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "b".repeat(TARGET_BYTES_MAX));
        let taken = HeadParser::new(100_000, 40).next(&mut BytesMut::from(&long[..]));
        assert_eq!(taken.err(), Some(HeadError::UriTooLong));
    }

    #[test]
    fn a_head_may_come_byte_by_byte() {
        for text in [
            "GET /b HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n",
            "GET /b HTTP/1.1\nA: b\n\r\n",
            "\r\n\r\nGET / HTTP/1.0\r\n\n",
        ] {
            let (mut parser, mut input) = (HeadParser::new(1000, 40), BytesMut::new());
            let (last, before) = text.as_bytes().split_last().unwrap();
            for byte in before {
                input.extend_from_slice(&[*byte]);
                assert!(parser.next(&mut input).unwrap().is_none(), "{text:?}: {input:?}");
            }
            input.extend_from_slice(&[*last]);
            assert!(parser.next(&mut input).unwrap().is_some(), "{text:?}");
            assert!(input.is_empty());
        }
    }
}
