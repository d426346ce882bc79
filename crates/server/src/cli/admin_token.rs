//! The admin token that a command sends, and the addresses that it may be sent to.
//!
//! Sending a token gives it away. After a node has ended, any user of the machine may listen on its
//! port. So a command sends the token of a data directory only while a process holds that
//! directory's lock, and only to an address that this process has recorded as its own.

use crate::node::lock::is_held;
use crate::node::record::NodeRecord;
use crate::node::token;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a command knows about the token of a node.
#[derive(Clone, PartialEq, Eq)]
pub enum AdminToken {
    /// The token is known and may be sent.
    Known(String),
    /// The command has no token that it may send.
    Unknown,
    /// This user may not read the node's directory or token, no node runs in the directory that was
    /// named, or the configuration has errors. The text says so, and what to do.
    Unreadable(String),
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known(_) => "Known(…)",
            Self::Unknown => "Unknown",
            Self::Unreadable(_) => "Unreadable(…)",
        })
    }
}

impl AdminToken {
    /// The token to send to the node at `address`. It comes from the environment; otherwise from
    /// the data directory, if the node that runs there listens at that address.
    pub fn find(data_dir: &Path, record: Option<&NodeRecord>, address: SocketAddr) -> Self {
        if let Some(token) = token::of_environment() {
            return Self::Known(token);
        }
        if let Err(e) = std::fs::read_dir(data_dir)
            && e.kind() == io::ErrorKind::PermissionDenied
        {
            return Self::Unreadable(advice(data_dir, data_dir, &e));
        }
        if !record.is_some_and(|record| serves(record, address)) || !is_held(data_dir) {
            return Self::Unknown;
        }
        match token::read(data_dir) {
            Ok(Some(token)) => Self::Known(token),
            Ok(None) => Self::Unknown,
            Err(e) => Self::Unreadable(advice(data_dir, &token::path(data_dir), &e)),
        }
    }

    /// What to do if the token could not be read.
    pub fn unreadable(&self) -> Option<&str> {
        match self {
            Self::Unreadable(advice) => Some(advice),
            _ => None,
        }
    }
}

fn advice(data_dir: &Path, path: &Path, e: &io::Error) -> String {
    let who = match data_dir.metadata() {
        Ok(meta) => format!("the user with the id {}, to whom the data directory belongs", meta.uid()),
        Err(_) => "the node's user".to_owned(),
    };
    format!("cannot read {}: {e}; run the command as {who}", path.display())
}

/// Whether the node of this record serves HTTP at the address.
fn serves(record: &NodeRecord, address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    record.http.iter().any(|listens| {
        let of_this_machine = || listens.ip().is_unspecified() && UdpSocket::bind(SocketAddr::new(ip, 0)).is_ok();
        listens.port() == address.port() && (listens.ip().to_canonical() == ip || of_this_machine())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::lock::DataDirLock;

    fn record(http: &str) -> NodeRecord {
        NodeRecord::of_this_process("n@h", vec![http.parse().expect("address")], Vec::new())
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("address")
    }

    #[test]
    fn a_record_is_of_its_own_addresses() {
        assert!(serves(&record("127.0.0.1:8098"), address("127.0.0.1:8098")));
        assert!(serves(&record("0.0.0.0:8098"), address("127.0.0.1:8098")));
        for (listens, asked) in [
            ("127.0.0.1:8098", "127.0.0.1:8099"),
            ("127.0.0.1:8098", "127.0.0.2:8098"),
            // An address reserved for documentation, which no machine has.
            ("0.0.0.0:8098", "192.0.2.1:8098"),
        ] {
            assert!(!serves(&record(listens), address(asked)), "{listens} {asked}");
        }
    }

    #[test]
    fn the_token_is_not_shown_to_who_took_the_port_of_a_node_that_ended() {
        let dir = tempfile::tempdir().expect("tempdir");
        let token = token::of_node(dir.path()).expect("made");
        let (record, at) = (record("127.0.0.1:8098"), address("127.0.0.1:8098"));
        let find = |at| AdminToken::find(dir.path(), Some(&record), at);
        assert_eq!(find(at), AdminToken::Unknown);
        let lock = DataDirLock::take(dir.path()).expect("free");
        assert_eq!(find(at), AdminToken::Known(token));
        assert_eq!(find(address("127.0.0.1:8099")), AdminToken::Unknown);
        drop(lock);
        assert_eq!(find(at), AdminToken::Unknown);
    }
}
