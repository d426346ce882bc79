//! The builds of indexes on this node.

use super::association::Association;
use super::index_follower::IndexFollower;
use crate::catalog::{Catalog, IndexRecord};
use crate::config::SearchConfig;
use crate::counts::SearchCounts;
use ombak_kv::BucketRegistry;
use ombak_kv::buckets::Snapshot;
use ombak_kv::hooks::{ChangeConsumer, ConsumerSource};
use ombak_search::schema::Schema;
use ombak_search_index::{Index, IndexError, WriterPool};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::{info, warn};
use xxhash_rust::xxh3::xxh3_64;

/// The folder of the files of an index in the directory of a build.
const DOCUMENTS: &str = "documents";
/// The file with the record of a build.
const RECORD: &str = "index.json";

/// Which build of which index: the incarnation of the index and the number of the build.
type BuildId = (u64, u64);

/// The builds of indexes on this node; see the module of the folder.
pub(crate) struct Builds {
    config: SearchConfig,
    catalog: Arc<Catalog>,
    writers: Arc<WriterPool>,
    counts: Arc<SearchCounts>,
    /// The partitions that the node has.
    partitions: Mutex<BTreeSet<u32>>,
    /// The builds of each index, oldest first. The last one is what the catalog wants.
    open: RwLock<BTreeMap<String, Vec<Arc<IndexFollower>>>>,
    seen: Mutex<Seen>,
    /// Builds whose files are being removed.
    removing: Arc<Mutex<BTreeSet<BuildId>>>,
    /// Whether the records of the node are known.
    is_attached: AtomicBool,
}

/// How the last builds of all indexes stand together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BuildsStanding {
    /// How far the one that is furthest behind is behind its store, where it has everything.
    pub(crate) lag_max: Duration,
    /// The partitions that are read as a whole, summed over all indexes.
    pub(crate) being_read: u64,
}

/// What was looked at last.
#[derive(Default)]
struct Seen {
    /// The state of the registry.
    buckets: Option<Arc<Snapshot>>,
    associations: BTreeMap<Arc<str>, Association>,
    /// Whether the directory was looked through.
    has_looked: bool,
    /// Builds that could not be opened, so that it is said once.
    failed: BTreeSet<BuildId>,
}

impl Builds {
    pub(crate) fn new(config: SearchConfig, catalog: Arc<Catalog>, counts: Arc<SearchCounts>) -> Self {
        let writers = WriterPool::new(config.writer_memory_bytes);
        Self {
            config,
            catalog,
            writers,
            counts,
            partitions: Mutex::default(),
            open: RwLock::default(),
            seen: Mutex::default(),
            removing: Arc::default(),
            is_attached: AtomicBool::new(false),
        }
    }

    /// The records of the node are known from now on: an index that has none does not exist.
    pub(crate) fn attach(&self) {
        self.is_attached.store(true, Ordering::SeqCst);
    }

    /// The build of an index that answers: the last one, unless it does not have everything yet and
    /// another one before it does.
    pub(crate) fn answering(&self, name: &str) -> Option<Arc<IndexFollower>> {
        self.open.read().get(name)?.first().cloned()
    }

    /// All builds of an index that are open, oldest first.
    pub(crate) fn of_index(&self, name: &str) -> Vec<Arc<IndexFollower>> {
        self.open.read().get(name).cloned().unwrap_or_default()
    }

    /// How the last builds of all indexes stand.
    pub(crate) fn standing(&self, now: Instant) -> BuildsStanding {
        let last: Vec<_> = self.open.read().values().filter_map(|builds| builds.last().cloned()).collect();
        let partitions = self.partitions.lock().clone();
        let mut standing = BuildsStanding::default();
        for status in last.iter().map(|build| build.status()) {
            let oldest =
                status.fresh.iter().filter(|(number, _)| partitions.contains(number)).map(|(_, since)| since).min();
            let lag = oldest.map_or(Duration::ZERO, |since| now.saturating_duration_since(*since));
            standing.lag_max = standing.lag_max.max(lag);
            standing.being_read += status.being_told.intersection(&partitions).count() as u64;
        }
        standing
    }

