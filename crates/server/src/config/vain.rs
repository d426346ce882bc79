//! What a configuration asks for in vain: settings of Riak for something that Ombak lacks.
//!
//! Each reason is one warning, which names all keys that it concerns. The warnings begin with those
//! that matter most: a reader of a long riak.conf sees first that there is no security, and last
//! that nothing tunes an Erlang virtual machine. Where a start would be less safe than the
//! configuration says, it is refused.

use super::effective::Effective;
use super::key_spec::KeySpec;
use super::problem::{Place, Problem};
use super::value::Value;
use std::collections::HashSet;

/// How many keys a warning names.
const NAMES_MAX: usize = 8;

/// The key that accepts that security is missing.
const ACCEPTS_NO_SECURITY: &str = "accept_missing.security";

/// Keys that ask for something only if the switch of their feature does: the beginning of their
/// names, and the switch.
const SWITCHES: &[(&str, &str)] = &[
    ("search.", "search"),
    ("riak_control.", "riak_control"),
    ("replrtq_src", "replrtq_enablesrc"),
    ("replrtq_sink", "replrtq_enablesink"),
    ("ttaaefs_", "ttaaefs_scope"),
];

/// A setting that asks for something, and has no effect.
#[derive(Clone, Debug)]
pub(super) struct Vain {
    pub key: String,
    pub spec: &'static KeySpec,
    pub place: Place,
}

/// What a setting is about. The first one comes first in the warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Security,
    StrongConsistency,
    Replication,
    Hooks,
    Search,
    Other,
    ErlangMachine,
}

/// The topics of keys, by the beginnings of their names.
const TOPICS: &[(Topic, &[&str])] = &[
    (Topic::Security, &["secure_referer_check", "permit_insecure_http_ops", "handoff.ssl."]),
    (Topic::StrongConsistency, &["strong_consistency"]),
    (Topic::Replication, &["replrtq_", "repl_", "ttaaefs_", "mdc."]),
    (Topic::Hooks, &["buckets.default.precommit", "buckets.default.postcommit"]),
    (Topic::Search, &["search"]),
    (Topic::ErlangMachine, &["erlang.", "distributed_cookie", "dtrace", "logger."]),
];

impl Vain {
    fn topic(&self) -> Topic {
        let is_of = |names: &&[&str]| names.iter().any(|name| self.spec.name.starts_with(name));
        TOPICS.iter().find(|(_, names)| is_of(names)).map_or(Topic::Other, |(topic, _)| *topic)
    }

    fn line(&self) -> usize {
        if let Place::File(_, line) = self.place { line } else { 0 }
    }
}

/// Leaves out the settings of features that are off. `is_on` says whether a switch that has an
/// effect is on.
pub(super) fn without_features_that_are_off(mut asking: Vec<Vain>, is_on: impl Fn(&str) -> bool) -> Vec<Vain> {
    let keys: HashSet<String> = asking.iter().map(|vain| vain.key.clone()).collect();
    let is_off = |key: &str| {
        let switch = SWITCHES.iter().find(|(begin, switch)| key.starts_with(begin) && key != *switch);
        switch.is_some_and(|(_, switch)| !keys.contains(*switch) && !is_on(switch))
    };
    asking.retain(|vain| !is_off(&vain.key));
    asking
}

/// One warning for each reason.
pub(super) fn warnings(vain: &[Vain]) -> Vec<Problem> {
    let mut groups: Vec<(Topic, String, Vec<&Vain>)> = Vec::new();
    for one in vain {
        let (topic, why) = (one.topic(), one.spec.reason().unwrap_or_default());
        match groups.iter_mut().find(|(known, reason, _)| *known == topic && *reason == why) {
            Some((_, _, group)) => group.push(one),
            None => groups.push((topic, why, vec![one])),
        }
    }
    groups.sort_by_key(|(topic, _, _)| *topic);
    let warning = |(_, why, mut group): (Topic, String, Vec<&Vain>)| {
        group.sort_by_key(|vain| vain.line());
        let place = group.first().map_or(Place::Whole, |first| first.place.clone());
        let verb = if group.len() == 1 { "has" } else { "have" };
        Problem::at(place, format!("{} {verb} no effect: {why}", named(&group)))
    };
    groups.into_iter().map(warning).collect()
}

/// Why a node must not start with this configuration.
pub(super) fn refusals(effective: &Effective) -> Vec<Problem> {
    let of = |begins: &[&str]| -> Vec<&Vain> {
        effective.vain().iter().filter(|vain| begins.iter().any(|begin| vain.spec.name.starts_with(begin))).collect()
    };
    let mut refusals = Vec::new();
    let mut refuse = |keys: Vec<&Vain>, what: &str| {
        if let Some(first) = keys.first() {
            let place = first.place.clone();
            let verb = if keys.len() == 1 { "asks" } else { "ask" };
            refusals.push(Problem::at(place, format!("{} {verb} for {what}", named(&keys))));
        }
    };
    if effective.get(ACCEPTS_NO_SECURITY) != Some(&Value::Flag(true)) {
        let is_in_the_open = effective.instances("listener.peer.$name").next().is_some()
            && effective.get("cluster.ssl.certfile").is_none();
        let keys = of(&["handoff.ssl."]).into_iter().filter(|_| is_in_the_open).collect();
        refuse(
            keys,
            "encrypted handoff, and has no effect: whoever is between the nodes reads everything. Set \
             cluster.ssl.certfile, cluster.ssl.keyfile and cluster.ssl.cacertfile, which encrypt all connections \
             between nodes, or accept it with accept_missing.security = on",
        );
    }
    refuse(
        of(&["buckets.default.precommit"]),
        "a function in Erlang before each put. Ombak cannot run it, so it would refuse every put to a bucket with the \
         default properties. Remove the key, and register a hook in JavaScript ('ombak admin function create')",
    );
    refusals
}

