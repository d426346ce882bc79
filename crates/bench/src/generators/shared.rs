//! What the workers of a run share: pools, files and resume states.

use super::draw::{Draw, Place};
use super::integers::{IntegerSource, Integers};
use super::key_source::KeySource;
use super::keys::{self, Content, KeySpec, Keys};
use super::lines::Lines;
use super::pool::Pool;
use super::random::Random;
use super::resume::{self, StateDir};
use super::value_source::ValueSource;
use super::values::{PoolKind, ValueSpec, Values};
use super::words::bytes;
use crate::config::{ConfigError, Settings};
use crate::term::Term;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SOURCE_SIZE: &str = "value_generator_source_size";
const BLOB_FILE: &str = "value_generator_blob_file";

/// The default size of the pool of random bytes.
const POOL_BYTES: usize = 96 << 20;

/// The largest pool, in bytes. A pool is held in memory.
const POOL_BYTES_MAX: usize = 4 << 30;

/// The length of `-9223372036854775808`.
const INTEGER_TEXT_BYTES_MAX: usize = 20;

/// The settings that all generators share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// From `value_generator_source_size`: the size of the pool of random bytes.
    pub source_bytes: usize,
    /// From `value_generator_blob_file`: a file to use as the pool instead.
    pub blob_file: Option<PathBuf>,
    /// From `sequential_int_state_dir`: the directory with resume states. It is an absolute path.
    pub state_dir: Option<PathBuf>,
    /// The run's `rng_seed`.
    pub seed: [u64; 3],
    /// Accepted settings that have no effect.
    pub warnings: Vec<String>,
}

impl PoolSettings {
    /// The defaults of basho_bench.
    pub const fn new(seed: [u64; 3]) -> Self {
        Self { source_bytes: POOL_BYTES, blob_file: None, state_dir: None, seed, warnings: Vec::new() }
    }

    /// Reads the three settings.
    pub fn read(settings: &Settings, seed: [u64; 3]) -> Result<Self, ConfigError> {
        let mut read = Self::new(seed);
        if let Some(term) = settings.get(SOURCE_SIZE) {
            read.source_bytes = match term {
                Term::Integer(n) if (1..=POOL_BYTES_MAX as i128).contains(n) => *n as usize,
                _ => {
                    let most = bytes(POOL_BYTES_MAX);
                    let what = format!("must be an integer from 1 to {most}, which are held in memory, not {term}");
                    return Err(ConfigError::setting(SOURCE_SIZE, what));
                }
            };
        }
        read.blob_file = path(settings, BLOB_FILE)?;
        read.state_dir = path(settings, resume::SETTING)?;
        if let Some(dir) = read.state_dir.take_if(|dir| !dir.is_absolute()) {
            let (setting, dir) = (resume::SETTING, dir.display());
            read.warnings
                .push(format!("{setting}: {dir} is not an absolute path; nothing will be resumed, as in basho_bench"));
        }
        Ok(read)
    }
}

/// Reads a path; `None` if it is not set or empty.
fn path(settings: &Settings, key: &str) -> Result<Option<PathBuf>, ConfigError> {
    match settings.get(key) {
        None => Ok(None),
        Some(Term::Text(path)) => Ok((!path.is_empty()).then(|| PathBuf::from(path))),
        Some(Term::List(items)) if items.is_empty() => Ok(None),
        Some(Term::Atom(name)) if name == "undefined" => Ok(None),
        Some(term) => Err(ConfigError::setting(key, format!("must be a path in double quotes, not {term}"))),
    }
}

/// The generators of a run, from which each worker gets its own. Clones share the same generators.
#[derive(Clone, Debug)]
pub struct Generators(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    keys: Keys,
    values: Values,
    random: Option<Pool>,
    semi_compressible: Option<Pool>,
    lines: Vec<Arc<Lines>>,
    state: Option<StateDir>,
    warnings: Vec<String>,
}

