//! TLS with clients: real programs, real sockets, real files.

use crate::support::{self, DEADLINE, Home, Node, pause};
use ombak_tls::test_authority::{Issued, TestAuthority};
use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);
/// The message RpbStartTls, whose answer is the same message.
const START_TLS: &[u8] = &[0, 0, 0, 1, 255];
/// The message RpbAuthReq of the user alice with the password secret, and its answer.
const LOGIN: &[u8] = b"\0\0\0\x10\xfd\x0a\x05alice\x12\x06secret";
const LOGGED_IN: &[u8] = &[0, 0, 0, 1, 254];
/// The messages RpbPingReq and RpbPingResp.
const PING: &[u8] = &[0, 0, 0, 1, 1];
const PONG: &[u8] = &[0, 0, 0, 1, 2];

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A node whose certificate comes from an authority.
struct Secured {
    home: Home,
    node: Node,
    https: String,
}

fn put_file(home: &Home, name: &str, text: &str) -> PathBuf {
    let (path, fresh) = (home.path().join(name), home.path().join("fresh"));
    std::fs::write(&fresh, text).unwrap();
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(&fresh, &path).unwrap();
    path
}

fn put_certificate(home: &Home, issued: &Issued) {
    put_file(home, "cert.pem", &issued.chain);
    put_file(home, "key.pem", &issued.key);
}

fn home(issued: &Issued, settings: &str) -> Home {
    let home = Home::new(&format!(
        "storage_backend = memory\nlistener.https.internal = 127.0.0.1:0\nssl.certfile = cert.pem\n\
         ssl.keyfile = key.pem\n{settings}"
    ));
    put_certificate(&home, issued);
    home
}

impl Secured {
    fn start(home: Home) -> Self {
        let node = home.start();
        let record = std::fs::read(node.data.join("running.json")).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
        let https = record["https"][0].as_str().expect("an address").to_owned();
        Self { home, node, https }
    }

    /// Sends SIGHUP, and waits until a line of the log has a level and some words once more.
    fn renew(&self, level: &str, words: &str) {
        let count = || self.home.logged(level).iter().filter(|line| line.contains(words)).count();
        let before = count();
        self.node.signal(Signal::HUP);
        let give_up_at = Instant::now() + DEADLINE;
        while count() == before {
            assert!(Instant::now() < give_up_at, "no {words:?} in {:?}", self.home.logged(level));
            pause(PAUSE);
        }
    }

    fn get(&self, config: &Arc<ClientConfig>, path: &str) -> io::Result<String> {
        let mut stream = secure(TcpStream::connect(&self.https)?, config)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

fn secure(socket: TcpStream, config: &Arc<ClientConfig>) -> io::Result<Tls> {
    socket.set_read_timeout(Some(DEADLINE))?;
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, socket))
}

/// A client that trusts an authority.
fn client(authority: &str, versions: &[&'static SupportedProtocolVersion], own: Option<&Issued>) -> Arc<ClientConfig> {
    let chain = |pem: &str| CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>().unwrap();
    let mut authorities = RootCertStore::empty();
    for certificate in chain(authority) {
        authorities.add(certificate).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    let builder = builder.with_root_certificates(authorities);
    Arc::new(match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain(&own.chain), key).unwrap()
        }
    })
}

