//! The backend of a node and its options, from `storage_backend` and the keys of the backends.

use super::effective::Effective;
use super::keys::{SINGLE_BACKENDS, split_of_several};
use super::ledger_memory::LedgerMemory;
use super::problem::Problem;
use super::reader::Reader;
use super::stores::{bitcask, leveldb, leveled, memory};
use super::value::backend_prefixes;
use ombak_storage::{JournalConfig, LedgerConfig, MemoryConfig};
use std::path::{Path, PathBuf};

/// The backend of a node and its options.
#[derive(Clone, Debug)]
pub enum BackendSettings {
    /// Bitcask: append-only files, with every key in memory.
    Bitcask(DiskSettings),
    /// Leveled: values in a journal, keys and heads in a ledger.
    Leveled(DiskSettings),
    /// Leveldb: keys and values in an ordered tree on disk.
    Leveldb(DiskSettings),
    /// Hanoidb: the leveldb backend under another name and in another directory.
    Hanoidb(DiskSettings),
    /// Memory: nothing survives a restart.
    Memory(MemoryConfig),
    /// Several backends at once.
    Multi(MultiSettings),
}

/// A backend with files.
#[derive(Clone, Debug)]
pub struct DiskSettings {
    /// The directory that holds one store for each partition.
    pub data_root: PathBuf,
    /// The configuration key that names this directory.
    pub data_root_key: String,
    /// Settings of the append-only files.
    pub journal: JournalConfig,
    /// Settings of the ordered index.
    pub ledger: LedgerConfig,
    /// The file that slows the disk down in tests, unless the key is not set.
    pub delay_file: Option<PathBuf>,
    /// The directory in memory for the append marks of the stores, unless the key is `off`.
    pub append_marks_dir: Option<PathBuf>,
    /// The number of partitions of the node's ring.
    pub partitions: u32,
}

/// Several backends at once, with the rules that choose one for each bucket.
#[derive(Clone, Debug)]
pub struct MultiSettings {
    /// Whether prefixes of bucket names choose a backend, as `prefix_multi` says.
    pub by_prefix: bool,
    /// The backends with their names. There is at least one, and none of them is itself
    /// [`BackendSettings::Multi`].
    pub backends: Vec<(String, BackendSettings)>,
    /// The index in `backends` of the backend for buckets that name none.
    pub default: usize,
    /// Prefixes of untyped buckets, each with the index of its backend. The first prefix that
    /// matches counts.
    pub prefixes: Vec<(Vec<u8>, usize)>,
}

impl BackendSettings {
    /// The backend that `storage_backend` names.
    pub(super) fn of_node(from: &Reader<'_>) -> Result<Self, Problem> {
        match from.text("storage_backend")?.as_str() {
            word @ ("multi" | "prefix_multi") => Ok(Self::Multi(multi(from, word == "prefix_multi")?)),
            word => Self::from_name(from, word, 1),
        }
    }

    /// One backend of this node by its name, for tools that read one backend and write another. The
    /// name is a word for `storage_backend`, or a name from `multi_backend.NAME.storage_backend`.
    /// The word takes precedence over the name.
    pub fn named(effective: &Effective, name: &str) -> Result<Self, Problem> {
        let from = Reader::new(effective);
        if SINGLE_BACKENDS.contains(&name) {
            return Self::from_name(&from, name, 1);
        }
        // The names may be used while the node runs on a single backend. Only `storage_backend =
        // multi` itself excludes prefixes.
        let by_prefix = from.text("storage_backend")? != "multi";
        let is_riak_cs = by_prefix && from.optional("cs_version").is_some();
        let has_names = is_riak_cs || !declared(&from).is_empty();
        let several = if has_names { multi(&from, by_prefix)?.backends } else { Vec::new() };
        let names = several.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ");
        let found = several.into_iter().find(|(other, _)| other == name);
        found.map(|(_, backend)| backend).ok_or_else(|| {
            let words = SINGLE_BACKENDS.join(", ");
            let configured = if names.is_empty() { String::new() } else { format!(", or a configured name ({names})") };
            Problem::whole(format!("there is no backend '{name}'; it is one of {words}{configured}"))
        })
    }

