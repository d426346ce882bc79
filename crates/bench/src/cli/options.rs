//! The grammar of the command line. Options that basho_bench also has keep its names
//! (docs/riak/basho-bench.md §1). Users see the doc comments of the options in `--help`.

use super::Address;
use crate::term::Term;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const AFTER_HELP: &str = "\
Examples:
  ombak-bench --dry-run nhs-general.config          show what a configuration would do
  ombak-bench --scale 0.001 nhs-general.config      run it on a small machine, everything a thousandth
  ombak-bench --pb db1:8087 --duration 30s FILE     half a minute against another server
  ombak-bench --set 'concurrent=16' FILE            with another setting
  ombak-bench compare tests/bitcask tests/memory    two runs on one chart, and their ratios

Exit codes: 0 done, 1 failed or stopped by shutdown_on_error, 2 wrong usage, or a worker crashed.";

/// Run basho_bench configurations and draw charts of the results.
#[derive(Debug, Parser)]
#[command(
    name = "ombak-bench",
    version,
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Draw several runs on one chart and print their ratios.
    Compare(CompareOptions),
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Request {
    /// Run a configuration, or explain it.
    Run(Box<RunOptions>),
    /// Compare runs.
    Compare(CompareOptions),
}

/// The options of a run.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// Configuration files, each a sequence of Erlang terms. If a setting is in several files, the
    /// last one counts.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only print what would be done and how much data would be stored.
    #[arg(long)]
    pub dry_run: bool,
    /// Reduce key space, duration and data volume together to this fraction, above 0 and at most 1.
    #[arg(long, value_name = "F")]
    pub scale: Option<f64>,
    /// Run for this long instead of the configured duration: 30s, 5m, 2h, or a number of seconds.
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    pub duration: Option<Duration>,
    /// Leave out operations that the server does not support, instead of refusing to start.
    #[arg(long)]
    pub skip_unsupported: bool,
    /// Directory in which each run creates its own directory.
    #[arg(short = 'd', long, value_name = "DIR", default_value = "./tests")]
    pub results_dir: PathBuf,
    /// Name of this run's directory [default: the time, YYYYMMDD_HHMMSS].
    #[arg(short = 'n', long, value_name = "NAME")]
    pub bench_name: Option<String>,
    /// Process to measure: the process id of the server.
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Directory to measure: the data directory of the server.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where the server's /stats is, which names its version and backend in the report [default:
    /// the first HTTP server, or port 8098 of the first server if its port is 8087].
    #[arg(long, value_name = "HOST:PORT")]
    pub stats: Option<Address>,
    /// Servers to use instead of the configured ones, for drivers with a single protocol. Separate
    /// several with commas.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', conflicts_with_all = ["pb", "http"])]
    pub target: Vec<Address>,
    /// Servers to use over Protocol Buffers instead of the configured ones.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub pb: Vec<Address>,
    /// Servers to use over HTTP instead of the configured ones.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub http: Vec<Address>,
    /// Driver to use instead of the configured one.
    #[arg(long, value_name = "NAME")]
    pub driver: Option<String>,
    /// Set a value instead of the configured one, such as 'concurrent=16'. May be repeated for
    /// other settings.
    #[arg(long, value_name = "KEY=TERM", value_parser = setting)]
    pub set: Vec<(String, Term)>,
    #[command(flatten)]
    distribution: Distribution,
}

/// Options of basho_bench that this program does not have.
#[derive(Clone, Debug, Args)]
struct Distribution {
    #[arg(short = 'N', long, hide = true, value_name = "NAME", value_parser = no_distribution)]
    node: Option<String>,
    #[arg(short = 'C', long, hide = true, value_name = "ATOM", value_parser = no_distribution)]
    cookie: Option<String>,
    #[arg(short = 'J', long, hide = true, value_name = "NODE", value_parser = no_distribution)]
    join: Option<String>,
}

/// The options of a comparison.
#[derive(Clone, Debug, Args)]
pub struct CompareOptions {
    /// Directories with results. Ratios are relative to the first one.
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Directory for the charts [default: the current directory].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Why there is nothing to run: the usage was wrong, or help was requested.
#[derive(Debug)]
pub enum Refusal {
    /// An error or a help text of the grammar.
    Usage(clap::Error),
    /// The name of the run is not valid.
    BenchName(&'static str),
}

impl Refusal {
    /// Prints the message to standard output or standard error.
    pub fn print(&self) {
        match self {
            // An error is ignored: if the output is closed, nothing else can be done.
            Self::Usage(usage) => drop(usage.print()),
            Self::BenchName(why) => eprintln!("ombak-bench: --bench-name: {why}"),
        }
    }

    /// The exit code. For an invalid name it is 1, as in basho_bench.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(usage) => u8::try_from(usage.exit_code()).unwrap_or(2),
            Self::BenchName(_) => 1,
        }
    }
}

impl Request {
    /// Parses the arguments of the program. The first one is the program's name.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, Refusal> {
        let cli = Cli::try_parse_from(args).map_err(Refusal::Usage)?;
        if let Some(Command::Compare(options)) = cli.command {
            return Ok(Self::Compare(options));
        }
        match cli.run.bench_name.as_deref() {
            Some("current") => Err(Refusal::BenchName("'current' is the link to the last run; choose another name")),
            Some(name) if matches!(name, "" | "." | "..") || name.contains('/') => {
                Err(Refusal::BenchName("a name of a directory inside --results-dir is wanted, without '/'"))
            }
            _ => Ok(Self::Run(Box::new(cli.run))),
        }
    }
}

