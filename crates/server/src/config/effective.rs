//! The values in force. They are merged from defaults, file, environment and command line; a later
//! source overrides an earlier one.

use super::file::{self, Assignment};
use super::key_spec::KeySpec;
use super::keys;
use super::problem::{Place, Problem};
use super::vain::{self, Vain};
use super::value::{Kind, Value};
use ombak_types::suggest::nearest;
use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

/// Environment variables that start with the prefix of overrides but are options of the command
/// line.
const NOT_OVERRIDES: [&str; 4] = ["OMBAK_CONFIG", "OMBAK_DATA", "OMBAK_NODE", "OMBAK_ADMIN_TOKEN"];
const ENVIRONMENT_PREFIX: &str = "OMBAK_";

/// The name of Riak's second configuration file, which has Erlang terms.
const ADVANCED: &str = "advanced.config";

/// How many keys deep a reference `$(key)` inside a value may lead.
const REFERENCES_MAX: usize = 8;

/// The source of a value in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default of the key.
    Default,
    /// The configuration file.
    File,
    /// An environment variable.
    Environment,
    /// The command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::CommandLine => "command line",
        })
    }
}

/// A key with its value in force.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The key, with the segments of its pattern filled in.
    pub key: String,
    /// The specification of the key.
    pub spec: &'static KeySpec,
    /// The value; `None` if the key has no value.
    pub value: Option<Value>,
    /// The source of the value.
    pub origin: Origin,
}

/// The values from the environment and the command line, which override the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// All environment variables. Those that do not start with `OMBAK_` are ignored.
    pub environment: Vec<(String, String)>,
    /// Assignments from the command line: (option, key, value).
    pub command_line: Vec<(&'static str, String, String)>,
}

/// All keys with their values in force, in the order of the registry.
#[derive(Clone, Debug)]
pub struct Effective {
    settings: Vec<Setting>,
    /// Accepted settings that deserve a warning.
    pub warnings: Vec<Problem>,
    vain: Vec<Vain>,
}

struct Given {
    text: String,
    origin: Origin,
    place: Place,
}

impl Effective {
    /// Reads the file at `path`, if a path is given, and merges all sources. All errors are
    /// collected.
    pub fn load(path: Option<&Path>, overrides: &Overrides) -> Result<Self, Vec<Problem>> {
        let text = match path {
            None => None,
            Some(path) => Some((path, read(path).map_err(|p| vec![p])?)),
        };
        let mut merged = Self::merge(text.as_ref().map(|(path, text)| (*path, text.as_str())), overrides)?;
        merged.warnings.extend(path.and_then(advanced_config_beside));
        Ok(merged)
    }

    /// Merges all sources, for a file whose text has been read already.
    pub fn merge(file: Option<(&Path, &str)>, overrides: &Overrides) -> Result<Self, Vec<Problem>> {
        let mut collected = Collected::default();
        if let Some((path, text)) = file {
            collected.take_file(path, text);
        }
        collected.take_environment(&overrides.environment);
        for (option, key, value) in &overrides.command_line {
            collected.take(key, value, Origin::CommandLine, Place::CommandLine(option));
        }
        let settings = collected.settings();
        let is_on = |key: &str| settings.iter().any(|s| s.key == key && s.value == Some(Value::Flag(true)));
        let vain = vain::without_features_that_are_off(collected.asking_in_vain(&settings), is_on);
        collected.warnings.extend(vain::warnings(&vain));
        if collected.errors.is_empty() {
            Ok(Self { settings, warnings: collected.warnings, vain })
        } else {
            Err(collected.errors)
        }
    }

