//! Runs of many seeds. `OMBAK_SIM_SEEDS` says how many, `OMBAK_SIM_FIRST` says with which they
//! begin, and `OMBAK_SIM_SEED` runs only one.

use ombak_sim::{FaultKind, Report, run_seed};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The number of seeds, unless `OMBAK_SIM_SEEDS` says another one.
const SEEDS: u64 = 60;
/// The number of seeds that two processes run.
const TRACED_SEEDS: u64 = 30;
/// The number of operations in each seed, at least.
const OPERATIONS_MIN: u64 = 500;
/// The number of faults at the same time in each seed, at least.
const OVERLAPPING_MIN: usize = 3;
const THREADS: usize = 2;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs seeds on several threads. Each world has a thread of its own at a time.
fn run_seeds(seeds: std::ops::RangeInclusive<u64>) -> Vec<Report> {
    let (next, last) = (AtomicU64::new(*seeds.start()), *seeds.end());
    let reports = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed > last {
                        return;
                    }
                    let report = run_seed(seed);
                    reports.lock().unwrap().push(report);
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap();
    reports.sort_by_key(|report| report.seed);
    reports
}

#[test]
fn no_seed_breaks_a_rule() {
    let only = number("OMBAK_SIM_SEED");
    let reports = match only {
        Some(seed) => run_seeds(seed..=seed),
        None => {
            let first = number("OMBAK_SIM_FIRST").unwrap_or(1);
            run_seeds(first..=first + number("OMBAK_SIM_SEEDS").unwrap_or(SEEDS) - 1)
        }
    };
    if only.is_some() {
        println!("{:#?}", reports[0]);
    }
    let mut counts: BTreeMap<String, u64> = FaultKind::all().map(|kind| (format!("fault {kind:?}"), 0)).collect();
    let mut broken = Vec::new();
    for report in &reports {
        let seed = report.seed;
        broken.extend(report.violation.as_ref().map(|violation| format!("seed {seed}: {violation}")));
        assert!(
            report.violation.is_some() || report.clients.all() >= OPERATIONS_MIN,
            "seed {seed}: {:?}",
            report.clients
        );
        assert_eq!(report.left_behind, Vec::<String>::new(), "seed {seed} has left something behind");
        assert!(
            report.violation.is_some() || report.overlapping_max >= OVERLAPPING_MIN,
            "seed {seed}: {:?}",
            report.faults
        );
        assert!(
            report.violation.is_some() || report.changes_in_faults > 0,
            "seed {seed}: no change of the members was decided while a fault lasted: {:?}",
            report.changes
        );
        for (name, count) in report.counts() {
            *counts.entry(name).or_default() += count;
        }
    }
    println!("{} seeds", reports.len());
    counts.iter().for_each(|(name, count)| println!("{count:>9} {name}"));
    assert!(broken.is_empty(), "{} seeds break a rule:\n{}", broken.len(), broken.join("\n"));
    let never: Vec<_> = counts.iter().filter(|(_, count)| **count == 0).collect();
    assert!(only.is_some() || never.is_empty(), "never happened: {never:?}");
}

fn traces() -> Vec<String> {
    run_seeds(1..=TRACED_SEEDS).iter().map(|report| format!("trace {} {:x}", report.seed, report.trace)).collect()
}

#[test]
#[ignore = "another test calls it in a process of its own"]
fn print_traces() {
    println!();
    traces().iter().for_each(|line| println!("{line}"));
}

#[test]
fn a_seed_has_the_same_trace_in_two_processes() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "seeds::print_traces", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let there: Vec<&str> = text.lines().filter(|line| line.starts_with("trace ")).collect();
    assert_eq!(there, traces());
}
