//! The note of a new node that it serves nobody before its peers have said that it may.

use crate::saved_json::Formats;
use serde::{Deserialize, Serialize};

/// The name of the file in the directory of a node.
pub(crate) const AWAITS_FILE: &str = "awaits-peers.json";
pub(crate) const AWAITS_FORMATS: Formats = Formats { without_checksum: 0, current: 1 };

/// The content of the file. That it is there says most.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AwaitsPeers {
    format: u32,
    /// Whether a member has said that it knows this node by its name or its address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_known: bool,
}

impl AwaitsPeers {
    pub(crate) const fn new(is_known: bool) -> Self {
        Self { format: AWAITS_FORMATS.current, is_known }
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
    fn a_node_that_awaits_its_peers_does_so_at_the_next_start_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path());
        assert_eq!(files.awaits_peers().unwrap(), None);
        files.forget_peers().unwrap();
        files.note_awaits_peers(false).unwrap();
        drop(files);
        let files = open(dir.path());
        assert_eq!(files.awaits_peers().unwrap(), Some(false));
        let path = dir.path().join(AWAITS_FILE);
        let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 2, AWAITS_FILE, &std::fs::read(&path).unwrap());
        std::fs::write(&path, frozen).unwrap();
        assert_eq!(files.awaits_peers().unwrap(), Some(false));
        files.note_awaits_peers(true).unwrap();
        assert_eq!(files.awaits_peers().unwrap(), Some(true));
        std::fs::write(&path, "nonsense").unwrap();
        assert!(files.awaits_peers().unwrap_err().to_string().contains("remove it"));
        files.forget_peers().unwrap();
        assert_eq!(files.awaits_peers().unwrap(), None);
    }
}
