//! Webmachine's decision graph: the decisions of HTTP, in the order of Riak's web server.
//!
//! A [`Resource`] states facts: which methods it supports, whether the request is valid, which
//! media types it offers, and whether it exists. This module derives the statuses 304, 405, 406,
//! 412, 501 and most 404s from them, and also the header `Vary`. An answer that is made before the
//! media type was chosen has no `Vary` (docs/riak/http-api.md §17).

use super::conditional::{self, Validators, Verdict};
use super::context::HttpContext;
use super::reply::{Reply, ReplyBody};
use super::request::Request;
use super::wire::headers::name;
use super::wire::request_lines::line;
use super::{accept, csrf, gzip, offload, reply};
use crate::access::Access;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, StatusCode};
use md5::{Digest, Md5};
use smallvec::{SmallVec, smallvec};
use std::future::Future;

/// A list of media types, usually one or two.
pub type Types = SmallVec<[Bytes; 2]>;

/// The media types that a resource can answer with.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// The media types, best first. Empty if answers have no body whose type could be negotiated.
    pub types: Types,
    /// Whether answers may be compressed.
    pub gzip: bool,
}

impl Offers {
    /// Offers only JSON.
    pub fn json() -> Self {
        Self { types: smallvec![Bytes::from_static(b"application/json")], gzip: true }
    }
}

/// Whether a resource exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existence {
    /// It does not exist.
    Missing,
    /// It exists and has these validators.
    Present(Validators),
}

/// The facts about one request to one resource.
pub trait Resource: Send {
    /// What the request does, and to which bucket; `None` if it needs no permission.
    fn access(&self) -> Option<Access<'_>>;

    /// The value of `Allow`. Any other method is refused.
    fn allow(&self) -> &'static str;

    /// Checks the request and reads what is needed to describe the answer. The error is the answer
    /// to the client.
    fn prepare(&mut self) -> impl Future<Output = Result<(), Reply>> + Send {
        async { Ok(()) }
    }

    /// The offered media types. They are known after [`Self::prepare`].
    fn offers(&self) -> Offers;

    /// Whether the resource exists. A missing resource can be written; every other method is
    /// answered with 404.
    fn existence(&mut self) -> impl Future<Output = Result<Existence, Reply>> + Send {
        async { Ok(Existence::Present(Validators::default())) }
    }

    /// Makes the answer. `offer` is the index of the chosen media type.
    fn answer(&mut self, offer: usize) -> impl Future<Output = Reply> + Send;
}

/// The value of `Allow` for a resource that can only be read.
pub const READ_ONLY: &str = "GET, HEAD";

/// Takes a request through all decisions.
pub async fn decide<R: Resource>(ctx: &HttpContext, resource: &mut R, request: &Request) -> Reply {
    if let Err(refusal) = admit(ctx, request, resource.allow(), resource.access()).await {
        return refusal;
    }
    if let Err(refusal) = resource.prepare().await {
        return refusal;
    }
    let offers = resource.offers();
    let offer = match accept::choose(request.header(line::ACCEPT).as_deref(), &offers.types) {
        Some(offer) => offer,
        None if offers.types.is_empty() => 0,
        None => return reply::page(StatusCode::NOT_ACCEPTABLE),
    };
    let mut answer = answer_in_state(resource, request, offer).await;
    if let Some(vary) = vary(&offers) {
        answer.set(name::VARY, vary);
    }
    if offers.gzip && accept::wants_gzip(request.header(line::ACCEPT_ENCODING).as_deref()) {
        compress(answer).await
    } else {
        answer
    }
}

