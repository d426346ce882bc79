//! The table, the ratios, and whether the targets are met.

use crate::load::Outcome;
use crate::options::Options;
use crate::workload::{Op, VALUE_BYTES};
use std::fmt;

/// One measurement.
pub struct Sample {
    pub server: &'static str,
    pub op: Op,
    pub connections: usize,
    pub outcome: Outcome,
}

/// The figures of one measurement.
struct Figures {
    rate: f64,
    cpu_us: f64,
}

/// All rounds of one server, operation and number of connections.
struct Cell {
    server: &'static str,
    op: Op,
    connections: usize,
    rounds: Vec<Figures>,
    latencies_ns: Vec<u32>,
}

/// All measurements of a run.
pub struct Report {
    heading: String,
    servers: Vec<&'static str>,
    connections: Vec<usize>,
    cells: Vec<Cell>,
}

/// The target for a ratio to the echo server.
struct Target {
    server: &'static str,
    op: Op,
    rate_min: f64,
    cpu_max: f64,
}

/// The targets of the project. Puts on the memory backend have the same targets as on bitcask.
const TARGETS: [Target; 4] = [
    Target { server: "ombak memory", op: Op::Get, rate_min: 0.8, cpu_max: 1.3 },
    Target { server: "ombak bitcask", op: Op::Get, rate_min: 0.8, cpu_max: 1.3 },
    Target { server: "ombak memory", op: Op::Put, rate_min: 0.65, cpu_max: 1.8 },
    Target { server: "ombak bitcask", op: Op::Put, rate_min: 0.65, cpu_max: 1.8 },
];

impl Report {
    pub fn new(options: &Options, servers: Vec<&'static str>) -> Self {
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        let heading = format!(
            "{VALUE_BYTES} byte values; {processors} processors, {} worker threads a server, 1 client thread; \
             {} rounds of {:?} in turns, medians",
            options.workers, options.rounds, options.seconds
        );
        Self { heading, servers, connections: options.connections.clone(), cells: Vec::new() }
    }

    pub fn add(&mut self, sample: Sample) {
        let Sample { server, op, connections, outcome } = sample;
        let count = outcome.latencies_ns.len().max(1) as f64;
        let figures = Figures {
            rate: outcome.latencies_ns.len() as f64 / outcome.elapsed.as_secs_f64(),
            cpu_us: outcome.server_cpu.as_secs_f64() * 1e6 / count,
        };
        let known = self.cells.iter().position(|c| (c.server, c.op, c.connections) == (server, op, connections));
        let at = known.unwrap_or_else(|| {
            self.cells.push(Cell { server, op, connections, rounds: Vec::new(), latencies_ns: Vec::new() });
            self.cells.len() - 1
        });
        if let Some(cell) = self.cells.get_mut(at) {
            cell.rounds.push(figures);
            cell.latencies_ns.extend(outcome.latencies_ns);
        }
    }

    fn cell(&self, server: &str, op: Op, connections: usize) -> Option<&Cell> {
        self.cells.iter().find(|c| c.server == server && c.op == op && c.connections == connections)
    }

    /// The medians of the ratios to the echo server in the same round: of the rate, and of the
    /// processor time.
    fn ratios(&self, cell: &Cell) -> Option<(f64, f64)> {
        let echo = self.cell("echo", cell.op, cell.connections)?;
        let pairs = || cell.rounds.iter().zip(&echo.rounds);
        Some((median(pairs().map(|(c, e)| c.rate / e.rate)), median(pairs().map(|(c, e)| c.cpu_us / e.cpu_us))))
    }
}

/// A quantile in microseconds of sorted nanoseconds.
fn quantile_us(sorted_ns: &[u32], quantile: f64) -> f64 {
    let rank = (sorted_ns.len() as f64 * quantile) as usize;
    sorted_ns.get(rank.min(sorted_ns.len().saturating_sub(1))).map_or(f64::NAN, |&ns| f64::from(ns) / 1000.0)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (values.get(values.len() / 2), values.get((values.len().saturating_sub(1)) / 2)) {
        (Some(upper), Some(lower)) => (upper + lower) / 2.0,
        _ => f64::NAN,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}\n", self.heading)?;
        writeln!(
            f,
            "{:<4} {:>5}  {:<14} {:>10} {:>8} {:>8} {:>8} {:>9} {:>7} {:>7}",
            "", "conns", "server", "requests/s", "p50 µs", "p99 µs", "p99.9 µs", "CPU µs/rq", "rate ÷", "CPU ÷"
        )?;
        for op in [Op::Get, Op::Put] {
            for &connections in &self.connections {
                for cell in self.servers.iter().filter_map(|server| self.cell(server, op, connections)) {
                    self.write_row(cell, f)?;
                }
            }
        }
        writeln!(f, "\n÷: ratio to the echo server, median over the rounds\n")?;
        TARGETS.iter().try_for_each(|target| self.write_target(target, f))
    }
}

