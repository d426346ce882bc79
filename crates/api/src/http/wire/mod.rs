//! HTTP/1.1 as it lies on a connection.
//!
//! [`head`], [`request_lines`], [`target`], [`framing`] and [`chunked`] decode requests and are
//! pure: bytes in, values or errors out. [`answer`] and [`headers`] write answers with Riak's
//! spelling of header names. [`connection`] reads from a socket, asks the service and writes the
//! answers; it is the only part that waits.
//!
//! Invariants:
//! * two readers of one request agree on where it ends: a request whose length can be read in two
//!   ways is refused, and the connection ends with the refusal (RFC 9112 §6.3);
//! * a head, a chunk's size line, the trailers and the body are bounded, and a bound is enforced on
//!   what a client announces, before it comes.

pub mod answer;
pub mod body;
#[cfg(any(test, fuzzing))]
pub mod check;
pub mod chunked;
pub mod client_end;
pub mod connection;
mod date;
mod deadline;
pub mod framing;
pub mod head;
pub mod headers;
mod input;
mod output;
pub mod request_lines;
pub mod target;
