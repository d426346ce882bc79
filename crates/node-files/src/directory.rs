//! The directory of a node.

use crate::awaits_peers::{AWAITS_FILE, AWAITS_FORMATS, AwaitsPeers};
use crate::error::NodeFileError;
use crate::identity::{Identity, OwnMetadata};
use crate::milestones::{Milestone, Milestones};
use crate::saved_file::read_saved;
use crate::saved_json::{self, Formats};
use crate::saved_placement::{PLACEMENT_BYTES_MAX, PLACEMENT_FILE, PLACEMENT_FORMATS, SavedPlacement};
use crate::seen_capabilities::{CAPABILITIES_BYTES_MAX, CAPABILITIES_FILE, CAPABILITIES_FORMATS, SeenCapabilities};
use crate::seen_milestones::{SEEN_FILE, SEEN_FORMATS, SeenMilestones};
use crate::unfinished_join::{JOIN_FILE, JOIN_FORMATS, SavedJoin, UnfinishedJoin};
use ombak_storage::fs::{FileLock, FileSystem, replace_file};
use ombak_types::NodeId;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

const IDENTITY_FORMATS: Formats = Formats { without_checksum: 1, current: 3 };
/// The name of the identity file in the directory of a node.
pub const IDENTITY_FILE: &str = "node.json";
/// The file that marks a data directory while a restore into it is incomplete. No node starts in
/// such a directory.
pub const INCOMPLETE_RESTORE: &str = "restore.incomplete";
/// Earlier versions wrote this file at a clean stop, and continued with the same actor after it.
const CLEAN_MARK: &str = "clean.json";
const LOCK: &str = "node.lock";
/// An upper bound: every file of a node is far shorter.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The directory of a node, locked for this process.
pub struct NodeDirectory {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// As it is on disk; `None` before the start.
    identity: Mutex<Option<Identity>>,
    /// The lock is released when this is dropped.
    _lock: Box<dyn FileLock>,
}

