//! What a measurement asks: the addresses of a server, its processes, and which keys each address
//! gets.

use crate::cpu;
use crate::workload::{KEYS, Protocol};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A server of one or several processes.
pub struct Target {
    pub name: String,
    pub protocol: Protocol,
    /// Connections use the addresses in turns. It has at least one.
    addresses: Vec<SocketAddr>,
    /// The processes whose processor time counts.
    pids: Vec<u32>,
    /// The keys that are asked for at each address.
    keys: Vec<Arc<[u64]>>,
}

impl Target {
    /// All keys are asked for at each address. An empty list of addresses is an error.
    pub fn new(name: &str, protocol: Protocol, addresses: Vec<SocketAddr>, pids: Vec<u32>) -> Result<Self, String> {
        if addresses.is_empty() {
            return Err(format!("{name}: there is no address"));
        }
        let all: Arc<[u64]> = (0..KEYS).collect();
        let keys = vec![all; addresses.len()];
        Ok(Self { name: name.to_owned(), protocol, addresses, pids, keys })
    }

    /// Asks at each address only for some keys. Each list has at least one key.
    pub fn with_keys(mut self, keys: Vec<Vec<u64>>) -> Result<Self, String> {
        if keys.len() != self.addresses.len() || keys.iter().any(Vec::is_empty) {
            return Err(format!("{}: an address has no keys", self.name));
        }
        self.keys = keys.into_iter().map(Arc::from).collect();
        Ok(self)
    }

    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The address of a connection.
    pub fn address(&self, connection: usize) -> SocketAddr {
        self.addresses[connection % self.addresses.len()]
    }

    /// The keys of a connection.
    pub fn keys_of(&self, connection: usize) -> Arc<[u64]> {
        self.keys[connection % self.keys.len()].clone()
    }

    /// The processor time that all processes have used so far.
    pub fn cpu(&self) -> io::Result<Duration> {
        self.pids.iter().map(|&pid| cpu::used(pid)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        let addresses = vec!["127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap()];
        Target::new("two", Protocol::Frames, addresses, vec![std::process::id()]).unwrap()
    }

    #[test]
    fn connections_use_the_addresses_in_turns_with_their_keys() {
        let target = target().with_keys(vec![vec![1, 2], vec![3]]).unwrap();
        let ports: Vec<u16> = (0..4).map(|n| target.address(n).port()).collect();
        assert_eq!(ports, [1, 2, 1, 2]);
        assert_eq!((&*target.keys_of(2), &*target.keys_of(3)), (&[1, 2][..], &[3][..]));
    }

    #[test]
    fn an_address_without_keys_is_refused() {
        assert!(target().with_keys(vec![vec![1], vec![]]).is_err());
        assert!(target().with_keys(vec![vec![1]]).is_err());
        assert!(Target::new("none", Protocol::Frames, Vec::new(), Vec::new()).is_err());
    }
}
