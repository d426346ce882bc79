//! The commands of Riak (docs/riak/semantics.md §16) that this program does not have, and what to
//! use instead.
//!
//! They are not in the grammar, so `--help` does not show them. If clap finds no command with a
//! name, [`instead_of`] looks for the name here.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// A command of Riak: where it stands, its name with hyphens, and what to use instead.
struct Stub {
    /// The command above it; empty for a command of `riak` itself.
    parent: &'static str,
    name: &'static str,
    instead: &'static str,
}

const fn stub(parent: &'static str, name: &'static str, instead: &'static str) -> Stub {
    Stub { parent, name, instead }
}

const NO_ERLANG: &str = "there is no Erlang virtual machine here to attach to";
const NO_ERLANG_CODE: &str = "there is no Erlang virtual machine here that could run it";
const RESTART: &str = "a node is restarted by whatever started it: 'systemctl restart ombak' with the unit of \
                       deploy/systemd; otherwise 'ombak stop' and then 'ombak start --background'";
const OF_CLUSTER: &str = "changes of the cluster are staged, planned and committed";
const NO_SUCH_TREE_SETTING: &str = "kept trees here have no such setting: they are made one at a time, from the heads of \
                                    the objects. 'ombak admin tictacaae treestatus' shows them";
const SCHEDULE: &str = "tictacaae_rebuildwait and tictacaae_rebuilddelay in the configuration say how often kept trees \
                        are made anew, and 'ombak admin tictacaae rebuild-now' makes them at once";
const NO_SUCH_SETTING: &str = "exchanges here have no such setting: an exchange compares everything that differs. 'ombak \
                               admin tictacaae exchangetick' sets how often they run";
const NO_FOLDS: &str = "'ombak admin fold' gathers statistics, sizes, siblings, tombstones and buckets, and erases, \
                        reaps and repairs keys";
const NAMES: &str = "a node keeps its identity under a new nodename: change nodename in the configuration while the \
                     node is stopped, or put another machine in its place with 'ombak admin cluster replace'";
const ONE_FORMAT: &str = "objects and indexes have one format on disk, so there is nothing to convert. Between \
                          backends 'ombak admin backend convert' converts";
const ALWAYS_COUNTED: &str = "all statistics are always counted; 'ombak admin stat show PATTERN' prints some";

const STUBS: &[Stub] = &[
    stub("", "restart", RESTART),
    stub("", "reboot", RESTART),
    stub("", "attach", NO_ERLANG),
    stub("", "remote-console", NO_ERLANG),
    stub("", "escript", NO_ERLANG_CODE),
    stub("", "eval", NO_ERLANG_CODE),
    stub("", "rpc", NO_ERLANG_CODE),
    stub("", "top", "'ombak admin top' shows rates, latencies, and the keys that are used most"),
    stub("", "repl", "replication between clusters does not exist yet"),
    stub("", "debug", "'ombak admin debug' collects what support needs"),
    stub("tictacaae", "rebuild-schedule", SCHEDULE),
    stub("tictacaae", "rebuildtick", NO_SUCH_TREE_SETTING),
    stub("tictacaae", "storeheads", NO_SUCH_TREE_SETTING),
    stub("tictacaae", "rebuildtreeworkers", NO_SUCH_TREE_SETTING),
    stub("tictacaae", "rebuildstoreworkers", NO_SUCH_TREE_SETTING),
    stub("tictacaae", "tokenbucket", NO_SUCH_SETTING),
    stub("tictacaae", "maxresults", NO_SUCH_SETTING),
    stub("tictacaae", "rangeboost", NO_SUCH_SETTING),
    stub("tictacaae", "aaefoldworkers", NO_FOLDS),
    stub("tictacaae", "fold", NO_FOLDS),
    stub("admin", "ensemble-status", "buckets with strong consistency do not exist yet"),
    stub("admin", "cluster-info", "'ombak admin debug' collects what support needs; with --also, of other nodes, too"),
    stub("admin", "describe", "'ombak config describe KEY' explains a setting"),
    stub("admin", "erl-reload", NO_ERLANG_CODE),
    stub("admin", "reip", NAMES),
    stub("admin", "reip-manual", NAMES),
    stub("admin", "join", OF_CLUSTER),
    stub("admin", "leave", OF_CLUSTER),
    stub("admin", "force-remove", OF_CLUSTER),
    stub("admin", "reformat-indexes", ONE_FORMAT),
    stub("admin", "reformat-objects", ONE_FORMAT),
    stub("admin", "downgrade-objects", ONE_FORMAT),
    stub("admin", "restore", "'ombak restore DIR' restores a backup into the empty directories of a stopped node"),
    stub(
        "cluster",
        "resize-ring",
        "the size of the ring cannot be changed; it is set before the first start (ring_size)",
    ),
    stub("stat", "info", ALWAYS_COUNTED),
    stub("stat", "enable", ALWAYS_COUNTED),
    stub("stat", "disable", ALWAYS_COUNTED),
    stub("stat", "disable-0", ALWAYS_COUNTED),
    stub("stat", "reset", ALWAYS_COUNTED),
];

