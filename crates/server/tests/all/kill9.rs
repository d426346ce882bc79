//! Kills a node with `kill -9` under load, at random moments. No acknowledged write may be lost,
//! with or without syncs.
//!
//! The seed is printed. OMBAK_TEST_SEED repeats its choices, but the moments of the kills depend on
//! the machine.

use crate::support;
use crate::support::Home;
use ombak_client::Client;
use ombak_client::messages::RpbContent;
use ombak_types::Bucket;
use std::collections::BTreeMap;
use std::time::Duration;

const KILLS: u32 = 100;
const WRITERS: u64 = 4;
/// The number of keys that a writer overwrites and deletes again and again. A writer also creates
/// new keys.
const HOT_KEYS: u64 = 12;
const LOAD_MS_MAX: u64 = 40;
/// Of this many kills, one happens while the node starts.
const KILLED_AT_START_EVERY: u32 = 10;

/// The random generator xorshift64*. It is good enough for these choices and gives the same numbers
/// on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

/// What a key may hold. `None` means that the key does not exist.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    acknowledged: Option<u64>,
    /// A write or delete that was not answered. It may or may not have happened.
    in_doubt: Option<Option<u64>>,
}

type Model = BTreeMap<String, Known>;

/// Writes over one connection until the connection breaks. Every value is a number that is never
/// used twice.
async fn write(pb: String, mut random: Random, writer: u64, mut next: u64, mut model: Model) -> (u64, Model) {
    let Ok(mut client) = Client::connect(pb).await else { return (next, model) };
    let bucket = Bucket::untyped("load");
    loop {
        next += 1;
        let fresh = random.below(4) == 0;
        let key = if fresh { format!("{writer}-new-{next}") } else { format!("{writer}-{}", random.below(HOT_KEYS)) };
        let value = (fresh || random.below(8) > 0).then_some(next);
        let known = model.entry(key.clone()).or_insert(Known { acknowledged: None, in_doubt: None });
        known.in_doubt = Some(value);
        let done = match value {
            Some(n) => {
                // The filler makes records of different lengths, so that writes are torn at
                // different places.
                let text = format!("{n} {}", "x".repeat(random.below(2000) as usize));
                let content = RpbContent { value: text.into(), ..RpbContent::default() };
                client.put(&bucket, Some(key.as_bytes()), content, None).await.map(drop)
            }
            None => client.delete(&bucket, key.as_bytes(), None).await,
        };
        match done {
            Ok(()) => *known = Known { acknowledged: value, in_doubt: None },
            Err(ombak_client::ClientError::Server(text)) => panic!("a write was refused: {text}"),
            Err(_) => return (next, model),
        }
    }
}

/// Reads every key and settles what was in doubt.
async fn verify(pb: &str, model: &mut Model, everything: bool) {
    let mut client = Client::connect(pb).await.expect("connects");
    let bucket = Bucket::untyped("load");
    for (key, known) in model.iter_mut() {
        if !everything && known.in_doubt.is_none() && key.contains("new") {
            continue;
        }
        let found = client.get(&bucket, key.as_bytes()).await.expect("reads");
        let holds = found.map(|found| {
            let text = String::from_utf8_lossy(&found.siblings[0].value).into_owned();
            text.split(' ').next().and_then(|n| n.parse::<u64>().ok()).expect("a number that was written")
        });
        let expected = holds == known.acknowledged || known.in_doubt == Some(holds);
        assert!(
            expected,
            "{key} holds {holds:?}; acknowledged {:?}, in doubt {:?}",
            known.acknowledged, known.in_doubt
        );
        *known = Known { acknowledged: holds, in_doubt: None };
    }
}

/// How many times more rounds to run than in `make test`. `make soak` sets it.
fn soak_rounds() -> u32 {
    std::env::var("OMBAK_SOAK_ROUNDS").map_or(1, |rounds| rounds.parse().expect("OMBAK_SOAK_ROUNDS is a number"))
}

fn killed_again_and_again(name: &str, settings: &str) {
    let mut seed = [0u8; 8];
    getrandom::fill(&mut seed).expect("random");
    let seed = std::env::var("OMBAK_TEST_SEED").map_or(u64::from_le_bytes(seed), |s| s.parse().expect("a number")) | 1;
    println!("{name}: OMBAK_TEST_SEED={seed}");
    let home = Home::new(settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let mut random = Random(seed);
    let mut models: Vec<(u64, Model)> = (0..WRITERS).map(|_| (0, Model::new())).collect();
    let kills = KILLS * soak_rounds();
    for kill in 0..kills {
        if kill % KILLED_AT_START_EVERY == KILLED_AT_START_EVERY - 1 {
            kill_while_starting(&home, random.below(LOAD_MS_MAX));
        }
        let node = home.start();
        models = runtime.block_on(async {
            for (_, model) in &mut models {
                verify(&node.pb, model, false).await;
            }
            let writers: Vec<_> = std::mem::take(&mut models)
                .into_iter()
                .zip(1..)
                .map(|((next, model), writer)| {
                    let random = Random(random.below(u64::MAX >> 1) | 1);
                    tokio::spawn(write(node.pb.clone(), random, writer, next, model))
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(random.below(LOAD_MS_MAX))).await;
            node.kill();
            let mut back = Vec::new();
            for writer in writers {
                back.push(writer.await.expect("a writer does not panic"));
            }
            back
        });
    }
    let node = home.start();
    let keys: usize = models.iter().map(|(_, model)| model.len()).sum();
    let writes: u64 = models.iter().map(|(next, _)| next).sum();
    println!("{name}: {kills} kills, {writes} writes, {keys} keys");
    assert!(writes > u64::from(kills), "there was no load");
    runtime.block_on(async {
        for (_, model) in &mut models {
            verify(&node.pb, model, true).await;
        }
    });
    node.stop();
    home.assert_no_errors_logged();
}

fn kill_while_starting(home: &Home, after_ms: u64) {
    let mut command = home.start_command();
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("spawns");
    support::pause(Duration::from_millis(after_ms));
    child.kill().expect("kills");
    child.wait().expect("waits");
}

/// The same test over backends with ledgers. The ledgers are small, so that they are written,
/// compacted and torn during the test.
#[test]
fn nothing_acknowledged_is_lost_by_backends_with_ledgers() {
    for (name, settings) in [
        ("leveled", "storage_backend = leveled\nleveled.journal_size = 256KB\nleveled.penciller_memory = 1MB"),
        ("leveldb", "storage_backend = leveldb\nleveldb.maximum_memory = 16MB\nleveldb.write_buffer_size_max = 64KB"),
    ] {
        killed_again_and_again(name, settings);
    }
}

/// The scenario of riak_test `verify_kv1356`: values survive a `kill -9`.
#[test]
fn verify_kv1356_nothing_acknowledged_is_lost_without_syncs() {
    killed_again_and_again("sync none", "bitcask.sync.strategy = none\nbitcask.max_file_size = 512KB");
}

#[test]
fn nothing_acknowledged_is_lost_with_syncs() {
    killed_again_and_again("sync o_sync", "bitcask.sync.strategy = o_sync\nbitcask.max_file_size = 512KB");
}