impl NodeDirectory {
    /// Locks the directory; creates it if it is missing.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, NodeFileError> {
        fs.create_dir_all(dir).map_err(io_error("create", dir))?;
        check_restored(&*fs, dir)?;
        if let Some(parent) = dir.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs.sync_dir(parent).map_err(io_error("sync", parent))?;
        }
        let path = dir.join(LOCK);
        let lock = fs.lock(&path).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => NodeFileError::InUse(dir.to_owned()),
            _ => NodeFileError::Io { op: "lock", path, source },
        })?;
        Ok(Self { fs, dir: dir.to_owned(), identity: Mutex::default(), _lock: lock })
    }

    /// Checks whether the node may start with a ring of this size. Changes nothing.
    pub fn check(&self, ring_size: u32) -> Result<(), NodeFileError> {
        identity_for(&*self.fs, &self.dir, ring_size).map(drop)
    }

    /// Starts the node: reads or creates its identity, increments the boot number, and draws a
    /// milestone.
    pub fn start(&self, ring_size: u32) -> Result<Identity, NodeFileError> {
        let mut identity = match identity_for(&*self.fs, &self.dir, ring_size)? {
            Some(found) => Identity { format: IDENTITY_FORMATS.current, boot: found.boot + 1, ..found },
            None => Identity {
                format: IDENTITY_FORMATS.current,
                node_id: NodeId::new(random_u64(&*self.fs)?),
                ring_lineage: random_u64(&*self.fs)?,
                ring_size,
                boot: 1,
                milestones: Milestones::default(),
                metadata: OwnMetadata::None,
                is_restored: false,
                was_removed: false,
            },
        };
        identity.milestones.add(random_u64(&*self.fs)?, identity.boot);
        self.replace(IDENTITY_FILE, &identity)?;
        *self.identity.lock() = Some(identity.clone());
        Ok(identity)
    }

    /// The identity as it is on disk; `None` before the start.
    pub fn identity(&self) -> Option<Identity> {
        self.identity.lock().clone()
    }

    /// Draws another milestone. When this returns, it is durable. Blocks.
    pub fn draw_milestone(&self) -> Result<(), NodeFileError> {
        let token = random_u64(&*self.fs)?;
        self.change(|identity| identity.milestones.add(token, identity.boot))
    }

    /// Notes that the cluster has recorded a milestone of this directory. Blocks.
    pub fn note_recorded(&self, milestone: Milestone) -> Result<(), NodeFileError> {
        self.change(|identity| identity.milestones.note_recorded(milestone))
    }

    /// Notes which metadata belongs to this directory. Blocks.
    pub fn note_metadata(&self, metadata: OwnMetadata) -> Result<(), NodeFileError> {
        self.change(|identity| identity.metadata = metadata)
    }

    /// Notes that this directory is older than what the members of its cluster know. Blocks.
    pub fn note_restored(&self) -> Result<(), NodeFileError> {
        self.change(|identity| identity.is_restored = true)
    }

    /// Notes that the node was removed from its cluster. Blocks.
    pub fn note_removed(&self) -> Result<(), NodeFileError> {
        self.change(|identity| identity.was_removed = true)
    }

    /// The last milestones with which other nodes went on, as far as this one has seen them.
    /// Blocks.
    pub fn read_seen_milestones(&self) -> Result<BTreeMap<NodeId, Milestone>, NodeFileError> {
        let found = read::<SeenMilestones>(&*self.fs, &self.dir, SEEN_FILE, SEEN_FORMATS)?;
        Ok(found.unwrap_or_default().by_node())
    }

    /// Saves the last milestones with which other nodes went on. When this returns, they are
    /// durable. Blocks.
    pub fn save_seen_milestones(&self, seen: &BTreeMap<NodeId, Milestone>) -> Result<(), NodeFileError> {
        self.replace(SEEN_FILE, &SeenMilestones::new(seen))
    }

    /// The last placement of the homes that this node has adopted. Blocks.
    pub fn read_placement<T: DeserializeOwned>(&self) -> Result<Option<T>, NodeFileError> {
        let path = self.dir.join(PLACEMENT_FILE);
        let remedy = "remove it: the node takes the placement from its metadata";
        let found = read_saved::<SavedPlacement<T>>(&*self.fs, path, PLACEMENT_BYTES_MAX, PLACEMENT_FORMATS, remedy)?;
        Ok(found.map(|saved| saved.placement))
    }

    /// Saves the placement that this node adopts. When this returns, it is durable. Blocks.
    pub fn save_placement<T: Serialize>(&self, placement: &T) -> Result<(), NodeFileError> {
        self.replace(PLACEMENT_FILE, &SavedPlacement::new(placement))
    }

    /// What other nodes said last that they can do, as far as this one has heard. Blocks.
    pub fn read_capabilities(&self) -> Result<BTreeMap<NodeId, BTreeSet<String>>, NodeFileError> {
        let path = self.dir.join(CAPABILITIES_FILE);
        let remedy = "remove it: the others say again what they can do";
        let found =
            read_saved::<SeenCapabilities>(&*self.fs, path, CAPABILITIES_BYTES_MAX, CAPABILITIES_FORMATS, remedy)?;
        Ok(found.unwrap_or_default().by_node())
    }

    /// Saves what other nodes said last that they can do. When this returns, it is durable. Blocks.
    pub fn save_capabilities(&self, said: &BTreeMap<NodeId, BTreeSet<String>>) -> Result<(), NodeFileError> {
        self.replace(CAPABILITIES_FILE, &SeenCapabilities::new(said))
    }

    /// The join that may have been decided without this node's knowledge. Blocks.
    pub fn read_unfinished_join(&self) -> Result<Option<UnfinishedJoin>, NodeFileError> {
        let path = self.dir.join(JOIN_FILE);
        let remedy = "remove it, and take back the join of this node in the cluster that knows it as one that joins";
        let found = read_saved::<SavedJoin>(&*self.fs, path, FILE_BYTES_MAX, JOIN_FORMATS, remedy)?;
        Ok(found.map(|saved| saved.join()))
    }

    /// Notes that a cluster may add this node from now on. When this returns, it is durable.
    /// Blocks.
    pub fn note_join(&self, join: &UnfinishedJoin) -> Result<(), NodeFileError> {
        self.replace(JOIN_FILE, &SavedJoin::new(join))
    }

    /// Removes that note. After a loss of power it may be there again. Blocks.
    pub fn forget_join(&self) -> Result<(), NodeFileError> {
        self.remove(JOIN_FILE)
    }

    /// Whether this node is new, and serves nobody before its peers have said that it may: then
    /// whether a member has said that it knows it. Blocks.
    pub fn awaits_peers(&self) -> Result<Option<bool>, NodeFileError> {
        let path = self.dir.join(AWAITS_FILE);
        let remedy = "remove it if this node is to go on as a cluster of its own";
        let found = read_saved::<AwaitsPeers>(&*self.fs, path, FILE_BYTES_MAX, AWAITS_FORMATS, remedy)?;
        Ok(found.map(|found| found.is_known))
    }

    /// Notes that. When this returns, it is durable. Blocks.
    pub fn note_awaits_peers(&self, is_known: bool) -> Result<(), NodeFileError> {
        self.replace(AWAITS_FILE, &AwaitsPeers::new(is_known))
    }

    /// Removes that note. After a loss of power it may be there again. Blocks.
    pub fn forget_peers(&self) -> Result<(), NodeFileError> {
        self.remove(AWAITS_FILE)
    }

    /// Changes the identity on disk, and then here.
    fn change(&self, change: impl FnOnce(&mut Identity)) -> Result<(), NodeFileError> {
        let mut known = self.identity.lock();
        let Some(identity) = &mut *known else { return Ok(()) };
        let mut next = identity.clone();
        change(&mut next);
        if next != *identity {
            self.replace(IDENTITY_FILE, &next)?;
            *identity = next;
        }
        Ok(())
    }

    /// Removes the file that earlier versions wrote at a clean stop. Nothing reads it any more.
    pub fn remove_clean_mark(&self) {
        if let Err(error) = self.remove(CLEAN_MARK) {
            warn!(%error, "an obsolete file cannot be removed");
        }
    }

    fn remove(&self, name: &str) -> Result<(), NodeFileError> {
        let path = self.dir.join(name);
        match self.fs.remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path)(e)),
            _ => Ok(()),
        }
    }

    fn replace<T: Serialize>(&self, name: &str, value: &T) -> Result<(), NodeFileError> {
        replace(&*self.fs, &self.dir, name, value)
    }
}

