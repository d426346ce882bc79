//! Streams with TLS: partial records, ends, clients that do not read, and handshakes.

use super::test_tls::{self, CLIENT, InPieces};
use super::tls_stream::UNSENT_BYTES_MAX;
use super::{ClientStream, ClientTls, Handshakes};
use crate::access::{Proof, Session};
use futures_util::future::poll_immediate;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, unconstrained};
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

/// A client that has said hello holds the only place until its handshake ends. One that has said
/// nothing holds none.
#[tokio::test]
async fn handshakes_wait_for_a_place_and_those_that_say_nothing_take_none() {
    const LIMIT: Duration = Duration::from_millis(300);
    for (time_limit, says_hello) in [(PATIENCE, false), (LIMIT, true)] {
        let tls = test_tls::bounded(Handshakes::new(time_limit, 1, 1));
        let (_stop, shutdown) = watch::channel(false);
        let (ours, mut theirs) = sockets().await;
        if says_hello {
            theirs.write_all(&test_tls::hello()).await.unwrap();
        }
        let session = session();
        let first = tls.secure(ClientStream::Plain(ours), &session, &shutdown);
        let second = async {
            if says_hello {
                // The answer of the node: the first client has its place.
                theirs.read_exact(&mut [0]).await.unwrap();
            }
            let (ours, theirs) = sockets().await;
            let secured = tls.secure(ClientStream::Plain(ours), &session, &shutdown);
            let began = Instant::now();
            let (secured, client) = tokio::join!(secured, test_tls::connect(theirs));
            (secured.is_ok() && client.is_ok(), began.elapsed())
        };
        if says_hello {
            let (first, (second_is_secure, waited)) = tokio::join!(first, second);
            assert_eq!(first.err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
            // It waits until the first one has failed, or its own time ends.
            assert!(second_is_secure || waited >= LIMIT, "{waited:?}");
            // A client that does not answer the node keeps its place for half of the time.
            assert!(waited >= LIMIT / 4, "{waited:?}: the place was not held");
        } else {
            tokio::select! {
                _ = first => panic!("it has said nothing"),
                (second_is_secure, _) = second => assert!(second_is_secure),
            }
        }
    }
}

fn session_of(address: [u8; 4]) -> Session {
    Session::new(SocketAddr::from((address, 1)), "listener".into())
}

/// A client that has said hello, and says nothing more when it has the answer of the node. It tells
/// when it has that, and returns how its handshake ended.
async fn silent_after_hello(tls: ClientTls, from: [u8; 4], has_place: mpsc::Sender<()>) -> io::ErrorKind {
    let (ours, mut theirs) = sockets().await;
    let (_stop, shutdown) = watch::channel(false);
    theirs.write_all(&test_tls::hello()).await.unwrap();
    let session = session_of(from);
    let answered = async {
        // It does not come if the handshake ends before its place.
        if theirs.read_exact(&mut [0]).await.is_ok() {
            has_place.send(()).await.ok();
        }
    };
    let (ended, ()) = tokio::join!(tls.secure(ClientStream::Plain(ours), &session, &shutdown), answered);
    ended.err().map(|error| error.kind()).expect("it does not come to its end")
}

#[tokio::test]
async fn one_address_does_not_keep_another_one_from_its_handshake() {
    const PLACES: usize = 4;
    let tls = test_tls::bounded(Handshakes::new(PATIENCE, PLACES, 1));
    let (mut silent, (tell, mut has_place)) = (JoinSet::new(), mpsc::channel(PLACES));
    for _ in 0..3 * PLACES {
        silent.spawn(silent_after_hello(tls.clone(), [10, 0, 0, 1], tell.clone()));
    }
    for _ in 0..PLACES {
        timeout(PATIENCE, has_place.recv()).await.expect("it has a place");
    }
    let (_stop, shutdown) = watch::channel(false);
    for _ in 0..PLACES {
        let ((ours, theirs), session) = (sockets().await, session_of([10, 0, 0, 2]));
        let secured = tls.secure(ClientStream::Plain(ours), &session, &shutdown);
        let (secured, client) = timeout(PATIENCE / 4, async { tokio::join!(secured, test_tls::connect(theirs)) })
            .await
            .expect("another address gets a place at once");
        assert!(secured.is_ok() && client.is_ok());
    }
    let first = timeout(PATIENCE / 4, silent.join_next()).await.expect("one has lost its place");
    assert_eq!(first.unwrap().unwrap(), io::ErrorKind::ConnectionAborted);
}

#[tokio::test]
async fn a_client_that_does_not_answer_the_node_ends_before_the_others() {
    const LIMIT: Duration = Duration::from_secs(2);
    let tls = test_tls::bounded(Handshakes::new(LIMIT, 1000, 1));
    let (began, (tell, _has_place)) = (Instant::now(), mpsc::channel(1));
    let ended = silent_after_hello(tls, [10, 0, 0, 1], tell).await;
    assert_eq!(ended, io::ErrorKind::TimedOut);
    assert!(began.elapsed() < LIMIT * 3 / 4, "{:?}", began.elapsed());
}

/// The function that gives the configuration is called in the turn of a handshake.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn as_many_handshakes_compute_at_a_time_as_may() {
    const AT_ONCE_MAX: usize = 2;
    let (computing, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (entered, highest) = (Arc::clone(&computing), Arc::clone(&most));
    let current = move || {
        highest.fetch_max(entered.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        entered.fetch_sub(1, Ordering::SeqCst);
        test_tls::server_config()
    };
    let tls = test_tls::with_current(current, Handshakes::new(PATIENCE, 1000, AT_ONCE_MAX));
    let (stop, shutdown) = watch::channel(false);
    let mut connections = JoinSet::new();
    for _ in 0..12 {
        let (tls, shutdown) = (tls.clone(), shutdown.clone());
        connections.spawn(async move {
            let ((ours, theirs), session) = (sockets().await, session());
            let secured = tls.secure(ClientStream::Plain(ours), &session, &shutdown);
            let (secured, client) = tokio::join!(secured, test_tls::connect(theirs));
            secured.is_ok() && client.is_ok()
        });
    }
    assert!(connections.join_all().await.into_iter().all(|is_secure| is_secure));
    assert_eq!((most.load(Ordering::SeqCst), computing.load(Ordering::SeqCst)), (AT_ONCE_MAX, 0));
    drop(stop);
}

#[tokio::test]
async fn each_handshake_asks_for_the_configuration_in_force() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let current = move || {
        counting.fetch_add(1, Ordering::Relaxed);
        test_tls::server_config()
    };
    let tls = test_tls::with_current(current, Handshakes::new(PATIENCE, 1000, 2));
    let (_stop, shutdown) = watch::channel(false);
    for number in 1..=3 {
        let (ours, theirs) = sockets().await;
        let session = session();
        let secured = tls.secure(ClientStream::Plain(ours), &session, &shutdown);
        let (secured, client) = tokio::join!(secured, test_tls::connect(theirs));
        assert!(secured.is_ok() && client.is_ok());
        assert_eq!(asked.load(Ordering::Relaxed), number);
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
