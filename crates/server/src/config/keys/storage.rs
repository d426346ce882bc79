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
        "How objects are stored. bitcask: append-only files, with every key in memory. leveled: values in append-only \
         files, with keys sorted on disk. leveldb: keys and values sorted on disk. hanoidb: the same as leveldb, in \
         another directory. memory: only in memory, so that nothing survives a restart. multi: several backends; the \
         bucket property 'backend' names one. prefix_multi: several backends; the prefixes of bucket names are \
         checked first.",
    ),
    KeySpec::works(
        "hanoidb.data_root",
        Kind::Path,
        "$(platform_data_dir)/hanoidb",
        "The directory of the files of storage_backend = hanoidb. The leveldb keys set everything else.",
    ),
    KeySpec::own(
        "disk_reserve",
        Kind::ByteSize,
        "64MB",
        "Space that bitcask, leveled and leveldb keep free on their disks. If less is free, puts are refused; deletes \
         and merges continue. On a small file system, the reserve is at most a twentieth of its size. 0 means no \
         reserve.",
    ),
    KeySpec::own(
        "append_marks_dir",
        Kind::Path,
        "/dev/shm",
        "A directory in memory (tmpfs), where bitcask, leveled and leveldb count their writes. The next start compares \
         the count with what it finds, and so it notices if a file system has lost writes while the machine ran on. The \
         directory must outlive the process and end with the run of the machine. `off`: nothing is counted.",
    ),
    KeySpec::own(
        "disk_delay_file",
        Kind::Path,
        "",
        "For tests of a slow disk: a file that may appear and vanish while the node runs. While it exists, each write, \
         each sync, and each read beyond the page cache takes longer by the number of microseconds in it. It applies to \
         bitcask and to the append-only files of leveled and leveldb.",
    ),
    KeySpec::works("memory_backend.ttl", Kind::Duration, "", "Age after which a value of the memory backend expires."),
    KeySpec::works(
        "memory_backend.max_memory_per_vnode",
        Kind::ByteSize,
        "",
        "Memory that a partition of the memory backend may use. The oldest values are removed first.",
    ),
    KeySpec::works(
        "multi_backend.default",
        Kind::Text,
        "",
        "The backend of buckets that do not name one. Without this key, it is the first backend in the configuration.",
    ),
    KeySpec::works(
        "multi_backend.$name.storage_backend",
        Kind::ChoiceWithRefused(SINGLE_BACKENDS, REFUSED_IN_MULTI),
        "",
        "The kind of one of several backends, for storage_backend = multi or prefix_multi. NAME is any name. Options \
         of this backend start with its name, for example multi_backend.NAME.bitcask.data_root. An option that is not \
         set has the value that holds for the node.",
    ),
    KeySpec::own(
        "multi_backend_prefix_list",
        Kind::BackendPrefixes,
        "",
        "The backends of untyped buckets by prefixes of their names, for storage_backend = prefix_multi. The value is \
         a list of PREFIX=NAME, separated by blanks; the first matching prefix counts, and %XX stands for a byte. The \
         list is checked before the bucket property 'backend'. Riak sets this in advanced.config.",
    ),
    KeySpec::no_meaning(
        "backend_pause_ms",
        Kind::Int(0, 60_000),
        "10",
        "Milliseconds that a write waits when a backend asks for a pause.",
        "a write waits exactly until its store has caught up",
    ),
];
