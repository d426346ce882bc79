//! Queries of search (docs/riak/pb-api.md §12).

use super::context::PbContext;
use super::failure::Failure;
use super::handler::{Exchange, Handler, Request, Streaming};
use super::listing;
use super::reader::Reader;
use super::refusal::Refusal;
use super::writer::Writer;
use crate::access::Access;
use crate::bulk::give_way;
use crate::jobs::JobClass;
use crate::memory::{Held, Lease};
use crate::search::query_access;
use bytes::Bytes;
use ombak_proto::code;
use ombak_proto::messages::{RpbPair, RpbSearchDoc, RpbSearchQueryReq, RpbSearchQueryResp};
use ombak_proto::reply::write_message;
use ombak_search::answer::{Document, SearchAnswer, pairs_of};
use ombak_search::request::{SearchMessage, SearchRequest};
use ombak_searching::{Found, SearchError};
use ombak_types::Error;
use ombak_types::etf::BinaryText;

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[Handler::streaming::<RpbSearchQueryReq>(code::SEARCH_QUERY_REQ).of_search()];

/// What a pair takes in a message beside its name and its value: keys and lengths.
const PAIR_BYTES: usize = 24;

impl Request for RpbSearchQueryReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(query_access(&self.index))
    }
}

impl Streaming for RpbSearchQueryReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let Exchange { ctx, reader, writer, .. } = exchange;
        ctx.config.jobs.check(JobClass::YokozunaQuery)?;
        // What the nodes send is held until the answer has been made of it.
        let mut room = Held::new(Some(writer.lease()));
        let found = query(ctx, &self, reader, &mut room).await?;
        write_answer(&found.answer, ctx.config.frame_bytes_max, writer).await
    }
}

async fn query(
    ctx: &PbContext,
    req: &RpbSearchQueryReq,
    reader: &mut Reader<'_>,
    room: &mut Held<'_>,
) -> Result<Found, Failure> {
    if req.q.is_empty() {
        return Err(Refusal::new("Missing query").into());
    }
    // The registry passes no message of search to a node without it.
    let named = std::str::from_utf8(&req.index).ok().zip(ctx.search.as_ref());
    let Some((index, search)) = named.filter(|(index, search)| search.index(index).is_some()) else {
        return Err(Refusal::new(format!("No index {} found.", BinaryText(&req.index))).into());
    };
    let message = message(req);
    let bad = |why: &dyn std::fmt::Display| Refusal::new(why.to_string());
    // The search reads parameters. An error has to name the field of the message instead.
    SearchRequest::of_message(&message).map_err(|why| bad(&why))?;
    let pairs = message.pairs().map_err(|why| bad(&why))?;
    Ok(reader.while_open(search.query(index, &pairs, room)).await??)
}

fn message(req: &RpbSearchQueryReq) -> SearchMessage<'_> {
    SearchMessage {
        query: &req.q,
        rows: req.rows,
        start: req.start,
        sort: req.sort.as_deref(),
        filter: req.filter.as_deref(),
        default_field: req.df.as_deref(),
        operator: req.op.as_deref(),
        fields: req.fl.iter().map(|field| &field[..]).collect(),
        presort: req.presort.as_deref(),
    }
}

impl From<SearchError> for Refusal {
    fn from(error: SearchError) -> Self {
        match error {
            // These say what to do, and Riak's text would hide it.
            SearchError::Failed(why @ (Error::Overload | Error::Stopping)) => why.into(),
            SearchError::Failed(why) => {
                tracing::warn!(%why, "a search has failed");
                Self::new(SearchError::Failed(why).to_string())
            }
            other => Self::new(other.to_string()),
        }
    }
}

/// Writes the answer, if one frame can hold it.
async fn write_answer(answer: &SearchAnswer, bytes_max: usize, writer: &mut Writer<'_>) -> Result<(), Failure> {
    let mut lease = writer.lease();
    let message = response(answer, bytes_max, &mut lease).await?;
    writer.hold(lease);
    write_message(code::SEARCH_QUERY_RESP, &message, &mut writer.buffer);
    Ok(())
}

