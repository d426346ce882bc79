//! One worker of the Protocol Buffers driver.

use super::operation::PbOperation;
use super::pipeline::Pipeline;
use super::plan::PbSettings;
use super::reply::{GetReply, Indexes, ReadForUpdate};
use super::session::PbSession;
use crate::drivers::network::{Background, ExchangeError, Target, unix_now};
use crate::drivers::nhs::terms::{Terms, date, put_district};
use crate::drivers::{DONE, Outcome, Reason};
use crate::generators::Draw;
use bytes::Bytes;
use ombak_proto::code;
use ombak_proto::get_req::GetReq;
use ombak_proto::messages::{RpbIndexReq, RpbListKeysReq, RpbListKeysResp};
use ombak_proto::reply::write_message;
use ombak_proto::request::{DelRequest, PutRequest, write_delete, write_get, write_put};
use prost::Message;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The worker that lists keys.
const NOMINATED: usize = 1;

/// The highest number of postcodes in an updated record.
const POSTCODES_MAX: u64 = 3;

/// The driver's part of one worker.
#[derive(Debug)]
pub struct PbWorker {
    nominated: bool,
    session: PbSession,
    settings: Arc<PbSettings>,
    pipeline: Pipeline,
    /// The key of the current update.
    key: Vec<u8>,
    /// Whether the current update has finished its read and has to write.
    writing: bool,
    kept: ReadForUpdate,
    terms: Terms,
    listing: Background,
}

impl PbWorker {
    pub(super) fn new(worker: usize, session: PbSession, settings: Arc<PbSettings>) -> Self {
        Self {
            nominated: worker == NOMINATED,
            session,
            pipeline: Pipeline::new(settings.depth),
            settings,
            key: Vec::new(),
            writing: false,
            kept: ReadForUpdate::default(),
            terms: Terms::default(),
            listing: Background::default(),
        }
    }

    /// Runs one operation.
    pub async fn run(&mut self, operation: usize, draw: &mut Draw) -> Outcome {
        let Some(&operation) = self.settings.operations.get(operation) else { return unknown() };
        self.attempt(operation, draw).await.unwrap_or_else(ExchangeError::outcome)
    }

