//! Measures how much more a store does for a put than appending: small puts in the order of their
//! keys, on one thread, compared with a loop that appends records of the same length to a file.

use ombak_storage::backend::NoTerms;
use ombak_storage::fs::RealFs;
use ombak_storage::{BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveledFactory, Write};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Lengths of values in bytes. Their records are about 280 and 1,200 bytes long.
const VALUE_BYTES: [usize; 2] = [100, 1024];
/// The length of a bucket's prefix and 16 digits.
const KEY_BYTES: usize = 23;
/// The length of the clock and metadata of a new object with one sibling, as a node stores them.
const HEAD_BYTES: usize = 102;

/// The target: bitcask's rate relative to the loop's.
const RATE_MIN: f64 = 0.8;

pub struct Appends {
    pub dir: PathBuf,
    pub puts: u64,
    pub rounds: usize,
}

/// The rates of the loop, of bitcask and of leveled in one round, in records per second.
struct Round {
    appended: f64,
    bitcask: f64,
    leveled: f64,
}

/// Measures all of them in turns, and prints the table.
pub fn run(options: &Appends) -> Result<(), String> {
    let dir = options.dir.join(format!("ombak-appends-{}", std::process::id()));
    println!(
        "{} puts in the order of their keys, one thread, one partition, no syncs; {} rounds in turns, medians\n",
        options.puts, options.rounds
    );
    println!("| value, bytes | | records/s | rate ÷ append loop |\n| ---: | --- | ---: | ---: |");
    let mut ratios = Vec::new();
    for value_bytes in VALUE_BYTES {
        let measured: Result<Vec<_>, _> = (0..options.rounds).map(|_| round(&dir, options.puts, value_bytes)).collect();
        // The files of a failed round are of no use.
        let _ = std::fs::remove_dir_all(&dir);
        let rounds = measured?;
        print_line(value_bytes, "append loop", &rounds, |round| round.appended);
        ratios.push(print_line(value_bytes, "bitcask", &rounds, |round| round.bitcask));
        print_line(value_bytes, "leveled", &rounds, |round| round.leveled);
    }
    println!();
    for (value_bytes, ratio) in VALUE_BYTES.into_iter().zip(ratios) {
        let met = if ratio >= RATE_MIN { "met" } else { "not met" };
        println!("bitcask, {value_bytes} bytes: target ≥ {RATE_MIN:.2} of the loop, measured {ratio:.2}: {met}");
    }
    Ok(())
}

/// Prints a line of the table, and returns the ratio to the loop.
fn print_line(value_bytes: usize, name: &str, rounds: &[Round], rate: impl Fn(&Round) -> f64) -> f64 {
    let median_rate = median(rounds.iter().map(&rate).collect());
    let ratio = median(rounds.iter().map(|round| rate(round) / round.appended).collect());
    println!("| {value_bytes} | {name} | {median_rate:.0} | {ratio:.2} |");
    ratio
}

fn round(dir: &Path, puts: u64, value_bytes: usize) -> Result<Round, String> {
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", dir.display());
    let fresh = || {
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir).map_err(|error| said(&error))
    };
    fresh()?;
    let journal = JournalConfig::default();
    let factory = BitcaskFactory::new(Arc::new(RealFs), dir, journal).map_err(|error| said(&error))?;
    let (bitcask, record_bytes) = put_all(&factory, puts, value_bytes)?;
    drop(factory);
    fresh()?;
    let journal = JournalConfig { sync: journal.sync, ..ombak_storage::leveled::default_journal() };
    let factory = LeveledFactory::new(Arc::new(RealFs), dir, journal, LedgerConfig::default(), Arc::new(NoTerms));
    let (leveled, _) = put_all(&factory.map_err(|error| said(&error))?, puts, value_bytes)?;
    fresh()?;
    let appended = append_all(&dir.join("records"), record_bytes, puts).map_err(|error| said(&error))?;
    Ok(Round { appended, bitcask, leveled })
}

/// The puts per second, and the length of a record in bytes.
fn put_all(factory: &dyn BackendFactory, puts: u64, value_bytes: usize) -> Result<(f64, usize), String> {
    let store = factory.open(0).map_err(|error| error.to_string())?;
    let (head, value) = ([7; HEAD_BYTES], vec![b'v'; value_bytes]);
    let begun = Instant::now();
    let mut key = Vec::with_capacity(KEY_BYTES);
    for n in 0..puts {
        key.clear();
        // Writing to memory does not fail.
        let _ = write!(key, "bucket\0{n:016}");
        let write = Write {
            key: &key,
            head: &head,
            body: &[&value],
            digest: n << 1,
            tstamp_secs: 1,
            expires_secs: 0,
            has_terms: false,
        };
        store.put(&write).map_err(|error| error.to_string())?;
    }
    let rate = puts as f64 / begun.elapsed().as_secs_f64();
    let record_bytes = store.status().live_bytes / puts.max(1);
    store.close().map_err(|error| error.to_string())?;
    Ok((rate, record_bytes as usize))
}

/// The records per second of a loop that appends each record with one write call.
fn append_all(path: &Path, record_bytes: usize, puts: u64) -> std::io::Result<f64> {
    let mut file = File::create_new(path)?;
    let record = vec![b'r'; record_bytes];
    let begun = Instant::now();
    for _ in 0..puts {
        file.write_all(&record)?;
    }
    Ok(puts as f64 / begun.elapsed().as_secs_f64())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_and_the_loop_take_the_same_records() {
        let dir = std::env::temp_dir().join(format!("ombak-floor-appends-{}", std::process::id()));
        let Round { appended, bitcask, leveled } = round(&dir, 100, VALUE_BYTES[0]).unwrap();
        assert!([appended, bitcask, leveled].iter().all(|rate| *rate > 0.0));
        let length = std::fs::metadata(dir.join("records")).unwrap().len();
        assert!(length >= 100 * (KEY_BYTES + HEAD_BYTES + VALUE_BYTES[0]) as u64, "{length}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
