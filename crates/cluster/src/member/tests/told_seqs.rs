//! Members that tell each other how far their stores were: a store that was set back is found when
//! its member connects. And exchanges, which wait until all primaries have them.

use super::mixed_versions::{places, settle, start_all};
use super::*;
use ombak_kv::DeleteRequest;
use std::io;
use std::path::PathBuf;

async fn delete(node: &MemberNode, key: &str) {
    let request = DeleteRequest {
        bucket: bucket(),
        key: Bytes::copy_from_slice(key.as_bytes()),
        clock: None,
        get: GetOptions { r: Some(Quorum::All), ..GetOptions::default() },
        put: PutOptions { w: Some(Quorum::All), ..PutOptions::default() },
        rw: None,
    };
    assert!(node.kv().delete(request).await.unwrap().found);
}

/// The stores of a member as they were, with links to their files: a copy in other files is
/// noticed.
struct Older {
    dir: PathBuf,
    files: Vec<(PathBuf, PathBuf, Vec<u8>)>,
}

impl Older {
    /// A member that runs may rename a file meanwhile. Then its stores are copied anew.
    fn of(place: &Place) -> Self {
        let until = Instant::now() + PATIENCE;
        loop {
            match Self::try_of(place) {
                Ok(older) => return older,
                Err(why) if why.kind() == io::ErrorKind::NotFound && Instant::now() < until => {}
                Err(why) => panic!("the stores cannot be copied: {why}"),
            }
        }
    }

    fn try_of(place: &Place) -> io::Result<Self> {
        let (dir, links) = (place.path().join("bitcask"), place.path().join("links"));
        if links.exists() {
            std::fs::remove_dir_all(&links)?;
        }
        std::fs::create_dir(&links)?;
        let mut files = Vec::new();
        for (number, path) in files_of(&dir).into_iter().enumerate() {
            let link = links.join(number.to_string());
            std::fs::hard_link(&path, &link)?;
            let bytes = std::fs::read(&path)?;
            files.push((path, link, bytes));
        }
        Ok(Self { dir, files })
    }

    fn put_back(self) {
        files_of(&self.dir).into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
        for (path, link, bytes) in self.files {
            std::fs::rename(link, &path).unwrap();
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

fn files_of(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_of(&path)) } else { files.push(path) }
    }
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_store_was_set_back_finds_out_when_it_connects() {
    let (places, mut nodes) = alone_on_disks(3).await;
    form(&nodes).await;
    for key in ["gone", "kept"] {
        put(&nodes[0], bucket(), key, 3).await.unwrap();
    }
    settle(&nodes).await;
    let older = Older::of(&places[2]);
    delete(&nodes[0], "gone").await;
    settle(&nodes).await;
    end(nodes.pop().unwrap()).await;
    older.put_back();
    nodes.push(places[2].start().await);
    let (host, id) = (nodes[2].kv().repair_host(), nodes[2].kv().identity().node_id);
    // What it has accounted for it notes under its own id.
    until("the store is found to be set back", || !host.transfers().told.of_node(id).is_empty()).await;
    settle(&nodes).await;
    until("the store is full again", || nodes[2].kv().filling_classes().is_empty()).await;
    for node in &nodes {
        assert!(!is_found(node, bucket(), "gone").await, "it came back");
        assert!(is_found(node, bucket(), "kept").await);
    }
    drop(host);
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_restart_are_not_taken_for_set_back() {
    let (places, mut nodes) = alone_on_disks(3).await;
    form(&nodes).await;
    for number in 0..6 {
        let key = format!("k{number}");
        put(&nodes[0], bucket(), &key, 3).await.unwrap();
        delete(&nodes[1], &key).await;
        settle(&nodes).await;
        let node = number % 3;
        end(nodes.remove(node)).await;
        nodes.insert(node, places[node].start().await);
        settle(&nodes).await;
        let kv = nodes[node].kv();
        assert!(kv.repair_host().transfers().told.of_node(kv.identity().node_id).is_empty(), "node {node}");
    }
    stop(&nodes).await;
}

/// The number of exchanges of a member that have ended in full.
fn exchanges(node: &MemberNode) -> u64 {
    let figures = node.node().repair().exchange_figures();
    figures.map_or(0, |figures| figures.classes.into_values().map(|class| class.exchanges).sum())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_with_a_primary_of_an_earlier_version_is_not_exchanged() {
    let mut places = places(&[Speaks::Everything, Speaks::Everything, Speaks::Version1]);
    let mut nodes = start_all(&places).await;
    for (place, node) in places.iter_mut().zip(&nodes) {
        place.listen = node.node().listens_on();
    }
    form(&nodes).await;
    put(&nodes[0], bucket(), "k", 3).await.unwrap();
    delete(&nodes[1], "k").await;
    settle(&nodes).await;
    assert!(nodes[2].node().repair().exchange_figures().is_none(), "version 1 has no exchanges");
    nodes[..2].iter().for_each(|node| node.node().repair().start_exchange_round());
    settle(&nodes).await;
    // Where the ring closes, a home may have only two primaries, and both of this version.
    let placement = nodes[0].kv().placement();
    let third = nodes[2].kv().identity().node_id;
    let without = placement.homes().filter(|home| !home.replica_set(3).contains(&third)).count();
    let before = exchanges(&nodes[0]);
    assert!(before == 0 || without > 0, "{before} exchanges, {without} homes without the third member");
    end(nodes.pop().unwrap()).await;
    places[2].speaks = Speaks::Everything;
    nodes.push(places[2].start().await);
    let begin = || nodes.iter().for_each(|node| node.node().repair().start_exchange_round());
    until("the third member exchanges, and the others with it", || {
        begin();
        exchanges(&nodes[2]) > 0 && exchanges(&nodes[0]) > before
    })
    .await;
    stop(&nodes).await;
}