async fn response(
    answer: &SearchAnswer,
    bytes_max: usize,
    lease: &mut Lease<'_>,
) -> Result<RpbSearchQueryResp, Failure> {
    let (mut docs, mut bytes) = (Vec::new(), 0);
    for document in &answer.documents {
        let doc = doc(document);
        let doc_bytes = bytes_of(&doc);
        bytes += doc_bytes;
        lease.add(listing::held_bytes(2 * doc.fields.len(), doc_bytes)).await?;
        if bytes > bytes_max {
            let text = format!(
                "The documents do not fit into one answer of {bytes_max} bytes; ask for fewer rows, or for fewer fields \
                 (fl)"
            );
            return Err(Failure::Refused(Refusal::new(text)));
        }
        docs.push(doc);
        give_way().await;
    }
    let num_found = Some(u32::try_from(answer.found_count).unwrap_or(u32::MAX));
    // As in Riak, the best score of nothing is 0.
    Ok(RpbSearchQueryResp { docs, max_score: Some(answer.score_max.unwrap_or(0.0)), num_found })
}

fn doc(document: &Document) -> RpbSearchDoc {
    let pair = |(name, value): (&str, std::borrow::Cow<'_, str>)| RpbPair {
        key: Bytes::copy_from_slice(name.as_bytes()),
        value: Some(value.into_owned().into()),
    };
    RpbSearchDoc { fields: pairs_of(document).map(pair).collect() }
}

fn bytes_of(doc: &RpbSearchDoc) -> usize {
    let of_pair = |pair: &RpbPair| pair.key.len() + pair.value.as_ref().map_or(0, Bytes::len) + PAIR_BYTES;
    PAIR_BYTES + doc.fields.iter().map(of_pair).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryBudget, MemoryLimits};
    use ombak_search::answer::FieldValues;
    use ombak_search::values::Value;
    use std::pin::pin;

    fn answer() -> SearchAnswer {
        let fields = vec![
            ("name_s".to_owned(), FieldValues::One(Value::String("bryan".into()))),
            ("groups_ss".to_owned(), FieldValues::Many(vec![Value::String("a".into()), Value::String("b".into())])),
            ("age_i".to_owned(), FieldValues::One(Value::Int(30))),
            ("ok_b".to_owned(), FieldValues::One(Value::Bool(true))),
        ];
        let documents = vec![Document { fields, score: Some(1.0) }];
        SearchAnswer { found_count: 7, score_max: Some(1.5), documents, ..SearchAnswer::default() }
    }

    fn made(answer: &SearchAnswer, bytes_max: usize) -> Result<RpbSearchQueryResp, String> {
        let budget = MemoryBudget::new(MemoryLimits::default());
        let account = budget.open_account();
        let mut lease = account.lease();
        let made = pin!(response(answer, bytes_max, &mut lease));
        let made = futures_util::FutureExt::now_or_never(made).expect("nothing to wait for");
        made.map_err(|failure| match failure {
            Failure::Refused(refusal) => refusal.into_text(),
            Failure::Closed(reason) => panic!("{reason:?}"),
        })
    }

    #[test]
    fn documents_are_pairs_of_texts() {
        let made = made(&answer(), 1_000).unwrap();
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let pairs = made.docs[0].fields.iter().map(|pair| (text(&pair.key), text(pair.value.as_ref().unwrap())));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("score", "1.00000000000000000000e+00"),
            pair("ok_b", "true"),
            pair("age_i", "30"),
            pair("groups_ss", "a"),
            pair("groups_ss", "b"),
            pair("name_s", "bryan"),
        ];
        assert_eq!(pairs.collect::<Vec<_>>(), expected);
        assert_eq!((made.num_found, made.max_score), (Some(7), Some(1.5)));
    }

    #[test]
    fn nothing_has_a_score_of_0() {
        let made = made(&SearchAnswer::default(), 1_000).unwrap();
        assert_eq!(made, RpbSearchQueryResp { docs: Vec::new(), max_score: Some(0.0), num_found: Some(0) });
        let many = SearchAnswer { found_count: u64::MAX, ..SearchAnswer::default() };
        assert_eq!(super::tests::made(&many, 1_000).unwrap().num_found, Some(u32::MAX));
    }

    #[test]
    fn an_answer_that_is_too_large_is_refused() {
        let refused = made(&answer(), 100).unwrap_err();
        assert!(refused.contains("one answer of 100 bytes; ask for fewer rows"), "{refused}");
    }

    #[test]
    fn a_failure_says_what_to_do_if_somebody_can_do_something() {
        let text = |error: SearchError| Refusal::from(error).into_text();
        assert_eq!(text(SearchError::NoIndex("a".into())), "No index <<\"a\">> found.");
        assert_eq!(text(SearchError::NotEnoughNodes), "Not enough nodes are up to service this request.");
        assert_eq!(text(SearchError::Failed(Error::Overload)), "overload");
        assert_eq!(text(SearchError::Failed(Error::AllNodesDown)), "Query unsuccessful check the logs.");
    }
}