fn replace<T: Serialize>(fs: &dyn FileSystem, dir: &Path, name: &str, value: &T) -> Result<(), NodeFileError> {
    let path = dir.join(name);
    let text = saved_json::to_text(value).map_err(io::Error::from).map_err(io_error("write", &path))?;
    replace_file(fs, &path, &text).map_err(io_error("write", &path))
}

/// Checks whether a node with this ring may start in a directory, as far as the directory shows.
/// Changes nothing.
pub fn check_directory(fs: &dyn FileSystem, dir: &Path, ring_size: u32) -> Result<(), NodeFileError> {
    check_restored(fs, dir)?;
    identity_for(fs, dir, ring_size).map(drop)
}

/// Refuses a directory with an unfinished restore.
fn check_restored(fs: &dyn FileSystem, dir: &Path) -> Result<(), NodeFileError> {
    let marker = dir.join(INCOMPLETE_RESTORE);
    match fs.file_identity(&marker) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(NodeFileError::Io { op: "read", path: marker, source }),
        Ok(_) => {
            let what = "'ombak restore' has not finished here: empty the directory and run it again".into();
            Err(NodeFileError::Unusable { path: marker, what })
        }
    }
}

/// The identity of the node in a directory, if there is one. Fails when its ring has another size.
fn identity_for(fs: &dyn FileSystem, dir: &Path, ring_size: u32) -> Result<Option<Identity>, NodeFileError> {
    let found = read::<Identity>(fs, dir, IDENTITY_FILE, IDENTITY_FORMATS)?;
    match found {
        Some(Identity { ring_size: found, .. }) if found != ring_size => {
            Err(NodeFileError::OtherRingSize { dir: dir.to_owned(), found, configured: ring_size })
        }
        found => Ok(found),
    }
}

