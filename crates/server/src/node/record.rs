//! The file `running.json` in the data directory, with which the command line finds a running node.

use serde::{Deserialize, Serialize};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The version of the file format that this program writes and reads.
const VERSION: u32 = 1;

/// The addresses of a running node. The record is written when the node is ready and removed when
/// it stops. A killed node leaves it behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The version of the file format.
    pub version: u32,
    /// The name of the node, from `nodename`.
    pub name: String,
    /// The process id.
    pub pid: u32,
    /// The addresses that serve HTTP.
    pub http: Vec<SocketAddr>,
    /// The addresses that serve HTTPS. Records of older nodes have none.
    #[serde(default)]
    pub https: Vec<SocketAddr>,
    /// The addresses that serve Protocol Buffers.
    pub pb: Vec<SocketAddr>,
}

impl NodeRecord {
    /// The record of this process.
    pub fn of_this_process(name: &str, http: Vec<SocketAddr>, pb: Vec<SocketAddr>) -> Self {
        Self { version: VERSION, name: name.to_owned(), pid: std::process::id(), http, https: Vec::new(), pb }
    }

    /// The same of a node that serves HTTPS, too.
    #[must_use]
    pub fn with_https(self, https: Vec<SocketAddr>) -> Self {
        Self { https, ..self }
    }

    /// The path of the file in a data directory.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("running.json")
    }

    /// Reads the file of a data directory. `None` if there is no file or it does not have this
    /// format.
    pub fn read(data_dir: &Path) -> Option<Self> {
        let text = std::fs::read(Self::path(data_dir)).ok()?;
        serde_json::from_slice::<Self>(&text).ok().filter(|record| record.version == VERSION)
    }

    /// Replaces the whole file: a reader sees either the old file or the new one.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        let fresh = data_dir.join("running.json.new");
        std::fs::write(&fresh, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(&fresh, Self::path(data_dir))
    }

    /// Removes the file.
    pub fn remove(data_dir: &Path) -> io::Result<()> {
        std::fs::remove_file(Self::path(data_dir))
    }
}

/// The address to connect to for an address that is listened on. A listener on all addresses is
/// reached on the loopback address.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_other_versions_are_not() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert_eq!(NodeRecord::read(dir.path()), None);
        let mut record = NodeRecord::of_this_process("n@h", vec!["0.0.0.0:1".parse().expect("addr")], vec![]);
        record.write(dir.path()).expect("write");
        assert_eq!(NodeRecord::read(dir.path()), Some(record.clone()));
        let text = r#"{"version":1,"name":"n@h","pid":7,"http":[],"pb":[]}"#;
        std::fs::write(NodeRecord::path(dir.path()), text).expect("write");
        assert_eq!(NodeRecord::read(dir.path()).expect("an older record").https, []);
        record.version = 2;
        record.write(dir.path()).expect("write");
        assert_eq!(NodeRecord::read(dir.path()), None);
    }

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_loopback() {
        for (listens, reached) in [("0.0.0.0:5", "127.0.0.1:5"), ("[::]:5", "[::1]:5"), ("10.0.0.1:5", "10.0.0.1:5")] {
            assert_eq!(reachable(listens.parse().expect("addr")), reached.parse().expect("addr"));
        }
    }
}