    /// Opens what the catalog wants, and closes what it does not want any more.
    fn follow_catalog(&self, seen: &mut Seen) {
        let wanted = self.catalog.indexes();
        let mut open = self.open.read().clone();
        if !seen.has_looked {
            seen.has_looked = true;
            self.look_through(&wanted, &mut open);
        }
        let mut gone = Vec::new();
        open.retain(|name, builds| {
            let incarnation = wanted.get(name).map(|record| record.incarnation);
            let is_kept =
                |build: &Arc<IndexFollower>| Some(build.record.incarnation) == incarnation && !build.is_damaged();
            let (kept, other) = builds.drain(..).partition(is_kept);
            gone.extend(other);
            *builds = kept;
            !builds.is_empty()
        });
        // Before builds are opened anew that were damaged.
        gone.iter().for_each(|build| self.remove(build));
        for (name, record) in &wanted {
            let builds = open.entry(name.clone()).or_default();
            let is_open = builds.iter().any(|build| build.record.build == record.build);
            let is_going = self.removing.lock().contains(&(record.incarnation, record.build));
            if !is_open
                && !is_going
                && let Some(build) = self.open(name, record, seen)
            {
                builds.push(build);
            }
        }
        open.retain(|_, builds| !builds.is_empty());
        *self.open.write() = open;
    }

    /// Builds before the last one go when it has everything that they have.
    fn drop_outdated(&self, partitions: &BTreeSet<u32>) {
        let mut gone = Vec::new();
        for builds in self.open.write().values_mut() {
            let is_complete = |build: &Arc<IndexFollower>| build.has_everything_of(partitions.iter().copied());
            if builds.len() > 1 && builds.last().is_some_and(is_complete) {
                let last = builds.len() - 1;
                gone.extend(builds.drain(..last));
            }
        }
        for build in gone {
            info!(index = build.name, build = build.record.build, "a build of a search index was replaced");
            self.remove(&build);
        }
    }

    fn directory(&self, record: &IndexRecord) -> PathBuf {
        self.config.dir.join(format!("{:016x}-{}", record.incarnation, record.build))
    }

    /// Opens a build, or begins it. Files that cannot be used are removed: the stores have
    /// everything that is in an index.
    fn open(&self, name: &str, record: &Arc<IndexRecord>, seen: &mut Seen) -> Option<Arc<IndexFollower>> {
        let schema = match Schema::read(&record.xml) {
            Ok(schema) => Arc::new(schema),
            Err(error) => {
                self.failed(name, record, seen, &error);
                return None;
            }
        };
        let directory = self.directory(record);
        let opened = self.open_files(&directory, record, &schema).or_else(|error| {
            if !is_of_no_use(&error) {
                return Err(error);
            }
            warn!(index = name, %error, "the files of a search index are removed, and the index is built anew");
            fs::remove_dir_all(&directory)?;
            self.open_files(&directory, record, &schema)
        });
        match opened {
            Ok(index) => {
                seen.failed.remove(&(record.incarnation, record.build));
                let files = (index, directory.join(RECORD));
                Some(self.follower(name, (record.clone(), schema), files))
            }
            Err(error) => {
                self.failed(name, record, seen, &error);
                None
            }
        }
    }

    fn follower(&self, name: &str, of: (Arc<IndexRecord>, Arc<Schema>), files: (Index, PathBuf)) -> Arc<IndexFollower> {
        Arc::new(IndexFollower::new(name.to_owned(), of, files, self.counts.clone()))
    }

    fn failed(&self, name: &str, record: &IndexRecord, seen: &mut Seen, error: &dyn std::fmt::Display) {
        if seen.failed.insert((record.incarnation, record.build)) {
            warn!(index = name, %error, "a search index cannot be opened; this is tried again");
        }
    }

    fn open_files(&self, directory: &Path, record: &IndexRecord, schema: &Arc<Schema>) -> Result<Index, IndexError> {
        let documents = directory.join(DOCUMENTS);
        fs::create_dir_all(&documents)?;
        let value = record.to_value().map_err(|why| IndexError::Storage(why.to_string()))?;
        let sign = directory.join(RECORD);
        if !fs::read_to_string(&sign).is_ok_and(|present| present == value) {
            fs::write(sign, value)?;
        }
        Index::open(&documents, schema.clone(), xxh3_64(&record.xml), self.writers.clone())
    }

