//! One worker of the HTTP driver.

use super::operation::HttpOperation;
use super::plan::{Disconnect, HttpSettings, write_search};
use super::request::Request;
use super::session::{Answer, HttpSession};
use crate::drivers::network::ExchangeError;
use crate::drivers::{DONE, DriverError, Outcome};
use crate::generators::Draw;
use std::sync::Arc;
use tokio::time::Instant;

/// The HTTP driver's part of one worker.
#[derive(Debug)]
pub struct HttpWorker {
    settings: Arc<HttpSettings>,
    /// The connections, one for each server.
    places: Vec<Place>,
    /// The index of the server for the next operation.
    turn: usize,
    /// The value of `X-Riak-ClientId`.
    client_id: Vec<u8>,
    /// The key of the current update.
    key: Vec<u8>,
    /// Whether the current update has finished its read and has to write.
    writing: bool,
    vclock: Vec<u8>,
    /// The number of files that have been written.
    files: usize,
}

/// A server with its connection.
#[derive(Debug)]
struct Place {
    session: HttpSession,
    host: Vec<u8>,
    /// The number of operations since the connection was opened.
    operations: u64,
    opened: Instant,
}

impl HttpWorker {
    pub(super) async fn open(worker: usize, settings: Arc<HttpSettings>) -> Result<Self, DriverError> {
        let mut places = Vec::new();
        for target in &settings.targets {
            let session = HttpSession::open(target, &settings.reasons).await?;
            let host = target.to_string().into_bytes();
            places.push(Place { session, host, operations: 0, opened: Instant::now() });
        }
        Ok(Self {
            turn: worker % settings.targets.len().max(1),
            settings,
            places,
            client_id: client_id(worker),
            key: Vec::new(),
            writing: false,
            vclock: Vec::new(),
            files: 0,
        })
    }

    /// Runs one operation.
    pub async fn run(&mut self, operation: usize, draw: &mut Draw) -> Outcome {
        let settings = self.settings.clone();
        let turn = self.turn;
        let (Some(operation), Some(place)) = (settings.operations.get(operation), self.places.get_mut(turn)) else {
            return Outcome::Failed("unknown operation".into());
        };
        let outcome = match operation {
            HttpOperation::Update => self.update(turn, false, draw).await,
            HttpOperation::UpdateExisting => self.update(turn, true, draw).await,
            HttpOperation::PutFile => self.put_file(turn).await,
            one => {
                if !place.session.is_unanswered() && write(&settings, &self.client_id, one, draw, place).is_none() {
                    return Outcome::Stop;
                }
                let answer = place.session.exchange(settings.timeout).await;
                answer.and_then(|answer| judge(one, answer, &place.session))
            }
        };
        let outcome = outcome.unwrap_or_else(ExchangeError::outcome);
        // An operation that is retried stays with its server.
        if !matches!(outcome, Outcome::Retry(_)) {
            self.pass_turn();
        }
        outcome
    }

    fn pass_turn(&mut self) {
        if let Some(place) = self.places.get_mut(self.turn) {
            place.operations += 1;
            let close = match self.settings.disconnect {
                Disconnect::Never => false,
                Disconnect::Operations(n) => place.operations >= n,
                Disconnect::After(time) => place.opened.elapsed() >= time,
            };
            if close {
                place.session.close();
                (place.operations, place.opened) = (0, Instant::now());
            }
        }
        self.turn = (self.turn + 1) % self.places.len().max(1);
    }

    async fn update(&mut self, turn: usize, existing: bool, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        let (settings, Some(place)) = (&*self.settings, self.places.get_mut(turn)) else {
            return Err(ExchangeError::Disconnected);
        };
        let (session, host) = (&mut place.session, &place.host);
        if !self.writing {
            if !session.is_unanswered() {
                let Ok(key) = draw.key() else { return Ok(Outcome::Stop) };
                self.key.clear();
                self.key.extend_from_slice(key);
                settings.object("GET", &self.key, host, session.begin()).end();
            }
            let answer = session.exchange(settings.timeout).await?;
            judge(if existing { &HttpOperation::GetExisting } else { &HttpOperation::Get }, answer, session)?;
            self.vclock.clear();
            self.vclock.extend_from_slice(session.vclock().unwrap_or_default());
            let mut request = settings.object("PUT", &self.key, host, session.begin());
            request = request.header(b"X-Riak-ClientId", &self.client_id);
            if !self.vclock.is_empty() {
                request = request.header(b"X-Riak-Vclock", &self.vclock);
            }
            request.header(b"Content-Type", b"application/octet-stream").body(draw.value());
            self.writing = true;
        }
        let answer = session.exchange(settings.timeout).await;
        self.writing = answer == Err(ExchangeError::Disconnected);
        judge(&HttpOperation::Put, answer?, session)
    }

