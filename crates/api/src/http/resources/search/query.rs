//! Queries: `/search/query/INDEX` and `/solr/INDEX/select`.
//!
//! Parameters and answers are those of Solr. What Riak says itself is plain text, and what Solr
//! says of a query is in the form that the query asks for.

use super::{media_type, search_of};
use crate::JobClass;
use crate::bulk::{give_way, in_turns};
use crate::http::decision_graph;
use crate::http::error_status::{self, RequestKind};
use crate::http::form::{Form, FormBounds};
use crate::http::offload;
use crate::http::path::Call;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::memory::Held;
use crate::search::query_access;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use ombak_search::answer::{AnswerWriter, ErrorAnswer, Header};
use ombak_search::request::Format;
use ombak_search::request::limits::{PARAMETERS_BYTES_MAX, PARAMETERS_MAX};
use ombak_searching::{Found, SearchError};
use ombak_types::Error;
use ombak_types::etf::BinaryText;

const READ_OR_POST: &str = "GET, HEAD, POST";

const FORM: &str = "application/x-www-form-urlencoded";

const BOUNDS: FormBounds = FormBounds { pairs_max: PARAMETERS_MAX, bytes_max: PARAMETERS_BYTES_MAX };

/// How much of an answer is written before others have their turn, in bytes.
const PIECE_BYTES: usize = 64 << 10;

pub(super) fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move { answer(&call).await.unwrap_or_else(|refusal| refusal) })
}

/// The index in the path.
fn index_of(call: &Call<'_>) -> Bytes {
    let is_older_path = call.parts.part(0) == "solr";
    call.parts.part(if is_older_path { 1 } else { 2 })
}

async fn answer(call: &Call<'_>) -> Result<Reply, Reply> {
    let (search, request, name) = (search_of(call)?, call.request, index_of(call));
    decision_graph::admit(call.ctx, request, READ_OR_POST, Some(query_access(&name))).await?;
    call.ctx.jobs.check(JobClass::YokozunaQuery).map_err(|error| failure(&error))?;
    let index = std::str::from_utf8(&name).ok().filter(|index| search.index(index).is_some());
    let index =
        index.ok_or_else(|| reply::text(StatusCode::NOT_FOUND, format!("No index {} found.\n", BinaryText(&name))))?;
    let mut held = request.holds();
    let pairs = parameters(request, &mut held).await?;
    // What the nodes send is held until the answer has been made of it.
    let mut room = request.holds();
    let found = search.query(index, &pairs, &mut room).await.map_err(|error| refusal(error, &pairs))?;
    document(request, &found).await
}

