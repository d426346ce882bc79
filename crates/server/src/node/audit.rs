//! The audit log of the node: its file, and the time in its lines.

use crate::config::AuditSettings;
use crate::logging::RotatingFile;
use ombak_audit::{AuditFile, AuditLog};
use std::io;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// The permissions of a new file: nobody else reads who has failed to log in.
const MODE: u32 = 0o600;

/// Starts the audit log, or one that writes nothing.
pub fn start(settings: Option<&AuditSettings>) -> io::Result<AuditLog> {
    let Some(AuditSettings { file, files_max, file_bytes_max }) = settings else { return Ok(AuditLog::default()) };
    let opened = RotatingFile::open(file, *file_bytes_max, *files_max, MODE)
        .and_then(|opened| AuditLog::start(Box::new(opened), timestamp));
    opened.map_err(|why| {
        let text = format!(
            "cannot write the audit log {}: {why}; set audit.file elsewhere, or audit.log = off",
            file.display()
        );
        io::Error::new(why.kind(), text)
    })
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
