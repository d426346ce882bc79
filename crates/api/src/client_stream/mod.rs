//! The stream of bytes between a client and a connection: plain, or with TLS.
//!
//! What it is: [`ClientStream`] is what Protocol Buffers and HTTP read from and write to. It splits
//! into a [`ReadHalf`] and a [`WriteHalf`]. A plain stream becomes one with TLS in the middle of a
//! connection ([`ClientTls`]). [`ClientListener`] says how connections of a listener begin.
//!
//! What it is not: it knows neither requests nor users, and reads no files of certificates.
//!
//! Invariants:
//! * A plain stream costs one branch for each read and write. It has the system calls of a
//!   `TcpStream` and allocates nothing.
//! * Both halves of a stream are polled by one task. A half of TLS may register that task for both
//!   directions of the socket.
//! * A write with TLS has left the node only after a flush. Until then a bounded part of it waits
//!   in the stream (`tls_stream::UNSENT_BYTES_MAX`).
//! * A handshake of TLS ends at its deadline, and when the node stops. The number of those under
//!   way is bounded ([`Handshakes`]), and no address keeps others from getting a place (`places`).
//!   Each uses the configuration in force when it begins.

mod client_listener;
mod client_tls;
mod halves;
mod handshakes;
mod places;
mod stream;
#[cfg(test)]
pub(crate) mod test_tls;
#[cfg(test)]
mod tests;
mod tls_stream;

pub use client_listener::ClientListener;
pub(crate) use client_listener::Terms;
pub use client_tls::{CertificateName, ClientTls, HandshakeFault};
pub(crate) use halves::{ReadHalf, WriteHalf};
pub use handshakes::Handshakes;
pub(crate) use stream::ClientStream;