/// The identity in the directory of a stopped node; `None` if there is none.
pub fn read_identity(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Identity>, NodeFileError> {
    read(fs, dir, IDENTITY_FILE, IDENTITY_FORMATS)
}

/// Gives the node in the directory of a stopped node a new id, under which it belongs to no
/// cluster.
pub fn begin_anew(fs: &dyn FileSystem, dir: &Path) -> Result<(), NodeFileError> {
    let Some(found) = read_identity(fs, dir)? else { return Ok(()) };
    let anew = Identity {
        format: IDENTITY_FORMATS.current,
        node_id: NodeId::new(random_u64(fs)?),
        ring_lineage: random_u64(fs)?,
        milestones: Milestones::default(),
        metadata: OwnMetadata::None,
        is_restored: false,
        was_removed: false,
        ..found
    };
    replace(fs, dir, IDENTITY_FILE, &anew)
}

/// Examines the identity in the directory of a stopped node. The error says what is damaged.
pub fn examine_identity(fs: &dyn FileSystem, dir: &Path) -> Option<NodeFileError> {
    match read::<Identity>(fs, dir, IDENTITY_FILE, IDENTITY_FORMATS) {
        Ok(Some(_)) => None,
        Ok(None) => {
            let what = "is missing: the next start takes this for a new node; put back the copy of your last backup";
            Some(NodeFileError::Unusable { path: dir.join(IDENTITY_FILE), what: what.into() })
        }
        Err(error) => Some(error),
    }
}

/// Reads a file of a directory; `None` when it does not exist.
fn read<T: DeserializeOwned>(
    fs: &dyn FileSystem,
    dir: &Path,
    name: &str,
    formats: Formats,
) -> Result<Option<T>, NodeFileError> {
    let remedy = "put back the copy of your last backup of this file";
    read_saved(fs, dir.join(name), FILE_BYTES_MAX, formats, remedy)
}

fn random_u64(fs: &dyn FileSystem) -> Result<u64, NodeFileError> {
    fs.machine().random_u64().map_err(|e| NodeFileError::NoRandomBytes(e.to_string()))
}

fn io_error(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> NodeFileError {
    let path = path.to_owned();
    move |source| NodeFileError::Io { op, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    fn open(dir: &Path) -> Result<NodeDirectory, NodeFileError> {
        NodeDirectory::open(Arc::new(RealFs), dir)
    }

    #[test]
    fn boots_are_counted_and_identity_stays() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path()).unwrap().start(64).unwrap();
        assert_eq!(first.boot, 1);
        let second = open(dir.path()).unwrap().start(64).unwrap();
        assert_eq!(second, Identity { boot: 2, milestones: second.milestones.clone(), ..first.clone() });
        assert!(first.milestones.newest() < second.milestones.newest());
        assert!(second.milestones.has_passed(first.milestones.newest().unwrap()));
    }

    #[test]
    fn what_a_running_node_notes_is_there_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        files.note_restored().unwrap();
        assert_eq!(files.identity(), None, "before the start there is nothing to note");
        files.start(64).unwrap();
        files.draw_milestone().unwrap();
        let newest = files.identity().unwrap().milestones.newest().unwrap();
        files.note_recorded(newest).unwrap();
        files.note_metadata(OwnMetadata::Member).unwrap();
        files.note_restored().unwrap();
        files.note_removed().unwrap();
        let before = files.identity().unwrap();
        assert!(before.milestones.is_newest_recorded());
        drop(files);
        let after = open(dir.path()).unwrap().start(64).unwrap();
        assert!(after.milestones.has_passed(newest) && !after.milestones.is_newest_recorded());
        assert_eq!((after.metadata, after.is_restored, after.was_removed), (OwnMetadata::Member, true, true));
    }

    #[test]
    fn what_a_node_has_seen_of_others_is_there_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        assert_eq!(files.read_seen_milestones().unwrap(), BTreeMap::new());
        let seen = BTreeMap::from([(NodeId::new(7), Milestone { number: 3, token: u64::MAX })]);
        files.save_seen_milestones(&seen).unwrap();
        drop(files);
        assert_eq!(open(dir.path()).unwrap().read_seen_milestones().unwrap(), seen);
        let many =
            (0..100_000).map(|node| (NodeId::new(node), Milestone { number: u64::MAX, token: u64::MAX })).collect();
        let files = open(dir.path()).unwrap();
        files.save_seen_milestones(&many).unwrap();
        assert!(!files.read_seen_milestones().unwrap().is_empty(), "the file can be read");
        std::fs::write(dir.path().join(SEEN_FILE), "nonsense").unwrap();
        assert!(matches!(files.read_seen_milestones(), Err(NodeFileError::Unusable { .. })));
    }

    #[test]
    fn the_last_placement_is_there_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        assert_eq!(files.read_placement::<Vec<u32>>().unwrap(), None);
        // Far longer than the other files, as the placement of the largest ring is.
        let placement: Vec<u32> = (0..20_000).collect();
        files.save_placement(&placement).unwrap();
        drop(files);
        let files = open(dir.path()).unwrap();
        assert_eq!(files.read_placement().unwrap(), Some(placement));
        std::fs::write(dir.path().join(PLACEMENT_FILE), "nonsense").unwrap();
        let said = files.read_placement::<Vec<u32>>().unwrap_err().to_string();
        assert!(said.contains("placement.json") && said.contains("remove it"), "{said}");
    }

    /// Format 1 of the file. A released version wrote such bytes.
    #[test]
    fn format_1_of_the_placement_stays_readable() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        let fixture = include_bytes!("../tests/fixtures/format-1/placement.json");
        std::fs::write(dir.path().join(PLACEMENT_FILE), fixture).unwrap();
        let placement: BTreeMap<String, u32> = files.read_placement().unwrap().unwrap();
        assert_eq!(placement, [("a placement".to_owned(), 7)].into());
        files.save_placement(&placement).unwrap();
        assert_eq!(std::fs::read(dir.path().join(PLACEMENT_FILE)).unwrap(), fixture);
    }

    #[test]
    fn a_node_keeps_the_id_that_any_earlier_version_has_stored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(IDENTITY_FILE);
        let first_version = r#"{"format": 1, "node_id": "02fbd2530c221c18", "ring_lineage": "000000000000000a",
            "ring_size": 64, "boot": 2}"#;
        std::fs::write(&path, first_version).unwrap();
        let identity = open(dir.path()).unwrap().start(64).unwrap();
        assert_eq!((identity.node_id, identity.boot), (NodeId::new(0x02fb_d253_0c22_1c18), 3));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"node_id\": \"02fbd2530c221c18\""), "{text}");
        assert_eq!(open(dir.path()).unwrap().start(64).unwrap().node_id, identity.node_id);
    }

    #[test]
    fn a_directory_that_begins_anew_belongs_to_another_node() {
        let dir = tempfile::tempdir().unwrap();
        begin_anew(&RealFs, dir.path()).unwrap();
        assert_eq!(read_identity(&RealFs, dir.path()).unwrap(), None);
        let files = open(dir.path()).unwrap();
        let before = files.start(64).unwrap();
        files.note_metadata(OwnMetadata::Member).unwrap();
        files.note_restored().unwrap();
        drop(files);
        begin_anew(&RealFs, dir.path()).unwrap();
        let after = open(dir.path()).unwrap().start(64).unwrap();
        assert_ne!((after.node_id, after.ring_lineage), (before.node_id, before.ring_lineage));
        assert_eq!((after.metadata, after.is_restored, after.boot), (OwnMetadata::None, false, 2));
        assert!(!after.milestones.has_passed(before.milestones.newest().unwrap()));
    }

    #[test]
    fn format_2_stays_readable() {
        let dir = tempfile::tempdir().unwrap();
        let fixture = include_bytes!("../tests/fixtures/format-2/node.json");
        std::fs::write(dir.path().join(IDENTITY_FILE), fixture).unwrap();
        let identity = open(dir.path()).unwrap().start(64).unwrap();
        assert_eq!((identity.node_id, identity.boot, identity.format), (NodeId::new(0x02fb_d253_0c22_1c18), 8, 3));
        assert_eq!((identity.metadata, identity.is_restored), (OwnMetadata::None, false));
        assert_eq!(identity.milestones.newest().map(|newest| newest.number), Some(8));
    }

    #[test]
    fn the_clean_mark_of_an_earlier_version_is_removed_whatever_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        let mark = dir.path().join(CLEAN_MARK);
        for text in ["{\"format\": 2, \"boot\": 1, \"actor\": \"7\", \"next_ticket\": 5}", "nonsense"] {
            std::fs::write(&mark, text).unwrap();
            files.remove_clean_mark();
            assert!(!mark.exists());
        }
        files.remove_clean_mark();
    }

    #[test]
    fn damaged_files_are_named_and_a_missing_identity_is() {
        let dir = tempfile::tempdir().unwrap();
        let examine = || examine_identity(&RealFs, dir.path()).iter().map(ToString::to_string).collect::<Vec<_>>();
        let missing = examine();
        assert!(missing.len() == 1 && missing[0].contains("node.json: is missing"), "{missing:?}");
        let files = open(dir.path()).unwrap();
        files.start(64).unwrap();
        assert_eq!(examine(), Vec::<String>::new());
        let path = dir.path().join(IDENTITY_FILE);
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, good.replace("\"boot\": 1", "\"boot\": 3")).unwrap();
        let said = examine();
        assert!(said.len() == 1 && said[0].contains("node.json: is damaged"), "{said:?}");
    }

    #[test]
    fn a_second_process_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let _first = open(dir.path()).unwrap();
        assert!(matches!(open(dir.path()), Err(NodeFileError::InUse(_))));
    }

    #[test]
    fn another_ring_size_or_format_is_refused_with_what_would_be_right() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        files.start(64).unwrap();
        let text = files.start(128).unwrap_err().to_string();
        assert!(text.contains("set ring_size = 64"), "{text}");
        std::fs::write(dir.path().join(IDENTITY_FILE), "{\"format\": 9}").unwrap();
        let text = files.start(64).unwrap_err().to_string();
        assert!(text.contains("format 9"), "{text}");
        std::fs::write(dir.path().join(IDENTITY_FILE), "nonsense").unwrap();
        assert!(matches!(files.start(64), Err(NodeFileError::Unusable { .. })));
    }
}
