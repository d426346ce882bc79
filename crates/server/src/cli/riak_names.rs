//! The command names of Riak's own programs: links named `riak` and `riak-admin` to this program
//! accept them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Commands of `riak` that have another name here.
const SAME: [(&str, &[&str]); 4] =
    [("chkconfig", &["config", "check"]), ("foreground", &["start"]), ("console", &["start"]), ("daemon", &["start"])];

/// Translates a command line of `riak` or `riak-admin` to this program's own grammar.
pub fn translate(args: Vec<OsString>) -> Vec<OsString> {
    let called = args.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str).unwrap_or_default();
    let (name, rest) = match (called, args.get(1..)) {
        ("riak-admin" | "riak", Some(rest)) => (called.to_owned(), rest),
        _ => return args,
    };
    let mut out = vec![OsString::from("ombak")];
    if name == "riak-admin" {
        out.push("admin".into());
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
            ("/usr/sbin/riak start", "ombak start"),
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
