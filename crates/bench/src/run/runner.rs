//! A run, from its first connection to its report.

use super::crew::{Crew, Orders};
use super::live::Live;
use super::mix::Mix;
use super::results::Results;
use super::stop::Stop;
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

/// How often the live line changes.
const TICK: Duration = Duration::from_secs(1);

/// Beside the configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where directories of results are.
    pub results_dir: PathBuf,
    /// What this one is called.
    pub name: String,
    /// Files that are copied into it.
    pub config_files: Vec<PathBuf>,
    /// The configuration in words, for the report.
    pub explanation: Vec<String>,
    /// Leaves out what the server cannot do, instead of not starting.
    pub skip_unsupported: bool,
    /// The process to watch.
    pub pid: Option<u32>,
    /// The directory whose size is watched.
    pub data_dir: Option<PathBuf>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The directory of the results.
    pub dir: PathBuf,
    /// All of the run.
    pub totals: Window,
    /// It was to end at the first error, and there was one.
    pub stopped_for_error: bool,
    /// A worker panicked.
    pub crashed: bool,
}

/// Why there is no result, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What is measured is not there, or cannot do what is asked for.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A generator cannot be made.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Operations that the server cannot do.
    #[error("the server cannot do: {}\n(--skip-unsupported leaves them out)", .0.join("; "))]
    Unsupported(Vec<String>),
    /// Nothing is left to do.
    #[error("no operation is left to be done: all are unsupported or have weight 0")]
    NothingToDo,
    /// The results cannot be written.
    #[error("{path}: {error}", path = .path.display())]
    Results {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
    /// The statistics or the report cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// `run.json` cannot be written.
    #[error(transparent)]
    RunFile(#[from] RunFileError),
    /// The report was not finished.
    #[error("the report could not be written: {0}")]
    Unwritten(String),
}

/// Runs a configuration to its end. `interrupted` ends it early, with all its results.
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
    let mut report = Run::new(&options.name, labels);
    report.terms = config.operations.iter().map(|operation| operation.term.to_string()).collect();
    report.origin = Some(Origin {
        config_files: options.config_files.iter().map(|file| file.display().to_string()).collect(),
        host: host(),
        program: concat!("ombak-bench ", env!("CARGO_PKG_VERSION")).to_owned(),
    });
    report.config.clone_from(&options.explanation);
    report.notes = notes;

    let generators = Generators::new(&config.keys, &config.values, &config.pools)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = config.driver.threads(processors).min(config.concurrent).max(1);
    let duration = config.duration;
    let interval = config.report_interval;
    let orders = Arc::new(Orders { config, generators, mix });
    let crew = Crew::assemble(&orders, threads).await?;
    let observer = Observer {
        csv: CsvFiles::create(&results.dir, &report.operations)?,
        report,
        sampler: Sampler::new(options.pid, options.data_dir.clone()),
        live: Live::new(duration),
        interval,
        operations: orders.config.operations.len(),
    };
    observer.watch(crew, duration, interrupted, results, &orders).await
}

/// Who counts while the workers work.
struct Observer {
    report: Run,
    csv: CsvFiles,
    sampler: Sampler,
    live: Live,
    interval: Duration,
    operations: usize,
}

impl Observer {
    /// Counts until the workers have ended, then writes down what it came to. Where a file cannot be written the run ends,
    /// and what can be written of its report is.
    async fn watch(
        mut self,
        mut crew: Crew,
        duration: Option<Duration>,
        interrupted: impl Future<Output = ()>,
        results: Results,
        orders: &Orders,
    ) -> Result<Ending, RunError> {
        let start = Instant::now();
        let stop = Arc::new(Stop::new(duration.map(|duration| start + duration)));
        self.sample(start).await;
        crew.start(start, &stop);
        let mut tick = tokio::time::interval_at((start + TICK.min(self.interval)).into(), TICK.min(self.interval));
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut second, mut window) = (Tally::new(self.operations), Tally::new(self.operations));
        let mut total = Tally::new(self.operations);
        let (mut last_tick, mut window_start) = (start, start);
        // Not from when the window before was closed: that was a little later than a tick, and the next would seem too early.
        let mut window_due = start + self.interval;
        let mut interrupted = std::pin::pin!(interrupted);
        let mut asked_to_stop = false;
        let mut ended = false;
        let mut trouble = None;
        while !ended {
            tokio::select! {
                _ = tick.tick() => {}
                () = crew.wait() => ended = true,
                () = interrupted.as_mut(), if !asked_to_stop => {
                    asked_to_stop = true;
                    self.live.say("stopping; the report follows");
                    stop.say();
                }
            }
            let now = Instant::now();
            crew.collect(&mut second);
            self.live.update(now - start, (now - last_tick).as_secs_f64(), &second);
            second.drain_into(&mut window);
            last_tick = now;
            if ended || now >= window_due {
                let closed = Window::new((now - start).as_secs_f64(), (now - window_start).as_secs_f64(), &window);
                if let Err(error) = self.csv.window(&closed)
                    && trouble.is_none()
                {
                    self.live.say(&format!("stopping: {error}"));
                    stop.say();
                    trouble = Some(RunError::from(error));
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
        stop.say();
        self.live.finish();
        self.sum_up(&total, &orders.generators);
        let ending = Ending {
            dir: results.dir.clone(),
            totals: self.report.totals.clone().unwrap_or_default(),
            stopped_for_error: stop.was_for_error(),
            crashed: stop.was_for_crash(),
        };
        // On another thread: this one has to hear a second interruption.
        let written = spawn_blocking(move || {
            crew.join();
            write(results, self.csv, &self.report)
        });
        let written = written.await.unwrap_or_else(|panic| Err(RunError::Unwritten(panic.to_string())));
        trouble.map_or(written, Err).map(|()| ending)
    }

    /// The totals, and what is to be said beside them.
    fn sum_up(&mut self, total: &Tally, generators: &Generators) {
        let report = &mut self.report;
        // Up to the last window: what is looked at and waited for afterwards is not part of the run.
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

    /// Looks at the process and its directory, on a thread that may wait for the disk.
    async fn sample(&mut self, start: Instant) {
        if self.sampler.is_idle() {
            return;
        }
        let mut sampler = std::mem::replace(&mut self.sampler, Sampler::new(None, None));
        let looked = spawn_blocking(move || {
            let sample = sampler.sample(start.elapsed().as_secs_f64());
            (sampler, sample)
        });
        // It can only fail by a panic, which has been printed; there are no samples from then on.
        if let Ok((sampler, sample)) = looked.await {
            self.sampler = sampler;
            self.report.resources.push(sample);
        }
    }
}

/// Everything that is written when a run has ended. What cannot be written does not keep the rest from being written.
fn write(mut results: Results, csv: CsvFiles, run: &Run) -> Result<(), RunError> {
    let errors = csv.finish(&run.errors).map_err(RunError::from);
    let saved = run.save(&results.dir).map_err(RunError::from);
    let logged = summary_lines(run).iter().try_for_each(|line| results.log(line));
    let drawn = report::write(&results.dir, run).map_err(RunError::from);
    errors.and(saved).and(logged).and(drawn)
}

/// What a run came to, one operation a line.
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

/// Prints what a run came to.
pub fn print_summary(dir: &Path) -> Result<(), RunFileError> {
    let run = Run::load(dir)?;
    summary_lines(&run).iter().for_each(|line| println!("{line}"));
    println!("results in {}", dir.display());
    Ok(())
}
