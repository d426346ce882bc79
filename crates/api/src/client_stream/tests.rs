//! Streams with TLS: partial records, ends, clients that do not read, and handshakes.

use super::ClientStream;
use super::test_tls::{self, CLIENT, InPieces};
use super::tls_stream::UNSENT_BYTES_MAX;
use crate::access::{Proof, Session};
use futures_util::future::poll_immediate;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::unconstrained;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

/// A time limit that no correct test reaches.
const PATIENCE: Duration = Duration::from_secs(20);

/// The two ends of a plain connection: that of the node, and that of the client.
async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (listener.accept().await.unwrap().0, theirs)
}

fn session() -> Session {
    Session::new(SocketAddr::from(([127, 0, 0, 1], 1)), "listener".into())
}

/// Both ends of a connection with TLS, and what the node knows about the client.
async fn secured(ours: TcpStream, theirs: TcpStream) -> (ClientStream, TlsStream<InPieces>, Session) {
    let (_stop, shutdown) = watch::channel(false);
    let (tls, session) = (test_tls::client_tls(), session());
    let secured = tls.secure(ClientStream::Plain(ours), &session, &shutdown);
    let (secured, client) = tokio::join!(secured, test_tls::connect(theirs));
    let (stream, session) = secured.unwrap();
    (stream, client.unwrap(), session)
}

#[tokio::test]
async fn a_plain_stream_goes_on_with_tls() {
    let (ours, mut theirs) = sockets().await;
    let mut stream = ClientStream::Plain(ours);
    theirs.write_all(b"plain").await.unwrap();
    let mut read = [0; 5];
    {
        let (mut reading, mut writing) = stream.split();
        assert!(reading.has_more().await.unwrap() && !reading.has_ended().await.unwrap());
        reading.read_exact(&mut read).await.unwrap();
        writing.write_all(b"answer").await.unwrap();
    }
    theirs.read_exact(&mut [0; 6]).await.unwrap();
    let ClientStream::Plain(ours) = stream else { panic!("it is plain") };
    let (mut stream, mut client, session) = secured(ours, theirs).await;
    assert_eq!((session.is_encrypted, &session.proof, &*session.listener), (true, &Proof::Nothing, "listener"));
    client.write_all(b"secret").await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let mut read = [0; 6];
    reading.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"secret");
    writing.write_all(b"answer").await.unwrap();
    writing.flush().await.unwrap();
    client.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"answer");
}

#[tokio::test]
async fn a_certificate_is_a_proof() {
    let (ours, theirs) = sockets().await;
    let (_stop, shutdown) = watch::channel(false);
    let (tls, session) = (test_tls::client_tls(), session());
    let secured = tls.secure(ClientStream::Plain(ours), &session, &shutdown);
    let (secured, client) = tokio::join!(secured, test_tls::connect_with_certificate(theirs));
    client.unwrap();
    let (stream, session) = secured.unwrap();
    assert_eq!(session.proof, Proof::Certificate { name: CLIENT.into() });
    let again = tls.secure(stream, &session, &shutdown).await;
    assert_eq!(again.err().map(|error| error.kind()), Some(io::ErrorKind::AlreadyExists), "it has TLS already");
}

#[tokio::test]
async fn a_handshake_ends_at_its_deadline_and_with_the_node() {
    for stops in [false, true] {
        let (ours, mut theirs) = sockets().await;
        // The beginning of a record of a handshake.
        theirs.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
        let (stop, shutdown) = watch::channel(false);
        let limit = if stops { Duration::from_secs(600) } else { Duration::from_millis(20) };
        let (tls, session) = (test_tls::within(limit), session());
        let mut handshake = Box::pin(tls.secure(ClientStream::Plain(ours), &session, &shutdown));
        assert!(poll_immediate(&mut handshake).await.is_none());
        if stops {
            stop.send_replace(true);
        }
        let ended = timeout(PATIENCE, handshake).await.expect("it ends").err().map(|error| error.kind());
        let expected = if stops { io::ErrorKind::Interrupted } else { io::ErrorKind::TimedOut };
        assert_eq!(ended, Some(expected));
        // The socket is closed.
        assert!(matches!(timeout(PATIENCE, theirs.read(&mut [0; 64])).await.expect("it is told"), Ok(0) | Err(_)));
    }
}

