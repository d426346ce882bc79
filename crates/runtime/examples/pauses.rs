//! Measures how long threads that serve others wait for a processor beside threads that give way.
//!
//! Usage: `cargo run --release -p ombak-runtime --example pauses [SECONDS]`.
//!
//! Three pairs of threads stand for connections. One thread of a pair sends the time to the other
//! about a thousand times a second, and both work for a fraction of a millisecond for each message.
//! Beside them six threads that give way work all the time: two for each of three nodes that share
//! the machine. They work without pauses, and with pauses (`ombak_runtime::pause_if_due`). The
//! parts run in turns of SECONDS (5) three times. A figure is the median of its three turns.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a measurement")]

use ombak_runtime::{Runtime, TokioRuntime, pause_if_due};
use std::hint::black_box;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PAIRS: u64 = 3;
const BACKGROUND_THREADS: usize = 6;
const TURNS: usize = 3;
const SENT_EVERY: Duration = Duration::from_micros(700);
const WORK_OF_SENDER: Duration = Duration::from_micros(80);
const WORK_OF_RECEIVER: Duration = Duration::from_micros(150);
const STEP: Duration = Duration::from_micros(3);

/// What is beside the pairs.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    Work { pauses: bool },
}

/// The figures of one turn.
struct Turn {
    /// How long messages took, in order.
    took: Vec<Duration>,
    /// How many steps the threads that give way did in a second.
    steps_per_s: f64,
}

fn work(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        black_box(());
    }
}

/// Sends messages until the time is over, and returns how long each took.
fn pair(number: u64, until: Instant) -> Vec<Duration> {
    let (from, to) = UnixDatagram::pair().unwrap();
    let began = Instant::now();
    let receiver = thread::spawn(move || {
        let (mut took, mut message) = (Vec::new(), [0; 8]);
        while to.recv(&mut message).unwrap() == message.len() {
            took.push(began.elapsed().saturating_sub(Duration::from_nanos(u64::from_le_bytes(message))));
            work(WORK_OF_RECEIVER);
        }
        took
    });
    let mut state = number;
    while Instant::now() < until {
        // The pairs must not run in step.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        thread::sleep(SENT_EVERY.mul_f64(0.5 + (state >> 33) as f64 / f64::from(1_u32 << 31)));
        work(WORK_OF_SENDER);
        from.send(&(began.elapsed().as_nanos() as u64).to_le_bytes()).unwrap();
    }
    from.send(&[]).unwrap();
    receiver.join().unwrap()
}

fn turn(beside: Beside, time: Duration) -> Turn {
    let (is_over, steps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let background = match beside {
        Beside::Nothing => None,
        Beside::Work { pauses } => {
            let threads = TokioRuntime.start_background_threads("background", BACKGROUND_THREADS).unwrap();
            for _ in 0..BACKGROUND_THREADS {
                let (is_over, steps) = (is_over.clone(), steps.clone());
                threads.spawn(Box::pin(async move {
                    while !is_over.load(Ordering::Relaxed) {
                        work(STEP);
                        steps.fetch_add(1, Ordering::Relaxed);
                        if pauses {
                            pause_if_due();
                        }
                    }
                }));
            }
            Some(threads)
        }
    };
    let until = Instant::now() + time;
    let pairs: Vec<_> = (0..PAIRS).map(|number| thread::spawn(move || pair(number, until))).collect();
    let mut took: Vec<Duration> = pairs.into_iter().flat_map(|pair| pair.join().unwrap()).collect();
    is_over.store(true, Ordering::Relaxed);
    drop(background);
    took.sort();
    Turn { took, steps_per_s: steps.load(Ordering::Relaxed) as f64 / time.as_secs_f64() }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(5, |seconds| seconds.parse().unwrap());
    let parts = [
        ("nothing beside", Beside::Nothing),
        ("work without pauses", Beside::Work { pauses: false }),
        ("work with pauses", Beside::Work { pauses: true }),
    ];
    let mut turns: Vec<Vec<Turn>> = parts.iter().map(|_| Vec::new()).collect();
    for _ in 0..TURNS {
        for ((_, beside), turns) in parts.iter().zip(&mut turns) {
            turns.push(turn(*beside, Duration::from_secs(seconds)));
        }
    }
    println!("| | p50 µs | p99 µs | p99.9 µs | steps/s |\n| --- | ---: | ---: | ---: | ---: |");
    for ((name, _), turns) in parts.iter().zip(&turns) {
        let at = |share: f64| {
            let of = |turn: &Turn| turn.took[(turn.took.len() as f64 * share) as usize].as_secs_f64() * 1e6;
            median(turns.iter().map(of).collect())
        };
        let steps = median(turns.iter().map(|turn| turn.steps_per_s).collect());
        println!("| {name} | {:.0} | {:.0} | {:.0} | {steps:.0} |", at(0.5), at(0.99), at(0.999));
    }
}