/// The keys as a list for people.
fn named(group: &[&Vain]) -> String {
    let names: Vec<&str> = group.iter().map(|vain| vain.key.as_str()).collect();
    match names.split_at_checked(NAMES_MAX) {
        Some((first, rest)) if !rest.is_empty() => format!("{} and {} more keys", first.join(", "), rest.len()),
        _ => match names.split_last() {
            Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
            _ => names.concat(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Effective, Overrides, Settings};
    use std::path::Path;

    fn merged(text: &str) -> Effective {
        Effective::merge(Some((Path::new("riak.conf"), text)), &Overrides::default()).expect("valid")
    }

    fn warnings(text: &str) -> Vec<String> {
        merged(text).warnings.iter().map(ToString::to_string).collect()
    }

    fn refusals(text: &str) -> Vec<String> {
        match Settings::new(&merged(text)) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn what_asks_for_nothing_causes_no_warning() {
        let defaults = "distributed_cookie = riak\nsearch = off\nstrong_consistency = off\nanti_entropy = passive\n\
                        anti_entropy.concurrency_limit = 9\ntictacaae_exchangetick = 60000\n\
                        handoff.port = 8099\nring.state_dir = ./data/ring\nleveldb.threads = 71\n";
        assert_eq!(warnings(defaults), Vec::<String>::new());
        let of_features_that_are_off = "search.solr.jvm_options = -Xmx1g\nttaaefs_peerip = 10.0.0.1\n\
                                        riak_control.auth.mode = userlist\nreplrtq_sinkpeers = a:8087:pb\n";
        assert_eq!(warnings(of_features_that_are_off), Vec::<String>::new());
    }

    #[test]
    fn each_reason_is_one_warning_and_the_most_dangerous_comes_first() {
        let text = "erlang.async_threads = 12\nsearch = on\nsearch.solr.port = 9000\nerlang.max_ports = 65536\n\
                    leveldb.threads = 7\nttaaefs_scope = all\nttaaefs_peerip = 10.0.0.1\nstrong_consistency = on\n\
                    handoff.ssl.certfile = cert.pem\nhandoff.ssl.keyfile = key.pem\naccept_missing.security = on\n\
                    buckets.default.postcommit = a:b\n";
        let found = warnings(text);
        let expected = [
            "riak.conf:9: handoff.ssl.certfile and handoff.ssl.keyfile have no effect: ",
            "riak.conf:8: strong_consistency has no effect: this version does not have strong consistency yet",
            "riak.conf:6: ttaaefs_scope and ttaaefs_peerip have no effect: this version does not have replication \
             between clusters yet",
            "riak.conf:12: buckets.default.postcommit has no effect: Ombak cannot run functions in Erlang",
            "riak.conf:3: search.solr.port has no effect: Ombak's search does not use Solr",
            "riak.conf:5: leveldb.threads has no effect: ",
            "riak.conf:1: erlang.async_threads and erlang.max_ports have no effect: there is no Erlang virtual machine \
             here",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}\nis not\n{expected}");
        }
        assert!(refusals(text).is_empty());
    }

    #[test]
    fn settings_of_hash_trees_are_one_warning() {
        let text = "tictacaae_active = active\ntictacaae_rebuildtick = 2016\ntictacaae_storeheads = enabled\n\
                    anti_entropy.tree.expiry = never\n";
        let expected = "riak.conf:2: tictacaae_rebuildtick, tictacaae_storeheads and anti_entropy.tree.expiry have no \
                        effect: exchanges compare sums that each write keeps up, and no hash trees";
        assert_eq!(warnings(text), [expected]);
    }

    #[test]
    fn a_long_list_of_keys_is_cut() {
        let text: String = (0..12).map(|number| format!("erlang.x{number} = 1\n")).collect();
        let found = warnings(&text);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("erlang.x0, erlang.x1,") && found[0].contains(" and 4 more keys have"), "{found:?}");
    }

    #[test]
    fn encrypted_handoff_that_is_missing_has_to_be_accepted_by_a_node_that_has_peers() {
        let asks = "handoff.ssl.certfile = cert.pem\n";
        assert!(refusals(asks).is_empty(), "a node that is alone hands nothing to others");
        let peer = format!("{asks}listener.peer.internal = 127.0.0.1:8099\n");
        assert!(refusals(&peer)[0].contains("Set cluster.ssl.certfile"));
        assert!(refusals(&format!("{peer}accept_missing.security = on\n")).is_empty());
        let secured = "cluster.ssl.certfile = c\ncluster.ssl.keyfile = k\ncluster.ssl.cacertfile = a\n";
        assert!(refusals(&format!("{peer}{secured}")).is_empty());
    }

    #[test]
    fn a_hook_before_puts_that_cannot_run_is_refused() {
        let refused = refusals("buckets.default.precommit = a:b");
        assert!(refused[0].starts_with("riak.conf:1: buckets.default.precommit asks for a function in Erlang"));
        assert!(refusals("buckets.default.precommit =").is_empty());
        assert!(refusals("buckets.default.postcommit = a:b").is_empty());
    }
}
