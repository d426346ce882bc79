//! One worker of the nhs driver.

use super::keys::{KeyId, eighty_twenty};
use super::operation::NhsOperation;
use super::plan::{NOMINATED, NhsSettings};
use super::terms::{Terms, put_district, query_start};
use crate::drivers::http::request::Request;
use crate::drivers::http::session::HttpSession;
use crate::drivers::network::{Background, ExchangeError, Target, unix_now};
use crate::drivers::pb::reply::{GetReply, Indexes, ReadForUpdate};
use crate::drivers::pb::session::PbSession;
use crate::drivers::{DONE, Outcome, Reason};
use crate::generators::Draw;
use ombak_proto::code;
use ombak_proto::get_req::GetReq;
use ombak_proto::request::{DelRequest, PutRequest, write_delete, write_get, write_put};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The time between two reads that make the server compare replicas.
const FORCE_AAE_EVERY: Duration = Duration::from_secs(10);

/// The two buckets of `put_unique_bet365`.
const TWO_BUCKETS: [&[u8]; 2] = [b"abcdefghijklmnopqrstuvwxyz_1", b"abcdefghijklmnopqrstuvwxyz_2"];

/// The nhs driver's part of one worker.
#[derive(Debug)]
pub struct NhsWorker {
    worker: usize,
    key_id: KeyId,
    settings: Arc<NhsSettings>,
    pb: PbSession,
    http: HttpSession,
    http_target: Target,
    /// The value of the header `Host`.
    host: Vec<u8>,
    peer: Option<PbSession>,
    /// The number of records that the worker has written. They have the numbers 1 to `records`.
    records: u64,
    /// The worker's documents have numbers from `documents.0` to below `documents.1`.
    documents: (u64, u64),
    key: Vec<u8>,
    /// Whether the current update has finished its read and has to write. `growing` says whether it
    /// adds a record.
    writing: bool,
    growing: bool,
    kept: ReadForUpdate,
    terms: Terms,
    /// The variable part of a query.
    query: Vec<u8>,
    listing: Background,
    forced_aae: Instant,
}

impl NhsWorker {
    pub(super) fn new(
        worker: usize,
        key_id: KeyId,
        pb: PbSession,
        http_target: Target,
        peer: Option<PbSession>,
        settings: Arc<NhsSettings>,
    ) -> Self {
        Self {
            worker,
            key_id,
            pb,
            // Many configurations rarely use HTTP, so the connection is opened when it is first
            // used.
            http: HttpSession::closed(&http_target, &settings.reasons),
            host: http_target.to_string().into_bytes(),
            http_target,
            peer,
            settings,
            records: 0,
            documents: (1, 1),
            key: Vec::new(),
            writing: false,
            growing: false,
            kept: ReadForUpdate::default(),
            terms: Terms::default(),
            query: Vec::new(),
            listing: Background::default(),
            forced_aae: Instant::now(),
        }
    }

    /// Runs one operation.
    pub async fn run(&mut self, operation: usize, draw: &mut Draw) -> Outcome {
        let operation = self.settings.operations.get(operation).copied();
        self.attempt(operation, draw).await.unwrap_or_else(ExchangeError::outcome)
    }

    async fn attempt(&mut self, operation: Option<NhsOperation>, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        match operation {
            Some(NhsOperation::Get) => self.get(draw).await,
            Some(NhsOperation::AlwaysGet) => self.always_get(draw).await,
            Some(NhsOperation::AlwaysGetHttp) => self.always_get_http(draw).await,
            Some(NhsOperation::AlwaysUpdate { indexed }) => self.always_update(indexed, draw).await,
            Some(NhsOperation::Update) => self.update(draw).await,
            Some(NhsOperation::PutUnique) => self.put_unique(Document::Indexed, draw).await,
            Some(NhsOperation::PutUniqueTwoBuckets) => self.put_unique(Document::TwoBuckets, draw).await,
            Some(NhsOperation::PutUniqueCheckRepl) => match self.put_unique(Document::Indexed, draw).await? {
                DONE => self.wait_for_peer().await,
                outcome => Ok(outcome),
            },
            Some(NhsOperation::GetUnique) => self.get_unique(draw).await,
            Some(NhsOperation::DeleteUnique) => self.delete_unique().await,
            Some(NhsOperation::PostcodeQuery) => self.ask_http(draw, write_postcode_query, is_listing).await,
            Some(NhsOperation::BirthdayQuery) => self.ask_http(draw, write_birthday_query, is_listing).await,
            Some(NhsOperation::ListKeys) => Ok(self.list_keys().await),
            Some(NhsOperation::ForceAae) => self.force_aae(draw).await,
            // These operations are left out before the start.
            Some(NhsOperation::Unsupported(_)) | None => Ok(Outcome::Failed("unknown operation".into())),
        }
    }

