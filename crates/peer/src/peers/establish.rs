//! Running the handshake over a stream.

use crate::connection::NodeClock;
use crate::handshake::{Established, Handshake, HandshakeError};
use crate::sessions::{SessionTicket, Sessions};
use bytes::BytesMut;
use ombak_runtime::Stream;
use std::io::{self, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A connection whose peer is known.
pub(super) struct Proved {
    pub(super) stream: Box<dyn Stream>,
    pub(super) established: Established,
    /// What was read behind the handshake.
    pub(super) arrived: BytesMut,
    pub(super) ticket: SessionTicket,
}

/// Runs a handshake to its end. The caller sets the time limit.
pub(super) async fn establish(
    mut stream: Box<dyn Stream>,
    mut handshake: Handshake,
    sessions: &Sessions,
    clock: &NodeClock,
) -> Result<Proved, HandshakeError> {
    let mut arrived = BytesMut::new();
    let mut ticket = None;
    loop {
        send(&mut stream, &mut handshake).await?;
        // The reader takes only what the handshake may need, so a stranger cannot make it hold
        // more.
        let mut limited = (&mut stream).take(handshake.bytes_wanted().saturating_sub(arrived.len()) as u64);
        match limited.read_buf(&mut arrived).await {
            Ok(0) if handshake.bytes_wanted() <= arrived.len() => return Err(HandshakeError::TooLong),
            Ok(0) => return Err(handshake.ended()),
            Err(error) => return Err(stream_failed(&handshake, &error)),
            Ok(_) => {}
        }
        let outcome = handshake.receive(&mut arrived, clock.now_us(), &mut |peer| {
            ticket = Some(sessions.admit(peer)?);
            Ok(())
        });
        match (outcome, &ticket) {
            (Ok(None), _) => {}
            (Ok(Some(established)), Some(_)) => {
                send(&mut stream, &mut handshake).await?;
                let Some(ticket) = ticket else { return Err(HandshakeError::Malformed) };
                return Ok(Proved { stream, established, arrived, ticket });
            }
            (Ok(Some(_)), None) => return Err(HandshakeError::Malformed),
            (Err(error), _) => {
                // The last message may say why. Whether it arrives changes nothing.
                let _sent = send(&mut stream, &mut handshake).await;
                let _shut = stream.shutdown().await;
                return Err(error);
            }
        }
    }
}

async fn send(stream: &mut Box<dyn Stream>, handshake: &mut Handshake) -> Result<(), HandshakeError> {
    let output = handshake.take_output();
    if output.is_empty() {
        return Ok(());
    }
    stream.write_all(&output).await.map_err(|error| stream_failed(handshake, &error))?;
    stream.flush().await.map_err(|error| stream_failed(handshake, &error))
}

/// A stream that the other side closes says so in several ways. Other errors have a reason of their
/// own, for example those of TLS.
fn stream_failed(handshake: &Handshake, error: &io::Error) -> HandshakeError {
    match error.kind() {
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => handshake.ended(),
        kind => HandshakeError::Stream { kind, text: error.to_string() },
    }
}