#[test]
fn a_node_serves_https_and_says_where() {
    let ca = TestAuthority::new("ca");
    let secured = Secured::start(home(&ca.issue_for_host("localhost"), ""));
    for version in [&TLS12, &TLS13] {
        let answer = secured.get(&client(&ca.pem, &[version], None), "/ping").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("OK"), "{answer}");
    }
    let https = &secured.https;
    assert!(
        secured.node.ready_line.contains(&format!(", HTTPS {https}, Protocol Buffers ")),
        "{}",
        secured.node.ready_line
    );
    let listeners = support::ask(&secured.node, "GET", "/health/listeners", "", "");
    assert!(listeners.contains(&format!(r#""https":["{https}"]"#)), "{listeners}");
    let status = secured.home.run(&["status"]).ok();
    assert!(status.contains(&format!("\nHTTPS: {https}\n")), "{status}");
    // A client without TLS gets no answer from this listener, and one that does not know the
    // authority ends the handshake.
    let mut plain = TcpStream::connect(https).unwrap();
    plain.write_all(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut heard = Vec::new();
    let _ = plain.read_to_end(&mut heard);
    assert!(!heard.starts_with(b"HTTP"), "{heard:?}");
    let stranger = client(&TestAuthority::new("ca").pem, &[&TLS13], None);
    assert!(secured.get(&stranger, "/ping").is_err());
    secured.home.assert_no_errors_logged();
    secured.node.stop();
}

#[test]
fn curl_stores_and_reads_over_https() {
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let ca = TestAuthority::new("ca");
    let secured = Secured::start(home(&ca.issue_for_host("localhost"), ""));
    let ca_file = put_file(&secured.home, "ca.pem", &ca.pem);
    let port = secured.https.rsplit(':').next().unwrap();
    let curl = |args: &[&str]| {
        let url = format!("https://localhost:{port}/buckets/b/keys/k");
        let mut command = Command::new("curl");
        command.args(["-sS", "--ipv4", "--cacert"]).arg(&ca_file).args(args).arg(url);
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let stored = curl(&["-X", "PUT", "-H", "Content-Type: text/plain", "-d", "value", "--tlsv1.2", "--tls-max", "1.2"]);
    assert_eq!(stored, (true, String::new()));
    assert_eq!(curl(&["--tlsv1.3"]), (true, "value".to_owned()));
    assert!(!curl(&["--tls-max", "1.1", "--ciphers", "ALL:@SECLEVEL=0"]).0, "TLS 1.1 does not exist");
    secured.node.stop();
}

#[test]
fn clients_of_protocol_buffers_ask_for_tls_while_security_is_on() {
    let ca = TestAuthority::new("ca");
    let secured = Secured::start(home(&ca.issue_for_host("localhost"), ""));
    for command in ["add-user alice password=secret", "add-source alice 127.0.0.1/32 password", "enable"] {
        let words: Vec<&str> = ["admin", "security"].into_iter().chain(command.split(' ')).collect();
        secured.home.run(&words).ok();
    }
    for version in [&TLS12, &TLS13] {
        let mut socket = TcpStream::connect(&secured.node.pb).unwrap();
        socket.write_all(START_TLS).unwrap();
        let mut answer = [0; 5];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(answer, START_TLS);
        let mut stream = secure(socket, &client(&ca.pem, &[version], None)).unwrap();
        stream.write_all(LOGIN).unwrap();
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, LOGGED_IN);
        stream.write_all(PING).unwrap();
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, PONG);
    }
    secured.node.stop();
}

#[test]
fn files_are_replaced_while_clients_connect() {
    let (ca, next) = (TestAuthority::new("ca"), TestAuthority::new("next"));
    let (alice, bob) = (ca.issue_numbered("alice", 7), ca.issue_numbered("bob", 8));
    let home = home(&ca.issue_for_host("localhost"), "ssl.cacertfile = ca.pem\nssl.crlfile = crl.pem\n");
    put_file(&home, "ca.pem", &ca.pem);
    put_file(&home, "crl.pem", &ca.revoking(&[], 2900));
    let secured = Secured::start(home);
    let both = format!("{}{}", ca.pem, next.pem);
    let with = |issued: &Issued| client(&both, &[&TLS13, &TLS12], Some(issued));
    let (as_alice, as_bob) = (with(&alice), with(&bob));
    let mut open = secure(TcpStream::connect(&secured.https).unwrap(), &as_alice).unwrap();
    let ask = |open: &mut Tls| {
        open.write_all(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"OK") {
            let mut byte = [0];
            open.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
    };
    ask(&mut open);
    let (stop, connected) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (stop, connected, secured, as_bob) = (&stop, &connected, &secured, &as_bob);
        let clients = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                assert!(secured.get(as_bob, "/ping").unwrap().starts_with("HTTP/1.1 200"));
                connected.fetch_add(1, Ordering::Relaxed);
            }
        });
        let goes_on = || {
            let (before, give_up_at) = (connected.load(Ordering::Relaxed), Instant::now() + DEADLINE);
            while connected.load(Ordering::Relaxed) < before + 3 && !clients.is_finished() {
                assert!(Instant::now() < give_up_at, "clients stand still");
                pause(PAUSE);
            }
        };
        goes_on();
        put_certificate(&secured.home, &next.issue_for_host("localhost"));
        secured.renew("INFO", "the files ssl.* were read again on SIGHUP");
        goes_on();
        assert!(secured.get(&client(&ca.pem, &[&TLS13], None), "/ping").is_err(), "the old certificate is served");
        assert!(secured.get(&as_alice, "/ping").is_ok());
        put_file(&secured.home, "crl.pem", &ca.revoking(&[7], 2900));
        secured.renew("INFO", "the files ssl.* were read again on SIGHUP");
        assert!(secured.get(&as_alice, "/ping").is_err(), "she is revoked");
        goes_on();
        put_file(&secured.home, "crl.pem", "nothing");
        secured.renew("ERROR", "ssl.crlfile = crl.pem: has no list of revoked certificates");
        assert!(secured.get(&as_alice, "/ping").is_err(), "she is revoked");
        goes_on();
        stop.store(true, Ordering::Relaxed);
        clients.join().expect("all connections succeeded");
    });
    // The connection that is open stays.
    ask(&mut open);
    let refusals = secured.home.logged("INFO");
    assert!(refusals.iter().any(|line| line.contains("the certificate of the client is revoked")), "{refusals:?}");
    secured.node.stop();
}

