//! A run, from its first connection to its report.

use super::live::Live;
use super::mix::Mix;
use super::results::Results;
use super::server_facts::server_facts;
use super::stop::Stop;
use super::worker_threads::{Shared, WorkerThreads};
use crate::config::{Config, ConfigError};
use crate::drivers::DriverError;
use crate::generators::Generators;
use crate::report::{self, CsvFiles, ReportError};
use crate::resources::{Sampler, host};
use crate::stats::{Origin, Run, RunFileError, Tally, Window};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;
use tokio::time::MissedTickBehavior;

/// The time between two updates of the status line.
const TICK: Duration = Duration::from_secs(1);

/// The options of a run in addition to its configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The directory that contains the result directories.
    pub results_dir: PathBuf,
    /// The name of this run's directory.
    pub name: String,
    /// Files to copy into that directory.
    pub config_files: Vec<PathBuf>,
    /// The configuration in words, for the report.
    pub explanation: Vec<String>,
    /// Leave out operations that the server does not support, instead of refusing to start.
    pub skip_unsupported: bool,
    /// The process to sample.
    pub pid: Option<u32>,
    /// The directory whose size is sampled.
    pub data_dir: Option<PathBuf>,
    /// Where the server says which version it is, in place of the driver's own choice.
    pub stats_address: Option<String>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The directory of the results.
    pub dir: PathBuf,
    /// The totals of the whole run.
    pub totals: Window,
    /// Whether the run was ended by an error, because it was configured to end at the first one.
    pub stopped_for_error: bool,
    /// Whether a worker panicked.
    pub crashed: bool,
}

/// Why there are no results, or only a part of them.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The measured system is not available or does not support what is configured.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A generator cannot be created.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The server does not support these operations.
    #[error("the server cannot do: {}\n(--skip-unsupported leaves them out)", .0.join("; "))]
    Unsupported(Vec<String>),
    /// No operation is left to run.
    #[error("no operation is left to be done: all are unsupported or have weight 0")]
    NothingToDo,
    /// The results cannot be written.
    #[error("{path}: {error}", path = .path.display())]
    Results {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: std::io::Error,
    },
    /// The statistics or the report cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// `run.json` cannot be written.
    #[error(transparent)]
    RunFile(#[from] RunFileError),
    /// Writing the report ended with a panic.
    #[error("the report could not be written: {0}")]
    Unwritten(String),
}

/// Runs a configuration to its end. `interrupted` ends it early; the results are written as usual.
pub async fn run(
    mut config: Config,
    options: &Options,
    interrupted: impl Future<Output = ()>,
) -> Result<Ending, RunError> {
    let prepared = config.driver.prepare(options.skip_unsupported).await?;
    let label = |place: usize| config.operations.get(place).map_or("?", |operation| &operation.label);
    let unsupported: Vec<String> =
        prepared.unsupported.iter().map(|(place, why)| format!("{}: {why}", label(*place))).collect();
    if !unsupported.is_empty() && !options.skip_unsupported {
        return Err(RunError::Unsupported(unsupported));
    }
    let left_out = |place| prepared.unsupported.iter().any(|(unsupported, _)| *unsupported == place);
    let mix = Mix::new(&config.operations, left_out).ok_or(RunError::NothingToDo)?;
    let mut notes = config.warnings.clone();
    notes.extend(unsupported.iter().map(|line| format!("left out, weights renormalised: {line}")));
    notes.extend(prepared.notes);

    let mut results = Results::create(&options.results_dir, &options.name, &options.config_files)?;
    for line in options.explanation.iter().chain(&notes) {
        results.log(line)?;
    }
    let labels = config.operations.iter().map(|operation| operation.label.clone()).collect();
    let server = match options.stats_address.clone().or_else(|| config.driver.stats_address()) {
        Some(address) => server_facts(&address).await,
        None => None,
    };
    let mut report = Run::new(&options.name, labels);
    report.terms = config.operations.iter().map(|operation| operation.term.to_string()).collect();
    report.origin = Some(Origin {
        config_files: options.config_files.iter().map(|file| file.display().to_string()).collect(),
        host: host(),
        program: concat!("ombak-bench ", env!("CARGO_PKG_VERSION")).to_owned(),
        server,
    });
    report.config.clone_from(&options.explanation);
    report.notes = notes;

    let generators = Generators::new(&config.keys, &config.values, &config.pools)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = config.driver.threads(processors).min(config.concurrent).max(1);
    let duration = config.duration;
    let interval = config.report_interval;
    let shared = Arc::new(Shared { config, generators, mix });
    let worker_threads = WorkerThreads::assemble(&shared, threads).await?;
    let observer = Observer {
        csv: CsvFiles::create(&results.dir, &report.operations)?,
        report,
        sampler: Sampler::new(options.pid, options.data_dir.clone()),
        live: Live::new(duration),
        interval,
        operations: shared.config.operations.len(),
    };
    observer.watch(worker_threads, duration, interrupted, results, &shared).await
}

/// Collects the counts while the workers run.
struct Observer {
    report: Run,
    csv: CsvFiles,
    sampler: Sampler,
    live: Live,
    interval: Duration,
    operations: usize,
}