    /// Reads one backend, named by its word for `storage_backend`. `backends_sharing`: how many
    /// backends of the node share the memory that is set for all leveldb backends together.
    fn from_name(from: &Reader<'_>, word: &str, backends_sharing: u64) -> Result<Self, Problem> {
        let memory_of = |from| LedgerMemory::of_leveldb(from, backends_sharing);
        Ok(match word {
            "memory" => Self::Memory(memory(from)),
            "leveled" => Self::Leveled(leveled(from)?),
            "leveldb" => Self::Leveldb(leveldb(from, "leveldb.data_root", &memory_of(from)?)?),
            "hanoidb" => Self::Hanoidb(leveldb(from, "hanoidb.data_root", &memory_of(from)?)?),
            "bitcask" => Self::Bitcask(bitcask(from)?),
            unknown => return Err(Problem::whole(format!("there is no backend '{unknown}'"))),
        })
    }

    /// The word for `storage_backend`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bitcask(_) => "bitcask",
            Self::Leveled(_) => "leveled",
            Self::Leveldb(_) => "leveldb",
            Self::Hanoidb(_) => "hanoidb",
            Self::Memory(_) => "memory",
            Self::Multi(MultiSettings { by_prefix: false, .. }) => "multi",
            Self::Multi(MultiSettings { by_prefix: true, .. }) => "prefix_multi",
        }
    }

    /// The files and options of a single backend with files; `None` for memory and for several
    /// backends.
    pub const fn disk(&self) -> Option<&DiskSettings> {
        match self {
            Self::Bitcask(disk) | Self::Leveled(disk) | Self::Leveldb(disk) | Self::Hanoidb(disk) => Some(disk),
            Self::Memory(_) | Self::Multi(_) => None,
        }
    }

    /// The same backend in another directory.
    pub fn in_directory(&self, data_root: PathBuf) -> Self {
        let mut moved = self.clone();
        if let Self::Bitcask(disk) | Self::Leveled(disk) | Self::Leveldb(disk) | Self::Hanoidb(disk) = &mut moved {
            disk.data_root = data_root;
        }
        moved
    }

    /// The single backends of the node with their names. A node with one backend has one entry,
    /// named by its word for `storage_backend`.
    pub fn stores(&self) -> Vec<(&str, &Self)> {
        match self {
            Self::Multi(multi) => multi.backends.iter().map(|(name, backend)| (name.as_str(), backend)).collect(),
            one => vec![(one.name(), one)],
        }
    }

    /// The directories of all backends that have files.
    pub fn data_roots(&self) -> impl Iterator<Item = &Path> {
        self.stores().into_iter().filter_map(|(_, store)| store.disk()).map(|disk| disk.data_root.as_path())
    }

    /// Whether the node keeps nothing across a restart.
    pub fn keeps_nothing(&self) -> bool {
        self.data_roots().next().is_none()
    }

    /// Warnings about settings that work but may not be what the operator meant.
    pub fn warnings(&self, effective: &Effective) -> Vec<String> {
        let mut warnings = self.without_effect(effective);
        for (_, store) in self.stores() {
            if let Self::Hanoidb(disk) = store {
                warnings.push(format!(
                    "storage_backend = hanoidb is the leveldb backend here, in {}: Ombak does not have Riak's hanoidb, which \
                     is no longer maintained",
                    disk.data_root.display()
                ));
            }
        }
        if let Self::Multi(MultiSettings { by_prefix: true, prefixes, .. }) = self
            && prefixes.is_empty()
        {
            warnings.push(
                "storage_backend = prefix_multi without multi_backend_prefix_list works like storage_backend = multi"
                    .to_owned(),
            );
        }
        warnings
    }

    /// Warnings about options that have no effect: options of one of several backends whose kind of
    /// backend does not have them.
    fn without_effect(&self, effective: &Effective) -> Vec<String> {
        let Self::Multi(several) = self else {
            let mut declared = effective.instances("multi_backend.$name.storage_backend");
            let why = format!(
                "it requires storage_backend = multi or prefix_multi, and storage_backend = {} is set",
                self.name()
            );
            return declared
                .next()
                .map(|setting| format!("{} has no effect: {why}", setting.key))
                .into_iter()
                .collect();
        };
        let of_another = |key: &str| {
            let (name, option) = split_of_several(key)?;
            let (_, backend) = several.backends.iter().find(|(other, _)| other == name)?;
            let kind = backend.name();
            (!backend.has_option(option)).then(|| format!("{key} has no effect: multi_backend.{name} is {kind}"))
        };
        effective.settings().iter().filter_map(|setting| of_another(&setting.key)).collect()
    }

    /// Whether this kind of backend has the option, `bitcask.expiry` for example.
    fn has_option(&self, option: &str) -> bool {
        match option.split('.').next() {
            Some("memory_backend") => matches!(self, Self::Memory(_)),
            Some("leveldb") => matches!(self, Self::Leveldb(_) | Self::Hanoidb(_)),
            kind => kind == Some(self.name()),
        }
    }

    /// Settings of the backends that contradict each other.
    pub(super) fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let stores = self.stores().into_iter();
        let disks: Vec<(&str, &DiskSettings)> =
            stores.filter_map(|(name, store)| store.disk().map(|disk| (name, disk))).collect();
        for (i, (name, a)) in disks.iter().enumerate() {
            if let Some((other, b)) = disks[..i].iter().find(|(_, b)| overlap(&a.data_root, &b.data_root)) {
                let option = split_of_several(&a.data_root_key).map_or(&*a.data_root_key, |(_, option)| option);
                problems.push(Problem::whole(format!(
                    "two backends cannot share a directory: {} = {} of {other} and {} = {} of {name}; give {name} another \
                     with multi_backend.{name}.{option}",
                    b.data_root_key,
                    b.data_root.display(),
                    a.data_root_key,
                    a.data_root.display()
                )));
            }
            if a.journal.file_bytes_max > u64::from(u32::MAX) {
                let key = match self {
                    Self::Bitcask(_) => "bitcask.max_file_size",
                    Self::Leveled(_) => "leveled.journal_size",
                    _ => "bitcask.max_file_size and leveled.journal_size",
                };
                problems.push(Problem::whole(format!("{key} must be less than 4GB")));
            }
        }
        problems
    }
}