#[test]
fn a_node_with_unusable_files_says_which_one_is_wrong_and_does_not_start() {
    let ca = TestAuthority::new("ca");
    let refused = |home: &Home, words: &str| {
        for (command, code) in [(&["start"][..], 78), (&["config", "check"], 1)] {
            let said = home.run(command).failed(code);
            assert!(said.contains(words), "{said}");
        }
        assert!(!home.data().join("node.json").exists(), "the refused start made a node");
    };
    let good = ca.issue_for_host("localhost");
    let mixed = Issued { chain: good.chain.clone(), key: ca.issue("other").key };
    refused(&home(&mixed, ""), "ssl.keyfile = key.pem: does not belong to the certificate in cert.pem");
    let trusting = home(&good, "ssl.cacertfile = ca.pem\n");
    refused(&trusting, "ssl.cacertfile = ca.pem: cannot be read: No such file");
    put_file(&trusting, "ca.pem", &ca.pem);
    let said = trusting.run(&["config", "check"]);
    assert!(
        said.err.contains("warning: ssl.cacertfile = ca.pem: clients are asked for no certificates"),
        "{}",
        said.err
    );
    said.ok();
    let without = Home::new("listener.https.a = 127.0.0.1:0\n");
    refused(&without, "listener.https.a = 127.0.0.1:0 needs a certificate: set ssl.certfile and ssl.keyfile");
    let old = home(&good, "tls_protocols.tlsv1.1 = on\n");
    refused(&old, "tls_protocols.tlsv1.1 = on: TLS 1.1 is not safe and does not exist here");
    // A certificate that clients refuse is their affair, but the operator is told.
    let expired = home(&ca.issue_for_years("localhost", 2001, 2002), "");
    let secured = Secured::start(expired);
    let words = "ssl.certfile = cert.pem: the certificate in force has expired";
    let give_up_at = Instant::now() + DEADLINE;
    // The warning comes beside the start.
    while !secured.home.logged("WARN").iter().any(|line| line.contains(words)) {
        assert!(Instant::now() < give_up_at, "no {words:?} in {:?}", secured.home.logged("WARN"));
        pause(PAUSE);
    }
    secured.node.stop();
}