    /// Draws the next key. Returns `false` if the key generator has ended.
    fn draw_key(&mut self, draw: &mut Draw) -> bool {
        self.key.clear();
        draw.key().map(|key| self.key.extend_from_slice(key)).is_ok()
    }

    fn write_get(&mut self, bucket: Bucket) {
        let bucket = Some(bucket.name(&self.settings));
        write_get(&GetReq { bucket, key: Some(&self.key), ..GetReq::default() }, self.pb.begin());
    }

    async fn get(&mut self, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        if !self.pb.is_unanswered() {
            if !self.draw_key(draw) {
                return Ok(Outcome::Stop);
            }
            self.write_get(Bucket::Records);
        }
        let body = self.pb.exchange(code::GET_RESP, self.settings.pb_timeout).await?;
        GetReply::read(body).map(|_| DONE)
    }

    async fn always_get(&mut self, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        if !self.pb.is_unanswered() {
            if self.records <= self.settings.records_min {
                return Ok(Outcome::Uncounted);
            }
            let number = eighty_twenty(self.records, draw);
            self.key_id.write(number, self.settings.record_order, &mut self.key);
            self.write_get(Bucket::Records);
        }
        let body = self.pb.exchange(code::GET_RESP, self.settings.pb_timeout).await?;
        if GetReply::read(body)?.is_found() { Ok(DONE) } else { Err(NOT_FOUND) }
    }

    async fn always_get_http(&mut self, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        if !self.http.is_unanswered() {
            if self.records <= self.settings.records_min {
                return Ok(Outcome::Uncounted);
            }
            let number = eighty_twenty(self.records, draw);
            self.key_id.write(number, self.settings.record_order, &mut self.key);
            let request = Request::new("GET", self.http.begin()).raw(b"/buckets").segment(&self.settings.records);
            request.raw(b"/keys").segment(&self.key).host(&self.host).end();
        }
        let answer = self.http.exchange(self.settings.http_timeout).await?;
        match answer.status {
            200 if answer.body_bytes > 0 => Ok(DONE),
            200 => Err(ExchangeError::answer("an object with an empty value")),
            404 => Err(NOT_FOUND),
            status => Err(self.http.refused(status)),
        }
    }

    async fn always_update(&mut self, indexed: bool, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        if !self.writing {
            if !self.pb.is_unanswered() {
                self.growing = draw.uniform(self.settings.records_max) > self.records;
                let number = if self.growing { self.records + 1 } else { eighty_twenty(self.records, draw) };
                self.key_id.write(number, self.settings.record_order, &mut self.key);
            }
            if self.growing {
                self.kept.clear();
            } else if !self.read_record(if indexed { Indexes::Remove } else { Indexes::Keep }).await? {
                return Err(NOT_FOUND);
            }
            self.write_record(indexed, draw);
        }
        let written = self.finish_write().await;
        self.records += u64::from(written.is_ok() && self.growing);
        written
    }

    async fn update(&mut self, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        if !self.writing {
            if !self.pb.is_unanswered() && !self.draw_key(draw) {
                return Ok(Outcome::Stop);
            }
            self.read_record(Indexes::Remove).await?;
            self.write_record(true, draw);
        }
        self.finish_write().await
    }

    /// Reads the record of the current key and keeps what a rewrite needs. Returns whether the
    /// record exists.
    async fn read_record(&mut self, indexes: Indexes) -> Result<bool, ExchangeError> {
        if !self.pb.is_unanswered() {
            self.write_get(Bucket::Records);
        }
        let body = self.pb.exchange(code::GET_RESP, self.settings.pb_timeout).await?;
        let reply = GetReply::read(body)?;
        match reply.is_found() {
            true => self.kept.keep(&reply, indexes)?,
            false => self.kept.clear(),
        }
        Ok(reply.is_found())
    }