/// What to use instead of a command of Riak that clap has not found in these words. `None` if it is
/// no command of Riak either.
pub fn instead_of(usage: &clap::Error, words: &[OsString]) -> Option<String> {
    if usage.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(name)) = usage.get(ContextKind::InvalidSubcommand) else { return None };
    let before = words.iter().skip(1).take_while(|word| *word != name.as_str());
    let parent = before
        .filter_map(|word| word.to_str())
        .filter(|word| matches!(*word, "admin" | "cluster" | "stat" | "tictacaae"))
        .last();
    let parent = parent.unwrap_or_default();
    let hyphened = name.replace('_', "-");
    let stub = STUBS.iter().find(|stub| stub.parent == parent && stub.name == hyphened)?;
    let instead = match stub.instead {
        OF_CLUSTER => format!("{OF_CLUSTER}: 'ombak admin cluster {hyphened}', then 'plan' and 'commit'"),
        other => other.to_owned(),
    };
    Some(format!("{name}: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::super::args::Cli;
    use super::super::riak_names::translate;
    use super::*;
    use clap::Parser;

    /// Every command of docs/riak/semantics.md §16 with arguments, but for what other parts of the
    /// program bring.
    const RIAKS: &[&str] = &[
        "riak start",
        "riak daemon",
        "riak stop",
        "riak restart",
        "riak reboot",
        "riak ping",
        "riak console",
        "riak foreground",
        "riak attach",
        "riak remote_console",
        "riak chkconfig",
        "riak config generate",
        "riak config effective",
        "riak config describe ring_size",
        "riak escript x",
        "riak version",
        "riak getpid",
        "riak top",
        "riak eval x",
        "riak rpc m f a",
        "riak admin status",
        "riak repl status",
        "riak-admin cluster join a@h",
        "riak-admin cluster leave",
        "riak-admin cluster leave a@h",
        "riak-admin cluster force-remove a@h",
        "riak-admin cluster replace a@h b@h",
        "riak-admin cluster force-replace a@h b@h",
        "riak-admin cluster resize-ring 128",
        "riak-admin cluster resize-ring abort",
        "riak-admin cluster location rack1",
        "riak-admin cluster plan",
        "riak-admin cluster commit",
        "riak-admin cluster clear",
        "riak-admin cluster status",
        "riak-admin cluster partitions",
        "riak-admin cluster partition-count",
        "riak-admin cluster partition id=1",
        "riak-admin cluster partition index=0",
        "riak-admin member-status",
        "riak-admin member_status",
        "riak-admin ring-status",
        "riak-admin ring_status",
        "riak-admin ringready",
        "riak-admin transfers",
        "riak-admin transfer-limit",
        "riak-admin transfer_limit a@h 4",
        "riak-admin handoff summary",
        "riak-admin handoff details",
        "riak-admin handoff config",
        "riak-admin handoff enable both",
        "riak-admin handoff disable inbound --all",
        "riak-admin stat show riak.**",
        "riak-admin stat info x",
        "riak-admin stat enable x",
        "riak-admin stat disable x",
        "riak-admin stat reset x",
        "riak-admin vnode-status",
        "riak-admin vnode_status",
        "riak-admin aae-status",
        "riak-admin aae_status",
        "riak-admin tictacaae treestatus",
        "riak-admin tictacaae treestatus --show unbuilt,built",
        "riak-admin tictacaae rebuild-now -p all",
        "riak-admin tictacaae fold list-buckets",
        "riak-admin tictacaae exchangetick 480000 -n all -p all",
        "riak-admin tictacaae rebuild_soon 60",
        "riak-admin node repair start x",
        "riak-admin node repair status -n all",
        "riak-admin node repair stop x -n a@h",
        "riak-admin ensemble-status",
        "riak-admin services",
        "riak-admin wait-for-service riak_kv a@h",
        "riak-admin wait_for_service riak_kv",
        "riak-admin diag",
        "riak-admin top",
        "riak-debug",
        "riak-admin cluster-info file",
        "riak-admin describe ring_size",
        "riak-admin cluster_info file",
        "riak-admin test",
        "riak-admin erl-reload",
        "riak-admin erl_reload",
        "riak-admin reip a b",
        "riak-admin reip_manual a b",
        "riak-admin down a@h",
        "riak-admin join -f a@h",
        "riak-admin leave -f",
        "riak-admin force-remove -f a@h",
        "riak-admin force_remove a@h",
        "riak-admin reformat-indexes 2 100",
        "riak-admin reformat-objects true",
        "riak-admin downgrade-objects true",
        "riak-admin repair-2i status",
        "riak-admin repair-2i kill",
        "riak-admin repair-2i --speed 50 0 17",
        "riak-admin repair_2i",
        "riak-admin security enable",
        "riak-admin bucket-type create t",
        "riak-admin bucket-type update t {}",
        "riak-admin bucket-type activate t",
        "riak-admin bucket-type status t",
        "riak-admin bucket-type list",
        "riak-admin bucket-type reset t",
        "riak-admin backup dir",
        "riak-admin restore dir",
    ];

    /// What the program makes of a command line: `None` if it has the command, else the text.
    fn said(line: &str) -> Option<String> {
        let words = translate(line.split(' ').map(OsString::from).collect());
        let usage = Cli::try_parse_from(&words).err()?;
        Some(instead_of(&usage, &words).unwrap_or_else(|| usage.to_string()))
    }

    #[test]
    fn every_command_of_riak_works_or_says_what_to_use_instead() {
        for line in RIAKS {
            if let Some(text) = said(line) {
                assert!(STUBS.iter().any(|stub| text.contains(stub.instead)), "{line}: {text}");
            }
        }
    }

    #[test]
    fn every_stub_is_found_and_is_no_command() {
        for stub in STUBS {
            let parent = match stub.parent {
                "" => "ombak".to_owned(),
                "admin" => "ombak admin".to_owned(),
                below => format!("ombak --data d admin {below}"),
            };
            for name in [stub.name.to_owned(), stub.name.replace('-', "_")] {
                let text = said(&format!("{parent} {name} x --y")).unwrap_or_default();
                assert!(text.starts_with(&format!("{name}: ")) && text.contains(stub.instead), "{name}: {text}");
            }
        }
        let text = said("ombak admin leave").unwrap_or_default();
        assert!(text.ends_with("'ombak admin cluster leave', then 'plan' and 'commit'"), "{text}");
    }

    #[test]
    fn other_words_have_the_usual_error() {
        for line in ["ombak nonsense", "ombak security", "ombak admin attach", "ombak admin cluster zork"] {
            let text = said(line).unwrap_or_default();
            assert!(text.contains("unrecognized subcommand"), "{line}: {text}");
        }
    }
}
