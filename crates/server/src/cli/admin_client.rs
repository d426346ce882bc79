//! Sends one request to the HTTP port of a node.

use super::admin_token::AdminToken;
use super::failure::Failure;
use super::target::Target;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;
use tokio::net::TcpStream;

/// The largest accepted answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a request did not get a usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// Nothing listens at the address, or what listens there does not answer as an Ombak node does.
    NoUsableAnswer(String),
    /// The node refused the request.
    Refused {
        /// The kind of the error, as in `ombak_api::admin::AdminError`.
        kind: String,
        /// The message for people.
        message: String,
    },
}

impl RequestError {
    /// The failure of a command that has no wording of its own for a refusal.
    pub fn into_failure(self, target: &Target) -> Failure {
        match self {
            Self::NoUsableAnswer(why) => target.unreachable(&why),
            Self::Refused { kind, message } => {
                let message = match target.token.unreadable() {
                    Some(advice) if kind == "no_token" => format!("{message} ({advice})"),
                    _ => message,
                };
                Failure { kind, ..Failure::new(message) }
            }
        }
    }
}

/// Sends a request to the node and returns its JSON answer.
pub async fn request(target: &Target, method: Method, path: &str, body: &str) -> Result<Value, RequestError> {
    json_of(send(ANSWER_TIMEOUT, target, method, path, body).await?)
}

/// Posts a request whose answer may take this long, and returns the JSON of the answer.
pub async fn request_within(limit: Duration, target: &Target, path: &str, body: &str) -> Result<Value, RequestError> {
    json_of(send(limit, target, Method::POST, path, body).await?)
}

fn json_of((status, body): (StatusCode, Bytes)) -> Result<Value, RequestError> {
    let json: Option<Value> = serde_json::from_slice(&body).ok();
    match json {
        Some(json) if status.is_success() => Ok(json),
        Some(json) if json.get("error").is_some() => Err(refused(&json)),
        _ if status.is_success() => Err(no_ombak()),
        _ => Err(refused_by_http(status, &body)),
    }
}

/// Sends a request to the node, and returns the JSON of its answer whatever the status is, unless
/// it is an error of the administration interface.
pub async fn request_any(target: &Target, method: Method, path: &str, body: &str) -> Result<Value, RequestError> {
    let (status, body) = send(ANSWER_TIMEOUT, target, method, path, body).await?;
    let json: Option<Value> = serde_json::from_slice(&body).ok();
    match json {
        Some(json) if json.get("error").is_some() => Err(refused(&json)),
        Some(json) => Ok(json),
        None if status.is_success() => Err(no_ombak()),
        None => Err(refused_by_http(status, &body)),
    }
}

fn no_ombak() -> RequestError {
    RequestError::NoUsableAnswer("the program at this address is not an Ombak node".into())
}

fn refused_by_http(status: StatusCode, body: &[u8]) -> RequestError {
    let message = format!("the node answers {status}: {}", String::from_utf8_lossy(body).trim());
    RequestError::Refused { kind: "http".into(), message }
}

fn refused(json: &Value) -> RequestError {
    let text = |name: &str| json["error"][name].as_str().unwrap_or_default().to_owned();
    RequestError::Refused { kind: text("kind"), message: text("message") }
}

/// Asks the node for a resource of any form. Also an answer with an error has its status and body.
pub async fn fetch(target: &Target, path: &str) -> Result<(StatusCode, Bytes), RequestError> {
    send(ANSWER_TIMEOUT, target, Method::GET, path, "").await
}

async fn send(
    limit: Duration,
    target: &Target,
    method: Method,
    path: &str,
    body: &str,
) -> Result<(StatusCode, Bytes), RequestError> {
    let unreachable = |e: &dyn std::fmt::Display| RequestError::NoUsableAnswer(e.to_string());
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(target.http))
        .await
        .map_err(|_| RequestError::NoUsableAnswer("connecting takes too long".into()))?
        .map_err(|e| unreachable(&e))?;
    let exchange = async {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // An error of the connection also reaches the caller through the request.
        let driver = tokio::spawn(async move { drop(connection.await) });
        let response = sender.send_request(build(target, method, path, body)?).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await?.to_bytes();
        driver.abort();
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((status, body))
    };
    tokio::time::timeout(limit, exchange)
        .await
        .map_err(|_| RequestError::NoUsableAnswer("the answer takes too long".into()))?
        .map_err(|e| RequestError::NoUsableAnswer(format!("the program at this address does not speak HTTP ({e})")))
}

fn build(target: &Target, method: Method, path: &str, body: &str) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, target.http.to_string())
        .header(ombak_api::admin::ADMIN_HEADER, "1")
        .header(CONTENT_TYPE, "application/json");
    if let AdminToken::Known(token) = &target.token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
}
