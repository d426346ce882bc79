//! Small servers on real sockets, and helpers for the tests of the drivers.

use super::{Outcome, Plan, Worker};
use crate::config::{ConfigError, Operation, Settings};
use crate::generators::{Draw, Generators, KeySpec, Place, PoolSettings, ValueSpec};
use crate::term::Term;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a server does with a request.
pub enum Action {
    /// Sends this answer.
    Answer(Vec<u8>),
    /// Sends this answer a few bytes at a time.
    Slowly(Vec<u8>),
    /// Sends these bytes, which may be empty, and closes the connection.
    Close(Vec<u8>),
    /// Does nothing.
    Silence,
}

/// A received request: code and body for Protocol Buffers, all bytes for HTTP and Redis.
pub type Request = Vec<u8>;

/// A server on a port of its own, with the requests that it has received.
pub struct Server {
    pub port: u16,
    pub requests: Arc<Mutex<Vec<Request>>>,
    pub connections: Arc<Mutex<usize>>,
}

type Handler = Arc<Mutex<dyn FnMut(usize, &[u8]) -> Action + Send>>;

/// Returns the length of the first request in a buffer; `None` if it is not complete.
type Cut = fn(&[u8]) -> Option<usize>;

impl Server {
    /// Starts a server that speaks Protocol Buffers. The handler gets the number of earlier
    /// requests, and the code and body of this one.
    pub async fn pb(handler: impl FnMut(usize, &[u8]) -> Action + Send + 'static) -> Self {
        Self::start(Arc::new(Mutex::new(handler)), cut_frame, 4).await
    }

    /// Starts a server that speaks HTTP. The handler gets the number of earlier requests, and the
    /// head and body of this one.
    pub async fn http(handler: impl FnMut(usize, &[u8]) -> Action + Send + 'static) -> Self {
        Self::start(Arc::new(Mutex::new(handler)), cut_http, 0).await
    }

    /// Starts a server that speaks the Redis protocol. The handler gets the number of earlier
    /// requests, and this one as a whole.
    pub async fn redis(handler: impl FnMut(usize, &[u8]) -> Action + Send + 'static) -> Self {
        Self::start(Arc::new(Mutex::new(handler)), cut_command, 0).await
    }

    async fn start(handler: Handler, cut: Cut, skip: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let server = Self { port, requests: requests.clone(), connections: connections.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *connections.lock().unwrap() += 1;
                tokio::spawn(serve(stream, handler.clone(), cut, skip, requests.clone()));
            }
        });
        server
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

async fn serve(mut stream: TcpStream, handler: Handler, cut: Cut, skip: usize, seen: Arc<Mutex<Vec<Request>>>) {
    let mut buffer = Vec::new();
    loop {
        while let Some(bytes) = cut(&buffer) {
            let request: Vec<u8> = buffer.drain(..bytes).skip(skip).collect();
            let action = {
                let mut seen = seen.lock().unwrap();
                let before = seen.len();
                seen.push(request.clone());
                (handler.lock().unwrap())(before, &request)
            };
            match action {
                Action::Answer(answer) => stream.write_all(&answer).await.unwrap_or_default(),
                Action::Slowly(answer) => {
                    for part in answer.chunks(3) {
                        stream.write_all(part).await.unwrap_or_default();
                        tokio::task::yield_now().await;
                    }
                }
                Action::Close(answer) => return stream.write_all(&answer).await.unwrap_or_default(),
                Action::Silence => {}
            }
        }
        if !matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {
            return;
        }
    }
}

fn cut_frame(buffer: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(*buffer.first_chunk::<4>()?) as usize;
    (buffer.len() >= 4 + length).then_some(4 + length)
}

fn cut_http(buffer: &[u8]) -> Option<usize> {
    let head = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    (buffer.len() >= head + length).then_some(head + length)
}

/// Finds the end of a command such as `*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`.
fn cut_command(buffer: &[u8]) -> Option<usize> {
    let number = |at: usize| {
        let end = at + buffer.get(at..)?.windows(2).position(|window| window == b"\r\n")?;
        let digits = std::str::from_utf8(buffer.get(at + 1..end)?).unwrap();
        Some((digits.parse::<usize>().unwrap(), end + 2))
    };
    let (parts, mut at) = number(0)?;
    for _ in 0..parts {
        let (bytes, start) = number(at)?;
        at = start + bytes + 2;
    }
    (buffer.len() >= at).then_some(at)
}

/// A frame with this code and body.
pub fn frame(code: u8, body: &[u8]) -> Vec<u8> {
    let mut out = (body.len() as u32 + 1).to_be_bytes().to_vec();
    out.push(code);
    out.extend_from_slice(body);
    out
}

/// A frame with this message.
pub fn message<M: prost::Message>(code: u8, message: &M) -> Vec<u8> {
    frame(code, &message.encode_to_vec())
}

/// A frame with an error message.
pub fn error(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    ombak_proto::reply::write_error(text.to_owned(), &mut out);
    out
}

/// An HTTP answer.
pub fn http(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Text\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The settings of a configuration text.
pub fn settings(text: &str) -> Settings {
    Settings::from_text("test.config", text).unwrap()
}

/// Operations with these terms.
pub fn operations(terms: &[&str]) -> Vec<Operation> {
    let one = |text: &&str| Operation { label: (*text).to_owned(), term: Term::parse(text).unwrap(), weight: 1 };
    terms.iter().map(one).collect()
}

/// Creates a plan, as a run does.
pub fn plan(driver: &str, text: &str, terms: &[&str]) -> Result<Plan, ConfigError> {
    Plan::new(driver, &settings(text), &operations(terms))
}

/// Creates a worker's draw from these generators.
pub fn draw(keys: &str, values: &str) -> Draw {
    draw_of(keys, values, 1)
}

/// Creates the draw of this worker from these generators.
pub fn draw_of(keys: &str, values: &str, worker: usize) -> Draw {
    let (keys, values) = (Term::parse(keys).unwrap(), Term::parse(values).unwrap());
    let pools = PoolSettings { source_bytes: 1 << 16, ..PoolSettings::new([1, 2, 3]) };
    let (keys, values) = (KeySpec::parse(&keys).unwrap(), ValueSpec::parse(&values).unwrap());
    let place = Place { worker, concurrent: worker, seed: [1, 2, 3] };
    Generators::new(&keys, &values, &pools).unwrap().draw(place).unwrap()
}

/// Runs an operation until it ends. Returns its outcome and the number of retries.
pub async fn run(worker: &mut Worker, operation: usize, draw: &mut Draw) -> (Outcome, usize) {
    let mut retries = 0;
    loop {
        match worker.run(operation, draw).await {
            Outcome::Retry(reason) => {
                assert_eq!(reason, "disconnected");
                retries += 1;
                assert!(retries < 100, "tried again and again");
            }
            outcome => return (outcome, retries),
        }
    }
}