    /// All keys.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The value in force of a key; `None` if the key has no value.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.setting(key)?.value.as_ref()
    }

    /// A key with its value in force.
    pub fn setting(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|s| s.key == key)
    }

    /// The keys that are instances of `pattern`.
    pub fn instances<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = &'a Setting> {
        self.settings.iter().filter(move |s| s.spec.name == pattern)
    }

    /// The settings that ask for something and have no effect.
    pub(super) fn vain(&self) -> &[Vain] {
        &self.vain
    }

    /// The keys to show to people: every key that works and has a value, and every key that
    /// somebody set.
    pub fn shown(&self) -> impl Iterator<Item = &Setting> {
        self.settings
            .iter()
            .filter(|s| s.value.is_some() && (s.origin != Origin::Default || s.spec.warning().is_none()))
    }
}

fn read(path: &Path) -> Result<String, Problem> {
    let unreadable = |what: String| Problem::whole(format!("cannot read the configuration {}: {what}", path.display()));
    let file = std::fs::File::open(path).map_err(|e| unreadable(e.to_string()))?;
    let mut bytes = Vec::new();
    file.take(file::FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| unreadable(e.to_string()))?;
    if bytes.len() as u64 > file::FILE_BYTES_MAX {
        return Err(unreadable(format!("it is larger than {} bytes; is it a configuration?", file::FILE_BYTES_MAX)));
    }
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".into()))
}

/// The warning about Riak's second configuration file, if it lies beside this one and sets
/// something.
fn advanced_config_beside(path: &Path) -> Option<Problem> {
    let advanced = path.with_file_name(ADVANCED);
    if !advanced.is_file() {
        return None;
    }
    let text = read(&advanced).unwrap_or_else(|_| "?".into());
    let terms: String =
        text.lines().filter_map(|line| line.split('%').next()).flat_map(str::split_whitespace).collect();
    let sets_nothing = ["", "[].", "[]"].contains(&terms.as_str());
    (!sets_nothing).then(|| {
        Problem::whole(format!(
            "{} is not read: Ombak has no {ADVANCED}; 'ombak config example' shows what {} can set",
            advanced.display(),
            path.display()
        ))
    })
}

#[derive(Default)]
struct Collected {
    given: HashMap<String, Given>,
    /// Keys that the registry does not list by name, in the order in which they were set: instances
    /// of patterns, and options of one of several backends.
    order: Vec<String>,
    warnings: Vec<Problem>,
    errors: Vec<Problem>,
}

impl Collected {
    fn take_file(&mut self, path: &Path, text: &str) {
        let (assignments, problems) = file::parse(path, text);
        self.errors.extend(problems);
        for Assignment { key, value, line } in assignments {
            let place = Place::File(path.to_owned(), line);
            if let Some(Given { place: Place::File(_, earlier), .. }) = self.given.get(&key) {
                let what = format!("{key} was set on line {earlier} already; this line counts");
                self.warnings.push(Problem::at(place.clone(), what));
            }
            self.take(&key, &value, Origin::File, place);
        }
    }