    fn write_record(&mut self, indexed: bool, draw: &mut Draw) {
        if indexed {
            self.terms.put_record(self.settings.postcodes_max, unix_now(), draw, self.kept.fields_mut());
        }
        let put = PutRequest {
            bucket: &self.settings.records,
            key: Some(&self.key),
            vclock: self.kept.vclock(),
            value: draw.value(),
            content_type: self.kept.content_type(),
            content_fields: self.kept.fields(),
            ..PutRequest::default()
        };
        write_put(&put, self.pb.begin());
        self.writing = true;
    }

    async fn finish_write(&mut self) -> Result<Outcome, ExchangeError> {
        let written = self.pb.exchange(code::PUT_RESP, self.settings.pb_timeout).await.map(drop);
        self.writing = written == Err(ExchangeError::Disconnected);
        written.map(|()| DONE)
    }

    async fn put_unique(&mut self, document: Document, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        if !self.pb.is_unanswered() {
            self.key_id.write(self.documents.1, self.settings.document_order, &mut self.key);
            self.kept.clear();
            let bucket = match document {
                Document::Indexed => {
                    self.terms.put_last_modified(unix_now(), self.kept.fields_mut());
                    &self.settings.documents
                }
                Document::TwoBuckets => TWO_BUCKETS[self.worker % 2],
            };
            let (key, value) = (Some(&self.key[..]), draw.bytes(self.settings.document_bytes));
            let content_fields = self.kept.fields();
            write_put(&PutRequest { bucket, key, value, content_fields, ..PutRequest::default() }, self.pb.begin());
        }
        self.pb.exchange(code::PUT_RESP, self.settings.pb_timeout).await?;
        self.documents.1 += 1;
        Ok(DONE)
    }

    /// Reads the new document from the peer until it is found.
    async fn wait_for_peer(&mut self) -> Result<Outcome, ExchangeError> {
        let Some(peer) = &mut self.peer else { return Ok(DONE) };
        let deadline = Instant::now() + self.settings.pb_timeout;
        let bucket = Some(&self.settings.documents[..]);
        while Instant::now() < deadline {
            write_get(&GetReq { bucket, key: Some(&self.key), ..GetReq::default() }, peer.begin());
            match peer.exchange(code::GET_RESP, self.settings.pb_timeout).await {
                Ok(body) if GetReply::read(body)?.is_found() => return Ok(DONE),
                Ok(_) => {}
                // The document has been written. A retry of the operation would write another one.
                Err(error) => return Ok(Outcome::Failed(error.reason())),
            }
        }
        Err(ExchangeError::answer("not replicated within pb_timeout_general"))
    }

    async fn get_unique(&mut self, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        if !self.pb.is_unanswered() {
            let (low, next) = self.documents;
            // As in basho_bench, the number is drawn from low + 1 to next (docs/riak/basho-bench.md
            // §4.2). So it is never the document that is deleted next, and sometimes one that is
            // not written yet. A document that is not found is therefore not a failure.
            let number = low + draw.uniform((next - low).max(1));
            self.key_id.write(number, self.settings.document_order, &mut self.key);
            self.write_get(Bucket::Documents);
        }
        let body = self.pb.exchange(code::GET_RESP, self.settings.pb_timeout).await?;
        GetReply::read(body).map(|_| DONE)
    }

    async fn delete_unique(&mut self) -> Result<Outcome, ExchangeError> {
        if !self.pb.is_unanswered() {
            let (low, next) = self.documents;
            if low >= next {
                return Ok(DONE);
            }
            self.key_id.write(low, self.settings.document_order, &mut self.key);
            let delete = DelRequest { bucket: &self.settings.documents, key: &self.key, ..DelRequest::default() };
            write_delete(&delete, self.pb.begin());
        }
        let deleted = self.pb.exchange(code::DEL_RESP, self.settings.pb_timeout).await.map(drop);
        // After an error, too, the next operation deletes the next document.
        self.documents.0 += u64::from(deleted != Err(ExchangeError::Disconnected));
        deleted.map(|()| DONE)
    }

    async fn ask_http(
        &mut self,
        draw: &mut Draw,
        write: impl FnOnce(&mut Self, &mut Draw),
        is_answer: impl FnOnce(u16, &[u8]) -> bool,
    ) -> Result<Outcome, ExchangeError> {
        if !self.http.is_unanswered() {
            write(self, draw);
        }
        let answer = self.http.exchange(self.settings.http_timeout).await?;
        if is_answer(answer.status, self.http.text()) { Ok(DONE) } else { Err(self.http.refused(answer.status)) }
    }

