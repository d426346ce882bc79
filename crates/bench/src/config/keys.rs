//! The known settings, and how settings are treated that mean something else here than in
//! basho_bench.
//!
//! A setting that affects the measurement is refused if it cannot be honoured. Any other setting is
//! accepted, with a warning if somebody may miss its effect. Published configurations therefore run
//! unchanged.

use super::{ConfigError, Settings};
use crate::term::Term;
use ombak_types::suggest::nearest;

/// Settings that work as in basho_bench: first those of all drivers, then those of single drivers
/// (docs/riak/basho-bench.md §1.1, §4). The last ones exist only in ombak-bench.
///
/// A setting of a driver that is not configured does no harm. Published files share blocks of such
/// settings.
const WORKING: &[&str] = &[
    "mode",
    "duration",
    "concurrent",
    "driver",
    "operations",
    "key_generator",
    "value_generator",
    "report_interval",
    "rng_seed",
    "shutdown_on_error",
    "value_generator_source_size",
    "value_generator_blob_file",
    "sequential_int_state_dir",
    "disable_sequential_int_progress_report",
    "riakc_pb_ips",
    "riakc_pb_port",
    "riakc_pb_replies",
    "riakc_pb_r",
    "riakc_pb_w",
    "riakc_pb_dw",
    "riakc_pb_rw",
    "riakc_pb_pw",
    "riakc_pb_pr",
    "riakc_pb_bucket",
    "riakc_pb_content_type",
    "riakc_pb_keylist_length",
    "riakc_pb_preloaded_keys",
    "riakc_pb_search_queries",
    "query_step_interval",
    "pb_timeout_general",
    "pb_timeout_read",
    "pb_timeout_write",
    "pb_timeout_listkeys",
    "pb_timeout_mapreduce",
    "pb_connect_options",
    "pb_ips",
    "pb_port",
    "pb_replies",
    "http_ips",
    "http_port",
    "replpb_ips",
    "http_timeout_general",
    "fold_timeout_general",
    "record_bucket",
    "document_bucket",
    "record_sync",
    "document_sync",
    "node_confirms",
    "postcode_indexcount",
    "alwaysget",
    "unique",
    "node_name",
    "generators",
    "values",
    "headers",
    "targets",
    "http_disconnect_frequency",
    "http_append_headers",
    "http_request_timeout",
    "http_raw_ips",
    "http_raw_port",
    "http_raw_path",
    "http_raw_params",
    "http_raw_disconnect_frequency",
    "http_raw_append_headers",
    "http_raw_request_timeout",
    "http_use_ssl",
    "http_solr_path",
    "http_search_generator",
    "file_dir",
    "bitcask_dir",
    "bitcask_flags",
    "bitcask_sync_interval",
    "eleveldb_dir",
    "eleveldb_num_instances",
    "eleveldb_instances",
    "eleveldb_config",
    "be_backend_mod",
    "be_config",
    "be_disable_uses_r_object",
    "dets_file",
    "redis_ips",
    "redis_port",
    "ombak_backend",
    "ombak_backend_dir",
    "ombak_backend_partitions",
    "ombak_bucket",
    "riakc_pb_pipeline",
];

/// Settings that are judged by their value.
const JUDGED_BY_VALUE: &[(&str, Judge)] = &[
    ("app_run_mode", app_run_mode),
    ("code_paths", code_paths),
    ("cookie", |_| Ignored("no Erlang virtual machine is asked for measurements".into())),
    ("distribute_work", distribute_work),
    ("log_level", |_| Ignored("nothing is logged; errors.csv and the report say what went wrong".into())),
    ("measurement_driver", measurement_driver),
    ("measurements", |_| Ignored("--pid and --data-dir measure the server's process instead".into())),
    ("mynode", |_| Ignored("ombak-bench is not an Erlang node".into())),
    ("nodes", |_| Ignored("no Erlang virtual machine is asked for measurements".into())),
    ("post_hook", |term| hook(term, "after the run")),
    ("pre_hook", |term| hook(term, "before the run")),
    ("remote_nodes", |_| Ignored("all workers run in this process".into())),
    ("source_dir", source_dir),
    ("stats", stats),
    ("test_dir", |_| Ignored("-d/--results-dir names the directory of the results".into())),
];

type Judge = fn(&Term) -> Verdict;

/// How a setting is treated.
enum Verdict {
    /// The setting asks for what this program does anyway.
    Fine,
    /// The setting has no effect. The text says why that does no harm.
    Ignored(String),
    /// The run would differ from what was asked for. The text says why, and what would be right.
    Refused(String),
}
use Verdict::{Fine, Ignored, Refused};

