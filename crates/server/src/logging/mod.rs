//! Log messages: text for people on standard error, and a file that rotates, with one JSON object
//! per line.
//!
//! The number of lines that clients can cause is bounded ([`rate_limit`]). While the process runs,
//! the log level can be changed, and the file can be reopened for external programs that rotate
//! logs.
//!
//! Lines have the names of nodes in place of their numbers ([`named`]). What the metadata's library
//! says in ordinary life is no warning ([`raft_messages`]).

mod named;
mod raft_messages;
mod rate_limit;
mod rotate;

use crate::config::LogSettings;
use named::Named;
use ombak_cluster::NodeNames;
use parking_lot::Mutex;
use raft_messages::RaftMessages;
use rate_limit::{RateLimit, RateLimitLayer};
pub use rotate::RotatingFile;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, reload};

/// The permissions of a new log file, from which the umask of the process takes some.
const LOG_MODE: u32 = 0o666;

/// The time between two reports about omitted lines.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The log of this process: the parts that can be changed while the process runs.
#[derive(Clone)]
pub struct Log {
    file: LogFile,
    set_levels: Arc<[SetLevel]>,
    limit: Arc<RateLimit>,
    names: Arc<NodeNames>,
}

/// Sets the level of one output of the log, or of the rate limit.
type SetLevel = Box<dyn Fn(LevelFilter) -> Result<(), reload::Error> + Send + Sync>;

/// The log file, shared between the log and the code that reopens it. Each `write` is one whole
/// message.
#[derive(Clone)]
struct LogFile(Arc<Mutex<RotatingFile>>);

impl Write for LogFile {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        self.0.lock().write(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().flush()
    }
}

/// Starts writing all messages of this process as the settings say. This can be done once per
/// process.
pub fn start(settings: &LogSettings) -> io::Result<Log> {
    let file = open(settings).map_err(|e| {
        let text = format!("cannot write the log {}: {e}; set logger.file elsewhere", settings.file.display());
        io::Error::new(e.kind(), text)
    })?;
    let file = LogFile(Arc::new(Mutex::new(file)));
    let (filter_of_file, handle_of_file) = reload::Layer::new(filter(settings.level));
    let (operator_filter, operator_handle) = reload::Layer::new(filter(settings.level));
    // Without a filter of its own, the rate limit would also count lines that no output shows.
    let (filter_of_limit, handle_of_limit) = reload::Layer::new(filter(settings.level));
    let (filter_of_raft, handle_of_raft) = reload::Layer::new(filter(settings.level));
    let mut set_levels: Vec<SetLevel> = vec![
        Box::new(move |level| handle_of_file.reload(filter(level))),
        Box::new(move |level| handle_of_limit.reload(filter(level))),
        Box::new(move |level| handle_of_raft.reload(filter(level))),
    ];
    if settings.to_stderr {
        set_levels.push(Box::new(move |level| operator_handle.reload(filter(level))));
    }
    let names = Arc::<NodeNames>::default();
    let (writer, names_of_file, names_of_people) = (file.clone(), names.clone(), names.clone());
    let to_file = fmt::layer()
        .json()
        .flatten_event(true)
        .log_internal_errors(false)
        .with_writer(move || Named { names: names_of_file.clone(), to: writer.clone() })
        .with_filter(filter_of_file);
    let to_people = fmt::layer()
        .with_target(false)
        // If standard error is closed, the library would report its own error there, which would
        // end the thread.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(move || Named { names: names_of_people.clone(), to: io::stderr() })
        .with_filter(operator_filter);
    let limit = Arc::<RateLimit>::default();
    tracing_subscriber::registry()
        .with(to_file)
        .with(settings.to_stderr.then_some(to_people))
        .with(RateLimitLayer(Arc::clone(&limit)).with_filter(filter_of_limit))
        // The last layer sees an event first. It writes ordinary messages anew, and these pass the
        // rate limit.
        .with(RaftMessages.with_filter(filter_of_raft))
        .try_init()
        .map_err(io::Error::other)?;
    Ok(Log { file, set_levels: set_levels.into(), limit, names })
}

impl Log {
    /// Closes the file, and opens or creates the file that now has its name.
    pub fn reopen(&self) -> io::Result<()> {
        self.file.0.lock().reopen()
    }

    /// Sets the least severe level that is written.
    pub fn set_level(&self, level: LevelFilter) -> Result<(), String> {
        self.set_levels.iter().try_for_each(|set| set(level)).map_err(|e| e.to_string())
    }

    /// The names that lines have in place of the numbers of nodes. The node adds those that it
    /// learns.
    pub fn names(&self) -> Arc<NodeNames> {
        self.names.clone()
    }

    /// Starts to bound the lines that clients can cause, and regularly reports the lines that were
    /// omitted. Never returns.
    pub async fn limit_rates(&self) {
        self.limit.begin();
        loop {
            tokio::time::sleep(REPORT_INTERVAL).await;
            self.limit.report();
        }
    }

    /// Reports the lines that were omitted since the last report.
    pub fn report_left_out(&self) {
        self.limit.report();
    }
}

/// Libraries that report each step of theirs at the level of information, which helps only their
/// authors: `lsm_tree` each of the directories that it opens, and `openraft` each of its messages.
const WARNINGS_ALONE: [&str; 2] = ["lsm_tree", "openraft"];

/// The levels that are written.
fn filter(level: LevelFilter) -> Targets {
    let warnings = WARNINGS_ALONE.map(|library| (library, level.min(LevelFilter::WARN)));
    Targets::new().with_default(level).with_targets(warnings)
}

fn open(settings: &LogSettings) -> io::Result<RotatingFile> {
    RotatingFile::open(&settings.file, settings.file_bytes_max, settings.files_max, LOG_MODE)
}
