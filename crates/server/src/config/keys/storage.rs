//! The keys that choose where objects lie: the backend, the memory backend, several backends at
//! once.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

/// The words for `storage_backend` that stand for a single backend. Each of these can also be one
/// of several.
pub(crate) const SINGLE_BACKENDS: &[&str] = &["bitcask", "leveled", "leveldb", "hanoidb", "memory"];

const BACKENDS: &[&str] = &["bitcask", "leveled", "leveldb", "hanoidb", "memory", "multi", "prefix_multi"];

/// Words of Riak for `storage_backend` that are not supported.
const REFUSED: &[(&str, &str)] =
    &[("yessir", "the yessir backend of Riak's tests does not exist here; use bitcask, leveled, leveldb or memory")];

/// Words of Riak for one of several backends that are not supported.
const REFUSED_IN_MULTI: &[(&str, &str)] = &[
    ("multi", "a multi backend cannot be part of another"),
    ("prefix_multi", "a multi backend cannot be part of another"),
];

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "storage_backend",
        Kind::ChoiceWithRefused(BACKENDS, REFUSED),
        "bitcask",
        "How objects are stored: bitcask (append-only files, every key in memory), leveled (values in append-only files, \
         keys in order on disk), leveldb (everything in order on disk), hanoidb (leveldb in a directory of its own), \
         memory (nothing survives a restart), multi (several, a bucket's property 'backend' says which), prefix_multi \
         (several, by prefixes of buckets first).",
    ),
    KeySpec::works(
        "hanoidb.data_root",
        Kind::Path,
        "$(platform_data_dir)/hanoidb",
        "The directory of the files of storage_backend = hanoidb. Everything else is as leveldb.* says.",
    ),
    KeySpec::own(
        "disk_reserve",
        Kind::ByteSize,
        "64MB",
        "What bitcask, leveled and leveldb keep free on their disks: with less, puts are refused, and deletes and merges go \
         on. On a small file system at most a twentieth of it; 0 for none.",
    ),
    KeySpec::works("memory_backend.ttl", Kind::Duration, "", "Age at which a value of the memory backend is gone."),
    KeySpec::works(
        "memory_backend.max_memory_per_vnode",
        Kind::ByteSize,
        "",
        "Bytes that a partition of the memory backend may take; the oldest values go first.",
    ),
    KeySpec::works(
        "multi_backend.default",
        Kind::Text,
        "",
        "The backend of buckets that name none. Without it: the one that the configuration names first.",
    ),
    KeySpec::works(
        "multi_backend.$name.storage_backend",
        Kind::ChoiceWithRefused(SINGLE_BACKENDS, REFUSED_IN_MULTI),
        "",
        "One of several backends (storage_backend = multi or prefix_multi), under a name of your choice. Its own options \
         follow that name, multi_backend.NAME.bitcask.data_root for instance; what is not said there is as for the node.",
    ),
    KeySpec::own(
        "multi_backend_prefix_list",
        Kind::BackendPrefixes,
        "",
        "Which untyped buckets lie in which backend (storage_backend = prefix_multi): PREFIX=NAME, several separated by \
         blanks, the first that fits counts; %XX stands for a byte. Checked before the property 'backend'. In Riak this \
         is set in advanced.config.",
    ),
    KeySpec::no_meaning(
        "backend_pause_ms",
        Kind::Int(0, 60_000),
        "10",
        "Milliseconds to wait when a backend asks for a pause.",
        "a write waits for as long as its store has to catch up",
    ),
];
