//! The client: one thread with the given number of connections. Each connection sends a request,
//! waits for the answer, checks it, and sends the next request.

use crate::cpu;
use crate::server::Server;
use crate::workload::{KEYS, Op, Request};
use std::io;
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
    /// The time that was measured.
    pub elapsed: Duration,
    /// Processor time of the server's process in that time.
    pub server_cpu: Duration,
}

/// Writes every key once.
pub fn fill(server: &Server) -> Result<(), String> {
    let filled = runtime(server)?.block_on(async {
        let mut connection = Connection::open(server, Op::Put).await?;
        for n in 0..KEYS {
            connection.exchange(n).await?;
        }
        Ok(())
    });
    filled.map_err(|e: io::Error| format!("{}: {e}", server.name))
}

/// Measures one operation over a number of connections.
pub fn run(server: &Server, op: Op, connections: usize, duration: Duration) -> Result<Outcome, String> {
    let outcome = runtime(server)?.block_on(measure(server, op, connections, duration));
    outcome.map_err(|e| format!("{}, {op}, {connections} connections: {e}", server.name))
}

fn runtime(server: &Server) -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| format!("{}: {e}", server.name))
}

async fn measure(server: &Server, op: Op, connections: usize, duration: Duration) -> io::Result<Outcome> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(Connection::open(server, op).await?);
    }
    let from = Instant::now() + WARM_UP;
    let to = from + duration;
    let mut clients: JoinSet<_> = open.into_iter().zip(1..).map(|(c, seed)| c.ask_until(from, to, seed)).collect();

    tokio::time::sleep_until(from.into()).await;
    let (started, cpu_before) = (Instant::now(), cpu::used(server.pid())?);
    tokio::time::sleep_until(to.into()).await;
    let (elapsed, cpu_after) = (started.elapsed(), cpu::used(server.pid())?);

    let mut latencies_ns = Vec::new();
    while let Some(latencies) = clients.join_next().await {
        latencies_ns.extend(latencies??);
    }
    Ok(Outcome { latencies_ns, elapsed, server_cpu: cpu_after.saturating_sub(cpu_before) })
}

struct Connection {
    stream: TcpStream,
    request: Request,
    answer: Vec<u8>,
}

impl Connection {
    async fn open(server: &Server, op: Op) -> io::Result<Self> {
        let stream = TcpStream::connect(server.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, request: Request::new(server.protocol, op), answer: Vec::with_capacity(4096) })
    }

    async fn exchange(&mut self, key: u64) -> io::Result<()> {
        self.stream.write_all(self.request.for_key(key)).await?;
        self.answer.clear();
        while self.request.answer_bytes(&self.answer).is_none_or(|bytes| self.answer.len() < bytes) {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(io::Error::other("the server closed a connection"));
            }
        }
        if self.request.is_answer(&self.answer) {
            return Ok(());
        }
        let start = &self.answer[..self.answer.len().min(120)];
        Err(io::Error::other(format!("a wrong answer: {}", start.escape_ascii())))
    }

    /// Requests random keys until `to`. Returns the latencies of the requests that began at `from`
    /// or later.
    async fn ask_until(mut self, from: Instant, to: Instant, seed: u64) -> io::Result<Vec<u32>> {
        let (mut latencies_ns, mut random) = (Vec::new(), seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut asked = Instant::now();
        while asked < to {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            self.exchange(random % KEYS).await?;
            let answered = Instant::now();
            if asked >= from && answered <= to {
                latencies_ns.push(u32::try_from((answered - asked).as_nanos()).unwrap_or(u32::MAX));
            }
            asked = answered;
        }
        Ok(latencies_ns)
    }
}
