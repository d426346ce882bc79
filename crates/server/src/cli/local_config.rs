//! The configuration as this process sees it: options, environment and file.

use super::args::Common;
use super::failure::Failure;
use crate::config::{Effective, Listen, Overrides, Problem, Settings, Value};
use crate::node::record::reachable;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The configuration files to try if no file was named. The first one that exists is read.
const DEFAULT_FILES: [&str; 2] = ["ombak.conf", "/etc/ombak/ombak.conf"];

/// Reads the configuration file and merges it with environment and options.
pub fn load(common: &Common) -> Result<Effective, Vec<Problem>> {
    let default = || DEFAULT_FILES.iter().map(PathBuf::from).find(|path| path.exists());
    let file = common.config.clone().or_else(default);
    let environment = std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)));
    let data = common.data.iter().map(|dir| ("--data", "platform_data_dir".to_owned(), dir.display().to_string()));
    let overrides = Overrides { environment: environment.collect(), command_line: data.collect() };
    Effective::load(file.as_deref(), &overrides)
}

/// The keys and values of the configuration file as they are written, also
/// if they have errors. A file that cannot be read has none.
pub fn lines(common: &Common) -> Vec<(String, String)> {
    let default = || DEFAULT_FILES.iter().map(PathBuf::from).find(|path| path.exists());
    let file = common.config.clone().or_else(default);
    let text = file.and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let of_line = |line: &str| {
        let (key, value) = line.trim_start_matches(['#', ' ', '\t']).split_once('=')?;
        Some((key.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
    };
    text.lines().filter_map(of_line).collect()
}

/// The first address that the configuration names for HTTP and for Protocol Buffers, in the form
/// that a client connects to; none of an interface whose port is left to the operating system.
/// `None` if the configuration has errors.
pub fn listeners(common: &Common) -> Option<(Option<SocketAddr>, Option<SocketAddr>)> {
    let settings = Settings::new(&load(common).ok()?).ok()?;
    let first = |listens: &[Listen]| listens.first().map(|l| reachable(l.address)).filter(|a| a.port() != 0);
    Some((first(&settings.http), first(&settings.pb)))
}

/// Checks that a configuration file which was named exists. Without it, a command would go to the
/// node of the default directory, which may be another one. A file that may not be read is no
/// reason to refuse a command.
pub fn check_named(common: &Common) -> Result<(), Failure> {
    let Some(path) = &common.config else { return Ok(()) };
    match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            Err(Failure::new(format!("cannot read the configuration {}: {e}", path.display())))
        }
        _ => Ok(()),
    }
}

/// The data directory. If the configuration cannot be read, this is the default: a broken
/// configuration does not prevent a command from finding a node.
pub fn data_dir(common: &Common) -> PathBuf {
    if let Some(dir) = &common.data {
        return dir.clone();
    }
    match load(common).as_ref().map(|effective| effective.get("platform_data_dir")) {
        Ok(Some(Value::Text(dir))) => PathBuf::from(dir),
        _ => Path::new("data").to_owned(),
    }
}