    /// Takes the overrides of the environment. An unknown variable is only a warning, because
    /// container platforms create variables with such names by themselves.
    fn take_environment(&mut self, environment: &[(String, String)]) {
        let mut ours: Vec<_> = environment
            .iter()
            .filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX) && !NOT_OVERRIDES.contains(&name.as_str()))
            .collect();
        ours.sort();
        for (name, value) in ours {
            let key = name[ENVIRONMENT_PREFIX.len()..].to_ascii_lowercase().replace("__", ".");
            let place = Place::Environment(name.clone());
            if keys::find(&key).is_some() {
                self.take(&key, value, Origin::Environment, place);
            } else {
                self.warnings.push(Problem::at(place, format!("ignored: {}", unknown_key(&key))));
            }
        }
    }

    fn take(&mut self, key: &str, text: &str, origin: Origin, place: Place) {
        let Some(spec) = keys::find(key) else {
            self.errors.push(Problem::at(place, unknown_key(key)));
            return;
        };
        if spec.name != key && !self.given.contains_key(key) {
            self.order.push(key.to_owned());
        }
        self.given.insert(key.to_owned(), Given { text: text.to_owned(), origin, place });
    }

    fn settings(&mut self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for spec in keys::all() {
            if spec.is_pattern() {
                self.push_instances(spec, &mut settings);
            } else {
                self.push(spec.name, spec, &mut settings);
            }
        }
        self.push_options_of_several(&mut settings);
        settings
    }

    /// Adds the options of individual backends that somebody set. An option that is not set for one
    /// of several backends has the value that holds for the node.
    fn push_options_of_several(&mut self, settings: &mut Vec<Setting>) {
        let options: Vec<(String, &'static KeySpec)> = self
            .order
            .iter()
            .filter_map(|key| Some((key.clone(), keys::find(key).filter(|spec| !spec.is_pattern())?)))
            .collect();
        for (key, spec) in options {
            self.push(&key, spec, settings);
        }
    }

    fn push_instances(&mut self, spec: &'static KeySpec, settings: &mut Vec<Setting>) {
        let names: Vec<String> =
            self.order.iter().filter(|key| keys::find(key).is_some_and(|s| s.name == spec.name)).cloned().collect();
        for name in &names {
            self.push(name, spec, settings);
        }
        if names.is_empty() && spec.default.is_some() {
            self.push(&spec.name.replace("$name", "internal"), spec, settings);
        }
    }

    fn push(&mut self, key: &str, spec: &'static KeySpec, settings: &mut Vec<Setting>) {
        let (text, origin, place) = match self.given.get(key) {
            Some(given) => (Some(given.text.clone()), given.origin, given.place.clone()),
            None => (spec.default.map(str::to_owned), Origin::Default, Place::Whole),
        };
        let parsed = text.map(|text| {
            let text = self.resolve(&text, REFERENCES_MAX)?;
            spec.kind.parse(&text).map_err(|what| format!("{key} = {}: {what}", shorten(&text)))
        });
        match parsed.transpose() {
            Ok(value) => settings.push(Setting { key: key.to_owned(), spec, value, origin }),
            Err(what) => self.errors.push(Problem::at(place, what)),
        }
    }

    /// The settings without effect that somebody gave another value than the default.
    fn asking_in_vain(&self, settings: &[Setting]) -> Vec<Vain> {
        let default = |spec: &KeySpec| spec.kind.parse(&self.resolve(spec.default?, REFERENCES_MAX).ok()?).ok();
        let asks = |setting: &&Setting| {
            let is_blank = matches!(&setting.value, Some(Value::Text(text)) if text.trim().is_empty());
            setting.spec.reason().is_some() && !is_blank && setting.value != default(setting.spec)
        };
        let vain = |setting: &Setting| {
            let place = self.given.get(&setting.key)?.place.clone();
            Some(Vain { key: setting.key.clone(), spec: setting.spec, place })
        };
        settings.iter().filter(asks).filter_map(vain).collect()
    }

    /// Replaces each `$(key)` by the value of that key.
    fn resolve(&self, text: &str, depth: usize) -> Result<String, String> {
        let Some((before, rest)) = text.split_once("$(") else { return Ok(text.to_owned()) };
        let Some((key, after)) = rest.split_once(')') else { return Err(format!("{}: ')' is missing", shorten(text))) };
        if depth == 0 {
            return Err(format!("$({key}) includes itself or is nested too deeply"));
        }
        let spec = keys::find(key).ok_or_else(|| unknown_key(key))?;
        let value = match (self.given.get(key), spec.default) {
            (Some(given), _) => given.text.as_str(),
            (None, Some(default)) => default,
            (None, None) => return Err(format!("$({key}) has no value")),
        };
        let value = self.resolve(value, depth - 1)?;
        // A trailing slash is removed so that `$(DIRECTORY)-x` names a directory beside DIRECTORY,
        // whether or not its value ends with a slash.
        let value = match spec.kind {
            Kind::Path if value.len() > 1 => value.trim_end_matches('/'),
            _ => &value,
        };
        Ok(format!("{before}{value}{}", self.resolve(after, depth - 1)?))
    }
}