/// The decisions that need no resource: method, checksum, origin, permission.
///
/// Every request passes here before its resource reads anything of it, except those of
/// administration, which ask the same policy in `crate::admin`. The permission is webmachine's
/// decision `forbidden`.
pub async fn admit(
    ctx: &HttpContext,
    request: &Request,
    allow: &'static str,
    access: Option<Access<'_>>,
) -> Result<(), Reply> {
    const KNOWN: [Method; 8] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::TRACE,
        Method::CONNECT,
        Method::OPTIONS,
    ];
    let asked = request.method.as_str().as_bytes();
    if !allow.as_bytes().split(|&byte| byte == b',').any(|method| method.trim_ascii_start() == asked) {
        if !KNOWN.contains(&request.method) {
            return Err(reply::page(StatusCode::NOT_IMPLEMENTED));
        }
        let mut refusal = reply::page(StatusCode::METHOD_NOT_ALLOWED);
        refusal.set(name::ALLOW, allow);
        return Err(refusal);
    }
    if let Some(md5) = request.lines.get(line::CONTENT_MD5) {
        let (md5, body) = (md5.to_vec(), request.body.clone());
        if !offload::run(body.len(), move || is_md5_of(&md5, &body)).await? {
            return Err(reply::page(StatusCode::BAD_REQUEST));
        }
    }
    if csrf::is_foreign(request) {
        return Err(reply::page(StatusCode::FORBIDDEN));
    }
    if let (Some(policy), Some(access)) = (&ctx.policy, access) {
        policy.check(request.session(), &access).map_err(|why| reply::text(StatusCode::FORBIDDEN, why))?;
    }
    Ok(())
}

fn is_md5_of(text: &[u8], body: &[u8]) -> bool {
    STANDARD.decode(text.trim_ascii()).is_ok_and(|given| given == Md5::digest(body)[..])
}

/// The answer in the state that the resource is in: missing, present, unchanged.
async fn answer_in_state<R: Resource>(resource: &mut R, request: &Request, offer: usize) -> Reply {
    let current = match resource.existence().await {
        Err(refusal) => return refusal,
        Ok(Existence::Present(current)) => current,
        Ok(Existence::Missing) if conditional::fails_when_missing(request) => {
            return reply::page(StatusCode::PRECONDITION_FAILED);
        }
        Ok(Existence::Missing) if matches!(request.method, Method::PUT | Method::POST) => {
            return resource.answer(offer).await;
        }
        Ok(Existence::Missing) => return reply::page(StatusCode::NOT_FOUND),
    };
    match conditional::check(request, &current) {
        Verdict::Proceed => resource.answer(offer).await,
        Verdict::Failed => reply::page(StatusCode::PRECONDITION_FAILED),
        Verdict::NotModified => {
            let mut answer = reply::bare(StatusCode::NOT_MODIFIED, Bytes::new());
            if let Some(etag) = current.etag {
                answer.set(name::ETAG, format!("\"{etag}\""));
            }
            answer
        }
    }
}

fn vary(offers: &Offers) -> Option<&'static str> {
    Some(match (offers.types.len() > 1, offers.gzip) {
        (true, true) => "Accept, Accept-Encoding",
        (true, false) => "Accept",
        (false, true) => "Accept-Encoding",
        (false, false) => return None,
    })
}

/// Compresses a body if it is large enough to benefit.
async fn compress(mut answer: Reply) -> Reply {
    const WORTHWHILE: std::ops::RangeInclusive<usize> = 256..=1024 * 1024;
    /// How much longer compressing takes than reading the bytes once.
    const COST: usize = 16;
    let ReplyBody::Whole(plain) = &answer.body else { return answer };
    let is_encoded = answer.headers.get(name::CONTENT_ENCODING).is_some();
    if !WORTHWHILE.contains(&plain.len()) || answer.status == StatusCode::PARTIAL_CONTENT || is_encoded {
        return answer;
    }
    let plain = plain.clone();
    let packed = offload::run(plain.len() * COST, move || gzip::compress(plain)).await.ok().flatten();
    let Some(packed) = packed else { return answer };
    answer.body = ReplyBody::Whole(packed);
    answer.set(name::CONTENT_ENCODING, "gzip");
    // The entity tag names the uncompressed bytes, so for the compressed ones it becomes a weak
    // tag.
    if let Some(etag) = answer.headers.get(name::ETAG) {
        let weak = [b"W/", etag].concat();
        answer.set(name::ETAG, weak);
    }
    answer
}