/// Checks every setting and returns warnings.
pub fn check(settings: &Settings) -> Result<Vec<String>, ConfigError> {
    let mut warnings = Vec::new();
    for (key, term) in settings.iter() {
        if WORKING.contains(&key) {
            continue;
        }
        match JUDGED_BY_VALUE.iter().find(|(name, _)| *name == key).map(|(_, judge)| judge(term)) {
            Some(Fine) => {}
            Some(Ignored(why)) => warnings.push(format!("{key} has no effect here: {why}")),
            Some(Refused(why)) => return Err(ConfigError::setting(key, why)),
            None => warnings.push(unknown(key)),
        }
    }
    Ok(warnings)
}

fn unknown(key: &str) -> String {
    let known = WORKING.iter().copied().chain(JUDGED_BY_VALUE.iter().map(|(name, _)| *name));
    match nearest(key, known) {
        Some(name) => format!("{key} is an unknown setting and has no effect; did you mean {name}?"),
        None => format!("{key} is an unknown setting and has no effect"),
    }
}

/// Clients, storage engines and libraries that basho_bench's own drivers load. What they do is
/// built into this program.
const LIBRARIES: &[&str] = &[
    "basho_bench",
    "bear",
    "bitcask",
    "eleveldb",
    "erldis",
    "eredis",
    "folsom",
    "getopt",
    "hamcrest",
    "ibrowse",
    "lager",
    "leveled",
    "mochiweb",
    "protobuffs",
    "rhc",
    "riak",
    "riak_client",
    "riak_core",
    "riak_erlang_client",
    "riak_kv",
    "riak_pb",
    "riakc",
    "riakclient",
    "riakhttpc",
    "stats",
    "webmachine",
];

fn code_paths(term: &Term) -> Verdict {
    let Some(paths) = term.as_list() else {
        return Refused(format!("a list of directories, not {term}"));
    };
    let unknown: Vec<_> = paths.iter().filter(|path| !names_library(path)).map(Term::to_string).collect();
    match (paths.is_empty(), unknown.is_empty()) {
        (true, _) => Fine,
        (_, true) => Ignored("the functions of these libraries are built in".into()),
        _ => Refused(format!(
            "{} may hold Erlang code, which is not run here; remove it, and use built-in drivers and generators",
            unknown.join(", ")
        )),
    }
}

/// Whether the last component of the path other than `ebin` names one of [`LIBRARIES`], as in
/// `deps/riakc`, `../bitcask/ebin` or `lib/riak_pb-2.3.2`.
fn names_library(path: &Term) -> bool {
    let Some(path) = path.as_text() else { return false };
    let directory = path.split('/').rev().find(|part| !matches!(*part, "" | "ebin")).unwrap_or_default();
    directory.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| LIBRARIES.contains(&word))
}

fn source_dir(term: &Term) -> Verdict {
    if term.as_list().is_some_and(<[Term]>::is_empty) {
        Fine
    } else {
        Refused(format!("the Erlang modules in {term} are not compiled here; use built-in drivers and generators"))
    }
}

fn hook(term: &Term, when: &str) -> Verdict {
    if is_none(term) {
        Fine
    } else {
        Refused(format!("{term} is Erlang code, which is not run here; run a command {when}"))
    }
}

/// Judges `measurement_driver`. The driver that comes with basho_bench measures the virtual
/// machines of Riak's nodes and does not affect the load, so it may be ignored.
fn measurement_driver(term: &Term) -> Verdict {
    match term.as_atom() {
        Some("basho_bench_measurement_erlangvm") => {
            Ignored("--pid and --data-dir measure the server's process instead".into())
        }
        _ if is_none(term) => Fine,
        _ => Refused(format!(
            "{term} is Erlang code, which is not run here; --pid and --data-dir measure the server's process"
        )),
    }
}

fn distribute_work(term: &Term) -> Verdict {
    match term.as_atom() {
        Some("false") => Fine,
        _ => Refused(
            "workers are not spread over Erlang nodes; start ombak-bench on each machine, with another node_name and \
             its share of the workers, and compare the runs"
                .into(),
        ),
    }
}

fn stats(term: &Term) -> Verdict {
    let csv = |term: &Term| term.as_atom() == Some("csv");
    match term {
        Term::Tuple(parts) if parts.first().is_some_and(csv) => Fine,
        term if csv(term) => Fine,
        _ => Ignored("results are written as CSV files, a report and charts".into()),
    }
}

