//! Opens the listening sockets.
//!
//! A start opens its ports before it opens a store, so that a port that is in use ends the start
//! while nothing has changed on disk. From then on the kernel completes connections and keeps them
//! in the backlog of the listener. The node accepts them when its stores are open.

use crate::config::{Listen, Settings};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// The listening sockets of the node. They are non-blocking.
pub struct Ports {
    /// The sockets for HTTP.
    pub http: Vec<TcpListener>,
    /// The sockets for Protocol Buffers.
    pub pb: Vec<TcpListener>,
}

impl Ports {
    /// Opens every port of the settings.
    pub fn open(settings: &Settings) -> Result<Self, String> {
        let open = |on: &[Listen]| on.iter().map(|on| listen(on, settings.backlog)).collect::<Result<_, _>>();
        let ports = Self { http: open(&settings.http)?, pb: open(&settings.pb)? };
        if let Some(peer) = &settings.peer {
            // The transport opens this one when the stores are open. Now it is only tried, so that
            // a port that is in use ends the start here.
            drop(listen(peer, settings.backlog)?);
        }
        Ok(ports)
    }
}

/// The addresses on which these sockets listen.
pub fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().filter_map(|l| l.local_addr().ok()).collect()
}

/// Registers the sockets with the tokio runtime in which this function is called.
pub fn registered(listeners: Vec<TcpListener>) -> Result<Vec<tokio::net::TcpListener>, String> {
    let refused = |e| format!("cannot wait for connections: {e}");
    listeners.into_iter().map(|listener| tokio::net::TcpListener::from_std(listener).map_err(refused)).collect()
}

/// Listens on an address. The error is one line with the key, the address, and what to do.
fn listen(on: &Listen, backlog: i32) -> Result<TcpListener, String> {
    open(on.address, backlog).map_err(|e| format!("{} = {}: {}", on.key, on.address, explain(&e)))
}

fn open(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
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

    fn on(address: &str) -> Listen {
        Listen { key: "listener.http.internal".into(), address: address.parse().expect("address") }
    }

    #[test]
    fn a_busy_port_is_named_with_its_key() {
        let first = listen(&on("127.0.0.1:0"), 8).expect("free port");
        let taken = on(&first.local_addr().expect("address").to_string());
        let error = listen(&taken, 8).expect_err("taken");
        assert!(
            error.starts_with(&format!("listener.http.internal = {}: the port is in use", taken.address)),
            "{error}"
        );
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