    async fn attempt(&mut self, operation: PbOperation, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        match operation {
            PbOperation::Get | PbOperation::GetExisting | PbOperation::Put | PbOperation::Delete => {
                self.exchange(operation, draw).await
            }
            PbOperation::Update => self.update(Update { existing: false, indexed: false }, draw).await,
            PbOperation::UpdateExisting => self.update(Update { existing: true, indexed: false }, draw).await,
            PbOperation::UpdateWith2i => self.update(Update { existing: false, indexed: true }, draw).await,
            PbOperation::QueryPostcode => self.query(draw, write_postcode_query).await,
            PbOperation::QueryDob => self.query(draw, write_birthday_query).await,
            PbOperation::ListKeys => Ok(self.list_keys().await),
            PbOperation::PauseMinute => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Ok(DONE)
            }
            PbOperation::Unsupported(_) => Ok(unknown()),
        }
    }

    async fn exchange(&mut self, operation: PbOperation, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        let settings = &self.settings;
        if !self.session.is_unanswered() && write(settings, operation, draw, self.session.begin()).is_none() {
            return Ok(Outcome::Stop);
        }
        let (answer, limit) = settings.expected(operation);
        let body = self.session.exchange(answer, limit).await?;
        judge(operation, body)
    }

    async fn update(&mut self, update: Update, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        if !self.writing {
            if !self.session.is_unanswered() {
                let Ok(key) = draw.key() else { return Ok(Outcome::Stop) };
                self.key.clear();
                self.key.extend_from_slice(key);
                write_get(&self.settings.get(&self.key), self.session.begin());
            }
            let body = self.session.exchange(code::GET_RESP, self.settings.read_timeout).await?;
            let reply = GetReply::read(body)?;
            match (reply.is_found(), update) {
                (true, Update { indexed: true, .. }) => self.kept.keep(&reply, Indexes::Remove)?,
                (true, _) => self.kept.keep(&reply, Indexes::Keep)?,
                (false, Update { existing: true, .. }) => return Err(NOT_FOUND),
                (false, _) => self.kept.clear(),
            }
            if update.indexed {
                self.terms.put_record(POSTCODES_MAX, unix_now(), draw, self.kept.fields_mut());
            }
            let put = self.settings.put(&self.key, draw.value());
            let content_type = if update.indexed { self.kept.content_type() } else { put.content_type };
            let (vclock, content_fields) = (self.kept.vclock(), self.kept.fields());
            write_put(&PutRequest { vclock, content_type, content_fields, ..put }, self.session.begin());
            self.writing = true;
        }
        let written = self.session.exchange(code::PUT_RESP, self.settings.write_timeout).await.map(drop);
        self.writing = written == Err(ExchangeError::Disconnected);
        written.map(|()| DONE)
    }

    async fn query(
        &mut self,
        draw: &mut Draw,
        write: impl FnOnce(&PbSettings, &mut Draw, &mut Vec<u8>),
    ) -> Result<Outcome, ExchangeError> {
        if !self.session.is_unanswered() {
            write(&self.settings, draw, self.session.begin());
        }
        let limit = self.settings.query_timeout;
        self.session.exchange(code::INDEX_RESP, limit).await.map(|_| DONE)
    }

    /// Lists the keys in the background over a connection of its own. Only one worker does this;
    /// the others do nothing.
    async fn list_keys(&mut self) -> Outcome {
        if !self.nominated {
            return DONE;
        }
        let (target, settings) = (self.session.target().clone(), self.settings.clone());
        self.listing.start(|| list_keys(target, settings)).await
    }

    /// How many requests are in flight.
    pub fn depth(&self) -> usize {
        self.settings.depth
    }

    /// Begins an operation.
    pub fn send(&mut self, operation: usize, draw: &mut Draw) -> Option<Outcome> {
        let Some(&what) = self.settings.operations.get(operation) else { return Some(unknown()) };
        if self.pipeline.is_full() {
            return Some(Outcome::Failed("more operations than riakc_pb_pipeline".into()));
        }
        let (_, limit) = self.settings.expected(what);
        match write(&self.settings, what, draw, self.session.append()) {
            Some(()) => self.pipeline.push(operation, Instant::now() + limit),
            None => return Some(Outcome::Stop),
        }
        None
    }

    /// Waits for the oldest operation in flight.
    pub async fn receive(&mut self) -> Option<(usize, Outcome)> {
        let (operation, deadline) = self.pipeline.oldest()?;
        if let Some(outcome) = self.pipeline.pop_lost() {
            return Some((operation, outcome));
        }
        let settings = &self.settings;
        let received = match self.session.receive(deadline).await {
            Ok(()) => {
                let what = settings.operations.get(operation).copied().unwrap_or(PbOperation::Get);
                let body = self.session.body(settings.expected(what).0);
                body.and_then(|body| judge(what, body))
            }
            Err(error) => {
                self.session.close();
                Err(error)
            }
        };
        let is_open = self.session.is_open();
        Some((operation, self.pipeline.pop(received, is_open)))
    }
}

/// The kind of an update.
#[derive(Clone, Copy)]
struct Update {
    /// Whether the key must exist.
    existing: bool,
    /// Whether the object gets new index entries.
    indexed: bool,
}

const NOT_FOUND: ExchangeError = ExchangeError::answer("not_found");

/// The outcome of an operation that does not exist. This does not happen: indices come from the
/// list of operations, and unsupported operations are left out before the start.
fn unknown() -> Outcome {
    Outcome::Failed("unknown operation".into())
}

impl PbSettings {
    fn get<'a>(&'a self, key: &'a [u8]) -> GetReq<'a> {
        let (r, pr) = (Some(self.quorums.r), self.quorums.pr);
        let bucket_type = self.bucket_type.as_deref();
        GetReq { bucket: Some(&self.bucket), key: Some(key), r, pr, bucket_type, ..GetReq::default() }
    }