/// The error message for an unknown key, with a suggestion.
pub fn unknown_key(key: &str) -> String {
    let listed = || keys::all().filter(|s| !s.name.contains('*'));
    let mut candidates: Vec<String> = listed().map(|s| s.filled_from(key)).collect();
    if let Some((name, _)) = keys::split_of_several(key) {
        let options = listed().map(|s| format!("multi_backend.{name}.{}", s.name));
        candidates.extend(options.filter(|key| keys::find(key).is_some()));
    }
    let hint = match nearest(key, candidates.iter().map(String::as_str)) {
        Some(known) => format!("did you mean '{known}'?"),
        None => "'ombak config example' shows all keys".to_owned(),
    };
    format!("unknown key '{}'; {hint}", shorten(key))
}

fn shorten(text: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", text[..at].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(text: &str, environment: &[(&str, &str)]) -> Result<Effective, Vec<String>> {
        let overrides = Overrides {
            environment: environment.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
            command_line: Vec::new(),
        };
        Effective::merge(Some((Path::new("x.conf"), text)), &overrides)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    fn value(effective: &Effective, key: &str) -> String {
        effective.get(key).map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn the_environment_goes_before_the_file_and_the_file_before_the_default() {
        let env = [("OMBAK_LISTENER__HTTP__INTERNAL", "127.0.0.1:1"), ("OMBAK_RING_SIZE", "16"), ("PATH", "/bin")];
        let e = merge("ring_size = 8\nlogger.level = debug\n", &env).expect("valid");
        assert_eq!(value(&e, "ring_size"), "16");
        assert_eq!(value(&e, "logger.level"), "debug");
        assert_eq!(value(&e, "listener.http.internal"), "127.0.0.1:1");
        assert_eq!(value(&e, "listener.protobuf.internal"), "127.0.0.1:8087");
        assert_eq!(e.setting("ring_size").map(|s| s.origin), Some(Origin::Environment));
    }

    #[test]
    fn unknown_keys_name_their_line_and_the_nearest_key() {
        let errors = merge("\nring_sise = 64\nlistener.htp.mine = 1.2.3.4:5\n", &[]).expect_err("refused");
        assert_eq!(errors[0], "x.conf:2: unknown key 'ring_sise'; did you mean 'ring_size'?");
        assert_eq!(errors[1], "x.conf:3: unknown key 'listener.htp.mine'; did you mean 'listener.http.mine'?");
    }

    #[test]
    fn an_unknown_variable_is_a_warning() {
        let e = merge("", &[("OMBAK_RING_SISE", "1"), ("OMBAK_NODE", "h:1")]).expect("valid");
        assert_eq!(e.warnings.len(), 1, "{:?}", e.warnings);
        assert!(e.warnings[0].to_string().contains("did you mean 'ring_size'?"), "{:?}", e.warnings);
    }

    #[test]
    fn bad_values_say_what_would_be_right() {
        let errors =
            merge("ring_size = 100\nobject.size.maximum = much\nstorage_backend = yessir", &[]).expect_err("bad");
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors.iter().any(|e| e == "x.conf:1: ring_size = 100: must be a power of two from 8 to 1024"));
        assert!(
            errors.iter().any(|e| e.starts_with("x.conf:3:") && e.contains("use bitcask, leveled, leveldb or memory"))
        );
    }

    #[test]
    fn keys_without_effect_are_accepted_with_the_reason() {
        let e = merge("distributed_cookie = x\nstrong_consistency = on\nleveldb.threads = 7", &[]).expect("valid");
        let texts: Vec<String> = e.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(texts[2], "x.conf:1: distributed_cookie has no effect: there is no Erlang virtual machine here");
        assert!(texts[0].contains("strong_consistency has no effect: this version does not have"), "{texts:?}");
        assert_eq!(texts.len(), 3);
    }

    #[test]
    fn a_second_file_of_riak_that_is_not_read_is_named() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (file, advanced) = (dir.path().join("riak.conf"), dir.path().join(ADVANCED));
        std::fs::write(&file, "ring_size = 8").expect("write");
        let warnings = || Effective::load(Some(&file), &Overrides::default()).expect("valid").warnings;
        assert!(warnings().is_empty());
        std::fs::write(&advanced, "%% nothing\n[\n].\n").expect("write");
        assert!(warnings().is_empty(), "it sets nothing");
        std::fs::write(&advanced, "[{riak_kv, [{delete_mode, keep}]}].").expect("write");
        let named = warnings();
        assert!(named.len() == 1 && named[0].what.starts_with(&format!("{} is not read", advanced.display())));
    }

    #[test]
    fn the_last_line_counts_with_a_warning() {
        let e = merge("ring_size = 8\nring_size = 16", &[]).expect("valid");
        assert_eq!(value(&e, "ring_size"), "16");
        assert!(e.warnings[0].to_string().contains("line 1 already"));
    }

    #[test]
    fn values_refer_to_other_keys() {
        let e = merge("platform_data_dir = /d\nplatform_log_dir = $(platform_data_dir)/l", &[]).expect("valid");
        assert_eq!(value(&e, "logger.file"), "/d/l/console.log");
        assert_eq!(value(&e, "bitcask.data_root"), "/d/bitcask");
        assert_eq!(value(&e, "platform_backup_dir"), "/d-backups");
        let e = merge("platform_data_dir = /d/", &[]).expect("valid");
        assert_eq!(value(&e, "platform_backup_dir"), "/d-backups");
        let circle = merge("platform_data_dir = $(platform_log_dir)", &[]).expect_err("circle");
        assert!(circle[0].contains("includes itself"), "{circle:?}");
        assert!(merge("platform_data_dir = $(nonsense)", &[]).is_err());
        assert!(merge("platform_data_dir = $(", &[]).is_err());
    }

    #[test]
    fn named_listeners_replace_the_default_one() {
        let e = merge("listener.http.a = 127.0.0.1:1\nlistener.http.b = 127.0.0.1:2", &[]).expect("valid");
        let names: Vec<&str> = e.instances("listener.http.$name").map(|s| s.key.as_str()).collect();
        assert_eq!(names, ["listener.http.a", "listener.http.b"]);
    }

    #[test]
    fn options_of_one_of_several_backends_are_checked_like_the_nodes() {
        let text = "multi_backend.a.storage_backend = bitcask\nmulti_backend.a.bitcask.max_file_size = 1MB\n";
        let e = merge(text, &[("OMBAK_MULTI_BACKEND__A__BITCASK__DATA_ROOT", "/a")]).expect("valid");
        assert_eq!(value(&e, "multi_backend.a.bitcask.max_file_size"), "1MB");
        assert_eq!(value(&e, "multi_backend.a.bitcask.data_root"), "/a");
        assert_eq!(value(&e, "bitcask.max_file_size"), "2GB");
        let errors = merge("multi_backend.a.bitcask.max_file_sise = 1MB", &[]).expect_err("unknown");
        assert!(errors[0].ends_with("did you mean 'multi_backend.a.bitcask.max_file_size'?"), "{errors:?}");
        let errors = merge("multi_backend.a.bitcask.max_file_size = much", &[]).expect_err("wrong");
        assert!(errors[0].contains("multi_backend.a.bitcask.max_file_size = much: must be"), "{errors:?}");
        let e = merge("multi_backend.a.leveldb.threads = 7", &[]).expect("valid");
        assert!(
            e.warnings[0].to_string().contains("multi_backend.a.leveldb.threads has no effect"),
            "{:?}",
            e.warnings
        );
        assert!(merge("multi_backend.a.storage_backend = multi", &[]).is_err());
    }
}