/// The parameters of the address, and those of a form.
async fn parameters(request: &Request, held: &mut Held<'_>) -> Result<Vec<(String, String)>, Reply> {
    let query = request.target.query_bytes().unwrap_or_default();
    let body = if request.method == Method::POST { request.body.clone() } else { Bytes::new() };
    if !body.is_empty() && media_type(request) != FORM || body.is_empty() && has_other_form(request) {
        return Err(reply::page(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let bytes = query.len() + body.len();
    held.resize(bytes as u64).await.map_err(|error| failure(&error))?;
    let read = move || {
        let mut form = Form::new(BOUNDS);
        form.add(&query).and_then(|()| form.add(&body)).map(|()| form.into_pairs())
    };
    offload::run(bytes, read).await?.map_err(|why| bad_request(why.to_string(), &[]))
}

/// Whether a post without a body says that it has one of another form.
fn has_other_form(request: &Request) -> bool {
    request.method == Method::POST && !matches!(&*media_type(request), "" | FORM)
}

/// The document of an answer.
async fn document(request: &Request, found: &Found) -> Result<Reply, Reply> {
    let mut held = request.holds();
    let written = in_turns(request.tenant(), write(found, &mut held)).await;
    let text = written.map_err(|error| failure(&error))?;
    held.keep_for_answer();
    Ok(reply::typed(StatusCode::OK, found.format.content_type(), text))
}

async fn write(found: &Found, held: &mut Held<'_>) -> Result<String, Error> {
    let (mut writer, mut text) = (AnswerWriter::new(&found.answer, found.format), String::new());
    loop {
        let until = text.len() + PIECE_BYTES;
        let is_more = writer.write(&mut text, until);
        held.resize(text.capacity() as u64).await?;
        if !is_more {
            return Ok(text);
        }
        give_way().await;
    }
}

fn failure(error: &Error) -> Reply {
    error_status::reply_for(error, RequestKind::Other)
}

/// The answer to a query that was not carried out.
fn refusal(error: SearchError, pairs: &[(String, String)]) -> Reply {
    match error {
        SearchError::BadRequest(why) => bad_request(why, pairs),
        SearchError::Failed(error) => failure(&error),
        SearchError::NoIndex(_) => reply::text(StatusCode::NOT_FOUND, format!("{error}\n")),
        SearchError::NotEnoughNodes | SearchError::Partial | SearchError::TimedOut => {
            reply::text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
        }
    }
}

/// What Solr says of parameters that it cannot carry out.
fn bad_request(message: String, pairs: &[(String, String)]) -> Reply {
    let value = |name: &str| pairs.iter().rev().find(|pair| pair.0 == name).map(|pair| pair.1.as_str());
    let format = if value("wt") == Some("json") { Format::Json } else { Format::Xml };
    let header = (value("omitHeader") != Some("true")).then(Header::default);
    let status = StatusCode::BAD_REQUEST;
    let answer = ErrorAnswer { header, status: status.as_u16(), message };
    reply::typed(status, format.content_type(), answer.to_text(format))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_search::answer::{Document, FieldValues, SearchAnswer};
    use ombak_search::values::Value;
    use ombak_types::StoreFailure;

    fn said(reply: &Reply) -> (u16, String) {
        (reply.status.as_u16(), String::from_utf8(reply.whole_body().unwrap().to_vec()).unwrap())
    }

    #[test]
    fn what_riak_says_is_plain_and_what_solr_says_has_the_form_of_the_query() {
        let json = [("wt".to_owned(), "json".to_owned())];
        let solr = said(&refusal(SearchError::BadRequest("q: no".into()), &json));
        let expected = r#"{"responseHeader":{"status":400,"QTime":0},"error":{"msg":"q: no","code":400}}"#;
        assert_eq!((solr.0, solr.1.trim_end()), (400, expected));
        let xml = said(&refusal(SearchError::BadRequest("q: <".into()), &[])).1;
        assert!(xml.starts_with("<?xml") && xml.contains("<str name=\"msg\">q: &lt;</str>"), "{xml}");
        let bare = [("omitHeader", "true"), ("wt", "json")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert!(!said(&bad_request("no".into(), &bare)).1.contains("responseHeader"));
        let none = refusal(SearchError::NotEnoughNodes, &json);
        assert_eq!(said(&none), (503, "Not enough nodes are up to service this request.\n".into()));
        assert_eq!(said(&refusal(SearchError::TimedOut, &[])).0, 503);
        assert_eq!(said(&refusal(SearchError::NoIndex("x".into()), &[])), (404, "No index <<\"x\">> found.\n".into()));
        let failed = said(&refusal(SearchError::Failed(StoreFailure::internal("broken").into()), &[]));
        assert!(failed.0 == 500 && failed.1.contains("broken"), "{failed:?}");
    }

    #[test]
    fn a_long_answer_is_written_whole() {
        let value = |at: usize| FieldValues::One(Value::String(format!("{at}:{}", "v".repeat(1_000))));
        let document = |at| Document { fields: vec![("name_s".to_owned(), value(at))], score: None };
        let documents = (0..300).map(document).collect();
        let answer = SearchAnswer { found_count: 300, documents, ..SearchAnswer::default() };
        for format in [Format::Json, Format::Xml] {
            let found = Found { answer: answer.clone(), format };
            let mut held = Held::default();
            let written = futures_util::FutureExt::now_or_never(write(&found, &mut held));
            let text = written.expect("nothing to wait for").unwrap();
            assert_eq!(text, AnswerWriter::to_text(&answer, format));
            assert!(text.len() > 4 * PIECE_BYTES);
        }
    }
}