/// Whether one directory is the other or lies inside it. The outer store would examine and remove
/// the files of the inner one as if they were its own.
fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

fn multi(from: &Reader<'_>, by_prefix: bool) -> Result<MultiSettings, Problem> {
    let words = declared(from);
    if by_prefix && words.is_empty() && from.optional("cs_version").is_some() {
        return riak_cs(from);
    }
    undeclared(from, &words)?;
    if words.is_empty() {
        let word = if by_prefix { "prefix_multi" } else { "multi" };
        return Err(Problem::whole(format!(
            "storage_backend = {word} needs its backends: multi_backend.NAME.storage_backend = bitcask, for instance"
        )));
    }
    // Memory that is set for all leveldb backends together is divided among them.
    let backends_sharing =
        words.iter().filter(|(_, word)| matches!(word.as_str(), "leveldb" | "hanoidb")).count() as u64;
    let open = |(name, word): &(String, String)| {
        Ok((name.clone(), BackendSettings::from_name(&from.of_backend(name), word, backends_sharing.max(1))?))
    };
    let backends: Vec<(String, BackendSettings)> = words.iter().map(open).collect::<Result<_, _>>()?;
    let place = |key: &str, wanted: &str| {
        let names = || words.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        words.iter().position(|(name, _)| name == wanted).ok_or_else(|| {
            Problem::whole(format!(
                "{key} names the backend '{wanted}', which is not configured; there are {}",
                names()
            ))
        })
    };
    let default = match from.text("multi_backend.default") {
        Ok(name) => place("multi_backend.default", &name)?,
        Err(_) => 0,
    };
    Ok(MultiSettings { by_prefix, backends, default, prefixes: prefixes(from, by_prefix, place)? })
}

/// The names and words of `multi_backend.NAME.storage_backend`, in the order of the configuration.
fn declared(from: &Reader<'_>) -> Vec<(String, String)> {
    let instances = from.effective().instances("multi_backend.$name.storage_backend");
    let name_of = |key: &str| key.strip_prefix("multi_backend.")?.strip_suffix(".storage_backend").map(str::to_owned);
    instances.filter_map(|s| Some((name_of(&s.key)?, from.text(&s.key).ok()?))).collect()
}

/// Fails if an option names a backend that was not declared, because the name is probably misspelt.
fn undeclared(from: &Reader<'_>, words: &[(String, String)]) -> Result<(), Problem> {
    for setting in from.effective().settings() {
        if let Some((name, _)) = split_of_several(&setting.key)
            && !words.iter().any(|(declared, _)| declared == name)
        {
            let what = format!(
                "{}: there is no multi_backend.{name}.storage_backend, which says what kind of backend it is",
                setting.key
            );
            return Err(Problem::whole(what));
        }
    }
    Ok(())
}