/// Parses a duration such as `30s`, `5m`, `2h` or `90` (seconds).
fn length(text: &str) -> Result<Duration, String> {
    let (number, unit_secs) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1.0),
        Some(b'm') => (&text[..text.len() - 1], 60.0),
        Some(b'h') => (&text[..text.len() - 1], 3600.0),
        _ => (text, 1.0),
    };
    number
        .parse()
        .ok()
        .and_then(|number: f64| Duration::try_from_secs_f64(number * unit_secs).ok())
        .filter(|length| !length.is_zero())
        .ok_or_else(|| "a length of time is 30s, 5m or 2h, or a number of seconds".to_owned())
}

/// Parses an assignment `KEY=TERM`.
fn setting(text: &str) -> Result<(String, Term), String> {
    let (key, term) = text.split_once('=').ok_or("a setting is KEY=TERM, as in 'concurrent=16'")?;
    let term = Term::parse(term).map_err(|error| format!("the term at column {}: {}", error.column, error.what))?;
    Ok((key.trim().to_owned(), term))
}

fn no_distribution(_: &str) -> Result<String, String> {
    Err("there is no Erlang distribution here; start ombak-bench on each machine and compare the runs".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn request(line: &str) -> Result<Request, Refusal> {
        Request::parse(std::iter::once("ombak-bench").chain(line.split_whitespace()).map(OsString::from))
    }

    fn run(line: &str) -> RunOptions {
        match request(line) {
            Ok(Request::Run(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn wrong(line: &str) -> (String, u8) {
        match request(line).unwrap_err() {
            ref refusal @ Refusal::Usage(ref usage) => (usage.to_string(), refusal.exit_code()),
            refusal @ Refusal::BenchName(why) => (why.to_owned(), refusal.exit_code()),
        }
    }

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_run_needs_only_a_file() {
        let options = run("a.config b.config");
        assert_eq!(options.files, [PathBuf::from("a.config"), PathBuf::from("b.config")]);
        assert_eq!(options.results_dir, PathBuf::from("./tests"));
        assert!(options.bench_name.is_none() && options.scale.is_none() && options.duration.is_none());
        assert!(!options.dry_run && !options.skip_unsupported);
    }

    #[test]
    fn options_are_read() {
        let options = run("--dry-run --scale 0.01 --skip-unsupported -d out -n first --pid 12 --data-dir data \
             --pb a:1,b:2 --http c:3 --driver d --set a={b,1} --set c=[] --duration 30s f.config");
        assert!(options.dry_run && options.skip_unsupported);
        assert_eq!(
            (options.scale, options.pid, options.duration),
            (Some(0.01), Some(12), Some(Duration::from_secs(30)))
        );
        assert_eq!((options.results_dir, options.bench_name), ("out".into(), Some("first".into())));
        assert_eq!((options.data_dir, options.driver), (Some("data".into()), Some("d".into())));
        let address = |host: &str, port| Address { host: host.into(), port };
        assert_eq!((options.pb, options.http), (vec![address("a", 1), address("b", 2)], vec![address("c", 3)]));
        let term = |text| Term::parse(text).unwrap();
        assert_eq!(options.set, [("a".to_owned(), term("{b,1}")), ("c".to_owned(), term("[]"))]);
        assert_eq!(run("--target a:1 f").target, [address("a", 1)]);
    }

    #[test]
    fn lengths_have_units() {
        for (text, secs) in [("30", 30.0), ("30s", 30.0), ("0.5", 0.5), ("5m", 300.0), ("2h", 7200.0)] {
            assert_eq!(length(text), Ok(Duration::from_secs_f64(secs)));
        }
        for text in ["", "s", "0", "-1", "5d", "1e300h", "nan"] {
            assert!(length(text).is_err(), "{text}");
        }
    }

    #[test]
    fn runs_are_compared() {
        let Ok(Request::Compare(options)) = request("compare a b --out c") else { panic!() };
        assert_eq!((options.dirs, options.out), (vec!["a".into(), "b".into()], Some("c".into())));
        assert!(matches!(request("compare a"), Ok(Request::Compare(CompareOptions { out: None, .. }))));
    }

    #[test]
    fn wrong_usage_says_what_is_right() {
        for (line, words, code) in [
            ("", "<FILE>", 2),
            ("compare", "<DIR>", 2),
            ("--scale x f", "--scale", 2),
            ("--duration 5d f", "30s, 5m or 2h", 2),
            ("--target db1 f", "HOST:PORT, as in 127.0.0.1:8087", 2),
            ("--target a:1 --pb a:1 f", "cannot be used with", 2),
            ("--set concurrent f", "a setting is KEY=TERM", 2),
            ("--set a={ f", "the term at column", 2),
            ("-N bench@a f", "there is no Erlang distribution here", 2),
            ("-C secret f", "there is no Erlang distribution here", 2),
            ("--join bench@b f", "there is no Erlang distribution here", 2),
            ("-n current f", "'current' is the link to the last run", 1),
            ("-n a/b f", "without '/'", 1),
            ("--help", "Examples:", 0),
        ] {
            let (message, exit) = wrong(line);
            assert!(message.contains(words), "{line}: {message}");
            assert_eq!(exit, code, "{line}");
        }
    }
}
