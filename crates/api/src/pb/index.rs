//! Secondary index queries (docs/riak/pb-api.md §10).

use super::context::PbContext;
use super::failure::Failure;
use super::handler::{Exchange, Handler, Request, Streaming};
use super::reader::Reader;
use super::refusal::Refusal;
use super::writer::Writer;
use super::{listing, message};
use crate::access::{Access, Permission};
use crate::bulk::give_way;
use crate::index_query::{self, BadQuery, QueryOptions, Span};
use crate::jobs::JobClass;
use bytes::Bytes;
use ombak_kv::{IndexMatch, QueryResults};
use ombak_proto::code;
use ombak_proto::messages::rpb_index_req::IndexQueryType;
use ombak_proto::messages::{RpbIndexReq, RpbIndexResp, RpbPair};
use ombak_proto::reply::write_message;
use ombak_types::etf::BinaryText;
use std::time::Duration;

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[Handler::streaming::<RpbIndexReq>(code::INDEX_REQ)];

impl Request for RpbIndexReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::INDEX, self.r#type.as_deref(), &self.bucket))
    }
}

impl Streaming for RpbIndexReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let Exchange { ctx, reader, writer, .. } = exchange;
        query(ctx, self, reader, writer).await
    }
}

async fn query(
    ctx: &PbContext,
    req: RpbIndexReq,
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let streamed = req.stream.unwrap_or(false);
    ctx.config.jobs.check(if streamed { JobClass::StreamSecondaryIndex } else { JobClass::SecondaryIndex })?;
    let bucket = message::bucket(req.r#type.clone(), req.bucket.clone())?;
    if req.max_results == Some(0) {
        let nothing = RpbIndexResp { done: streamed.then_some(true), ..RpbIndexResp::default() };
        write_message(code::INDEX_RESP, &nothing, &mut writer.buffer);
        return Ok(());
    }
    let span = span(&req)?;
    let options = QueryOptions {
        results_max: req.max_results.map(|max| max as usize),
        continuation: req.continuation.as_deref(),
        pattern: req.term_regex.as_deref(),
    };
    let query = index_query::query(bucket, &req.index, span, &options).map_err(refusal)?;
    let with_terms = req.return_terms.unwrap_or(false) && index_query::has_terms(&query.range, span);
    let mut results = ctx.kv.query(query, limit(req.timeout))?.in_group(writer.address_group());
    if streamed {
        stream(&mut results, with_terms, reader, writer).await
    } else {
        answer_at_once(&mut results, with_terms, ctx.config.frame_bytes_max, reader, writer).await
    }
}

/// The time limit of a request. Zero means no limit.
pub(super) fn limit(timeout_ms: Option<u32>) -> Option<Duration> {
    timeout_ms.map(|ms| Duration::from_millis(ms.into()))
}

fn span(req: &RpbIndexReq) -> Result<Span<'_>, Refusal> {
    let show = |text: Option<&Bytes>| text.map_or("undefined".to_owned(), |text| BinaryText(text).to_string());
    // A query of `$bucket` is for all keys of the bucket, so its key and range have no meaning.
    if &req.index[..] == b"$bucket" {
        return Ok(Span::Equal(b""));
    }
    match req.qtype() {
        IndexQueryType::Eq => match &req.key {
            Some(key) => Ok(Span::Equal(key)),
            None => Err(Refusal::new(format!("Invalid equality query {}", show(None)))),
        },
        IndexQueryType::Range => match (&req.range_min, &req.range_max) {
            (Some(from), Some(to)) => Ok(Span::Range(from, to)),
            (from, to) => {
                Err(Refusal::new(format!("Invalid range query: {} -> {}", show(from.as_ref()), show(to.as_ref()))))
            }
        },
    }
}

fn refusal(bad: BadQuery) -> Refusal {
    Refusal::new(bad.to_string())
}

async fn stream(
    results: &mut QueryResults,
    with_terms: bool,
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let mut last = None;
    while let Some(batch) = next_batch(results, reader).await? {
        last = batch.last().cloned();
        write_message(code::INDEX_RESP, &response(batch, with_terms), &mut writer.buffer);
        // The next batch may take long, so this one is sent first.
        writer.flush().await?;
        writer.begin();
        give_way().await;
    }
    let end = RpbIndexResp { continuation: continuation(results, last), done: Some(true), ..RpbIndexResp::default() };
    write_message(code::INDEX_RESP, &end, &mut writer.buffer);
    Ok(())
}

/// Answers with all results at once, if one frame can hold them.
async fn answer_at_once(
    results: &mut QueryResults,
    with_terms: bool,
    bytes_max: usize,
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let (mut answer, mut lease) = (RpbIndexResp::default(), writer.lease());
    let (mut bytes, mut last) = (0usize, None);
    while let Some(batch) = next_batch(results, reader).await? {
        last = batch.last().cloned();
        let part = response(batch, with_terms);
        let mut part_bytes = part.keys.iter().map(|key| key.len() + 6).sum::<usize>();
        part_bytes += part
            .results
            .iter()
            .map(|pair| pair.key.len() + 24 + pair.value.as_ref().map_or(0, Bytes::len))
            .sum::<usize>();
        bytes += part_bytes;
        lease.add(listing::held_bytes(part.keys.len() + 2 * part.results.len(), part_bytes)).await?;
        if bytes > bytes_max {
            let text = format!(
                "The results do not fit into one answer of {bytes_max} bytes; ask with stream=true or max_results"
            );
            return Err(Failure::Refused(Refusal::new(text)));
        }
        answer.keys.extend(part.keys);
        answer.results.extend(part.results);
    }
    answer.continuation = continuation(results, last);
    writer.hold(lease);
    write_message(code::INDEX_RESP, &answer, &mut writer.buffer);
    Ok(())
}

fn response(batch: Vec<IndexMatch>, with_terms: bool) -> RpbIndexResp {
    if !with_terms {
        let keys = batch.into_iter().map(|found| found.key).collect();
        return RpbIndexResp { keys, ..RpbIndexResp::default() };
    }
    let pair = |found: IndexMatch| RpbPair {
        key: found.term.as_ref().map(index_query::term_text).unwrap_or_default(),
        value: Some(found.key),
    };
    RpbIndexResp { results: batch.into_iter().map(pair).collect(), ..RpbIndexResp::default() }
}

fn continuation(results: &QueryResults, last: Option<IndexMatch>) -> Option<Bytes> {
    last.filter(|_| results.is_full()).map(|last| index_query::continuation(&last).into())
}

/// The next matches. If the peer closes the connection meanwhile, the connection ends.
pub(super) async fn next_batch(
    results: &mut QueryResults,
    reader: &mut Reader<'_>,
) -> Result<Option<Vec<IndexMatch>>, Failure> {
    Ok(reader.while_open(results.next()).await?.transpose()?)
}