impl Generators {
    /// Creates or reads what the workers share. This may take a few hundred megabytes and some
    /// time, so it must not be called from asynchronous code.
    pub fn new(keys: &KeySpec, values: &ValueSpec, settings: &PoolSettings) -> Result<Self, ConfigError> {
        let mut shared = Shared {
            keys: keys.keys.clone(),
            values: values.values.clone(),
            random: None,
            semi_compressible: None,
            lines: Vec::new(),
            state: None,
            warnings: settings.warnings.clone(),
        };
        shared.provide_values(&values.values, settings)?;
        let mut outcome = Ok(());
        keys.keys.visit(&mut |each| {
            if outcome.is_ok() {
                outcome = shared.provide_keys(each, settings);
            }
        });
        outcome?;
        if mentions(keys.term(), "int_to_bin") {
            shared.warn(format!(
                "{}: basho_bench has removed int_to_bin; it is treated as int_to_bin_bigendian with 32 bits",
                keys::SETTING
            ));
        }
        Ok(Self(Arc::new(shared)))
    }

    /// Creates the draw of one worker. Reads the worker's resume state, if there is one.
    pub fn draw(&self, place: Place) -> Result<Draw, ConfigError> {
        let keys = self.0.key_source(&self.0.keys, place)?;
        Ok(Draw::new(keys, self.0.value_source(&self.0.values), place))
    }

    /// Warnings about settings that have less effect than expected. After the run they also name
    /// the files that could not be read or written any more.
    pub fn warnings(&self) -> Vec<String> {
        let lines = self.0.lines.iter().filter_map(|lines| lines.failure());
        let state = self.0.state.iter().filter_map(StateDir::failure);
        let known = self.0.warnings.iter().map(String::as_str);
        known.chain(lines).chain(state).map(str::to_owned).collect()
    }
}

/// Whether the term contains a generator with this name.
fn mentions(term: &Term, name: &str) -> bool {
    match term {
        Term::Tuple(parts) => {
            parts.first().is_some_and(|first| first.as_atom() == Some(name))
                || parts.iter().any(|part| mentions(part, name))
        }
        _ => false,
    }
}

