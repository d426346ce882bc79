//! The recorded commands of `riak admin security`, carried out again.
//!
//! `recorded/security.txt` has 107 commands with the output of a Riak node (OpenRiak 3.2.3), and
//! `recorded/security-setup.txt` those with which another node was prepared. Riak's rows are in the
//! order of hash tables, so the lines of a table are compared as a set. Hashes have random salts,
//! so one hash is as good as another.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeMap;
use support::TestConsole;

struct Recorded {
    command: String,
    words: Vec<String>,
    output: String,
    /// Whether it has succeeded.
    is_ok: bool,
}

/// What Ombak does differently, and why. The text is what Ombak answers.
fn deviations() -> BTreeMap<&'static str, &'static str> {
    let bad_cidr = "Invalid CIDR 10.1.2.3: an address, a slash and a number of bits are needed, such as 10.1.2.3/32 or \
        fd00::/8 (at most 32 bits for IPv4 and 128 for IPv6)\n";
    BTreeMap::from([
        // Riak's node crashes, and prints what it has up to there. By default the node chooses.
        ("ciphers", "Configured ciphers\n\nnone: the node chooses them\n\n"),
        (
            "ciphers DHE-RSA-AES256-SHA256:FOO",
            "Configured ciphers\n\nDHE-RSA-AES256-SHA256:FOO\n\nValid ciphers(1)\n\nDHE-RSA-AES256-SHA256\n\n\
             Unknown/Unsupported ciphers(1)\n\nFOO\n\n",
        ),
        (
            "ciphers (after)",
            "Configured ciphers\n\nDHE-RSA-AES256-SHA256:FOO\n\nValid ciphers(1)\n\nDHE-RSA-AES256-SHA256\n\n\
             Unknown/Unsupported ciphers(1)\n\nFOO\n\n",
        ),
        // Riak's node crashes on what is no CIDR.
        (
            "add-source all bad trust",
            "Invalid CIDR bad: an address, a slash and a number of bits are needed, such as 10.1.2.3/32 or fd00::/8 \
             (at most 32 bits for IPv4 and 128 for IPv6)\n",
        ),
        (
            "add-source all 1.2.3.4/99 trust",
            "Invalid CIDR 1.2.3.4/99: an address, a slash and a number of bits are needed, such as 10.1.2.3/32 or \
             fd00::/8 (at most 32 bits for IPv4 and 128 for IPv6)\n",
        ),
        ("add-source all 10.1.2.3 weird", bad_cidr),
        ("del-source all 10.1.2.3", bad_cidr),
        // Riak takes any kind of source.
        (
            "add-source alice,bob 10.0.0.0/8 pam service=login",
            "Sources of the kind pam do not exist here. Use password, with passwords set by alter-user, or \
             certificate\n",
        ),
        ("add-source all 10.1.2.3/32 weird", "Source not recognized: weird. Use trust, password or certificate\n"),
    ])
}

/// Reads a recording. A header can have a note in brackets at its end.
fn recording(name: &str) -> Vec<Recorded> {
    let path = format!("{}/tests/recorded/{name}", env!("CARGO_MANIFEST_DIR"));
    // One bucket was given in Latin-1.
    let text: String = std::fs::read(path).unwrap().into_iter().map(char::from).collect();
    let mut found = Vec::new();
    for block in text.split("### security ").skip(1) {
        let (command, rest) = block.split_once('\n').unwrap();
        let (output, result) = rest.split_once("\n### result ").unwrap();
        let (words, output, is_ok) = (words(command), output.to_owned(), result.trim() == "ok");
        found.push(Recorded { command: command.to_owned(), words, output, is_ok });
    }
    found
}

fn words(command: &str) -> Vec<String> {
    let command = command.split_once(" (").map_or(command, |(command, _)| command);
    let (mut words, mut word, mut is_quoted, mut has_word) = (Vec::new(), String::new(), false, false);
    for c in command.trim().chars().chain([' ']) {
        match c {
            '\'' => (is_quoted, has_word) = (!is_quoted, true),
            ' ' if !is_quoted => {
                if std::mem::take(&mut has_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                word.push(c);
                has_word = true;
            }
        }
    }
    words
}

/// The lines, each hash replaced by one and the same. The lines of each table are sorted.
fn comparable(text: &str) -> Vec<String> {
    let is_hash = |cell: &str| cell.len() == 40 && cell.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let cells: Vec<String> =
            line.split('|').map(|cell| if is_hash(cell) { "#".repeat(40) } else { cell.to_owned() }).collect();
        lines.push(cells.join("|"));
    }
    for table in lines.split_mut(|line| line.is_empty()) {
        table.sort_unstable();
    }
    lines
}

/// Cells without blanks around them, for tables whose widths differ. Borders are left out.
fn cells(text: &str) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = text
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    rows.sort();
    rows
}

#[test]
fn the_recorded_commands_have_the_recorded_answers() {
    let (console, deviations) = (TestConsole::default(), deviations());
    let all = recording("security.txt");
    assert_eq!(all.len(), 107);
    let mut deviated = 0;
    for Recorded { command, words, output, is_ok } in &all {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // An answer is printed with the end of its last line, and one without text not at all.
        let printed = |text: String| if text.is_empty() { text } else { text + "\n" };
        let result = console.run(&words);
        assert!(result.is_ok() == *is_ok || deviations.contains_key(command.as_str()), "{command}: {result:?}");
        let answer = match result {
            Ok(answer) => printed(answer.text),
            Err(why) => format!("{why}\n"),
        };
        if let Some(expected) = deviations.get(command.as_str()) {
            deviated += 1;
            assert_eq!(&answer, expected, "{command}");
            assert_ne!(&answer, output, "{command}: this is no deviation");
        } else if words[0] == "print-sources" && output.contains("pam") {
            // The source of the kind pam was refused, and the widest cell is missing with it.
            let mut expected = cells(output);
            expected.retain(|row| row[3] != "pam");
            assert_eq!(cells(&answer), expected, "{command}");
        } else if matches!(words[0], "add-user" | "alter-user") && output.is_empty() {
            // Riak's script prints the user after the command. The recording has the command alone.
            let user = console.run(&["print-user", words[1]]).unwrap();
            assert_eq!(answer, user.text + "\n", "{command}");
        } else {
            assert_eq!(comparable(&answer), comparable(output), "{command}");
        }
    }
    assert_eq!(deviated, deviations.len());
}

/// The commands of the second recording have no arguments in it. These give its table.
#[test]
fn sources_of_several_users_share_a_row_as_recorded() {
    let console = TestConsole::default();
    for user in ["alice", "nosrc", "tru", "cert_user", "boss", "nopw"] {
        console.ok(&format!("add-user {user}"));
    }
    for (users, kind) in [("alice", "password"), ("boss", "password"), ("nopw", "password"), ("tru", "trust")] {
        console.ok(&format!("add-source {users} 127.0.0.1/32 {kind}"));
    }
    console.ok("add-source cert_user 127.0.0.1/32 certificate");
    let path = format!("{}/tests/recorded/security-setup.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("### print-sources\n").unwrap();
    let (table, _) = rest.split_once("\n### result").unwrap();
    assert_eq!(comparable(&(console.ok("print-sources").text + "\n")), comparable(table));
}
