//! HTTP/1.1 on a connection.
//!
//! [`head`], [`request_lines`], [`target`], [`framing`] and [`chunked`] decode requests and are
//! pure: they turn bytes into values or errors. [`answer`] and [`headers`] write answers with
//! Riak's spelling of header names. [`connection`] reads from a socket, calls the service and
//! writes the answers. Only it, [`body`], [`client_end`] and `output` wait.
//!
//! Invariants:
//! * all readers of a request agree on where it ends. A request whose length could be understood in
//!   two ways is refused, and the connection ends after the refusal (RFC 9112 §6.3);
//! * heads, size lines of chunks, trailers and bodies are bounded. A length that a client announces
//!   is checked before the bytes arrive.

pub mod answer;
pub mod body;
#[cfg(any(test, fuzzing))]
pub mod check;
pub mod chunked;
pub mod client_end;
mod close_reason;
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