impl Shared {
    fn provide_keys(&mut self, keys: &Keys, settings: &PoolSettings) -> Result<(), ConfigError> {
        match keys {
            Keys::Integers(Integers::Counted(count)) => {
                if !count.is_partitioned() {
                    self.warn(format!(
                        "{}: each worker generates all of sequential_int; partitioned_sequential_int splits it among the workers",
                        keys::SETTING
                    ));
                }
                if let (None, Some(dir)) = (&self.state, &settings.state_dir) {
                    self.state = Some(StateDir::open(dir)?);
                }
            }
            Keys::Bytes { content: Content::Lines { path, repeat }, .. } => self.open(path, *repeat)?,
            Keys::Bytes { content: Content::Value(spec), .. } => self.provide_values(&spec.values, settings)?,
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, path: &Path, repeat: bool) -> Result<(), ConfigError> {
        if self.lines.iter().any(|lines| lines.has_source(path, repeat)) {
            return Ok(());
        }
        let lines = Lines::open(path, repeat).map_err(|error| {
            let path = path.display();
            ConfigError::setting(keys::SETTING, format!("{{file_line_bin, Path}}: {path}: {error}"))
        })?;
        self.lines.push(Arc::new(lines));
        Ok(())
    }

    fn provide_values(&mut self, values: &Values, settings: &PoolSettings) -> Result<(), ConfigError> {
        let Values::Slices { size, pool: kind } = *values else { return Ok(()) };
        let pool = match kind {
            PoolKind::Random => &mut self.random,
            PoolKind::SemiCompressible => &mut self.semi_compressible,
        };
        let pool_bytes = match pool {
            Some(pool) => pool.len(),
            None => pool.insert(make_pool(kind, settings)?).len(),
        };
        if size.least() > pool_bytes {
            self.warn(format!(
                "{SOURCE_SIZE}: values of at least {} are asked for, but they are slices of only {}, which all will be",
                bytes(size.least()),
                bytes(pool_bytes)
            ));
        }
        Ok(())
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn value_source(&self, values: &Values) -> ValueSource {
        match values {
            Values::Slices { size, pool } => {
                let pool = match pool {
                    PoolKind::Random => &self.random,
                    PoolKind::SemiCompressible => &self.semi_compressible,
                };
                ValueSource::Slices { size: *size, pool: pool.clone().unwrap_or_default() }
            }
            Values::Repeated { value, .. } => ValueSource::Constant(value.clone()),
            Values::Printable { bytes } => ValueSource::Printable(vec![0; *bytes]),
            Values::Integers(distribution) => {
                ValueSource::Integers { distribution: *distribution, text: Vec::with_capacity(INTEGER_TEXT_BYTES_MAX) }
            }
        }
    }

    fn key_source(&self, keys: &Keys, place: Place) -> Result<KeySource, ConfigError> {
        let content = match keys {
            Keys::Integers(integers) => return self.integer_source(*integers, place).map(KeySource::Integers),
            Keys::Bytes { content, .. } => content,
        };
        let boxed = |inner: &Keys| self.key_source(inner, place).map(Box::new);
        Ok(match content {
            Content::Constant(bytes) => KeySource::Constant(bytes.clone()),
            Content::Uuid => KeySource::Uuid,
            Content::Lines { path, repeat } => match self.lines.iter().find(|lines| lines.has_source(path, *repeat)) {
                Some(lines) => KeySource::Lines(Arc::clone(lines)),
                None => return Err(ConfigError::setting(keys::SETTING, format!("{} is not open", path.display()))),
            },
            Content::Value(spec) => KeySource::Value(Box::new(self.value_source(&spec.values))),
            Content::Packed { bytes, order, integers } => {
                let integers = self.integer_source(*integers, place)?;
                KeySource::Packed { bytes: *bytes, order: *order, integers }
            }
            Content::Printed { format, argument, .. } => match argument.as_ref() {
                Keys::Integers(integers) => {
                    let integers = self.integer_source(*integers, place)?;
                    KeySource::PrintedInteger { format: format.clone(), integers }
                }
                Keys::Bytes { kind, .. } => {
                    let (argument, buffer) = (boxed(argument)?, Vec::new());
                    KeySource::PrintedBytes { format: format.clone(), kind: *kind, argument, buffer }
                }
            },
            Content::Base64(inner) => KeySource::Base64 { inner: boxed(inner)?, buffer: Vec::new() },
            Content::Hashed(hash, inner) => KeySource::Hashed(*hash, boxed(inner)?),
            Content::Joined(both) => {
                let [first, second] = both.as_ref();
                KeySource::Joined(Box::new([self.key_source(first, place)?, self.key_source(second, place)?]))
            }
        })
    }

    fn integer_source(&self, integers: Integers, place: Place) -> Result<IntegerSource, ConfigError> {
        IntegerSource::new(integers, place, self.state.as_ref().map(|state| state.file(place.worker)))
    }
}

fn make_pool(kind: PoolKind, settings: &PoolSettings) -> Result<Pool, ConfigError> {
    if let Some(path) = &settings.blob_file {
        return read_pool(path);
    }
    // Workers are counted from 1, so 0 gives a sequence of its own.
    let mut random = Random::new(settings.seed, 0);
    Ok(match kind {
        PoolKind::Random => Pool::random(settings.source_bytes, &mut random),
        PoolKind::SemiCompressible => Pool::semi_compressible(&mut random),
    })
}

fn read_pool(path: &Path) -> Result<Pool, ConfigError> {
    let refused = |what: String| ConfigError::setting(BLOB_FILE, format!("{}: {what}", path.display()));
    let unreadable = |error: io::Error| refused(format!("cannot be read: {error}"));
    let mut content = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(POOL_BYTES_MAX as u64 + 1).read_to_end(&mut content).map_err(unreadable)?;
    match content.len() {
        0 => Err(refused("the file is empty; values are slices of it".into())),
        1..=POOL_BYTES_MAX => Ok(Pool::new(content)),
        _ => Err(refused(format!("must not be longer than {}, because it is held in memory", bytes(POOL_BYTES_MAX)))),
    }
}
