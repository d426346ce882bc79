//! The join that a node has begun, and that the other cluster may have decided without its
//! knowledge.

use crate::saved_json::Formats;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The name of the file in the directory of a node.
pub(crate) const JOIN_FILE: &str = "join.json";
pub(crate) const JOIN_FORMATS: Formats = Formats { without_checksum: 0, current: 1 };

/// Which cluster may know a node as one that joins, while the node itself is alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedJoin {
    /// The member of the other cluster through which the node has asked to be added.
    pub seed: NodeId,
    /// Where that member listens for its peers.
    pub address: SocketAddr,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedJoin {
    format: u32,
    seed: NodeId,
    address: SocketAddr,
}

impl SavedJoin {
    pub(crate) const fn new(join: &UnfinishedJoin) -> Self {
        Self { format: JOIN_FORMATS.current, seed: join.seed, address: join.address }
    }

    pub(crate) const fn join(&self) -> UnfinishedJoin {
        UnfinishedJoin { seed: self.seed, address: self.address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::NodeDirectory;
    use ombak_fixtures::check_file;
    use ombak_storage::fs::RealFs;
    use std::path::Path;
    use std::sync::Arc;

    fn open(dir: &Path) -> NodeDirectory {
        NodeDirectory::open(Arc::new(RealFs), dir).unwrap()
    }

    #[test]
    fn an_unfinished_join_is_there_at_the_next_start_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path());
        assert_eq!(files.read_unfinished_join().unwrap(), None);
        files.forget_join().unwrap();
        let join = UnfinishedJoin { seed: NodeId::new(u64::MAX), address: "[::1]:8099".parse().unwrap() };
        files.note_join(&join).unwrap();
        drop(files);
        let files = open(dir.path());
        assert_eq!(files.read_unfinished_join().unwrap(), Some(join));
        let path = dir.path().join(JOIN_FILE);
        let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 2, JOIN_FILE, &std::fs::read(&path).unwrap());
        std::fs::write(&path, frozen).unwrap();
        assert_eq!(files.read_unfinished_join().unwrap(), Some(join));
        std::fs::write(&path, "nonsense").unwrap();
        assert!(files.read_unfinished_join().unwrap_err().to_string().contains("remove it"));
        files.forget_join().unwrap();
        assert_eq!(files.read_unfinished_join().unwrap(), None);
    }
}