fn app_run_mode(term: &Term) -> Verdict {
    if term.as_atom() == Some("standalone") {
        Fine
    } else {
        Ignored("ombak-bench always runs as a standalone program".into())
    }
}

fn is_none(term: &Term) -> bool {
    matches!(term.as_atom(), Some("none" | "undefined")) || term.as_list().is_some_and(<[Term]>::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<Vec<String>, String> {
        check(&Settings::from_text("test", text).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_asks_for_the_usual_is_fine() {
        for text in [
            "",
            "{mode, max}. {riakc_pb_replies, 1}. {node_name, testnode1}.",
            "{code_paths, []}. {source_dir, []}. {source_dir, \"\"}.",
            "{stats, csv}. {app_run_mode, standalone}. {distribute_work, false}.",
            "{stats, {csv}}. {measurement_driver, undefined}. {pre_hook, none}. {post_hook, undefined}.",
        ] {
            assert_eq!(checked(text), Ok(vec![]), "{text}");
        }
    }

    #[test]
    fn what_is_harmless_is_warned_of() {
        for (text, warning) in [
            ("{log_level, debug}.", "nothing is logged; errors.csv and the report say what went wrong"),
            ("{test_dir, \"tests\"}.", "-d/--results-dir names the directory of the results"),
            ("{stats, {riemann}}.", "results are written as CSV files, a report and charts"),
            ("{app_run_mode, included}.", "ombak-bench always runs as a standalone program"),
            ("{remote_nodes, [{'a.local', bb25}]}.", "all workers run in this process"),
            ("{nodes, ['riak@127.0.0.1']}.", "no Erlang virtual machine is asked for measurements"),
            ("{cookie, riak}.", "no Erlang virtual machine is asked for measurements"),
            ("{mynode, [bench, longnames]}.", "ombak-bench is not an Erlang node"),
            ("{measurements, [{memory, 1000}]}.", "--pid and --data-dir measure the server's process instead"),
            (
                "{measurement_driver, basho_bench_measurement_erlangvm}.",
                "--pid and --data-dir measure the server's process instead",
            ),
            ("{code_paths, [\"deps/riakc\", \"deps/protobuffs\"]}.", "the functions of these libraries are built in"),
            (
                "{code_paths, [\"../../public/bitcask\", \"/x/riak_kv/ebin/\"]}.",
                "the functions of these libraries are built in",
            ),
            (
                "{code_paths, [\"<path to eleveldb>/ebin\", \"lib/riak_pb-2.3.2\"]}.",
                "the functions of these libraries are built in",
            ),
        ] {
            let key = &text[1..text.find(',').unwrap()];
            assert_eq!(checked(text), Ok(vec![format!("{key} has no effect here: {warning}")]), "{text}");
        }
    }

    #[test]
    fn what_would_change_the_run_is_refused_by_name() {
        for (text, message) in [
            (
                "{code_paths, [\"deps/riakc\", \"../bb_files\"]}.",
                "code_paths: \"../bb_files\" may hold Erlang code, which is not run here; \
                 remove it, and use built-in drivers and generators",
            ),
            ("{code_paths, deps}.", "code_paths: a list of directories, not deps"),
            (
                "{source_dir, \"foo\"}.",
                "source_dir: the Erlang modules in \"foo\" are not compiled here; use built-in drivers and generators",
            ),
            (
                "{pre_hook, {my, start}}.",
                "pre_hook: {my, start} is Erlang code, which is not run here; run a command before the run",
            ),
            (
                "{post_hook, {my, stop}}.",
                "post_hook: {my, stop} is Erlang code, which is not run here; run a command after the run",
            ),
            (
                "{measurement_driver, my_driver}.",
                "measurement_driver: my_driver is Erlang code, which is not run here; \
                 --pid and --data-dir measure the server's process",
            ),
            (
                "{distribute_work, true}.",
                "distribute_work: workers are not spread over Erlang nodes; start ombak-bench on each machine, \
                 with another node_name and its share of the workers, and compare the runs",
            ),
        ] {
            assert_eq!(checked(text), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn unknown_settings_are_warned_of_with_the_nearest_known() {
        assert_eq!(
            checked("{concurency, 5}. {hibari_servers, []}."),
            Ok(vec![
                "concurency is an unknown setting and has no effect; did you mean concurrent?".to_owned(),
                "hibari_servers is an unknown setting and has no effect".to_owned(),
            ])
        );
    }

    #[test]
    fn every_setting_is_listed_once() {
        let mut names: Vec<_> = WORKING.iter().copied().chain(JUDGED_BY_VALUE.iter().map(|(name, _)| *name)).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