    /// Opens earlier builds that still answer, and removes what belongs to no index.
    fn look_through(
        &self,
        wanted: &BTreeMap<String, Arc<IndexRecord>>,
        open: &mut BTreeMap<String, Vec<Arc<IndexFollower>>>,
    ) {
        let entries = match fs::read_dir(&self.config.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                warn!(%error, "the directory of search indexes cannot be read");
                return;
            }
        };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let id = path.file_name().and_then(|name| build_id(name.to_str()?));
            let Some((incarnation, build)) = id else { continue };
            let of_index = wanted.iter().find(|(_, record)| record.incarnation == incarnation);
            match of_index {
                Some((_, record)) if record.build == build => {}
                Some((name, record)) if build < record.build => match self.open_earlier(name, &path) {
                    Ok(earlier) => open.entry(name.clone()).or_default().push(earlier),
                    Err(error) if is_of_no_use(&error) => remove_directory(&path),
                    Err(error) => warn!(index = name, %error, "an earlier build of a search index is left alone"),
                },
                _ => remove_directory(&path),
            }
        }
        open.values_mut().for_each(|builds| builds.sort_by_key(|build| build.record.build));
    }

    /// Opens a build before the last one, which answers until the last one has everything.
    fn open_earlier(&self, name: &str, directory: &Path) -> Result<Arc<IndexFollower>, IndexError> {
        let value = fs::read_to_string(directory.join(RECORD))?;
        let record = IndexRecord::read(&value).map_err(|why| IndexError::OtherSchema(why.to_string()))?;
        let schema = Schema::read(&record.xml).map_err(|why| IndexError::OtherSchema(why.to_string()))?;
        let (record, schema) = (Arc::new(record), Arc::new(schema));
        let index = self.open_files(directory, &record, &schema)?;
        let files = (index, directory.join(RECORD));
        Ok(self.follower(name, (record, schema), files))
    }

    /// Removes the files of a build when nothing writes to them any more. Nobody waits for that,
    /// and the same build is not opened again before.
    fn remove(&self, build: &Arc<IndexFollower>) {
        let id = (build.record.incarnation, build.record.build);
        self.removing.lock().insert(id);
        let work = {
            let (build, path, removing) = (build.clone(), self.directory(&build.record), self.removing.clone());
            move || {
                build.close();
                remove_directory(&path);
                removing.lock().remove(&id);
            }
        };
        let thread = std::thread::Builder::new().name("ombak-search-files".to_owned());
        if let Err(error) = thread.spawn(work.clone()) {
            warn!(%error, "no thread can be started to remove the files of a search index, so others wait for it");
            work();
        }
    }
}

/// Whether files are of no use any more. Otherwise they may be: a disk can be full, or the process
/// may have too many files.
fn is_of_no_use(error: &IndexError) -> bool {
    matches!(error, IndexError::Damaged(_) | IndexError::OtherSchema(_))
}

fn remove_directory(path: &Path) {
    if let Err(error) = fs::remove_dir_all(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        warn!(path = %path.display(), %error, "the files of a search index cannot be removed");
    }
}

/// The build that a directory has by its name.
fn build_id(name: &str) -> Option<BuildId> {
    let (incarnation, build) = name.split_once('-')?;
    if incarnation.len() != 16 {
        return None;
    }
    Some((u64::from_str_radix(incarnation, 16).ok()?, build.parse().ok()?))
}

impl ConsumerSource for Builds {
    fn consumers(&self, buckets: &BucketRegistry, partitions: &BTreeSet<u32>) -> Option<Vec<Arc<dyn ChangeConsumer>>> {
        if !self.is_attached.load(Ordering::SeqCst) {
            return None;
        }
        let mut seen = self.seen.lock();
        self.follow_catalog(&mut seen);
        self.drop_outdated(partitions);
        self.partitions.lock().clone_from(partitions);
        let now = buckets.snapshot();
        if !seen.buckets.as_ref().is_some_and(|before| Arc::ptr_eq(before, &now)) {
            let users = now.index_users();
            seen.associations = users.iter().map(|(name, users)| (name.clone(), Association::of(users))).collect();
            seen.buckets = Some(Arc::clone(&now));
        }
        let open = self.open.read();
        for build in open.values().flatten() {
            build.set_association(seen.associations.get(&*build.name).cloned().unwrap_or_default());
        }
        Some(open.values().flatten().map(|build| build.clone() as Arc<dyn ChangeConsumer>).collect())
    }
}
