//! Applies the options of the command line to a configuration.

use super::{Address, RunOptions};
use crate::config::{Config, ConfigError, Settings, scale};
use crate::drivers::Plan;
use crate::term::Term;

/// A run, and how it differs from its configuration files.
#[derive(Debug)]
pub struct Planned {
    /// The configuration of the run.
    pub config: Config,
    /// The changes that options made, in words.
    pub changes: Vec<String>,
}

/// The protocol that a server address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Pb,
    Http,
    Redis,
}
use Protocol::{Http, Pb, Redis};

/// The settings that hold server addresses, for each driver.
const SERVERS: &[(&str, &[(&str, Protocol)])] = &[
    ("basho_bench_driver_riakc_pb", &[("riakc_pb_ips", Pb)]),
    ("basho_bench_driver_http_raw", &[("http_raw_ips", Http)]),
    ("basho_bench_driver_http_ibrowse", &[("http_raw_ips", Http)]),
    ("basho_bench_driver_nhs", &[("pb_ips", Pb), ("http_ips", Http)]),
    ("basho_bench_driver_redis", &[("redis_ips", Redis)]),
];

impl RunOptions {
    /// Reads the files and applies the options. Values from `--set` are scaled; the length from
    /// `--duration` is not.
    pub fn plan(&self) -> Result<Planned, ConfigError> {
        self.planned(Settings::from_files(&self.files)?)
    }

    fn planned(&self, settings: Settings) -> Result<Planned, ConfigError> {
        let (settings, changes) = self.changed(settings)?;
        Ok(Planned { config: Config::from_settings(settings)?, changes })
    }

    fn changed(&self, settings: Settings) -> Result<(Settings, Vec<String>), ConfigError> {
        let mut change = Change { settings, changes: Vec::new() };
        if let Some(driver) = &self.driver {
            change.set("driver", Term::atom(driver));
        }
        for (key, term) in &self.set {
            change.set(key, term.clone());
        }
        change.servers(&self.target, &self.pb, &self.http)?;
        if self.scale.is_some() || self.duration.is_some() {
            let scaled = scale(&change.settings, self.scale.unwrap_or(1.0), self.duration)?;
            change.settings = scaled.settings;
            change.changes.extend(scaled.changes);
        }
        Ok((change.settings, change.changes))
    }
}

struct Change {
    settings: Settings,
    changes: Vec<String>,
}

impl Change {
    fn set(&mut self, key: &str, after: Term) {
        match self.settings.get(key) {
            Some(before) if *before == after => return,
            Some(before) => self.changes.push(format!("{key}: {after} instead of {before}")),
            None => self.changes.push(format!("{key}: {after}")),
        }
        self.settings.set(key, after);
    }