impl Report {
    fn write_row(&self, cell: &Cell, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut latencies_ns = cell.latencies_ns.clone();
        latencies_ns.sort_unstable();
        let at = |quantile| quantile_us(&latencies_ns, quantile);
        let (rate, cpu) = self.ratios(cell).unwrap_or((f64::NAN, f64::NAN));
        writeln!(
            f,
            "{:<4} {:>5}  {:<14} {:>10.0} {:>8.0} {:>8.0} {:>8.0} {:>9.1} {:>7.2} {:>7.2}",
            cell.op,
            cell.connections,
            cell.server,
            median(cell.rounds.iter().map(|r| r.rate)),
            at(0.5),
            at(0.99),
            at(0.999),
            median(cell.rounds.iter().map(|r| r.cpu_us)),
            rate,
            cpu
        )
    }

    fn write_target(&self, target: &Target, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &connections in &self.connections {
            let cell = self.cell(target.server, target.op, connections);
            let Some((rate, cpu)) = cell.and_then(|cell| self.ratios(cell)) else { continue };
            let verdict = |met: bool| if met { "met" } else { "NOT MET" };
            writeln!(
                f,
                "{} {:<14} {connections:>3} connections: rate {rate:.2}, at least {:.2}: {}; CPU {cpu:.2}, at most {:.2}: {}",
                target.op,
                target.server,
                target.rate_min,
                verdict(rate >= target.rate_min),
                target.cpu_max,
                verdict(cpu <= target.cpu_max)
            )?;
        }
        Ok(())
    }
}

/// One measurement as a line of JSON.
pub fn json(outcome: Outcome) -> String {
    let Outcome { mut latencies_ns, errors, elapsed, server_cpu } = outcome;
    latencies_ns.sort_unstable();
    let at = |quantile| if latencies_ns.is_empty() { 0.0 } else { quantile_us(&latencies_ns, quantile) };
    format!(
        r#"{{"requests":{},"errors":{errors},"elapsed_s":{:.6},"cpu_s":{:.6},"p50_us":{:.1},"p99_us":{:.1},"p999_us":{:.1},"max_us":{:.1}}}"#,
        latencies_ns.len(),
        elapsed.as_secs_f64(),
        server_cpu.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sample(server: &'static str, requests: usize, cpu_ms: u64) -> Sample {
        let latencies_ns = (1..=requests as u32).map(|n| n * 1000).collect();
        let (elapsed, server_cpu) = (Duration::from_secs(1), Duration::from_millis(cpu_ms));
        let outcome = Outcome { latencies_ns, errors: 0, elapsed, server_cpu };
        Sample { server, op: Op::Get, connections: 6, outcome }
    }

    #[test]
    fn ratios_are_to_the_echo_server_of_the_same_round() {
        let (servers, connections) = (vec!["echo", "ombak memory"], vec![6]);
        let mut report = Report { heading: String::new(), servers, connections, cells: Vec::new() };
        for (echo, ombak) in [(1000, 900), (500, 400), (2000, 1600)] {
            report.add(sample("echo", echo, 10));
            report.add(sample("ombak memory", ombak, 10));
        }
        let cell = report.cell("ombak memory", Op::Get, 6).unwrap();
        let (rate, cpu) = report.ratios(cell).unwrap();
        assert!((rate - 0.8).abs() < 1e-9 && (cpu - 1.25).abs() < 1e-9, "{rate} {cpu}");
        let text = report.to_string();
        assert!(text.contains("GET ombak memory     6 connections: rate 0.80, at least 0.80: met"), "{text}");
    }

    #[test]
    fn quantiles_and_medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0].into_iter()), 2.5);
        let sorted: Vec<u32> = (0..1000).map(|n| n * 1000).collect();
        assert_eq!((quantile_us(&sorted, 0.5), quantile_us(&sorted, 0.999)), (500.0, 999.0));
    }
}
