//! Commands whose output nobody reads.

use crate::support::{Home, ombak};
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// Runs a command whose standard output, or both outputs, are closed by their reader before it
/// prints anything. Returns its exit code and what it said on standard error.
fn unread(home: &Home, args: &[&str], stderr_too: bool) -> (Option<i32>, String) {
    let (out_reader, out) = std::io::pipe().unwrap();
    drop(out_reader);
    let mut command = ombak();
    command.current_dir(home.path()).args(args).stdin(Stdio::null()).stdout(out);
    if stderr_too {
        let (err_reader, err) = std::io::pipe().unwrap();
        drop(err_reader);
        command.stderr(err);
    } else {
        command.stderr(Stdio::piped());
    }
    let mut child = spawned(command);
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut said).unwrap();
    }
    (child.wait().unwrap().code(), said)
}

/// The command is dropped, so this process holds no end of its pipes.
fn spawned(mut command: Command) -> Child {
    command.spawn().unwrap()
}

#[test]
fn a_closed_output_ends_no_command_by_a_panic_and_changes_no_verdict() {
    let home = Home::new("storage_backend = memory\nno.such.limit = 1");
    for both in [false, true] {
        for args in [&["config", "check"][..], &["config", "check", "--json"], &["config", "describe", "zork"]] {
            let (code, said) = unread(&home, args, both);
            assert_eq!(code, Some(1), "{args:?} {both}: {said}");
            assert!(!said.contains("panicked"), "{args:?}: {said}");
        }
        for args in [&["nonsense"][..], &["nonsense", "--json"], &["admin", "ensemble-status", "--json"]] {
            assert_eq!(unread(&home, args, both).0, Some(2), "{args:?} {both}");
        }
        assert_eq!(unread(&home, &["start", "--json"], both).0, Some(78), "{both}");
        for args in [&["version"][..], &["version", "--json"], &["--help"], &["config", "example"]] {
            assert_eq!(unread(&home, args, both).0, Some(0), "{args:?} {both}");
        }
    }
}

#[test]
fn a_failing_result_keeps_its_code_when_nobody_reads_it() {
    let home = Home::new("storage_backend = memory\nring_size = 8");
    let node = home.start();
    for both in [false, true] {
        for args in [&["kv", "get", "b", "k", "--json"][..], &["kv", "del", "b", "k", "--json"]] {
            assert_eq!(unread(&home, args, both).0, Some(1), "{args:?} {both}");
        }
        assert_eq!(unread(&home, &["admin", "stat", "show", "zork", "--json"], both).0, Some(1), "{both}");
        assert_eq!(unread(&home, &["admin", "member-status"], both).0, Some(0), "{both}");
        assert_eq!(unread(&home, &["admin", "ringready", "--json"], both).0, Some(0), "{both}");
    }
    node.stop();
}

/// A node goes on when whoever read its outputs has left.
#[test]
fn a_node_with_closed_outputs_serves() {
    let home = Home::new("storage_backend = memory");
    let (out_reader, out) = std::io::pipe().unwrap();
    let (err_reader, err) = std::io::pipe().unwrap();
    drop((out_reader, err_reader));
    let mut command = home.start_command();
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut node = spawned(command);
    home.run(&["admin", "wait-for-service", "riak_kv", "--wait", "30"]).ok();
    home.run(&["kv", "put", "b", "k", "v"]).ok();
    home.run(&["admin", "set", "logger.level=debug"]).ok();
    assert_eq!(home.run(&["kv", "get", "b", "k"]).ok(), "v");
    assert_eq!(home.run(&["stop"]).ok(), "ok\n");
    assert_eq!(node.wait().unwrap().code(), Some(0));
}

/// Runs a command whose descriptors a shell has closed, as some supervisors do.
fn with_closed(home: &Home, closed: &str, args: &[&str]) -> Option<i32> {
    let program = ombak();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec \"$0\" \"$@\" {closed}")).arg(program.get_program()).args(args);
    for (name, _) in program.get_envs().filter(|(_, value)| value.is_none()) {
        shell.env_remove(name);
    }
    let done = shell.current_dir(home.path()).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(!said.contains("panicked"), "{args:?} {closed}: {said}");
    done.status.code()
}

#[test]
fn commands_run_without_descriptors() {
    let home = Home::new("storage_backend = memory");
    for closed in ["2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full"] {
        let code = |args: &[&str]| with_closed(&home, closed, args);
        assert_eq!(code(&["ping"]), Some(1), "{closed}");
        assert_eq!(code(&["start", "--background"]), Some(0), "{closed}");
        for args in [&["ping"][..], &["kv", "put", "b", "k", "v"], &["kv", "list", "b"], &["admin", "status"]] {
            assert_eq!(code(args), Some(0), "{args:?} {closed}");
        }
        for args in [&["kv", "get", "b", "gone"][..], &["config", "describe", "zork"], &["admin", "show", "zork"]] {
            assert_eq!(code(args), Some(1), "{args:?} {closed}");
        }
        for args in [&["nonsense"][..], &["attach"], &["admin", "reip"], &["admin", "cluster"]] {
            assert_eq!(code(args), Some(2), "{args:?} {closed}");
        }
        assert_eq!(code(&["stop"]), Some(0), "{closed}");
    }
}