impl Observer {
    /// Collects the counts until the workers have ended, and then writes the results. If a file
    /// cannot be written, the run ends, and as much of its report as possible is written.
    async fn watch(
        mut self,
        mut worker_threads: WorkerThreads,
        duration: Option<Duration>,
        interrupted: impl Future<Output = ()>,
        results: Results,
        shared: &Shared,
    ) -> Result<Ending, RunError> {
        let start = Instant::now();
        let stop = Arc::new(Stop::new(duration.map(|duration| start + duration)));
        self.sample(start).await;
        worker_threads.start(start, &stop);
        let mut tick = tokio::time::interval_at((start + TICK.min(self.interval)).into(), TICK.min(self.interval));
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut second, mut window) = (Tally::new(self.operations), Tally::new(self.operations));
        let mut total = Tally::new(self.operations);
        let (mut last_tick, mut window_start) = (start, start);
        // The next due time is not computed from the time when the last window was closed. That was
        // a little later than a tick, so the next tick would come too early.
        let mut window_due = start + self.interval;
        let mut interrupted = std::pin::pin!(interrupted);
        let mut asked_to_stop = false;
        let mut ended = false;
        let mut first_error = None;
        while !ended {
            tokio::select! {
                _ = tick.tick() => {}
                () = worker_threads.wait() => ended = true,
                () = interrupted.as_mut(), if !asked_to_stop => {
                    asked_to_stop = true;
                    self.live.say("stopping; the report follows");
                    stop.request();
                }
            }
            let now = Instant::now();
            worker_threads.collect(&mut second);
            self.live.update(now - start, (now - last_tick).as_secs_f64(), &second);
            second.drain_into(&mut window);
            last_tick = now;
            if ended || now >= window_due {
                let closed = Window::new((now - start).as_secs_f64(), (now - window_start).as_secs_f64(), &window);
                if let Err(error) = self.csv.window(&closed)
                    && first_error.is_none()
                {
                    self.live.say(&format!("stopping: {error}"));
                    stop.request();
                    first_error = Some(RunError::from(error));
                }
                self.report.windows.push(closed);
                window.drain_into(&mut total);
                window_start = now;
                while window_due <= now {
                    window_due += self.interval;
                }
                self.sample(start).await;
            }
        }
        stop.request();
        self.live.finish();
        self.sum_up(&total, &shared.generators);
        let ending = Ending {
            dir: results.dir.clone(),
            totals: self.report.totals.clone().unwrap_or_default(),
            stopped_for_error: stop.was_for_error(),
            crashed: stop.was_for_crash(),
        };
        // This runs on another thread, because this one must still react to a second interruption.
        let written = spawn_blocking(move || {
            worker_threads.join();
            write(results, self.csv, &self.report)
        });
        let written = written.await.unwrap_or_else(|panic| Err(RunError::Unwritten(panic.to_string())));
        first_error.map_or(written, Err).map(|()| ending)
    }

    /// Adds the totals and the notes to the report.
    fn sum_up(&mut self, total: &Tally, generators: &Generators) {
        let report = &mut self.report;
        // The totals end with the last window. The sampling and waiting after it are not part of
        // the run.
        let elapsed_s = report.windows.last().map_or(0.0, |window| window.elapsed_s);
        report.totals = Some(Window::new(elapsed_s, elapsed_s, total));
        report.set_errors(total.errors());
        match total.count_never_began() {
            0 => {}
            late => report.notes.push(format!("{late} operations were due and had not begun when the run ended")),
        }
        report.notes.extend(self.sampler.take_warnings());
        report.notes.extend(generators.warnings());
    }

    /// Takes a sample of the process and its directory, on a thread that may block.
    async fn sample(&mut self, start: Instant) {
        if self.sampler.is_idle() {
            return;
        }
        let mut sampler = std::mem::replace(&mut self.sampler, Sampler::new(None, None));
        let looked = spawn_blocking(move || {
            let sample = sampler.sample(start.elapsed().as_secs_f64());
            (sampler, sample)
        });
        // This fails only after a panic, whose message has been printed. There are no samples from
        // then on.
        if let Ok((sampler, sample)) = looked.await {
            self.sampler = sampler;
            self.report.resources.push(sample);
        }
    }
}

/// Writes all results of a finished run. An error in one file does not prevent the other files from
/// being written.
fn write(mut results: Results, csv: CsvFiles, run: &Run) -> Result<(), RunError> {
    let errors = csv.finish(&run.errors).map_err(RunError::from);
    let saved = run.save(&results.dir).map_err(RunError::from);
    let logged = summary_lines(run).iter().try_for_each(|line| results.log(line));
    let drawn = report::write(&results.dir, run).map_err(RunError::from);
    errors.and(saved).and(logged).and(drawn)
}

/// A summary of the run, with one line for each operation.
pub(super) fn summary_lines(run: &Run) -> Vec<String> {
    let Some(totals) = &run.totals else { return Vec::new() };
    let line = |(label, s): (&str, &crate::stats::Summary)| {
        let rate = totals.per_second(s.units);
        let ms = |us: u64| us as f64 / 1000.0;
        let queue = s.queue.map(|q| format!(", began up to {:.2} ms late", ms(q.max_us))).unwrap_or_default();
        format!(
            "{label}: {} done ({rate:.0} a second), {} errors; median {:.2} ms, p99 {:.2} ms, max {:.2} ms{queue}",
            s.units,
            s.errors,
            ms(s.median_us),
            ms(s.p99_us),
            ms(s.max_us)
        )
    };
    let names = (0..run.operations.len()).map(|place| run.operation_name(place));
    names.zip(&totals.operations).map(line).collect()
}

/// Prints the summary of a run.
pub fn print_summary(dir: &Path) -> Result<(), RunFileError> {
    let run = Run::load(dir)?;
    summary_lines(&run).iter().for_each(|line| println!("{line}"));
    println!("results in {}", dir.display());
    Ok(())
}
