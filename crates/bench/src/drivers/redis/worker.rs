//! One worker of the Redis driver, with a connection that is reopened after it was lost. The worker
//! blocks its thread while it waits, so the driver asks for one thread per worker.
//!
//! Invariant: an answer belongs to the last request. The connection is closed after every failure,
//! except an error message of the server, which is an answer.

use super::plan::open;
use crate::config::ConfigError;
use crate::drivers::network::{Backoff, ExchangeError, Reasons, Target};
use crate::drivers::{DONE, Outcome};
use crate::generators::Draw;
use crate::term::Term;
use redis::{Cmd, Connection, ConnectionLike, Value};
use tokio::time::sleep;

/// The operations of the Redis driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedisOperation {
    Get,
    Put,
    Delete,
}

impl RedisOperation {
    pub(super) fn parse(term: &Term) -> Result<Self, ConfigError> {
        match term {
            Term::Atom(name) if name == "get" => Ok(Self::Get),
            Term::Atom(name) if name == "put" || name == "set" => Ok(Self::Put),
            Term::Atom(name) if name == "delete" => Ok(Self::Delete),
            other => Err(ConfigError::setting(
                "operations",
                format!("the Redis driver does not support {other}; it supports get, put and delete"),
            )),
        }
    }

    /// Judges an answer.
    fn judge(self, answer: &Value) -> Outcome {
        let expected = match self {
            Self::Put => *answer == Value::Okay,
            Self::Get => matches!(answer, Value::BulkString(_) | Value::Nil),
            Self::Delete => matches!(answer, Value::Int(_)),
        };
        if expected { DONE } else { ExchangeError::answer("an answer of another kind").outcome() }
    }
}

/// One worker with its connection to Redis.
pub struct RedisWorker {
    target: Target,
    connection: Option<Connection>,
    backoff: Backoff,
    operations: Vec<RedisOperation>,
    reasons: Reasons,
    /// The command from which `request` is made. Its memory is reused.
    command: Cmd,
    /// The last request, as it is sent.
    request: Vec<u8>,
    /// Whether the connection was lost before the last request was answered.
    unanswered: bool,
}

impl std::fmt::Debug for RedisWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { target, operations, unanswered, .. } = self;
        f.debug_struct("RedisWorker")
            .field("target", target)
            .field("operations", operations)
            .field("unanswered", unanswered)
            .finish_non_exhaustive()
    }
}

impl RedisWorker {
    pub(super) fn new(
        target: &Target,
        connection: Connection,
        operations: &[RedisOperation],
        reasons: &Reasons,
    ) -> Self {
        Self {
            target: target.clone(),
            connection: Some(connection),
            backoff: Backoff::default(),
            operations: operations.to_vec(),
            reasons: reasons.clone(),
            command: Cmd::new(),
            request: Vec::new(),
            unanswered: false,
        }
    }

    pub(in crate::drivers) async fn run(&mut self, operation: usize, draw: &mut Draw) -> Outcome {
        let Some(operation) = self.operations.get(operation).copied() else { return Outcome::Stop };
        if !self.unanswered && self.write(operation, draw).is_none() {
            return Outcome::Stop;
        }
        let answer = self.exchange().await;
        self.unanswered = answer == Err(ExchangeError::Disconnected);
        answer.map_or_else(ExchangeError::outcome, |value| operation.judge(&value))
    }

    /// Writes the request. `None` if the key generator has ended.
    fn write(&mut self, operation: RedisOperation, draw: &mut Draw) -> Option<()> {
        self.command.clear();
        match operation {
            RedisOperation::Get => self.command.arg("GET").arg(draw.key().ok()?),
            RedisOperation::Delete => self.command.arg("DEL").arg(draw.key().ok()?),
            RedisOperation::Put => {
                let (key, value) = draw.pair().ok()?;
                self.command.arg("SET").arg(key).arg(value)
            }
        };
        self.request.clear();
        self.command.write_packed_command(&mut self.request);
        Some(())
    }

