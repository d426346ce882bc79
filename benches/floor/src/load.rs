//! The client: one thread with the given number of connections. Each connection sends a request,
//! waits for the answer, checks it, and sends the next request.

use crate::target::Target;
use crate::workload::{KEYS, Op, Request};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Requests in this time are not counted, because connections, caches and processor clocks are
/// still cold.
const WARM_UP: Duration = Duration::from_millis(200);

/// The result of one measurement.
pub struct Outcome {
    /// Latencies of the requests that were answered, in nanoseconds (at most about 4 s).
    pub latencies_ns: Vec<u32>,
    /// Requests that were refused with an error. Only a load that counts errors goes on after one.
    pub errors: u64,
    /// The time that was measured.
    pub elapsed: Duration,
    /// Processor time of all processes of the server in that time.
    pub server_cpu: Duration,
}

/// Writes every key once.
pub fn fill(target: &Target) -> Result<(), String> {
    let filled = runtime(target)?.block_on(async {
        let mut connection = Connection::open(target.address(0), target, &[Op::Put]).await?;
        for n in 0..KEYS {
            connection.exchange(n, 0).await?;
        }
        Ok(())
    });
    filled.map_err(|e: io::Error| format!("{}: {e}", target.name))
}

/// The requests of one measurement.
#[derive(Clone, Copy)]
pub struct Requests<'a> {
    /// Each request is one of these, at random.
    pub ops: &'a [Op],
    pub connections: usize,
    pub duration: Duration,
    /// Requests per second over all connections. Without a rate each connection asks again as soon
    /// as it has an answer.
    pub rate: Option<f64>,
    /// Whether requests that are refused count as errors. Otherwise the first one ends the load.
    pub counts_errors: bool,
}

/// Measures requests over a number of connections.
pub fn run(target: &Target, requests: Requests<'_>) -> Result<Outcome, String> {
    let outcome = runtime(target)?.block_on(measure(target, requests));
    outcome.map_err(|e| format!("{}, {:?}, {} connections: {e}", target.name, requests.ops, requests.connections))
}

fn runtime(target: &Target) -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| format!("{}: {e}", target.name))
}

async fn measure(target: &Target, requests: Requests<'_>) -> io::Result<Outcome> {
    let Requests { ops, connections, duration, rate, counts_errors } = requests;
    let interval = rate.map(|rate| Duration::from_secs_f64(connections as f64 / rate));
    let pace = Pace { interval, counts_errors };
    let mut open = Vec::with_capacity(connections);
    for number in 0..connections {
        open.push((Connection::open(target.address(number), target, ops).await?, target.keys_of(number)));
    }
    let from = Instant::now() + WARM_UP;
    let to = from + duration;
    let mut clients: JoinSet<_> =
        open.into_iter().zip(1..).map(|((c, keys), seed)| c.ask_until(keys, (from, to), seed, pace)).collect();

    tokio::time::sleep_until(from.into()).await;
    let (started, cpu_before) = (Instant::now(), target.cpu()?);
    tokio::time::sleep_until(to.into()).await;
    let (elapsed, cpu_after) = (started.elapsed(), target.cpu()?);

    let (mut latencies_ns, mut errors) = (Vec::new(), 0);
    while let Some(client) = clients.join_next().await {
        let (latencies, refused) = client??;
        latencies_ns.extend(latencies);
        errors += refused;
    }
    Ok(Outcome { latencies_ns, errors, elapsed, server_cpu: cpu_after.saturating_sub(cpu_before) })
}

/// How a connection asks.
#[derive(Clone, Copy)]
struct Pace {
    /// The time between two requests, unless the next one follows the answer.
    interval: Option<Duration>,
    counts_errors: bool,
}

struct Connection {
    stream: TcpStream,
    /// One for each operation.
    requests: Vec<Request>,
    answer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr, target: &Target, ops: &[Op]) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let requests = ops.iter().map(|&op| Request::new(target.protocol, op)).collect();
        Ok(Self { stream, requests, answer: Vec::with_capacity(4096) })
    }

    /// Sends the request of the operation with this position, and waits for its answer.
    async fn exchange(&mut self, key: u64, op: usize) -> io::Result<()> {
        let request = &mut self.requests[op];
        self.stream.write_all(request.for_key(key)).await?;
        self.answer.clear();
        while request.answer_bytes(&self.answer).is_none_or(|bytes| self.answer.len() < bytes) {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(io::Error::other("the server closed a connection"));
            }
        }
        if request.is_answer(&self.answer) {
            return Ok(());
        }
        let start = &self.answer[..self.answer.len().min(120)];
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("a wrong answer: {}", start.escape_ascii())))
    }

    /// Requests random ones of the keys until the end. Returns the latencies of the requests that
    /// began in the given time, and the number of refused ones.
    ///
    /// With an interval, a request that has to wait for the one before it counts from the time at
    /// which it should have begun, so that a stall delays all requests that fall into it.
    async fn ask_until(
        mut self,
        keys: Arc<[u64]>,
        (from, to): (Instant, Instant),
        seed: u64,
        Pace { interval, counts_errors }: Pace,
    ) -> io::Result<(Vec<u32>, u64)> {
        let (mut latencies_ns, mut errors) = (Vec::new(), 0);
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut asked = Instant::now();
        let mut due = asked;
        while asked < to {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (key, op) = ((random >> 8) % keys.len() as u64, random as u8 as usize % self.requests.len());
            match self.exchange(keys[key as usize], op).await {
                Err(error) if !counts_errors || error.kind() != io::ErrorKind::InvalidData => return Err(error),
                Err(_) => errors += 1,
                Ok(()) => {}
            }
            let answered = Instant::now();
            if asked >= from && (answered <= to || interval.is_some()) {
                latencies_ns.push(u32::try_from((answered - asked).as_nanos()).unwrap_or(u32::MAX));
            }
            asked = answered;
            if let Some(interval) = interval {
                due += interval;
                asked = due;
                if due > answered {
                    tokio::time::sleep_until(due.into()).await;
                    asked = Instant::now();
                }
            }
        }
        Ok((latencies_ns, errors))
    }
}
