//! The program `ombak-bench`: runs what its command line asks for, and sets the exit code.

use ombak_bench::cli::{CompareOptions, Refusal, Request, RunOptions, explain};
use ombak_bench::report;
use ombak_bench::run::{self, Ending, Options};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code of a run that a panic ended (docs/riak/basho-bench.md §1).
const CRASHED: u8 = 2;

fn main() -> ExitCode {
    let request = match Request::parse(std::env::args_os()) {
        Ok(request) => request,
        Err(refusal) => return refused(&refusal),
    };
    let done = match request {
        Request::Run(options) => start(&options),
        Request::Compare(options) => compare(&options),
    };
    done.unwrap_or_else(|error| {
        eprintln!("ombak-bench: {error}");
        ExitCode::FAILURE
    })
}

fn refused(refusal: &Refusal) -> ExitCode {
    refusal.print();
    ExitCode::from(refusal.exit_code())
}

fn compare(options: &CompareOptions) -> Result<ExitCode, Box<dyn Error>> {
    let out = options.out.as_deref().unwrap_or(Path::new("."));
    print!("{}", report::compare(&options.dirs, out)?);
    Ok(ExitCode::SUCCESS)
}

fn start(options: &RunOptions) -> Result<ExitCode, Box<dyn Error>> {
    let planned = options.plan()?;
    let explanation = explain(&planned);
    if options.dry_run {
        explanation.iter().for_each(|line| println!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    explanation.iter().for_each(|line| eprintln!("{line}"));
    let beside = Options {
        results_dir: options.results_dir.clone(),
        name: options.bench_name.clone().unwrap_or_else(name_of_now),
        config_files: options.files.clone(),
        explanation,
        skip_unsupported: options.skip_unsupported,
        pid: options.pid,
        data_dir: options.data_dir.clone(),
        stats_address: options.stats.as_ref().map(ToString::to_string),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ending = runtime.block_on(run::run(planned.config, &beside, interrupted()))?;
    run::print_summary(&ending.dir)?;
    Ok(match ending {
        Ending { crashed: true, .. } => ExitCode::from(CRASHED),
        Ending { stopped_for_error: true, .. } => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// Waits for Ctrl-C, which ends the run with its report. A second Ctrl-C ends the program.
#[expect(clippy::disallowed_methods, reason = "whoever asks twice does not want anything to be finished")]
async fn interrupted() {
    match tokio::signal::ctrl_c().await {
        Ok(()) => drop(tokio::spawn(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(130);
            }
        })),
        Err(error) => {
            eprintln!("ombak-bench: cannot react to Ctrl-C: {error}");
            std::future::pending().await
        }
    }
}

/// The current time in UTC, as `YYYYMMDD_HHMMSS`.
#[expect(clippy::disallowed_methods, reason = "the program's edge reads the clock")]
fn name_of_now() -> String {
    let secs = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (day, second) = (secs / 86_400, secs % 86_400);
    let (year, month, day) = date(day);
    format!("{year:04}{month:02}{day:02}_{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of a number of days since 1970-01-01. The calculation counts periods of 400,
/// 100, 4 and 1 years that begin on 1 March.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (days, expected) in
            [(0, (1970, 1, 1)), (59, (1970, 3, 1)), (11_016, (2000, 2, 29)), (20_778, (2026, 11, 21))]
        {
            assert_eq!(date(days), expected);
        }
    }
}