    fn put<'a>(&'a self, key: &'a [u8], value: &'a [u8]) -> PutRequest<'a> {
        PutRequest {
            bucket: &self.bucket,
            key: Some(key),
            value,
            content_type: Some(&self.content_type),
            w: Some(self.quorums.w),
            dw: Some(self.quorums.dw),
            pw: self.quorums.pw,
            bucket_type: self.bucket_type.as_deref(),
            ..PutRequest::default()
        }
    }

    /// The message code of the answer to an operation with a single exchange, and how long it may
    /// take.
    fn expected(&self, operation: PbOperation) -> (u8, Duration) {
        match operation {
            PbOperation::Put => (code::PUT_RESP, self.write_timeout),
            PbOperation::Delete => (code::DEL_RESP, self.write_timeout),
            _ => (code::GET_RESP, self.read_timeout),
        }
    }
}

/// Writes the request of an operation with a single exchange. `None` if the key generator has
/// ended.
fn write(settings: &PbSettings, operation: PbOperation, draw: &mut Draw, out: &mut Vec<u8>) -> Option<()> {
    match operation {
        PbOperation::Put => {
            let (key, value) = draw.pair().ok()?;
            write_put(&settings.put(key, value), out);
        }
        PbOperation::Delete => {
            let (bucket_type, rw) = (settings.bucket_type.as_deref(), Some(settings.quorums.rw));
            let key = draw.key().ok()?;
            write_delete(&DelRequest { bucket: &settings.bucket, key, rw, bucket_type, ..Default::default() }, out);
        }
        _ => write_get(&settings.get(draw.key().ok()?), out),
    }
    Some(())
}

/// Judges an answer.
fn judge(operation: PbOperation, body: &[u8]) -> Result<Outcome, ExchangeError> {
    match operation {
        PbOperation::Get => GetReply::read(body).map(|_| DONE),
        PbOperation::GetExisting if !GetReply::read(body)?.is_found() => Err(NOT_FOUND),
        _ => Ok(DONE),
    }
}

fn write_range_query(settings: &PbSettings, index: &'static [u8], from: Vec<u8>, to: Vec<u8>, out: &mut Vec<u8>) {
    let request = RpbIndexReq {
        bucket: Bytes::copy_from_slice(&settings.bucket),
        index: Bytes::from_static(index),
        qtype: 1,
        range_min: Some(from.into()),
        range_max: Some(to.into()),
        return_terms: Some(true),
        r#type: settings.bucket_type.as_deref().map(Bytes::copy_from_slice),
        ..RpbIndexReq::default()
    };
    write_message(code::INDEX_REQ, &request, out);
}

/// Queries the people of a district whose names begin with `a`.
fn write_postcode_query(settings: &PbSettings, draw: &mut Draw, out: &mut Vec<u8>) {
    let mut from = Vec::new();
    put_district(draw, &mut from);
    from.push(b'|');
    let mut to = from.clone();
    from.push(b'a');
    to.push(b'b');
    write_range_query(settings, crate::drivers::nhs::terms::POSTCODE, from, to, out);
}

/// Queries the people who were born on one to three consecutive days.
fn write_birthday_query(settings: &PbSettings, draw: &mut Draw, out: &mut Vec<u8>) {
    let first = -7_000 + draw.uniform(25_000) as i64;
    let text = |day| {
        let (year, month, day) = date(day);
        format!("{year:04}{month:02}{day:02}").into_bytes()
    };
    let (from, to) = (text(first), text(first + draw.uniform(3) as i64));
    write_range_query(settings, crate::drivers::nhs::terms::DATE_OF_BIRTH, from, to, out);
}

async fn list_keys(target: Target, settings: Arc<PbSettings>) -> Result<(), Reason> {
    let mut session =
        PbSession::open(&target, &settings.reasons).await.map_err(|_| ExchangeError::Disconnected.reason())?;
    let bucket_type = settings.bucket_type.as_deref().map(Bytes::copy_from_slice);
    let request =
        RpbListKeysReq { bucket: Bytes::copy_from_slice(&settings.bucket), timeout: None, r#type: bucket_type };
    write_message(code::LIST_KEYS_REQ, &request, session.append());
    let deadline = Instant::now() + settings.list_timeout;
    loop {
        session.receive(deadline).await.map_err(ExchangeError::reason)?;
        let body = session.body(code::LIST_KEYS_RESP).map_err(ExchangeError::reason)?;
        let part = RpbListKeysResp::decode(body).map_err(|_| Reason::from("an answer that cannot be read"))?;
        if part.done.unwrap_or(false) {
            return Ok(());
        }
    }
}
