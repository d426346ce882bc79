//! The command line.

use crate::appends::Appends;
use crate::workload::{Op, Protocol};
use std::net::SocketAddr;
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
  ombak-floor echo --port N --short          only run an echo server that answers gets shortly, too
  ombak-floor front --port N --peer ADDRESS --peer ADDRESS
                   only run an echo server that asks both peers before it answers
  ombak-floor load --address ADDRESS... --pid N... [--echo] [--op OP] [--connections N] [--seconds N]
                   [--rate N] [--count-errors] [--fill] [--preference-lists]
                   only the client: requests to running servers, and the processor time of their processes;
                   without --op half of them are gets. With --preference-lists each address gets only
                   keys that its node holds. With --rate or --count-errors, refused requests are counted, and do
                   not end the load. Prints one line of JSON
  ombak-floor appends [--puts N] [--rounds N] [--dir DIR]
                   small puts on stores without a network, beside a loop that appends to a file [1000000, 5]
";

pub enum Command {
    Help,
    Echo { port: u16, files: Option<PathBuf>, short: bool },
    Front { port: u16, peers: Vec<SocketAddr> },
    Load(Load),
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

/// Requests to servers that run already.
pub struct Load {
    pub addresses: Vec<SocketAddr>,
    pub pids: Vec<u32>,
    pub protocol: Protocol,
    pub ops: Vec<Op>,
    pub connections: usize,
    pub seconds: Duration,
    /// Requests per second, unless as many as possible.
    pub rate: Option<f64>,
    /// Whether refused requests count as errors, also without a rate.
    pub counts_errors: bool,
    /// Whether every key is written before.
    pub fill: bool,
    /// Whether each address gets only keys that its node holds.
    pub preference_lists: bool,
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
        let (port, files, short) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["--port", port] => (port, None, false),
            ["--port", port, "--short"] => (port, None, true),
            ["--port", port, "--http"] => return Ok(Command::EchoHttp { port: number("--port", port)? }),
            ["--port", port, "--files", dir] => (port, Some(PathBuf::from(dir)), false),
            _ => return Err("echo takes --port N and, after it, --files DIR, --http or --short".into()),
        };
        return Ok(Command::Echo { port: number("--port", port)?, files, short });
    }
    if args.next_if_eq("front").is_some() {
        return parse_front(args);
    }
    if args.next_if_eq("load").is_some() {
        return parse_load(args).map(Command::Load);
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
            "--op" => options.ops = vec![op(&value()?)?],
            "--server" => options.server = Some(value()?),
            _ => return Err(format!("unknown option {option}")),
        }
    }
    options.ombak = ombak.ok_or("--ombak PATH is missing: the binary to measure")?;
    Ok(Command::Measure(options))
}

fn parse_front(mut args: impl Iterator<Item = String>) -> Result<Command, String> {
    let (mut port, mut peers) = (None, Vec::new());
    while let Some(option) = args.next() {
        let value = args.next().ok_or(format!("{option} needs a value"))?;
        match option.as_str() {
            "--port" => port = Some(number(&option, &value)?),
            "--peer" => peers.push(number(&option, &value)?),
            _ => return Err(format!("front takes --port and --peer, not {option}")),
        }
    }
    Ok(Command::Front { port: port.ok_or("front needs --port N")?, peers })
}

fn parse_load(mut args: impl Iterator<Item = String>) -> Result<Load, String> {
    let mut load = Load {
        addresses: Vec::new(),
        pids: Vec::new(),
        protocol: Protocol::Frames,
        ops: vec![Op::Get, Op::Put],
        connections: 6,
        seconds: Duration::from_secs(2),
        rate: None,
        counts_errors: false,
        fill: false,
        preference_lists: false,
    };
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or(format!("{option} needs a value"));
        match option.as_str() {
            "--address" => load.addresses.push(number(&option, &value()?)?),
            "--pid" => load.pids.push(number(&option, &value()?)?),
            "--echo" => load.protocol = Protocol::Echo,
            "--op" => load.ops = vec![op(&value()?)?],
            "--connections" => load.connections = number::<std::num::NonZeroUsize>(&option, &value()?)?.get(),
            "--seconds" => load.seconds = Duration::from_secs_f64(positive(&option, &value()?)?),
            "--rate" => load.rate = Some(positive(&option, &value()?)?),
            "--count-errors" => load.counts_errors = true,
            "--fill" => load.fill = true,
            "--preference-lists" => load.preference_lists = true,
            _ => return Err(format!("load: unknown option {option}")),
        }
    }
    if load.addresses.is_empty() { Err("load needs --address ADDRESS".into()) } else { Ok(load) }
}

fn op(text: &str) -> Result<Op, String> {
    match text.to_ascii_uppercase().as_str() {
        "GET" => Ok(Op::Get),
        "PUT" => Ok(Op::Put),
        _ => Err(format!("--op: '{text}' is neither GET nor PUT")),
    }
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
        assert!(matches!(parsed("echo --port 1234"), Ok(Command::Echo { port: 1234, files: None, short: false })));
    }

    #[test]
    fn a_load_without_an_operation_has_both() {
        let Ok(Command::Load(load)) = parsed("load --address 127.0.0.1:1 --address 127.0.0.1:2 --pid 7 --fill") else {
            panic!("no load");
        };
        assert_eq!((load.addresses.len(), load.pids, load.ops.len(), load.fill), (2, vec![7], 2, true));
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
            ("front --peer 127.0.0.1:1", "--port"),
            ("front --port 1 --peer here", "--peer"),
            ("load --pid 1", "--address"),
            ("load --address 127.0.0.1:1 --op merge", "--op"),
            ("appends --puts 0", "--puts"),
            ("appends --seconds 1", "--seconds"),
        ] {
            let wrong = parsed(line).err().unwrap();
            assert!(wrong.contains(word), "{line}: {wrong}");
        }
    }
}