#[tokio::test]
async fn what_is_no_handshake_is_refused() {
    let (ours, mut theirs) = sockets().await;
    let (_stop, shutdown) = watch::channel(false);
    theirs.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let refused = test_tls::client_tls().secure(ClientStream::Plain(ours), &session(), &shutdown).await;
    assert_eq!(refused.err().map(|error| error.kind()), Some(io::ErrorKind::InvalidData));
}

#[tokio::test]
async fn records_come_in_pieces_of_any_size() {
    for piece_bytes in [1, 2, 3, 100, 1000] {
        let (ours, theirs) = sockets().await;
        let (_stop, shutdown) = watch::channel(false);
        let (tls, session) = (test_tls::client_tls(), session());
        let handshake = tls.secure(ClientStream::Plain(ours), &session, &shutdown);
        let (secured, client) = tokio::join!(handshake, test_tls::connect_in_pieces(theirs, piece_bytes));
        let ((mut stream, _), mut client) = (secured.unwrap(), client.unwrap());
        let sent: Vec<u8> = (0..10 * piece_bytes + 50).map(|n| (n % 251) as u8).collect();
        let (mut reading, _) = stream.split();
        let mut read = vec![0; sent.len()];
        let (written, filled) = tokio::join!(
            async {
                client.write_all(&sent).await?;
                client.flush().await
            },
            timeout(PATIENCE, reading.read_exact(&mut read))
        );
        written.unwrap();
        filled.expect("in time").unwrap();
        assert!(read == sent, "pieces of {piece_bytes} bytes");
    }
}

#[tokio::test]
async fn looking_for_more_takes_nothing_and_sees_the_end() {
    let (ours, theirs) = sockets().await;
    let (mut stream, mut client, _) = secured(ours, theirs).await;
    let (mut reading, _) = stream.split();
    assert!(poll_immediate(pin!(reading.has_more())).await.is_none());
    client.write_all(b"abc").await.unwrap();
    client.flush().await.unwrap();
    for _ in 0..2 {
        assert!(timeout(PATIENCE, reading.has_more()).await.expect("in time").unwrap());
        assert!(!reading.has_ended().await.unwrap());
    }
    let mut read = [0; 3];
    reading.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"abc");
    client.shutdown().await.unwrap();
    assert!(!timeout(PATIENCE, reading.has_more()).await.expect("in time").unwrap());
    assert!(reading.has_ended().await.unwrap());
    assert_eq!(reading.read(&mut read).await.unwrap(), 0);
}

#[tokio::test]
async fn a_connection_that_is_cut_within_a_record_has_ended() {
    let (ours, theirs) = sockets().await;
    let (mut stream, mut client, _) = secured(ours, theirs).await;
    client.write_all(b"whole").await.unwrap();
    client.flush().await.unwrap();
    client.get_mut().0.cut_after_bytes = Some(100);
    let cut = async {
        client.write_all(&[7; 1000]).await?;
        client.flush().await
    };
    assert_eq!(cut.await.expect_err("it is cut").kind(), io::ErrorKind::BrokenPipe);
    let (mut reading, _) = stream.split();
    let mut read = Vec::new();
    timeout(PATIENCE, reading.read_to_end(&mut read)).await.expect("in time").unwrap();
    assert_eq!(read, b"whole", "nothing of a record that did not come whole");
    assert!(reading.has_ended().await.unwrap());
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_what_is_written() {
    let (ours, theirs) = sockets().await;
    let (mut stream, mut client, _) = secured(ours, theirs).await;
    let (_, mut writing) = stream.split();
    let part = vec![7; UNSENT_BYTES_MAX];
    let mut written = 0;
    // The runtime would stop a task that writes much, and the test would not see why.
    unconstrained(async {
        while let Some(more) = poll_immediate(pin!(writing.write(&part))).await {
            written += more.unwrap();
            assert!(written < 1 << 30, "the kernel holds some megabytes");
        }
        assert!(poll_immediate(pin!(writing.flush())).await.is_none(), "some of it waits in the stream");
    })
    .await;
    let mut read = vec![0; written];
    let (flushed, filled) =
        tokio::join!(timeout(PATIENCE, writing.flush()), timeout(PATIENCE, client.read_exact(&mut read)));
    flushed.expect("in time").unwrap();
    filled.expect("in time").unwrap();
    assert!(read.iter().all(|&byte| byte == 7));
    stream.say_goodbye().await;
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "the end is one that TLS vouches for");
}
