//! `stores.json` in the data directory: which stores a node last served its objects from.
//!
//! A start compares this file with the configuration. It is refused if the configuration would
//! serve an empty database while the objects of the node lie in another directory.
//!
//! What it is: a comparison that happens before any store is opened. It also looks at the
//! directories that each backend uses by default, because a data directory may have been moved or
//! may be older than this file.
//!
//! What it is not: it moves no files. The only file of a store that it reads is the inventory.

use super::Inventories;
use crate::config::BackendSettings;
use ombak_node_files::saved_json::{self, Formats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The versions of the file format.
const FORMATS: Formats = Formats { without_checksum: 1, current: 2 };
const FILE: &str = "stores.json";

/// The directory name of each backend in a data directory where nothing else is configured. Each
/// name is also the backend's word for `storage_backend`.
const DEFAULT_ROOTS: [&str; 4] = ["bitcask", "leveled", "leveldb", "hanoidb"];

/// Where the objects of a data directory lie: the content of `stores.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoresFile {
    format: u32,
    /// The stores that the node last served from.
    stores: Vec<Store>,
    /// The index in `stores` of the store for buckets that name no backend.
    default: usize,
    /// Directories that a conversion has copied to another backend. The node no longer needs their
    /// objects. The name in the file is `left`.
    #[serde(rename = "left")]
    converted_roots: BTreeSet<PathBuf>,
}

/// One store: a backend and its directory, for all partitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Store {
    /// The backend's word for `storage_backend`.
    backend: String,
    /// The directory. It is relative to the data directory if it lies inside it. `None` for the
    /// memory backend.
    data_root: Option<PathBuf>,
}

impl StoresFile {
    /// The stores that the settings describe.
    fn of(data_dir: &Path, settings: &BackendSettings) -> Self {
        let store = |backend: &BackendSettings| Store {
            backend: backend.name().to_owned(),
            data_root: backend.disk().map(|disk| seen_from(data_dir, &disk.data_root)),
        };
        let default = if let BackendSettings::Multi(multi) = settings { multi.default } else { 0 };
        let stores = settings.stores().into_iter().map(|(_, backend)| store(backend)).collect();
        Self { format: FORMATS.current, stores, default, converted_roots: BTreeSet::new() }
    }

    /// Reads the file of a data directory; `None` if there is no file. The error is one line for
    /// the operator.
    fn read(data_dir: &Path) -> Result<Option<Self>, String> {
        let path = data_dir.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let advice = "this file records where the objects of this node lie; put back a copy, or remove the file if you \
                      know that the configuration names the backend with the objects";
        saved_json::from_text(text, FORMATS).map(Some).map_err(|why| format!("{} {why}: {advice}", path.display()))
    }

