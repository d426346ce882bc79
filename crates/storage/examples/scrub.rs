//! Measures what scrubbing costs: how much it reads in a second for each percent of a core, in the
//! stores of one node, on each backend. Usage: `cargo run --release -p ombak-storage --example
//! scrub [MB] [VALUE_BYTES]`

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement: it may stop at the first surprise")]

use ombak_storage::fs::RealFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, NoTerms,
    ScrubCursor, ScrubLimits, Write,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PARTITIONS: u32 = 8;
const MB: u64 = 1_000_000;
/// Clock ticks a second of the times in `/proc/self/stat`, on every common Linux.
const TICKS_PER_SECOND: f64 = 100.0;
const ROUNDS: u32 = 3;
const MONTH_SECS: f64 = 30.0 * 86_400.0;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse::<u64>().expect("a number"));
    let (mb, value_bytes) = (arguments.next().unwrap_or(1_000), arguments.next().unwrap_or(1_000));
    let dir = tempfile::tempdir_in(".").unwrap();
    for backend in ["bitcask", "leveled", "leveldb"] {
        measure(backend, &dir.path().join(backend), mb, value_bytes);
    }
}

fn factory(backend: &str, dir: &Path) -> Box<dyn BackendFactory> {
    let (fs, journal, ledger) = (Arc::new(RealFs), JournalConfig::default(), LedgerConfig::default());
    match backend {
        "bitcask" => Box::new(BitcaskFactory::new(fs, dir, journal).unwrap()),
        "leveled" => Box::new(LeveledFactory::new(fs, dir, journal, ledger, Arc::new(NoTerms)).unwrap()),
        _ => Box::new(LeveldbFactory::new(fs, dir, journal, ledger, Arc::new(NoTerms)).unwrap()),
    }
}

fn measure(backend: &str, dir: &Path, mb: u64, value_bytes: u64) {
    let open = || {
        let factory = factory(backend, dir);
        (0..PARTITIONS).map(|number| factory.open(number).unwrap()).collect::<Vec<_>>()
    };
    let stores = open();
    fill(&stores, mb * MB / value_bytes, value_bytes as usize);
    stores.iter().for_each(|store| store.close().unwrap());
    drop(stores);
    let stores = open();
    let (began, cpu_before) = (Instant::now(), cpu_secs());
    let bytes: u64 = (0..ROUNDS).flat_map(|_| stores.iter()).map(|store| scrub(&**store)).sum();
    let (wall, cpu) = (began.elapsed().as_secs_f64(), (cpu_secs() - cpu_before).max(0.01));
    let read_mb = bytes as f64 / MB as f64;
    // A second at one percent of a core is a hundredth of a second of its time.
    let mb_for_a_percent = read_mb / (cpu * 100.0);
    let tb_cpu_secs = 1e6 / read_mb * cpu;
    println!(
        "{backend}, values of {value_bytes} bytes: {read_mb:.0} MB in {wall:.1} s ({:.0} MB/s), {cpu:.2} s of \
         processor time: {mb_for_a_percent:.1} MB/s for each percent of a core. 1 TB takes {tb_cpu_secs:.0} s of \
         processor time, in 30 days {:.3} % of a core and {:.2} MB/s",
        read_mb / wall,
        tb_cpu_secs / MONTH_SECS * 100.0,
        1e6 / MONTH_SECS,
    );
}

/// Reads everything of a store once. Returns the number of bytes.
fn scrub(store: &dyn Backend) -> u64 {
    let limits = ScrubLimits { bytes_max: 4 << 20, time_max: Duration::from_secs(1), give_way: &|| () };
    let (mut cursor, mut bytes) = (ScrubCursor::default(), 0);
    loop {
        let step = store.scrub_step(&cursor, limits).unwrap();
        assert!(step.found.is_nothing(), "{:?}", step.found);
        bytes += step.bytes_read;
        if step.is_round_over {
            return bytes;
        }
        cursor = step.next;
    }
}

fn fill(stores: &[Arc<dyn Backend>], keys: u64, value_bytes: usize) {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut body = vec![0; value_bytes];
    for number in 0..keys {
        for byte in &mut body {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (random >> 56) as u8;
        }
        let (key, store) = (format!("key {number:012}"), &stores[(number % u64::from(PARTITIONS)) as usize]);
        let write = Write {
            key: key.as_bytes(),
            head: b"head",
            body: &[&body],
            digest: number << 1,
            tstamp_secs: 1,
            expires_secs: 0,
            has_terms: false,
        };
        store.put(&write).unwrap();
        if number % 1_000 == 0 {
            stores.iter().for_each(|store| store.maintain(1).unwrap());
        }
    }
}

/// The processor time of this process so far.
fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program, in parentheses, may hold blanks.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}
