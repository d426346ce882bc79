//! The command names of Riak's own programs: links named `riak`, `riak-admin` and `riak-debug` to
//! this program accept them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Commands of `riak` that have another name here.
const SAME: [(&str, &[&str]); 5] = [
    ("chkconfig", &["config", "check"]),
    ("foreground", &["start"]),
    ("console", &["start"]),
    // Riak's node runs in the background.
    ("start", &["start", "--background"]),
    ("daemon", &["start", "--background"]),
];

/// Translates a command line of `riak` or `riak-admin` to this program's own grammar.
pub fn translate(args: Vec<OsString>) -> Vec<OsString> {
    let called = args.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str).unwrap_or_default();
    let (name, rest) = match (called, args.get(1..)) {
        ("riak-admin" | "riak-debug" | "riak", Some(rest)) => (called.to_owned(), rest),
        _ => return args,
    };
    let mut out = vec![OsString::from("ombak")];
    if name != "riak" {
        out.push("admin".into());
        if name == "riak-debug" {
            out.push("debug".into());
        }
        out.extend_from_slice(rest);
        return out;
    }
    let first = rest.first().and_then(|a| a.to_str()).unwrap_or_default();
    match SAME.iter().find(|(riaks, _)| *riaks == first) {
        Some((_, ours)) => {
            out.extend(ours.iter().map(OsString::from));
            out.extend_from_slice(rest.get(1..).unwrap_or_default());
        }
        None => out.extend_from_slice(rest),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(line: &str) -> String {
        let args = line.split(' ').map(OsString::from).collect();
        translate(args).iter().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn riaks_words_become_ours() {
        for (riaks, expected) in [
            ("/usr/sbin/riak start", "ombak start --background"),
            ("riak daemon --data d", "ombak start --background --data d"),
            ("riak-debug -o f", "ombak admin debug -o f"),
            ("riak chkconfig", "ombak config check"),
            ("riak console --data d", "ombak start --data d"),
            ("riak admin bucket-type list", "ombak admin bucket-type list"),
            ("./riak-admin status", "ombak admin status"),
            ("riak-admin", "ombak admin"),
            ("ombak chkconfig", "ombak chkconfig"),
            ("/x/ombak ping", "/x/ombak ping"),
        ] {
            assert_eq!(ours(riaks), expected, "{riaks}");
        }
    }
}