    /// Lists the keys in the background over a connection of its own. Only one worker does this;
    /// the others do nothing.
    async fn list_keys(&mut self) -> Outcome {
        if self.worker != NOMINATED {
            return DONE;
        }
        let (target, settings) = (self.http_target.clone(), self.settings.clone());
        self.listing.start(|| list_keys(target, settings)).await
    }

    async fn force_aae(&mut self, draw: &mut Draw) -> Result<Outcome, ExchangeError> {
        let is_due = self.worker == NOMINATED && self.forced_aae.elapsed() >= FORCE_AAE_EVERY;
        if !self.http.is_unanswered() {
            if !is_due || self.pb.is_unanswered() {
                return self.get(draw).await;
            }
            if !self.draw_key(draw) {
                return Ok(Outcome::Stop);
            }
            let request = Request::new("GET", self.http.begin()).raw(b"/buckets").segment(&self.settings.records);
            request.raw(b"/keys").segment(&self.key).raw(b"?force_aae=true").host(&self.host).end();
        }
        let answer = self.http.exchange(self.settings.http_timeout).await?;
        match answer.status {
            200 | 404 => {
                self.forced_aae = Instant::now();
                Ok(DONE)
            }
            status => Err(self.http.refused(status)),
        }
    }
}

const NOT_FOUND: ExchangeError = ExchangeError::answer("not_found");

/// The bucket to read from.
#[derive(Clone, Copy)]
enum Bucket {
    Records,
    Documents,
}

impl Bucket {
    fn name(self, settings: &NhsSettings) -> &[u8] {
        match self {
            Self::Records => &settings.records,
            Self::Documents => &settings.documents,
        }
    }
}

/// The kind of document to write.
#[derive(Clone, Copy)]
enum Document {
    Indexed,
    TwoBuckets,
}

/// Queries the people of a district whose names begin with `b` to `gd`.
fn write_postcode_query(worker: &mut NhsWorker, draw: &mut Draw) {
    worker.query.clear();
    put_district(draw, &mut worker.query);
    worker.query.push(b'|');
    let district_bytes = worker.query.len();
    worker.query.extend_from_slice(query_start(draw).as_bytes());
    worker.key.clear();
    worker.key.extend_from_slice(worker.query.get(..district_bytes).unwrap_or_default());
    worker.key.extend_from_slice(b"gd");
    let request = Request::new("GET", worker.http.begin()).raw(b"/buckets").segment(&worker.settings.records);
    let request = request.raw(b"/index/postcode_bin").segment(&worker.query).segment(&worker.key);
    request.host(&worker.host).end();
}

/// Queries the people who were born on the 4th of a month and whose name has a certain form.
fn write_birthday_query(worker: &mut NhsWorker, draw: &mut Draw) {
    let (year, month) = (1950 + draw.uniform(70), draw.uniform(9));
    worker.query.clear();
    // Writing to memory cannot fail.
    let _ = write!(worker.query, "/{year}0{month}04/{year}0{month}05");
    let request = Request::new("GET", worker.http.begin()).raw(b"/buckets").segment(&worker.settings.records);
    let request = request.raw(b"/index/dateofbirth_bin").raw(&worker.query);
    request.raw(b"?term_regex=%5B0-9%5D%7B8%7D...%5Ba-d%5D").host(&worker.host).end();
}

/// Whether an answer is a list of keys.
fn is_listing(status: u16, body: &[u8]) -> bool {
    status == 200 && body.starts_with(b"{\"")
}

async fn list_keys(target: Target, settings: Arc<NhsSettings>) -> Result<(), Reason> {
    let mut session = HttpSession::closed(&target, &settings.reasons);
    let request = Request::new("GET", session.begin()).raw(b"/buckets").segment(&settings.records);
    request.raw(b"/keys?keys=true").host(target.to_string().as_bytes()).end();
    let answer = session.exchange(settings.fold_timeout).await.map_err(ExchangeError::reason)?;
    if is_listing(answer.status, session.text()) { Ok(()) } else { Err(session.refused(answer.status).reason()) }
}
