//! What a call of a function costs on a thread of the node, and in a process of its own.
//!
//! Three functions run in turns on a thread with an engine, as the pool had them before it had
//! processes, and in the pool: a hook that changes one field, a map function that counts words, in
//! pieces of 100 objects as jobs call it, and a reduce function that sums 1,000 numbers. The
//! figures are the medians of the rounds: microseconds for each object or list.
//!
//! `cargo run --release -p ombak-functions --example call_costs`

use ombak_functions::{FunctionPool, Lane, Owner, PoolConfig, WorkerProgram, serve};
use ombak_runtime::{TokioRuntime, begin_burst, give_way, pause_if_due};
use ombak_script::{Limits, Program, ScriptError, Session};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const WORKER: &str = "function-worker";
const ROUNDS: usize = 15;
const TIME_MAX: Duration = Duration::from_secs(60);

/// A function, what it is called with, and how often in one piece of work.
struct Case {
    name: &'static str,
    source: &'static str,
    arguments: [String; 3],
    calls: usize,
    pieces: usize,
    lane: Lane,
}

fn cases() -> [Case; 3] {
    let text = "the quick brown fox jumps over the lazy dog ".repeat(23);
    let object = format!(
        r#"{{"bucket":"b","key":"k","vclock":"a85hYGBgzGDKBVIcypz/fgaUHjmdwZTImMfKsMKK7RRfFgA=","values":[{{"metadata":{{"X-Riak-Meta":{{}},"content-type":"text/plain"}},"data":"{text}"}}]}}"#
    );
    let numbers: Vec<_> = (0..1000).map(|number: u32| number.to_string()).collect();
    [
        Case {
            name: "hook that changes a field",
            source: "function(o) { o.values[0].metadata['X-Riak-Meta']['X-Riak-Meta-Seen'] = 'yes'; return o; }",
            arguments: [object.clone(), "null".to_owned(), "null".to_owned()],
            calls: 1,
            pieces: 500,
            lane: Lane::PreCommit,
        },
        Case {
            name: "word count",
            source: "function(o) { var n = {}; o.values[0].data.split(' ').forEach(function(w) { n[w] = (n[w] || 0) + 1; \
                     }); return [n]; }",
            arguments: [object, "null".to_owned(), "null".to_owned()],
            calls: 100,
            pieces: 5,
            lane: Lane::Map,
        },
        Case {
            name: "sum of 1,000 numbers",
            source: "function(v) { return [v.reduce(function(a, b) { return a + b; }, 0)]; }",
            arguments: [format!("[{}]", numbers.join(",")), "null".to_owned(), "null".to_owned()],
            calls: 1,
            pieces: 500,
            lane: Lane::Reduce,
        },
    ]
}

/// Calls of one piece of work, and where the last result goes.
type Piece = (Arc<Case>, oneshot::Sender<Result<Option<String>, ScriptError>>);

/// A thread with an engine, which gets its work as a thread of the pool does.
fn thread_with_engine(case: &Case) -> Result<mpsc::SyncSender<Piece>, ScriptError> {
    let program = Program::source(case.source)?;
    let (give, take) = mpsc::sync_channel::<Piece>(1);
    let began = Instant::now();
    let gives_way = matches!(case.lane, Lane::Map | Lane::Reduce);
    let body = move || -> Result<(), ScriptError> {
        if gives_way {
            give_way();
        }
        let clock = move || {
            pause_if_due();
            began.elapsed()
        };
        let mut session = Session::open(program, Limits::default(), Rc::new(clock))?;
        for (case, done) in take {
            begin_burst();
            let arguments = case.arguments.each_ref().map(String::as_str);
            let mut result = Ok(None);
            for _ in 0..case.calls {
                pause_if_due();
                result = session.call(&arguments);
            }
            // Nobody has left: the caller waits for each piece.
            let _ = done.send(result);
        }
        Ok(())
    };
    let stack_bytes = Limits::default().thread_stack_bytes();
    thread::Builder::new()
        .stack_size(stack_bytes)
        .spawn(body)
        .map(|_| give)
        .map_err(|why| ScriptError::new(ombak_script::ErrorKind::Memory, format!("no thread could be started: {why}")))
}

fn median_us(mut rounds: Vec<Duration>, calls: usize) -> f64 {
    rounds.sort_unstable();
    rounds[rounds.len() / 2].as_secs_f64() * 1e6 / calls as f64
}

async fn measured(pool: &FunctionPool, case: Arc<Case>) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let function = pool.open(case.lane, Program::source(case.source)?);
    let thread = thread_with_engine(&case)?;
    let owner = Owner::new("the measurement");
    let (mut on_thread, mut in_process) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let began = Instant::now();
        for _ in 0..case.pieces {
            let (give, take) = oneshot::channel();
            thread.send((case.clone(), give)).map_err(|_| "the thread has ended")?;
            take.await??;
        }
        let thread_time = began.elapsed();
        let began = Instant::now();
        for _ in 0..case.pieces {
            let case = case.clone();
            let deadline = Instant::now() + TIME_MAX;
            let work = move |calls: &mut ombak_functions::Calls<'_>| {
                let [object, key_data, arg] = case.arguments.each_ref().map(String::as_str);
                match case.calls {
                    1 => calls.call(&[object, key_data, arg]).map(drop),
                    many => calls
                        .map_each(&vec![(object, key_data); many], arg, deadline)
                        .into_iter()
                        .try_for_each(|result| result.map(drop)),
                }
            };
            function.run(&owner, deadline, work).await??;
        }
        // The first round starts what is needed.
        if round > 0 {
            on_thread.push(thread_time);
            in_process.push(began.elapsed());
        }
    }
    let calls = case.calls * case.pieces;
    Ok((median_us(on_thread, calls), median_us(in_process, calls)))
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|word| word == WORKER) {
        return serve();
    }
    let done = tokio::runtime::Runtime::new().map_err(Into::into).and_then(|runtime| {
        runtime.block_on(async {
            let program = WorkerProgram::this(&[WORKER])?;
            let pool = FunctionPool::new(Arc::new(TokioRuntime), PoolConfig::default(), program);
            println!("{:<28} {:>12} {:>12}", "us", "thread", "process");
            for case in cases() {
                let case = Arc::new(case);
                let (thread, process) = measured(&pool, case.clone()).await?;
                println!("{:<28} {thread:>12.1} {process:>12.1}", case.name);
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
