//! Who sends a request while security is on: Basic authentication over TLS
//! (docs/riak/semantics.md §11). Hot while security is on.
//!
//! A request is refused when its head has been read, so nobody sends a body before it is known who
//! sends it.

use super::context::HttpContext;
use super::path::PathGuard;
use super::registry;
use super::reply::{self, Reply};
use super::wire::head::Head;
use super::wire::headers::name;
use super::wire::request_lines::{RequestLines, line};
use crate::access::{Proof, Session};
use crate::security::{Credentials, LoginRefused, NodeSecurity};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use std::sync::Arc;

/// The longest header with credentials, in bytes.
const CREDENTIALS_BYTES_MAX: usize = 8 << 10;

/// What the last request of a connection has proved. Clients send the same header with each
/// request.
pub struct LastLogin {
    header: Vec<u8>,
    session: Arc<Session>,
    /// The state of security in which it was proved.
    version: u64,
}

/// Says who has sent a request, or refuses it. `client` is the session of the connection.
pub async fn identify(
    ctx: &HttpContext,
    security: &NodeSecurity,
    last: &mut Option<LastLogin>,
    client: &Arc<Session>,
    head: &Head,
) -> Result<Arc<Session>, Reply> {
    let given = Given::of(&head.lines, client);
    let version = security.version();
    // Clients send the same credentials with each request, and what the path asks for need not be
    // known then.
    if let (Some(last), Some(given)) = (&*last, given)
        && client.is_encrypted
        && last.is_proved_by(given.header(), version)
    {
        return Ok(Arc::clone(&last.session));
    }
    let is_for_anybody = match registry::guard(head.target.path_bytes()) {
        PathGuard::Anybody => true,
        PathGuard::Monitoring => ctx.monitoring.iter().any(|range| range.contains(client.peer.ip())),
        // Its own guard refuses who has neither the token nor a user.
        PathGuard::Administration => !client.is_encrypted || given.is_none(),
        PathGuard::User => false,
    };
    if is_for_anybody {
        return Ok(Arc::clone(client));
    }
    if !client.is_encrypted {
        return Err(use_https());
    }
    let Some(given) = given else { return Err(unauthorized()) };
    let read = match given {
        Given::Header(header) => read(header).ok_or_else(unauthorized)?,
        Given::Certificate(name) => (name.to_owned(), Vec::new()),
    };
    let session = security.log_in(client, Credentials { user: &read.0, password: &read.1 }).await;
    let session = Arc::new(session.map_err(|refused| match refused {
        LoginRefused::NotProved => unauthorized(),
        LoginRefused::Overload => overload(),
        LoginRefused::Failed => failed(),
    })?);
    *last = Some(LastLogin { header: given.header().to_vec(), session: Arc::clone(&session), version });
    Ok(session)
}

impl LastLogin {
    /// Whether this header proves the same, in this state of security.
    fn is_proved_by(&self, header: &[u8], version: u64) -> bool {
        self.version == version && are_equal(&self.header, header)
    }
}

/// How a client says who it is.
#[derive(Clone, Copy)]
enum Given<'a> {
    /// With encoded credentials in a header.
    Header(&'a [u8]),
    /// With the name in its certificate, if it says nothing else.
    Certificate(&'a str),
}

impl<'a> Given<'a> {
    fn of(lines: &'a RequestLines, client: &'a Session) -> Option<Self> {
        match &client.proof {
            _ if lines.contains(line::AUTHORIZATION) => basic(lines).map(Self::Header),
            Proof::Certificate { name } => Some(Self::Certificate(name)),
            _ => None,
        }
    }

    /// The encoded credentials; empty if there is no header.
    const fn header(self) -> &'a [u8] {
        match self {
            Self::Header(header) => header,
            Self::Certificate(_) => b"",
        }
    }
}

/// The encoded credentials of a request; `None` if it has none, or several.
fn basic(lines: &RequestLines) -> Option<&[u8]> {
    let mut given = lines.all(line::AUTHORIZATION);
    let (Some(given), None) = (given.next(), given.next()) else { return None };
    let (scheme, encoded) = given.split_at_checked(6)?;
    (scheme.eq_ignore_ascii_case(b"basic ") && encoded.len() <= CREDENTIALS_BYTES_MAX).then(|| encoded.trim_ascii())
}

/// The user and the password. The first colon ends the name, so a password may have colons.
fn read(encoded: &[u8]) -> Option<(String, Vec<u8>)> {
    let decoded = STANDARD.decode(encoded).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let user = std::str::from_utf8(&decoded[..colon]).ok()?.to_owned();
    Some((user, decoded[colon + 1..].to_vec()))
}

/// Compares two headers in a time that does not reveal where they differ. Clients of several users
/// may share a connection behind a proxy.
fn are_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && std::hint::black_box(a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b))) == 0
}

fn use_https() -> Reply {
    const TEXT: &str = "Security is enabled and Riak does not accept credentials over HTTP. Try HTTPS instead.";
    reply::text(StatusCode::UPGRADE_REQUIRED, TEXT)
}

fn unauthorized() -> Reply {
    let mut reply = reply::page(StatusCode::UNAUTHORIZED);
    reply.set(name::WWW_AUTHENTICATE, "Basic realm=\"Riak\"");
    reply
}

fn overload() -> Reply {
    let text = "overload: too many clients prove who they are at the same time\n";
    reply::text(StatusCode::SERVICE_UNAVAILABLE, text)
}

fn failed() -> Reply {
    let text = "internal error: the node has failed to check the password\n";
    reply::text(StatusCode::INTERNAL_SERVER_ERROR, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(header: &str) -> Option<(String, String)> {
        let lines = RequestLines::sample(&[("authorization", header)]);
        let (user, password) = read(basic(&lines)?)?;
        Some((user, String::from_utf8(password).unwrap()))
    }

    #[test]
    fn the_first_colon_ends_the_name() {
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let read = |text: &str| credentials(&basic(text));
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(read("alice:secret"), pair("alice", "secret"));
        assert_eq!(read("alice:a:b"), pair("alice", "a:b"));
        assert_eq!(read("alice:"), pair("alice", ""));
        assert_eq!(read(":x"), pair("", "x"));
        assert_eq!(read("alice"), None);
        assert_eq!(credentials(&basic("alice:secret").replace("Basic", "bAsIc")), pair("alice", "secret"));
        for wrong in ["Basic @@@", "Bearer YWxpY2U6c2VjcmV0", "Basic", "", "Basic /w=="] {
            assert_eq!(credentials(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn one_header_alone_counts() {
        let lines = RequestLines::sample(&[("authorization", "Basic YTpi"), ("authorization", "Basic YTpi")]);
        assert_eq!(basic(&lines), None);
        let long = format!("Basic {}", "A".repeat(CREDENTIALS_BYTES_MAX + 1));
        assert_eq!(basic(&RequestLines::sample(&[("authorization", &long)])), None);
    }
}