    /// Sends the request and waits for its answer, over a new connection if there is none. After
    /// [`ExchangeError::Disconnected`] this may be called again, which sends the request again.
    async fn exchange(&mut self) -> Result<Value, ExchangeError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            closed => {
                sleep(self.backoff.pause()).await;
                closed.insert(open(&self.target).map_err(|_| ExchangeError::Disconnected)?)
            }
        };
        match connection.req_packed_command(&self.request) {
            Ok(answer) => {
                self.backoff.worked();
                match answer {
                    Value::ServerError(why) => Err(ExchangeError::Answer(self.reasons.of(why.to_string().as_bytes()))),
                    value => Ok(value),
                }
            }
            Err(error) => {
                self.connection = None;
                Err(match error {
                    error if error.is_timeout() => ExchangeError::Timeout,
                    error if error.is_io_error() => ExchangeError::Disconnected,
                    _ => ExchangeError::answer("an answer that is none of Redis"),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::drivers::testing::{Action, Server, draw, plan, run};
    use crate::drivers::{DONE, Outcome, Worker};

    const OPERATIONS: [&str; 3] = ["put", "get", "delete"];

    /// A worker for tests. The test needs `flavor = "multi_thread"`, because the worker blocks its
    /// thread while the server runs on another one.
    async fn worker(server: &Server) -> Worker {
        let settings = format!("{{redis_port, {}}}.", server.port);
        plan("basho_bench_driver_redis", &settings, &OPERATIONS).unwrap().connect(1).await.unwrap()
    }

    /// A server that answers what a client says about itself, and passes everything else to
    /// `handler` with the number of such requests before.
    async fn redis(mut handler: impl FnMut(usize, &[u8]) -> Action + Send + 'static) -> Server {
        let mut requests = 0;
        Server::redis(move |_, request| {
            if is_introduction(request) {
                return Action::Answer(b"+OK\r\n".to_vec());
            }
            requests += 1;
            handler(requests - 1, request)
        })
        .await
    }

    fn is_introduction(request: &[u8]) -> bool {
        request.windows(6).any(|window| window == b"CLIENT")
    }

    /// The requests without those in which the client introduces itself, with spaces instead of
    /// line ends.
    fn requests(server: &Server) -> Vec<String> {
        let text = |request: Vec<u8>| String::from_utf8(request).unwrap().replace("\r\n", " ");
        server.requests().into_iter().filter(|request| !is_introduction(request)).map(text).collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn requests_are_those_of_redis() {
        let answers = ["+OK\r\n", "$1\r\nv\r\n", "$-1\r\n", ":1\r\n", ":1\r\n"];
        let server = redis(move |n, _| Action::Answer(answers[n].into())).await;
        let (mut worker, mut draw) =
            (worker(&server).await, draw("{int_to_str, {sequential_int, 9}}", "{fixed_bin, 3, 65}"));
        for operation in [0, 1, 1, 2] {
            assert_eq!(run(&mut worker, operation, &mut draw).await, (DONE, 0));
        }
        let unexpected = Outcome::Failed("an answer of another kind".into());
        assert_eq!(run(&mut worker, 0, &mut draw).await, (unexpected, 0));
        let expected = [
            "*3 $3 SET $1 0 $3 AAA ",
            "*2 $3 GET $1 1 ",
            "*2 $3 GET $1 2 ",
            "*2 $3 DEL $1 3 ",
            "*3 $3 SET $1 4 $3 AAA ",
        ];
        assert_eq!((requests(&server), server.connections()), (expected.map(String::from).to_vec(), 1));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_connection_that_broke_is_opened_again_and_the_request_sent_again() {
        let server = redis(|n, _| match n {
            0 => Action::Answer(b"+OK\r\n".to_vec()),
            1 => Action::Close(Vec::new()),
            2 => Action::Close(b"+O".to_vec()),
            _ => Action::Answer(b"+OK\r\n".to_vec()),
        })
        .await;
        let (mut worker, mut draw) =
            (worker(&server).await, draw("{int_to_str, {sequential_int, 9}}", "{fixed_bin, 3, 65}"));
        assert_eq!(run(&mut worker, 0, &mut draw).await, (DONE, 0));
        assert_eq!(run(&mut worker, 0, &mut draw).await, (DONE, 2));
        assert_eq!(run(&mut worker, 0, &mut draw).await, (DONE, 0));
        let requests = requests(&server);
        assert!(requests[1] == requests[2] && requests[2] == requests[3], "{requests:?}");
        assert!(requests[0] != requests[1] && requests[3] != requests[4], "{requests:?}");
        assert_eq!(server.connections(), 3);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn an_error_of_the_server_leaves_the_connection() {
        let server = redis(|n, _| Action::Answer(if n == 0 { "-OOM no memory\r\n" } else { "$-1\r\n" }.into())).await;
        let (mut worker, mut draw) =
            (worker(&server).await, draw("{int_to_str, {sequential_int, 9}}", "{fixed_bin, 3, 65}"));
        let (outcome, retries) = run(&mut worker, 0, &mut draw).await;
        assert!(matches!(&outcome, Outcome::Failed(why) if why.contains("no memory")) && retries == 0, "{outcome:?}");
        assert_eq!(run(&mut worker, 1, &mut draw).await, (DONE, 0));
        assert_eq!(server.connections(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn an_answer_that_cannot_be_read_costs_the_connection() {
        let server = redis(|n, _| Action::Answer(if n == 0 { "what?\r\n" } else { "$-1\r\n" }.into())).await;
        let (mut worker, mut draw) =
            (worker(&server).await, draw("{int_to_str, {sequential_int, 9}}", "{fixed_bin, 3, 65}"));
        assert_eq!(run(&mut worker, 1, &mut draw).await.0, Outcome::Failed("an answer that is none of Redis".into()));
        assert_eq!(run(&mut worker, 1, &mut draw).await, (DONE, 0));
        assert_eq!(server.connections(), 2);
    }
}
