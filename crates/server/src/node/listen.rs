//! Opens the listening sockets.
//!
//! A start takes its ports before it opens a store, so that a port that is in use ends the start
//! while nothing has changed on disk. It does not listen on them before it serves: the kernel would
//! complete connections, and a client would wait for a node that cannot answer. Until then a
//! connection is refused at once, as that of a node that does not run.

use super::refusal::Refusal;
use crate::config::{Listen, Settings};
use ombak_api::{ClientListener, ClientTls};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// A port that the node has taken, and on which it does not listen yet.
pub struct Port {
    socket: Socket,
    on: Listen,
    backlog: i32,
}

/// The ports of the node for clients. The sockets are non-blocking.
pub struct Ports {
    /// The ports for HTTP.
    pub http: Vec<Port>,
    /// The ports for HTTPS.
    pub https: Vec<Port>,
    /// The ports for Protocol Buffers.
    pub pb: Vec<Port>,
}

impl Ports {
    /// Takes every port of the settings. `peer` is the address of the listener for other nodes.
    pub fn open(settings: &Settings, peer: Option<SocketAddr>) -> Result<Self, Refusal> {
        let take = |on: &[Listen]| on.iter().map(|on| Port::take(on, settings.backlog)).collect::<Result<_, _>>();
        let ports = Self { http: take(&settings.http)?, https: take(&settings.https)?, pb: take(&settings.pb)? };
        if let Some((peer, address)) = settings.peer.as_ref().zip(peer) {
            // The transport opens this one when the stores are open. Now it is only tried, so that
            // a port that is in use ends the start here.
            drop(Port::take(&Listen { key: peer.key.clone(), address }, settings.backlog)?);
        }
        Ok(ports)
    }
}

impl Port {
    /// Takes a port. The error is one line with the key, the address, and what to do.
    fn take(on: &Listen, backlog: i32) -> Result<Self, Refusal> {
        let socket = bind(on.address).map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => Refusal::needs_operator(refused(on, &e)),
            _ => refused(on, &e).into(),
        })?;
        Ok(Self { socket, on: on.clone(), backlog })
    }

    /// Listens on it, in the tokio runtime in which this function is called. Another node that was
    /// starting at the same time may listen on it by now.
    fn listen(self) -> Result<ClientListener, String> {
        let Self { socket, on, backlog } = self;
        let listener =
            socket.listen(backlog).and_then(|()| tokio::net::TcpListener::from_std(TcpListener::from(socket)));
        let listener = listener.map_err(|e| refused(&on, &e))?;
        Ok(ClientListener::plain(listener, on.key))
    }
}

/// The addresses of these ports.
pub fn addresses(ports: &[Port]) -> Vec<SocketAddr> {
    ports.iter().filter_map(|port| port.socket.local_addr().ok()?.as_socket()).collect()
}

/// Listens on these ports, in the tokio runtime in which this function is called.
pub fn listening(ports: Vec<Port>) -> Result<Vec<ClientListener>, String> {
    ports.into_iter().map(Port::listen).collect()
}

/// The same, where connections begin with TLS.
pub fn listening_with_tls(ports: Vec<Port>, tls: Option<&ClientTls>) -> Result<Vec<ClientListener>, String> {
    // A configuration with a port for HTTPS and without a certificate is refused.
    let Some(tls) = tls else { return Ok(Vec::new()) };
    Ok(listening(ports)?.into_iter().map(|listener| listener.with_tls(tls.clone())).collect())
}

fn refused(on: &Listen, e: &io::Error) -> String {
    format!("{} = {}: {}", on.key, on.address, explain(e))
}

fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn explain(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is in use by another program (another node?): stop that one, or set another port".into()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address: set an address of this machine".into()
        }
        io::ErrorKind::PermissionDenied => {
            "this user may not listen on this port: set a port above 1023, or give the program the right to use it"
                .into()
        }
        _ => e.to_string(),
    }
}

/// The warning for the operator if other machines can connect. Security does not exist yet.
pub fn exposure(on: &Listen) -> Option<String> {
    (!on.address.ip().to_canonical().is_loopback()).then(|| {
        format!(
            "{} = {} can be reached from other machines and security is off: everybody who can connect can read, write \
             and delete everything; keep it behind a firewall, or listen on 127.0.0.1",
            on.key, on.address
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn on(address: &str) -> Listen {
        Listen { key: "listener.http.internal".into(), address: address.parse().expect("address") }
    }

    #[test]
    fn a_busy_port_is_named_with_its_key() {
        let first = TcpListener::bind("127.0.0.1:0").expect("free port");
        let taken = on(&first.local_addr().expect("address").to_string());
        let Err(error) = Port::take(&taken, 8) else { panic!("the port was taken twice") };
        assert!(
            error.text.starts_with(&format!("listener.http.internal = {}: the port is in use", taken.address)),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn nobody_can_connect_to_a_port_before_the_node_listens_on_it() {
        let port = Port::take(&on("127.0.0.1:0"), 8).expect("free port");
        let address = addresses(std::slice::from_ref(&port))[0];
        let early = TcpStream::connect(address).expect_err("nobody listens");
        assert_eq!(early.kind(), io::ErrorKind::ConnectionRefused);
        let listening = listening(vec![port]).expect("listens");
        TcpStream::connect(address).expect("connects");
        drop(listening);
    }

    #[tokio::test]
    async fn of_two_starts_with_one_port_the_later_one_ends_with_its_name() {
        let first = Port::take(&on("127.0.0.1:0"), 8).expect("free port");
        let same = on(&addresses(std::slice::from_ref(&first))[0].to_string());
        let second = Port::take(&same, 8).expect("nobody listens yet");
        let _serves = listening(vec![first]).expect("listens");
        let error = listening(vec![second]).expect_err("the port is in use");
        assert!(error.contains("listener.http.internal") && error.contains("the port is in use"), "{error}");
    }

    #[test]
    fn only_wider_listeners_are_warned_about() {
        for narrow in ["127.0.0.1:1", "[::1]:1", "127.8.8.8:1"] {
            assert_eq!(exposure(&on(narrow)), None, "{narrow}");
        }
        for wide in ["0.0.0.0:1", "10.0.0.1:1", "[::]:1"] {
            assert!(exposure(&on(wide)).is_some_and(|w| w.contains(wide)), "{wide}");
        }
    }
}