fn prefixes(
    from: &Reader<'_>,
    by_prefix: bool,
    place: impl Fn(&str, &str) -> Result<usize, Problem>,
) -> Result<Vec<(Vec<u8>, usize)>, Problem> {
    const KEY: &str = "multi_backend_prefix_list";
    let Ok(text) = from.text(KEY) else { return Ok(Vec::new()) };
    if !by_prefix {
        return Err(Problem::whole(format!("{KEY} is for storage_backend = prefix_multi")));
    }
    let pairs = backend_prefixes(&text).map_err(|what| Problem::whole(format!("{KEY}: {what}")))?;
    pairs.into_iter().map(|(prefix, name)| Ok((prefix, place(KEY, &name)?))).collect()
}

/// The backends that Riak configures by itself for Riak CS: blocks of files in bitcask, everything
/// else in leveldb.
fn riak_cs(from: &Reader<'_>) -> Result<MultiSettings, Problem> {
    let backends = vec![
        ("be_default".to_owned(), BackendSettings::from_name(from, "leveldb", 1)?),
        ("be_blocks".to_owned(), BackendSettings::from_name(from, "bitcask", 1)?),
    ];
    Ok(MultiSettings { by_prefix: true, backends, default: 0, prefixes: vec![(b"0b:".to_vec(), 1)] })
}

#[cfg(test)]
mod tests {
    use super::super::{Effective, Overrides, Settings};
    use super::*;

    fn effective(text: &str) -> Effective {
        Effective::merge(Some((Path::new("x.conf"), text)), &Overrides::default()).expect("valid")
    }

    fn backend(text: &str) -> Result<BackendSettings, String> {
        let effective = Effective::merge(Some((Path::new("x.conf"), text)), &Overrides::default());
        let settings = effective.and_then(|effective| Settings::new(&effective));
        settings.map(|s| s.backend).map_err(|p| p.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn each_backend_has_a_directory_of_its_own() {
        for word in ["bitcask", "leveled", "leveldb", "hanoidb"] {
            let backend = backend(&format!("storage_backend = {word}")).expect("valid");
            assert_eq!(backend.name(), word);
            assert_eq!(backend.data_roots().collect::<Vec<_>>(), [Path::new(&format!("./data/{word}"))]);
        }
        assert!(backend("storage_backend = memory").expect("valid").keeps_nothing());
    }

    #[test]
    fn several_backends_have_options_of_their_own_and_the_nodes() {
        let text = "storage_backend = multi\nmulti_backend.default = b\nbitcask.max_file_size = 2MB\n\
            multi_backend.a.storage_backend = bitcask\nmulti_backend.b.storage_backend = bitcask\n\
            multi_backend.b.bitcask.data_root = /b\nmulti_backend.b.bitcask.expiry = 1h\n\
            multi_backend.m.storage_backend = memory\nmulti_backend.m.memory_backend.ttl = 5s";
        let BackendSettings::Multi(multi) = backend(text).expect("valid") else { panic!("multi") };
        let names: Vec<&str> = multi.backends.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, multi.default), (vec!["a", "b", "m"], 1));
        let [(_, BackendSettings::Bitcask(a)), (_, BackendSettings::Bitcask(b)), (_, BackendSettings::Memory(m))] =
            &multi.backends[..]
        else {
            panic!("{multi:?}")
        };
        assert_eq!((&a.data_root, &b.data_root), (&"./data/bitcask".into(), &"/b".into()));
        assert_eq!((a.journal.expiry_secs, b.journal.expiry_secs), (None, Some(3600)));
        assert_eq!((a.journal.file_bytes_max, b.journal.file_bytes_max), (2 << 20, 2 << 20));
        assert_eq!(m.ttl_secs, Some(5));
    }

