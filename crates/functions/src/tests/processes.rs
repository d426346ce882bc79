//! The processes of functions, and what they cannot do.

use super::{COUNTER, config, kind, mapped, open, owner, pool, program, soon};
use crate::{FunctionError, FunctionPool, Lane, PoolConfig, WorkerProgram, check_program};
use ombak_runtime::TokioRuntime;
use ombak_script::{ErrorKind, LINES_MAX, Limits, Program};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn work_is_told_that_its_process_could_not_be_started() {
    let nothing = WorkerProgram { program: PathBuf::from("/does/not/exist"), arguments: Vec::new() };
    let pool = FunctionPool::new(Arc::new(TokioRuntime), config(), nothing);
    let map = open(&pool, Lane::Map, COUNTER);
    for _ in 0..2 {
        let refused = mapped(&map, soon()).await;
        let Err(FunctionError::Died(why)) = refused else { panic!("{refused:?}") };
        assert!(why.starts_with("it could not be started: "), "{why}");
    }
    assert_eq!(pool.counts(Lane::Map).died_total, 2);
}

#[tokio::test]
async fn work_is_told_that_another_program_does_not_serve() {
    let other = WorkerProgram { program: PathBuf::from("/bin/true"), arguments: Vec::new() };
    let pool = FunctionPool::new(Arc::new(TokioRuntime), config(), other);
    let refused = mapped(&open(&pool, Lane::Map, COUNTER), soon()).await;
    assert!(matches!(refused, Err(FunctionError::Died(_))), "{refused:?}");
}

#[test]
fn a_program_can_be_checked_whatever_it_does() {
    let limits = Limits { call_time_max: Duration::from_millis(100), ..Limits::default() };
    let checked = |source: &str| check_program(&program(), &Program::source(source).unwrap(), &limits);
    assert_eq!(checked(COUNTER), Ok(()));
    assert!(matches!(checked("function("), Err(FunctionError::Script(why)) if why.kind == ErrorKind::Syntax));
    let native = "(function() { Array.prototype.reverse.call({ length: Math.pow(2, 53) - 1 }); })()";
    assert_eq!(checked(native), Err(FunctionError::Died("it did not answer in time".to_owned())));
}

#[tokio::test]
async fn arguments_that_no_function_could_hold_are_refused_here() {
    let limits = Limits { memory_bytes_max: 1 << 20, ..Limits::default() };
    let pool = pool(PoolConfig { limits, ..config() });
    let map = open(&pool, Lane::Map, "function(v) { return [v.length]; }");
    let lengths = async |length: usize| {
        let text = format!("\"{}\"", "x".repeat(length));
        let done = map.run(&owner(), soon(), move |calls| calls.map(&text, "null", "null")).await;
        Ok(done??)
    };
    assert_eq!(lengths(1 << 10).await.unwrap(), "[1024]");
    assert_eq!(kind(lengths(2 << 20).await), ErrorKind::Memory);
    assert_eq!(kind(lengths(20 << 20).await), ErrorKind::Memory);
    assert_eq!(lengths(1 << 10).await.unwrap(), "[1024]");
}

#[tokio::test]
async fn what_functions_write_to_the_log_comes_with_their_results() {
    let pool = pool(config());
    let chatty = open(&pool, Lane::Map, "function(n) { for (var i = 0; i < n; i++) ejsLog('f', 'm' + i); return []; }");
    let work = |calls: &mut crate::Calls<'_>| {
        for _ in 0..2 {
            calls.map("40", "null", "null").unwrap();
        }
        (calls.take_log(), calls.take_log())
    };
    let (log, nothing) = chatty.run(&owner(), soon(), work).await.unwrap();
    assert_eq!((log.lines.len(), log.dropped), (LINES_MAX, 80 - LINES_MAX as u64));
    assert_eq!(log.lines.back().map(String::as_str), Some("f: m39"));
    assert!(nothing.lines.is_empty());
}

#[cfg(target_os = "linux")]
mod of_linux {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;

    /// What the system says of the processes for functions of this one.
    fn processes_for_functions() -> Vec<BTreeMap<String, String>> {
        let status = |path: PathBuf| -> Option<BTreeMap<String, String>> {
            let command = fs::read_to_string(path.join("cmdline")).ok()?;
            let text = fs::read_to_string(path.join("status")).ok()?;
            let lines = text.lines().filter_map(|line| line.split_once(':'));
            command
                .starts_with("ombak\0")
                .then(|| lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
        };
        let all = fs::read_dir("/proc").unwrap().filter_map(|entry| status(entry.ok()?.path()));
        let parent = std::process::id().to_string();
        all.filter(|status| status.get("PPid") == Some(&parent)).collect()
    }

    #[tokio::test]
    async fn processes_are_confined() {
        let pool = pool(config());
        assert_eq!(mapped(&open(&pool, Lane::Map, COUNTER), soon()).await.unwrap(), "[1]");
        let processes = processes_for_functions();
        assert!(!processes.is_empty());
        // Processes of other tests may be about to enter the sandbox.
        assert!(
            processes.iter().any(|status| status["Seccomp"] == "2" && status["NoNewPrivs"] == "1"),
            "{processes:?}"
        );
    }

    #[tokio::test]
    async fn functions_know_the_local_time() {
        // The zone of the node holds in its processes, which cannot read files any more.
        let pool = pool(config());
        let hours = open(&pool, Lane::Map, "function() { return [new Date(0).getTimezoneOffset()]; }");
        let given = mapped(&hours, soon()).await.unwrap();
        let here = std::process::Command::new("date").args(["-d", "@0", "+%z"]).output().unwrap().stdout;
        let here = String::from_utf8(here).unwrap();
        let (sign, digits) = here.trim().split_at(1);
        let minutes = digits[..2].parse::<i32>().unwrap() * 60 + digits[2..].parse::<i32>().unwrap();
        let minutes = if sign == "+" { -minutes } else { minutes };
        assert_eq!(given, format!("[{minutes}]"));
    }
}
