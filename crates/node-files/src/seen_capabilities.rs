//! What other nodes said last that they can do.

use crate::saved_json::Formats;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the file in the directory of a node.
pub(crate) const CAPABILITIES_FILE: &str = "capabilities.json";
pub(crate) const CAPABILITIES_FORMATS: Formats = Formats { without_checksum: 0, current: 1 };
/// An upper bound: the greatest number of nodes, each with as many long names as a handshake takes.
pub(crate) const CAPABILITIES_BYTES_MAX: u64 = 16 << 20;
/// So many nodes are noted.
const NODES_MAX: usize = 400;

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeenCapabilities {
    format: u32,
    nodes: Vec<Said>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    node: NodeId,
    capabilities: BTreeSet<String>,
}

impl SeenCapabilities {
    pub(crate) fn new(said: &BTreeMap<NodeId, BTreeSet<String>>) -> Self {
        let said = said.iter().take(NODES_MAX);
        let nodes = said.map(|(node, names)| Said { node: *node, capabilities: names.clone() }).collect();
        Self { format: CAPABILITIES_FORMATS.current, nodes }
    }

    pub(crate) fn by_node(self) -> BTreeMap<NodeId, BTreeSet<String>> {
        self.nodes.into_iter().map(|said| (said.node, said.capabilities)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::NodeDirectory;
    use ombak_storage::fs::RealFs;
    use std::path::Path;
    use std::sync::Arc;

    fn open(dir: &Path) -> NodeDirectory {
        NodeDirectory::open(Arc::new(RealFs), dir).unwrap()
    }

    #[test]
    fn what_others_said_that_they_can_do_is_there_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open(dir.path()).read_capabilities().unwrap(), BTreeMap::new());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let said =
            BTreeMap::from([(NodeId::new(7), names(&["members.1", "ring-changes.1"])), (NodeId::new(8), names(&[]))]);
        let files = open(dir.path());
        files.save_capabilities(&said).unwrap();
        drop(files);
        let files = open(dir.path());
        assert_eq!(files.read_capabilities().unwrap(), said);
        let long: BTreeSet<String> = (0..256).map(|number| format!("{number:064}")).collect();
        files.save_capabilities(&(0..1000).map(|node| (NodeId::new(node), long.clone())).collect()).unwrap();
        assert_eq!(files.read_capabilities().unwrap().len(), 400, "the file can be read");
        std::fs::write(dir.path().join(CAPABILITIES_FILE), "nonsense").unwrap();
        assert!(files.read_capabilities().unwrap_err().to_string().contains("remove it"));
    }
}