    async fn put_file(&mut self, turn: usize) -> Result<Outcome, ExchangeError> {
        let (settings, Some(place)) = (&*self.settings, self.places.get_mut(turn)) else {
            return Err(ExchangeError::Disconnected);
        };
        if !place.session.is_unanswered() {
            let Some(path) = settings.files.get(self.files) else { return Ok(Outcome::Stop) };
            let value = tokio::fs::read(path).await.map_err(|_| ExchangeError::answer("a file cannot be read"))?;
            self.files += 1;
            let key = path.file_name().unwrap_or_default().as_encoded_bytes();
            put(settings, &self.client_id, key, &value, place);
        }
        let answer = place.session.exchange(settings.timeout).await?;
        judge(&HttpOperation::Put, answer, &place.session)
    }
}

impl HttpSettings {
    /// Begins a request for an object.
    fn object<'a>(&self, method: &str, key: &[u8], host: &[u8], out: &'a mut Vec<u8>) -> Request<'a> {
        Request::new(method, out).raw(&self.path).segment(key).raw(&self.params).host(host).raw(&self.headers)
    }
}

fn put(settings: &HttpSettings, client_id: &[u8], key: &[u8], value: &[u8], place: &mut Place) {
    let request = settings.object("PUT", key, &place.host, place.session.begin());
    let request = request.header(b"X-Riak-ClientId", client_id);
    request.header(b"Content-Type", b"application/octet-stream").body(value);
}

/// Writes the request of an operation with a single exchange. `None` if the key generator has
/// ended.
fn write(
    settings: &HttpSettings,
    client_id: &[u8],
    operation: &HttpOperation,
    draw: &mut Draw,
    place: &mut Place,
) -> Option<()> {
    match operation {
        HttpOperation::Put => {
            let (key, value) = draw.pair().ok()?;
            put(settings, client_id, key, value, place);
        }
        HttpOperation::Insert => {
            // The key is not used. It is drawn so that a key generator that ends also ends the
            // worker.
            let (_, value) = draw.pair().ok()?;
            let request = Request::new("POST", place.session.begin()).raw(&settings.path).raw(&settings.params);
            let request = request.host(&place.host).raw(&settings.headers);
            request.header(b"Content-Type", b"application/octet-stream").body(value);
        }
        HttpOperation::Delete => {
            settings.object("DELETE", draw.key().ok()?, &place.host, place.session.begin()).end();
        }
        HttpOperation::Search { query, .. } => {
            write_search(&settings.solr_path, query, &place.host, place.session.begin());
        }
        HttpOperation::Stat => Request::new("GET", place.session.begin()).raw(b"/stats").host(&place.host).end(),
        _ => settings.object("GET", draw.key().ok()?, &place.host, place.session.begin()).end(),
    }
    Some(())
}

/// Judges an answer.
fn judge(operation: &HttpOperation, answer: Answer, session: &HttpSession) -> Result<Outcome, ExchangeError> {
    match (operation, answer.status) {
        (HttpOperation::Get | HttpOperation::GetExisting, 200) if answer.body_bytes == 0 => {
            Err(ExchangeError::answer("an object with an empty value"))
        }
        (HttpOperation::Get | HttpOperation::GetExisting, 200 | 300) => Ok(DONE),
        (HttpOperation::Get, 404) => Ok(DONE),
        (HttpOperation::GetExisting, 404) => Err(ExchangeError::answer("not_found")),
        // The status is 200 if the request had `returnbody=true`.
        (HttpOperation::Put, 200 | 204) | (HttpOperation::Insert, 201 | 204) => Ok(DONE),
        (HttpOperation::Delete, 204 | 404) => Ok(DONE),
        (HttpOperation::Stat, 200) if session.text().first() == Some(&b'{') => Ok(DONE),
        (HttpOperation::Search { expected, .. }, 200) => match found(session.text()) {
            Some(found) if found == *expected => Ok(DONE),
            Some(_) => Err(ExchangeError::answer("another number of results than expected")),
            None => Err(ExchangeError::answer("an answer without a number of results")),
        },
        (_, status) => Err(session.refused(status)),
    }
}

/// The number after `"numFound":`.
fn found(body: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\"numFound\":";
    let at = body.windows(NAME.len()).position(|window| window == NAME)?;
    let digits: Vec<u8> = body.get(at + NAME.len()..)?.iter().copied().take_while(u8::is_ascii_digit).collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

/// The worker's number as 32 bits in base64.
fn client_id(worker: usize) -> Vec<u8> {
    use base64::Engine as _;
    let number = u32::try_from(worker).unwrap_or(u32::MAX);
    base64::engine::general_purpose::STANDARD.encode(number.to_be_bytes()).into_bytes()
}
