//! Log messages: text for people on standard error, one JSON object a line in a file that rotates.
//!
//! How many lines a client can cause is bounded ([`rate_limit`]). While the process runs, the file can be reopened, for
//! programs that rotate logs from outside, and the level be changed.

mod rate_limit;
mod rotate;

use crate::config::LogSettings;
use parking_lot::Mutex;
use rate_limit::{RateLimit, RateLimitLayer};
use rotate::RotatingFile;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, reload};

/// How often lines that were left out are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The log of this process, as far as it can be changed while the process runs.
#[derive(Clone)]
pub struct Log {
    file: LogFile,
    set_levels: Arc<[SetLevel]>,
    limit: Arc<RateLimit>,
}

/// Gives one of the log's copies another level.
type SetLevel = Box<dyn Fn(LevelFilter) -> Result<(), reload::Error> + Send + Sync>;

/// The file, shared between the log and those who reopen it. A write is one whole message.
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

/// Sends all messages of this process where the settings say. Once per process.
pub fn start(settings: &LogSettings) -> Result<Log, String> {
    let file = open(settings)
        .map_err(|e| format!("cannot write the log {}: {e}; set logger.file elsewhere", settings.file.display()))?;
    let file = LogFile(Arc::new(Mutex::new(file)));
    let (filter_of_file, handle_of_file) = reload::Layer::new(filter(settings.level));
    let (filter_of_people, handle_of_people) = reload::Layer::new(filter(settings.level));
    // Without a filter of its own, the limit would count lines that no copy of the log shows.
    let (filter_of_limit, handle_of_limit) = reload::Layer::new(filter(settings.level));
    let mut set_levels: Vec<SetLevel> = vec![
        Box::new(move |level| handle_of_file.reload(filter(level))),
        Box::new(move |level| handle_of_limit.reload(filter(level))),
    ];
    if settings.to_stderr {
        set_levels.push(Box::new(move |level| handle_of_people.reload(filter(level))));
    }
    let writer = file.clone();
    let to_file = fmt::layer()
        .json()
        .flatten_event(true)
        .log_internal_errors(false)
        .with_writer(move || writer.clone())
        .with_filter(filter_of_file);
    let to_people = fmt::layer()
        .with_target(false)
        // A closed standard error would make the library complain to it, which ends the thread.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .with_filter(filter_of_people);
    let limit = Arc::<RateLimit>::default();
    tracing_subscriber::registry()
        .with(to_file)
        .with(settings.to_stderr.then_some(to_people))
        .with(RateLimitLayer(Arc::clone(&limit)).with_filter(filter_of_limit))
        .try_init()
        .map_err(|e| e.to_string())?;
    Ok(Log { file, set_levels: set_levels.into(), limit })
}

impl Log {
    /// Closes the file and opens the one that has its name now, or creates it.
    pub fn reopen(&self) -> io::Result<()> {
        self.file.0.lock().reopen()
    }

    /// Changes which messages are the least severe ones that are written.
    pub fn set_level(&self, level: LevelFilter) -> Result<(), String> {
        self.set_levels.iter().try_for_each(|set| set(level)).map_err(|e| e.to_string())
    }

    /// Bounds how many lines clients can cause, and reports from time to time what was left out. Does not end.
    pub async fn limit_rates(&self) {
        self.limit.begin();
        loop {
            tokio::time::sleep(REPORT_INTERVAL).await;
            self.limit.report();
        }
    }

    /// Reports what was left out since the last report.
    pub fn report_left_out(&self) {
        self.limit.report();
    }
}

/// The tree library tells how it opens each of its directories: of use to its authors, and two lines a partition.
fn filter(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_target("lsm_tree", level.min(LevelFilter::WARN))
}

fn open(settings: &LogSettings) -> io::Result<RotatingFile> {
    if let Some(dir) = settings.file.parent().filter(|d| *d != Path::new("")) {
        std::fs::create_dir_all(dir)?;
    }
    RotatingFile::open(&settings.file, settings.file_bytes_max, settings.files_max)
}
