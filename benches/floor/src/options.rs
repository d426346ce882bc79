//! The command line.

use crate::appends::Appends;
use crate::workload::Op;
use std::path::PathBuf;
use std::time::Duration;

pub const USAGE: &str = "\
Usage: ombak-floor --ombak PATH [OPTIONS]

  --ombak PATH     the release build of ombak to measure
  --seconds N      how long each measurement takes [2]
  --rounds N       how often everything is measured, in turns [5]
  --workers N      worker threads of each server [2]
  --dir DIR        where the servers keep their data meanwhile [the system's temporary directory]
  --no-redis       leave Redis out even if it is installed
  --files          also measure an echo server that appends to and reads from files
  --connections N  only with this many connections [6 and 100]
  --op OP          only GET or only PUT [both]
  --server NAME    only this one beside the echo servers: redis, 'ombak memory' or 'ombak bitcask' [all]

  ombak-floor echo --port N [--files DIR]    only run the echo server, with files if asked for
  ombak-floor echo --port N --http           only run an HTTP echo server: hyper and nothing else
  ombak-floor appends [--puts N] [--rounds N] [--dir DIR]
                   small puts on stores without a network, beside a loop that appends to a file [1000000, 5]
";

pub enum Command {
    Help,
    Echo { port: u16, files: Option<PathBuf> },
    EchoHttp { port: u16 },
    Appends(Appends),
    Measure(Options),
}

pub struct Options {
    pub ombak: PathBuf,
    pub seconds: Duration,
    pub rounds: usize,
    pub workers: usize,
    pub dir: PathBuf,
    pub redis: bool,
    pub files: bool,
    /// Numbers of simultaneous connections. Each number is a part of the table.
    pub connections: Vec<usize>,
    pub ops: Vec<Op>,
    /// The only server that is measured besides the echo server, unless all are.
    pub server: Option<String>,
}

impl Options {
    pub fn wants(&self, server: &str) -> bool {
        self.server.as_deref().is_none_or(|only| only == server)
    }
}

pub fn parse(args: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut args = args.peekable();
    if args.next_if_eq("echo").is_some() {
        let args: Vec<String> = args.collect();
        let (port, files) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["--port", port] => (port, None),
            ["--port", port, "--http"] => return Ok(Command::EchoHttp { port: number("--port", port)? }),
            ["--port", port, "--files", dir] => (port, Some(PathBuf::from(dir))),
            _ => return Err("echo takes --port N and, after it, --files DIR or --http".into()),
        };
        return Ok(Command::Echo { port: number("--port", port)?, files });
    }
    if args.next_if_eq("appends").is_some() {
        return parse_appends(args).map(Command::Appends);
    }
    let mut ombak = None;
    let mut options = Options {
        ombak: PathBuf::new(),
        seconds: Duration::from_secs(2),
        rounds: 5,
        workers: 2,
        dir: std::env::temp_dir(),
        redis: true,
        files: false,
        connections: vec![6, 100],
        ops: vec![Op::Get, Op::Put],
        server: None,
    };
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or(format!("{option} needs a value"));
        match option.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--ombak" => ombak = Some(PathBuf::from(value()?)),
            "--seconds" => options.seconds = Duration::from_secs_f64(positive(&option, &value()?)?),
            "--rounds" => options.rounds = number::<std::num::NonZeroUsize>(&option, &value()?)?.get(),
            "--workers" => options.workers = number::<std::num::NonZeroUsize>(&option, &value()?)?.get(),
            "--dir" => options.dir = PathBuf::from(value()?),
            "--no-redis" => options.redis = false,
            "--files" => options.files = true,
            "--connections" => {
                options.connections = vec![number::<std::num::NonZeroUsize>(&option, &value()?)?.get()];
            }
            "--op" => {
                options.ops = match value()?.to_ascii_uppercase().as_str() {
                    "GET" => vec![Op::Get],
                    "PUT" => vec![Op::Put],
                    other => return Err(format!("--op: '{other}' is neither GET nor PUT")),
                }
            }
            "--server" => options.server = Some(value()?),
            _ => return Err(format!("unknown option {option}")),
        }
    }
    options.ombak = ombak.ok_or("--ombak PATH is missing: the binary to measure")?;
    Ok(Command::Measure(options))
}

fn parse_appends(mut args: impl Iterator<Item = String>) -> Result<Appends, String> {
    let mut options = Appends { dir: std::env::temp_dir(), puts: 1_000_000, rounds: 5 };
    while let Some(option) = args.next() {
        let value = args.next().ok_or(format!("{option} needs a value"))?;
        match option.as_str() {
            "--puts" => options.puts = number::<std::num::NonZeroU64>(&option, &value)?.get(),
            "--rounds" => options.rounds = number::<std::num::NonZeroUsize>(&option, &value)?.get(),
            "--dir" => options.dir = PathBuf::from(value),
            _ => return Err(format!("appends takes --puts, --rounds and --dir, not {option}")),
        }
    }
    Ok(options)
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{option}: '{text}' is not a number that fits"))
}

fn positive(option: &str, text: &str) -> Result<f64, String> {
    let n: f64 = number(option, text)?;
    if n > 0.0 && n < 1e6 { Ok(n) } else { Err(format!("{option}: '{text}' is not above 0")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let Ok(Command::Measure(options)) = parsed("--ombak target/release/ombak --rounds 3 --no-redis") else {
            panic!("no measurement");
        };
        assert_eq!((options.rounds, options.redis, options.ombak.to_str()), (3, false, Some("target/release/ombak")));
        assert!(matches!(parsed("echo --port 1234"), Ok(Command::Echo { port: 1234, files: None })));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, word) in [
            ("", "--ombak"),
            ("--ombak", "value"),
            ("--ombak x --rounds 0", "--rounds"),
            ("--ombak x --seconds -1", "--seconds"),
            ("--ombak x --fast", "--fast"),
            ("--ombak x --op merge", "--op"),
            ("--ombak x --connections 0", "--connections"),
            ("echo", "--port"),
            ("appends --puts 0", "--puts"),
            ("appends --seconds 1", "--seconds"),
        ] {
            let wrong = parsed(line).err().unwrap();
            assert!(wrong.contains(word), "{line}: {wrong}");
        }
    }
}
