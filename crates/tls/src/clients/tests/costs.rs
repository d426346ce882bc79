//! What a handshake costs the node. It is measured by hand:
//! `cargo test -p ombak-tls costs -- --ignored --nocapture`.

use super::*;
use rustls::{ClientConnection, ServerConnection};

const ROUNDS: u32 = 400;

/// The processor time that this thread has used.
fn used() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// The processor time of the node for one handshake, on average, and the most that it uses between
/// two waits for the client.
fn of(node: &Arc<ServerConfig>, client: &Arc<ClientConfig>) -> (Duration, Duration) {
    let (mut total, mut longest) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        let name = ServerName::try_from("localhost").unwrap();
        let mut theirs = ClientConnection::new(Arc::clone(client), name).unwrap();
        let mut ours = ServerConnection::new(Arc::clone(node)).unwrap();
        while ours.is_handshaking() || theirs.is_handshaking() {
            let mut bytes = Vec::new();
            while theirs.wants_write() {
                theirs.write_tls(&mut bytes).unwrap();
            }
            let began = used();
            let mut left = &bytes[..];
            while !left.is_empty() {
                ours.read_tls(&mut left).unwrap();
                ours.process_new_packets().unwrap();
            }
            let mut answer = Vec::new();
            while ours.wants_write() {
                ours.write_tls(&mut answer).unwrap();
            }
            let took = used() - began;
            (total, longest) = (total + took, longest.max(took));
            let mut left = &answer[..];
            while !left.is_empty() {
                theirs.read_tls(&mut left).unwrap();
                theirs.process_new_packets().unwrap();
            }
        }
    }
    (total / ROUNDS, longest)
}

#[test]
#[ignore = "it measures"]
fn handshakes_of_each_kind() {
    let ca = TestAuthority::new("ca");
    let (chain, key) = (include_str!("pem/rsa2048.crt"), include_str!("pem/rsa2048.key"));
    let rsa = Node::new(&Issued { chain: chain.to_owned(), key: key.to_owned() });
    let p256 = Node::of(&ca).trusting(&ca.pem).revoking(&ca.revoking(&[1, 2, 3], 2900));
    for version in [&TLS12, &TLS13] {
        let plain = |authority: &str| Client::trusting(authority).speaking(&[version]);
        let with_certificate = plain(&ca.pem).showing(&ca.issue("alice"));
        let kinds = [
            ("RSA-2048", &rsa, plain(chain)),
            ("P-256", &p256, plain(&ca.pem)),
            ("P-256 and a certificate of the client", &p256, with_certificate),
        ];
        for (kind, node, client) in kinds {
            let (mean, longest) = of(&node.read().current(), &Arc::new(client.config()));
            println!("{:?} {kind}: {mean:?} a handshake, at most {longest:?} at a time", version.version);
        }
    }
}
