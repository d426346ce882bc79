//! Writes HTTP requests.

use std::io::Write;

/// Writes one request from front to back into a reused buffer.
#[derive(Debug)]
pub struct Request<'a>(&'a mut Vec<u8>);

impl<'a> Request<'a> {
    /// Begins a request with its method.
    pub fn new(method: &str, out: &'a mut Vec<u8>) -> Self {
        out.extend_from_slice(method.as_bytes());
        out.push(b' ');
        Self(out)
    }

    /// Appends a part of the request target unchanged. It must already be encoded.
    pub fn raw(self, part: &[u8]) -> Self {
        self.0.extend_from_slice(part);
        self
    }

    /// Appends a slash and a path segment. Characters with a meaning in a path are percent-encoded.
    pub fn segment(self, segment: &[u8]) -> Self {
        self.0.push(b'/');
        put_encoded(segment, self.0);
        self
    }

    /// Ends the request line and writes the header `Host`.
    pub fn host(self, host: &[u8]) -> Self {
        self.raw(b" HTTP/1.1\r\nHost: ").raw(host).raw(b"\r\n")
    }

    /// Writes a header.
    pub fn header(self, name: &[u8], value: &[u8]) -> Self {
        self.raw(name).raw(b": ").raw(value).raw(b"\r\n")
    }

    /// Ends a request without a body.
    pub fn end(self) {
        self.0.extend_from_slice(b"\r\n");
    }

    /// Ends a request with a body.
    pub fn body(self, body: &[u8]) {
        // Writing to memory cannot fail.
        let _ = write!(self.0, "Content-Length: {}\r\n\r\n", body.len());
        self.0.extend_from_slice(body);
    }
}

/// Appends bytes in the percent-encoding of a path segment or a query.
pub fn put_encoded(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte),
            _ => out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
        }
    }
}