    #[test]
    fn what_cannot_be_is_named() {
        let two = "multi_backend.a.storage_backend = bitcask\nmulti_backend.b.storage_backend = bitcask\n";
        for (text, expected) in [
            ("storage_backend = multi", "multi_backend.NAME.storage_backend"),
            ("storage_backend = multi\nmulti_backend.c.bitcask.expiry = 1h", "no multi_backend.c.storage_backend"),
            (&format!("storage_backend = multi\n{two}"), "another with multi_backend.b.bitcask.data_root"),
            (&format!("storage_backend = multi\n{two}multi_backend.b.bitcask.data_root = ./data/bitcask/b"), "share"),
            (&format!("storage_backend = multi\n{two}multi_backend.default = c"), "there are a, b"),
            (
                &format!("storage_backend = multi\n{two}multi_backend.c.bitcask.expiry = 1h"),
                "multi_backend.c.storage_b",
            ),
            (&format!("storage_backend = multi\n{two}multi_backend_prefix_list = x=a"), "prefix_multi"),
            (&format!("storage_backend = prefix_multi\n{two}multi_backend_prefix_list = x=c"), "'c', which is not"),
            ("bitcask.max_file_size = 5GB", "bitcask.max_file_size must be less than 4GB"),
            ("storage_backend = leveled\nleveled.journal_size = 5GB", "leveled.journal_size must be"),
        ] {
            let said = backend(text).expect_err(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    fn warnings(text: &str) -> Vec<String> {
        backend(text).expect("valid").warnings(&effective(text))
    }

    #[test]
    fn what_may_not_be_meant_is_said() {
        let hanoidb = warnings("storage_backend = hanoidb");
        assert!(hanoidb.len() == 1 && hanoidb[0].contains("leveldb backend here, in ./data/hanoidb"), "{hanoidb:?}");
        assert_eq!(warnings("storage_backend = prefix_multi\nmulti_backend.a.storage_backend = hanoidb").len(), 2);
        assert_eq!(warnings(""), Vec::<String>::new());
        let several = "multi_backend.a.storage_backend = bitcask\nmulti_backend.a.bitcask.expiry = 1h\n\
            multi_backend.h.storage_backend = leveldb\nmulti_backend.h.leveldb.sync_on_write = on";
        assert_eq!(warnings(&format!("storage_backend = multi\n{several}")), Vec::<String>::new());
        let said = warnings(&format!("storage_backend = multi\n{several}\nmulti_backend.a.leveled.data_root = /x"));
        assert_eq!(said, ["multi_backend.a.leveled.data_root has no effect: multi_backend.a is bitcask"]);
        let said = warnings(several);
        assert!(said.len() == 1 && said[0].contains("it requires storage_backend = multi or prefix_multi"), "{said:?}");
    }

    #[test]
    fn names_of_several_are_found_whichever_backend_the_node_has() {
        let several = "multi_backend.a.storage_backend = leveled\nmulti_backend_prefix_list = x=a";
        for word in ["prefix_multi", "bitcask"] {
            let effective = effective(&format!("storage_backend = {word}\n{several}"));
            assert_eq!(BackendSettings::named(&effective, "a").expect("configured").name(), "leveled");
        }
        let riak_cs = effective("storage_backend = prefix_multi\ncs_version = 20100");
        assert_eq!(BackendSettings::named(&riak_cs, "be_default").expect("configured").name(), "leveldb");
    }

    #[test]
    fn prefixes_name_backends() {
        let text = "storage_backend = prefix_multi\nmulti_backend.x.storage_backend = memory\n\
            multi_backend.y.storage_backend = leveldb\nmulti_backend_prefix_list = 0b:=y a=x";
        let BackendSettings::Multi(multi) = backend(text).expect("valid") else { panic!("multi") };
        assert_eq!(multi.prefixes, [(b"0b:".to_vec(), 1), (b"a".to_vec(), 0)]);
        let BackendSettings::Multi(cs) = backend("storage_backend = prefix_multi\ncs_version = 20100").expect("valid")
        else {
            panic!("multi")
        };
        let words: Vec<&str> = cs.backends.iter().map(|(_, backend)| backend.name()).collect();
        assert_eq!((words, cs.default, cs.prefixes), (vec!["leveldb", "bitcask"], 0, vec![(b"0b:".to_vec(), 1)]));
    }

    #[test]
    fn a_backend_is_found_by_word_and_by_name() {
        let text = "multi_backend.a.storage_backend = leveled\nmulti_backend.a.leveled.data_root = /a";
        let effective = Effective::merge(Some((Path::new("x.conf"), text)), &Overrides::default()).expect("valid");
        let root = |name| BackendSettings::named(&effective, name).expect("known").disk().map(|d| d.data_root.clone());
        assert_eq!((root("a"), root("leveled")), (Some("/a".into()), Some("./data/leveled".into())));
        let unknown = BackendSettings::named(&effective, "b").expect_err("unknown").to_string();
        assert!(unknown.contains("bitcask, leveled") && unknown.ends_with("(a)"), "{unknown}");
    }
}