    /// Replaces the whole file durably: a reader sees either the old file or the new one.
    fn write(&self, data_dir: &Path) -> Result<(), String> {
        let (path, fresh) = (data_dir.join(FILE), data_dir.join("stores.json.new"));
        let replace = || -> io::Result<()> {
            let mut file = fs::File::create(&fresh)?;
            file.write_all(&saved_json::to_text(self)?)?;
            file.sync_all()?;
            fs::rename(&fresh, &path)?;
            fs::File::open(data_dir)?.sync_all()
        };
        replace().map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

/// The result of comparing the settings with the stores that the node last served from.
#[derive(Debug)]
pub struct Compared {
    /// Warnings for the operator, one line each.
    pub warnings: Vec<String>,
    /// The new content of the file; `None` if the file already says the same.
    new: Option<StoresFile>,
    /// The directories whose stores were moved or given up. Their inventories are removed.
    forgotten: Vec<PathBuf>,
}

impl Compared {
    /// Writes the new content to the data directory, if there is any, and removes the inventories
    /// of the directories whose stores were moved or given up.
    pub fn write(&self, data_dir: &Path, inventories: &Inventories) -> Result<(), String> {
        self.new.as_ref().map_or(Ok(()), |recorded| recorded.write(data_dir))?;
        self.forgotten.iter().try_for_each(|root| inventories.forget(root))
    }
}

/// Compares the settings with the stores that the node last served from. This function changes
/// nothing. The error says which objects would not be found.
pub fn compare(data_dir: &Path, settings: &BackendSettings, inventories: &Inventories) -> Result<Compared, String> {
    let earlier = StoresFile::read(data_dir)?;
    let mut now = StoresFile::of(data_dir, settings);
    let converted_roots = earlier.as_ref().map(|recorded| recorded.converted_roots.clone()).unwrap_or_default();
    let in_use = |store: &Store| now.stores.contains(store);
    now.converted_roots = converted_roots
        .into_iter()
        .filter(|root| !now.stores.iter().any(|s| s.data_root.as_ref() == Some(root)))
        .collect();
    let by_default = DEFAULT_ROOTS.map(|word| Store { backend: word.into(), data_root: Some(word.into()) });
    // A store that is not in use counts as abandoned even if the configuration has another backend
    // in the same directory, because that backend cannot read its files. A default directory that
    // another configured backend uses is not checked.
    let known = earlier.iter().flat_map(|recorded| &recorded.stores);
    let elsewhere = by_default.iter().filter(|store| !now.stores.iter().any(|s| s.data_root == store.data_root));
    let (mut warnings, mut forgotten) = (Vec::new(), Vec::new());
    for store in known.chain(elsewhere).filter(|store| !in_use(store)) {
        let Some(root) = store.data_root.as_ref().filter(|root| !now.converted_roots.contains(*root)) else { continue };
        let root = data_dir.join(root);
        if holds_data(&root) {
            return Err(abandoned(&store.backend, &root, settings));
        }
        if forgotten.contains(&root) || !inventories.promise_anything(&root) {
            continue;
        }
        match moved_to(data_dir, store, &root, &now, inventories) {
            Some(place) => warnings.push(moved(&store.backend, &root, &place)),
            None if inventories.accepts_loss() => warnings.push(given_up(&store.backend, &root)),
            None => return Err(missing_stores(&store.backend, &root, settings)),
        }
        // A backend that begins in the same directory still needs the inventory, because the
        // inventory records the loss.
        if !now.stores.iter().any(|other| other.data_root == store.data_root) {
            forgotten.push(root);
        }
    }
    warnings.extend(earlier.iter().filter_map(|earlier| default_changed(data_dir, earlier, &now)));
    let new = Some(now).filter(|now| earlier.as_ref() != Some(now));
    Ok(Compared { warnings, new, forgotten })
}

/// Records that the objects of one backend now lie in the directory of another one.
pub fn record_conversion(data_dir: &Path, backend: &BackendSettings, now_in: &BackendSettings) -> Result<(), String> {
    let Some(disk) = backend.disk() else { return Ok(()) };
    let mut recorded =
        StoresFile::read(data_dir)?.unwrap_or_else(|| StoresFile { format: FORMATS.current, ..StoresFile::default() });
    let root = seen_from(data_dir, &disk.data_root);
    let new = StoresFile::of(data_dir, now_in).stores;
    let default = recorded.stores.get(recorded.default).cloned();
    recorded.stores.retain(|store| store.data_root.as_ref() != Some(&root) && !new.contains(store));
    recorded.converted_roots.retain(|root| !new.iter().any(|store| store.data_root.as_ref() == Some(root)));
    // The new store takes the place of the old one. If the old one was the store of buckets that
    // name no backend, so is the new one.
    let kept = default.and_then(|default| recorded.stores.iter().position(|store| *store == default));
    recorded.default = kept.unwrap_or(recorded.stores.len());
    recorded.stores.extend(new);
    recorded.format = FORMATS.current;
    recorded.converted_roots.insert(root);
    recorded.write(data_dir)?;
    // From here on the old files may disappear: no start needs them.
    Inventories::new(data_dir, false).forget(&disk.data_root)
}

/// Checks that the file of a stopped node can be read. The error says what is damaged.
pub fn examine(data_dir: &Path) -> Result<(), String> {
    StoresFile::read(data_dir).map(|_| ())
}

fn abandoned(backend: &str, root: &Path, settings: &BackendSettings) -> String {
    let (root, wanted) = (root.display(), settings.name());
    format!(
        "objects of this node lie in the {backend} files of {root}, which storage_backend = {wanted} does not use. The \
         node would not find these objects. Configure {backend} with that directory again, or convert the files with \
         'ombak admin backend convert'. To start without the objects, move {root} away and run 'ombak start \
         --accept-loss' once"
    )
}

/// The root in use that the stores of `root` were moved to, if any. `root` itself is no longer
/// used.
fn moved_to(
    data_dir: &Path,
    store: &Store,
    root: &Path,
    now: &StoresFile,
    inventories: &Inventories,
) -> Option<PathBuf> {
    let same_backend = now.stores.iter().filter(|other| other.backend == store.backend);
    let mut places = same_backend.filter_map(|other| other.data_root.as_ref()).map(|place| data_dir.join(place));
    places.find(|place| inventories.have_moved(root, place))
}

fn moved(backend: &str, root: &Path, place: &Path) -> String {
    format!("the {backend} files of this node were moved from {} to {}", root.display(), place.display())
}

fn given_up(backend: &str, root: &Path) -> String {
    format!(
        "the operator has accepted a loss: objects of this node were in the {backend} files of {}, but these files are \
         not there. The node starts without these objects",
        root.display()
    )
}

fn missing_stores(backend: &str, root: &Path, settings: &BackendSettings) -> String {
    let (root, wanted) = (root.display(), settings.name());
    format!(
        "objects of this node were in the {backend} files of {root}, but these files are not there, and storage_backend = \
         {wanted} does not use them. The node would not find these objects. The file system of the directory may not be \
         mounted: mount it and configure {backend} with that directory again. If all files were moved, configure \
         {backend} with their new directory. To start without the objects, run 'ombak start --accept-loss' once"
    )
}

/// The warning for the case that buckets which name no backend now lie in another store, where the
/// objects they had before are not found.
fn default_changed(data_dir: &Path, earlier: &StoresFile, now: &StoresFile) -> Option<String> {
    let (before, after) = (earlier.stores.get(earlier.default)?, now.stores.get(now.default)?);
    let root = data_dir.join(before.data_root.as_ref()?);
    if before == after || !holds_data(&root) {
        return None;
    }
    Some(format!(
        "buckets that name no backend lie in {} from now on. Their objects in the {} files of {} are not found until the \
         bucket property 'backend' or multi_backend.default names that backend again",
        after.backend,
        before.backend,
        root.display()
    ))
}

/// The path of a root relative to the data directory if the root lies inside it, so that a data
/// directory can be moved as a whole.
fn seen_from(data_dir: &Path, root: &Path) -> PathBuf {
    let absolute = |path: &Path| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        fs::canonicalize(&absolute).unwrap_or(absolute)
    };
    let (data_dir, root) = (absolute(data_dir), absolute_below(root, absolute));
    root.strip_prefix(&data_dir).map(Path::to_path_buf).unwrap_or(root)
}

/// The absolute path of a directory that may not exist yet. A missing directory has no canonical
/// path, but its parent may have one.
fn absolute_below(root: &Path, absolute: impl Fn(&Path) -> PathBuf) -> PathBuf {
    match (root.parent().filter(|parent| !root.exists() && !parent.as_os_str().is_empty()), root.file_name()) {
        (Some(parent), Some(name)) => absolute(parent).join(name),
        _ => absolute(root),
    }
}

/// Whether any partition has files with data. A store that never took a write has none.
pub fn holds_data(root: &Path) -> bool {
    let Ok(entries) = fs::read_dir(root) else { return false };
    entries.flatten().any(|entry| {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        match name.strip_suffix(".ledger") {
            Some(number) if is_number(number) => has_files(&path.join("tables"), |_| true),
            None if is_number(&name) => has_files(&path, |name| name.ends_with(".data") || name.ends_with(".fresh")),
            _ => false,
        }
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn has_files(dir: &Path, counts: impl Fn(&str) -> bool) -> bool {
    let Ok(entries) = fs::read_dir(dir) else { return false };
    entries.flatten().any(|entry| counts(&entry.file_name().to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Effective, Overrides, Settings};

    fn settings(dir: &Path, text: &str) -> BackendSettings {
        let text = format!("platform_data_dir = {}\n{text}", dir.display());
        let effective = Effective::merge(Some((Path::new("x.conf"), &text)), &Overrides::default()).expect("valid");
        Settings::new(&effective).expect("valid").backend
    }

    fn start(dir: &Path, text: &str) -> Result<Vec<String>, String> {
        let inventories = Inventories::new(dir, false);
        let compared = compare(dir, &settings(dir, text), &inventories)?;
        compared.write(dir, &inventories)?;
        Ok(compared.warnings)
    }

    fn put_something(root: &Path) {
        fs::create_dir_all(root.join("5")).expect("made");
        fs::write(root.join("5/1.data"), "something").expect("written");
    }

    #[test]
    fn another_backend_is_refused_while_there_is_something_in_the_first() {
        let dir = tempfile::tempdir().expect("tempdir");
        let dir = dir.path();
        assert_eq!(start(dir, "storage_backend = leveled"), Ok(vec![]));
        assert_eq!(start(dir, "storage_backend = bitcask"), Ok(vec![]), "there was nothing");
        put_something(&dir.join("bitcask"));
        for other in ["leveled", "leveldb", "memory"] {
            let said = start(dir, &format!("storage_backend = {other}")).expect_err(other);
            assert!(said.contains("/bitcask, which storage_backend = ") && said.contains("convert"), "{said}");
        }
        assert_eq!(start(dir, "storage_backend = bitcask"), Ok(vec![]));
        fs::remove_dir_all(dir.join("bitcask")).expect("removed");
        assert_eq!(start(dir, "storage_backend = leveldb"), Ok(vec![]));
    }

    #[test]
    fn another_directory_is_refused_too() {
        let dir = tempfile::tempdir().expect("tempdir");
        let other = tempfile::tempdir().expect("tempdir");
        let elsewhere = format!("bitcask.data_root = {}/b", other.path().display());
        assert_eq!(start(dir.path(), &elsewhere), Ok(vec![]));
        put_something(&other.path().join("b"));
        assert!(start(dir.path(), "").is_err());
        assert_eq!(start(dir.path(), &elsewhere), Ok(vec![]));
    }

    #[test]
    fn a_directory_without_the_file_is_looked_through() {
        let dir = tempfile::tempdir().expect("tempdir");
        fs::create_dir_all(dir.path().join("leveldb/12.ledger/tables")).expect("made");
        assert_eq!(start(dir.path(), ""), Ok(vec![]));
        fs::write(dir.path().join("leveldb/12.ledger/tables/0"), "something").expect("written");
        let said = start(dir.path(), "").expect_err("refused");
        assert!(said.contains("leveldb files of"), "{said}");
    }

    #[test]
    fn several_backends_go_on_with_what_one_of_them_has() {
        let dir = tempfile::tempdir().expect("tempdir");
        let dir = dir.path();
        start(dir, "").expect("started");
        put_something(&dir.join("bitcask"));
        let multi = "storage_backend = multi\nmulti_backend.a.storage_backend = bitcask\n\
                     multi_backend.b.storage_backend = leveled\n";
        assert_eq!(start(dir, multi), Ok(vec![]));
        let warnings = start(dir, &format!("{multi}multi_backend.default = b")).expect("a warning");
        assert!(warnings.len() == 1 && warnings[0].contains("lie in leveled from now on"), "{warnings:?}");
        put_something(&dir.join("leveled"));
        assert!(start(dir, "").expect_err("one of two is missing").contains("leveled files of"));
    }

    #[test]
    fn what_was_left_behind_is_in_nobodys_way() {
        let dir = tempfile::tempdir().expect("tempdir");
        let dir = dir.path();
        start(dir, "").expect("started");
        put_something(&dir.join("bitcask"));
        record_conversion(dir, &settings(dir, ""), &settings(dir, "storage_backend = leveled")).expect("noted");
        assert_eq!(start(dir, "storage_backend = leveled"), Ok(vec![]));
        assert_eq!(start(dir, "storage_backend = leveled"), Ok(vec![]));
        assert_eq!(start(dir, ""), Ok(vec![]));
        assert!(start(dir, "storage_backend = leveled").is_err(), "it is in use again");
    }

    #[test]
    fn a_damaged_file_is_named() {
        let dir = tempfile::tempdir().expect("tempdir");
        fs::write(dir.path().join(FILE), "{").expect("written");
        assert!(start(dir.path(), "").expect_err("damaged").contains("stores.json is damaged"));
        fs::write(dir.path().join(FILE), r#"{"format":9,"stores":[],"default":0,"left":[]}"#).expect("written");
        assert!(start(dir.path(), "").expect_err("newer").contains("has format 9"));
        fs::remove_file(dir.path().join(FILE)).expect("removed");
        start(dir.path(), "").expect("started");
        let text = fs::read_to_string(dir.path().join(FILE)).expect("read");
        fs::write(dir.path().join(FILE), text.replace("bitcask", "leveled")).expect("written");
        let said = start(dir.path(), "").expect_err("damaged");
        assert!(said.contains("does not match its checksum") && said.contains("put back a copy"), "{said}");
    }
}
