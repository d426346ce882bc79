//! The audit log of the node: its files, and the time in its lines.

use crate::config::AuditSettings;
use crate::logging::RotatingFile;
use ombak_audit::{AuditFile, AuditLog};
use std::io;
use std::path::Path;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// The permissions of a new file: nobody else reads who has failed to log in.
const MODE: u32 = 0o600;

/// Starts the audit log, or one that writes nothing.
pub fn start(settings: Option<&AuditSettings>) -> io::Result<AuditLog> {
    let Some(settings) = settings else { return Ok(AuditLog::default()) };
    let changes = open(settings, &settings.file, "audit.file")?;
    let refusals = open(settings, &settings.refusals_file, "audit.refusals_file")?;
    AuditLog::start(changes, refusals, timestamp)
}

fn open(settings: &AuditSettings, file: &Path, key: &str) -> io::Result<Box<dyn AuditFile>> {
    match RotatingFile::open(file, settings.file_bytes_max, settings.files_max, MODE) {
        Ok(opened) => Ok(Box::new(opened)),
        Err(why) => {
            let file = file.display();
            let text = format!("cannot write the audit log {file}: {why}; set {key} elsewhere, or audit.log = off");
            Err(io::Error::new(why.kind(), text))
        }
    }
}

impl AuditFile for RotatingFile {
    fn reopen(&mut self) -> io::Result<()> {
        RotatingFile::reopen(self)
    }
}

/// The time, as the lines of the other log have it.
fn timestamp() -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}