    /// Sets the servers. `--pb` and `--http` apply to drivers that speak these protocols and have
    /// no effect on others, so that one command line suits every driver. `--target` applies to a
    /// driver with a single protocol.
    fn servers(&mut self, target: &[Address], pb: &[Address], http: &[Address]) -> Result<(), ConfigError> {
        let driver = self.settings.get("driver").and_then(Term::as_atom).unwrap_or(Plan::DRIVER_DEFAULT);
        let keys = SERVERS.iter().find(|(name, _)| *name == driver).map_or(&[][..], |(_, keys)| keys);
        if !target.is_empty() {
            let [(key, _)] = keys else {
                let what = match keys {
                    [] => format!("{driver} does not connect to servers"),
                    _ => format!("{driver} uses two protocols: set --pb HOST:PORT and --http HOST:PORT"),
                };
                return Err(ConfigError::setting("--target", what));
            };
            self.set(key, servers(target));
        }
        for (key, protocol) in keys {
            match protocol {
                Pb if !pb.is_empty() => self.set(key, servers(pb)),
                Http if !http.is_empty() => self.set(key, servers(http)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Addresses as the term `[{"host", 8087}]`.
fn servers(addresses: &[Address]) -> Term {
    let server = |address: &Address| Term::Tuple(vec![Term::text(&address.host), Term::Integer(address.port.into())]);
    Term::List(addresses.iter().map(server).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Request;
    use std::ffi::OsString;

    fn changed(text: &str, line: &str) -> Result<(Settings, Vec<String>), String> {
        let args = ["ombak-bench", "file"].into_iter().chain(line.split_whitespace()).map(OsString::from);
        let Ok(Request::Run(options)) = Request::parse(args) else { panic!("{line}") };
        options.changed(Settings::from_text("test", text).unwrap()).map_err(|error| error.to_string())
    }

    fn changes(text: &str, line: &str) -> Result<Vec<String>, String> {
        changed(text, line).map(|(_, changes)| changes)
    }

    fn listed(changes: &[&str]) -> Result<Vec<String>, String> {
        Ok(changes.iter().map(|change| change.to_string()).collect())
    }

    #[test]
    fn without_options_nothing_changes() {
        assert_eq!(changes("{mode, max}.", ""), listed(&[]));
        assert_eq!(changes("{concurrent, 5}.", "--set concurrent=5"), listed(&[]));
    }

    #[test]
    fn options_win_over_files() {
        let (settings, changes) = changed("{concurrent, 5}. {mode, max}.", "--set concurrent=6 --driver mine").unwrap();
        assert_eq!(settings.to_string(), "{concurrent, 6}.\n{driver, mine}.\n{mode, max}.\n");
        assert_eq!(changes, ["driver: mine", "concurrent: 6 instead of 5"]);
    }

    #[test]
    fn servers_go_where_the_driver_looks_for_them() {
        for (driver, line, expected) in [
            ("riakc_pb", "--target db1:1", &["riakc_pb_ips: [{\"db1\", 1}] instead of [\"x\"]"][..]),
            (
                "riakc_pb",
                "--pb db1:1,db2:2 --http h:3",
                &["riakc_pb_ips: [{\"db1\", 1}, {\"db2\", 2}] instead of [\"x\"]"],
            ),
            ("http_raw", "--target h:3", &["http_raw_ips: [{\"h\", 3}]"]),
            ("http_ibrowse", "--pb db1:1 --http h:3", &["http_raw_ips: [{\"h\", 3}]"]),
            ("nhs", "--pb db1:1 --http h:3", &["pb_ips: [{\"db1\", 1}]", "http_ips: [{\"h\", 3}]"]),
            ("redis", "--target r:6379", &["redis_ips: [{\"r\", 6379}]"]),
            ("bitcask", "--pb db1:1 --http h:3", &[]),
        ] {
            let text = format!("{{driver, basho_bench_driver_{driver}}}. {{riakc_pb_ips, [\"x\"]}}.");
            assert_eq!(changes(&text, line), listed(expected), "{driver}");
        }
        assert_eq!(changes("", "--target h:3"), listed(&["http_raw_ips: [{\"h\", 3}]"]));
        assert_eq!(
            changes("{driver, basho_bench_driver_nhs}.", "--target h:3"),
            Err("--target: basho_bench_driver_nhs uses two protocols: set --pb HOST:PORT and --http HOST:PORT".into())
        );
        assert_eq!(
            changes("{driver, basho_bench_driver_bitcask}.", "--target h:3"),
            Err("--target: basho_bench_driver_bitcask does not connect to servers".into())
        );
    }

    #[test]
    fn what_is_set_is_scaled_and_a_given_duration_is_not() {
        let text = "{duration, 60}. {key_generator, {uniform_int, 7}}. {report_interval, 1}.";
        assert_eq!(
            changes(text, "--duration 30s --scale 0.1 --set key_generator={uniform_int,1000}"),
            listed(&[
                "key_generator: {uniform_int, 1000} instead of {uniform_int, 7}",
                "key_generator: {uniform_int, 100} instead of {uniform_int, 1000}",
                "duration: 30 s instead of 1 h",
            ])
        );
        assert_eq!(changed(text, "--duration 30s").unwrap().0.get("duration"), Some(&Term::Float(0.5)));
        assert_eq!(changes(text, "--scale 2"), Err("--scale: a number above 0 and at most 1, not 2".into()));
    }
}
