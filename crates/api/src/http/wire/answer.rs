//! Encodes answers: heads, and the size lines of chunks.

use super::date;
use super::headers::Headers;
use http::StatusCode;
use std::io::Write;

/// The value of the header `Server`.
const SERVER: &str = concat!("Ombak/", env!("CARGO_PKG_VERSION"));

/// The only interim answer: the client may send the body.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The last chunk of a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// How a client finds the end of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The body ends after this many bytes.
    Length(usize),
    /// The body ends with the last chunk.
    Chunked,
    /// The body ends with the connection, or there is no body and no header about one.
    Unsaid,
}

/// The parts of a head other than the headers that the resource has set.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The status of the answer.
    pub status: StatusCode,
    /// Whether the client uses HTTP/1.1; otherwise it uses HTTP/1.0.
    pub is_http_11: bool,
    /// Whether another request may follow on the connection.
    pub keep_alive: bool,
    /// The end of the body.
    pub extent: Extent,
}

/// Appends the head of an answer.
pub fn write_head(out: &mut Vec<u8>, frame: &Frame, headers: &Headers) {
    write_status_line(out, frame);
    out.extend_from_slice(b"Server: ");
    out.extend_from_slice(SERVER.as_bytes());
    out.extend_from_slice(b"\r\nDate: ");
    date::write_now(out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(headers.as_bytes());
    match frame.extent {
        Extent::Length(bytes) => {
            out.extend_from_slice(b"Content-Length: ");
            write_decimal(out, bytes);
            out.extend_from_slice(b"\r\n");
        }
        Extent::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Extent::Unsaid => {}
    }
    match (frame.is_http_11, frame.keep_alive) {
        (true, false) => out.extend_from_slice(b"Connection: close\r\n"),
        (false, true) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        _ => {}
    }
    out.extend_from_slice(b"\r\n");
}

fn write_status_line(out: &mut Vec<u8>, frame: &Frame) {
    out.extend_from_slice(if frame.is_http_11 { b"HTTP/1.1 " } else { b"HTTP/1.0 " });
    out.extend_from_slice(frame.status.as_str().as_bytes());
    out.extend_from_slice(b" ");
    out.extend_from_slice(reason(frame.status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The reason phrase. For 404 it is Riak's own.
fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::OK => "OK",
        StatusCode::NO_CONTENT => "No Content",
        StatusCode::NOT_FOUND => "Object Not Found",
        other => other.canonical_reason().unwrap_or("Unknown"),
    }
}

/// Appends the size line of a chunk with this number of bytes, which is at least one.
pub fn write_chunk_size(out: &mut Vec<u8>, bytes: usize) {
    // Writing to memory does not fail.
    let _ = write!(out, "{bytes:x}\r\n");
}

fn write_decimal(out: &mut Vec<u8>, number: usize) {
    /// The number of digits of the largest number.
    const DIGITS_MAX: usize = 20;
    let (mut digits, mut rest, mut at) = ([0; DIGITS_MAX], number, DIGITS_MAX);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::http::wire::headers::name;

    fn head(frame: Frame) -> String {
        let mut headers = Headers::default();
        headers.set(name::ETAG, "\"a\"");
        let mut out = Vec::new();
        write_head(&mut out, &frame, &headers);
        let text = String::from_utf8(out).unwrap();
        // The value of `Date` is left out.
        let (before, after) = text.split_once("Date: ").unwrap();
        format!("{before}Date: {}", &after[29..])
    }

    #[test]
    fn heads_say_what_the_client_needs() {
        let frame = Frame { status: StatusCode::OK, is_http_11: true, keep_alive: true, extent: Extent::Length(120) };
        let server = format!("Server: {SERVER}\r\nDate: \r\nETag: \"a\"\r\n");
        assert_eq!(head(frame), format!("HTTP/1.1 200 OK\r\n{server}Content-Length: 120\r\n\r\n"));
        let closing = Frame { keep_alive: false, extent: Extent::Chunked, ..frame };
        let ending = "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        assert_eq!(head(closing), format!("HTTP/1.1 200 OK\r\n{server}{ending}"));
        let old = Frame { status: StatusCode::NOT_FOUND, is_http_11: false, extent: Extent::Length(0), ..frame };
        let ending = "Content-Length: 0\r\nConnection: keep-alive\r\n\r\n";
        assert_eq!(head(old), format!("HTTP/1.0 404 Object Not Found\r\n{server}{ending}"));
        let old = Frame { keep_alive: false, extent: Extent::Unsaid, ..old };
        assert_eq!(head(old), format!("HTTP/1.0 404 Object Not Found\r\n{server}\r\n"));
    }

    #[test]
    fn numbers_are_written_as_others_write_them() {
        for number in [0, 1, 9, 10, 1024, usize::MAX] {
            let mut out = Vec::new();
            write_decimal(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
        let mut out = Vec::new();
        write_chunk_size(&mut out, 1000);
        assert_eq!(out, b"3e8\r\n");
    }
}
