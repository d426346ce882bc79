//! Who may use the administration interface.
//!
//! The same user's programs on the same machine may; so may whoever knows the node's admin token. A web page may not,
//! however its owner arranges names and redirects: browsers cannot set [`ADMIN_HEADER`] across origins without asking
//! first (and are never told yes), say where they come from in `Origin` or `Referer`, and name the host that the page
//! came from in `Host`.

use super::AdminError;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, FORWARDED, HOST, ORIGIN, REFERER, VIA};
use std::net::IpAddr;

/// Every request has to carry this header with the value `1`.
pub const ADMIN_HEADER: &str = "x-ombak-admin";

/// The secret that opens the administration interface to callers on other machines (`Authorization: Bearer …`).
#[derive(Clone)]
pub struct AdminToken(String);

impl AdminToken {
    /// From its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Compares without telling by the time it takes how much of it was right.
    fn matches(&self, given: &[u8]) -> bool {
        let mine = self.0.as_bytes();
        !mine.is_empty()
            && mine.len() == given.len()
            && mine.iter().zip(given).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
    }
}

impl std::fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

/// Whether a request from `peer` with these headers may go on.
pub fn check(token: &AdminToken, peer: IpAddr, headers: &HeaderMap) -> Result<(), AdminError> {
    if headers.get(ADMIN_HEADER).is_none_or(|v| v != "1") {
        return Err(AdminError::Forbidden("administration requests need the header X-Ombak-Admin: 1"));
    }
    if headers.contains_key(ORIGIN) || headers.contains_key(REFERER) {
        return Err(AdminError::Forbidden("administration is not for web pages: Origin and Referer are refused"));
    }
    if let Some(given) = headers.get(AUTHORIZATION) {
        let given = given.as_bytes().strip_prefix(b"Bearer ").unwrap_or_default();
        return if token.matches(given) { Ok(()) } else { Err(AdminError::BadToken) };
    }
    if !peer.to_canonical().is_loopback() {
        return Err(AdminError::Forbidden(
            "administration from another machine needs the node's admin token: set OMBAK_ADMIN_TOKEN to the content of \
             admin.token in its data directory",
        ));
    }
    if headers.contains_key(FORWARDED) || headers.contains_key(VIA) || headers.contains_key("x-forwarded-for") {
        return Err(AdminError::Forbidden("administration through a proxy needs the node's admin token"));
    }
    if !headers.get(HOST).is_some_and(|h| names_this_machine(h.as_bytes())) {
        return Err(AdminError::Forbidden(
            "the Host of an administration request without a token must be localhost or a loopback address",
        ));
    }
    Ok(())
}

fn names_this_machine(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(n, v)| (n.parse::<HeaderName>().expect("name"), HeaderValue::from_str(v).expect("value")))
            .collect()
    }

    fn verdict(peer: &str, extra: &[(&str, &str)]) -> Result<(), &'static str> {
        let mut all = vec![("x-ombak-admin", "1")];
        all.extend_from_slice(extra);
        check(&AdminToken::new("secret"), peer.parse().expect("ip"), &headers(&all)).map_err(|e| e.kind())
    }

    #[test]
    fn programs_on_this_machine_may() {
        for host in ["127.0.0.1:8098", "localhost", "LocalHost:8098", "[::1]:8098", "127.9.9.9"] {
            assert_eq!(verdict("127.0.0.1", &[("host", host)]), Ok(()), "{host}");
        }
        assert_eq!(verdict("::ffff:127.0.0.1", &[("host", "localhost:1")]), Ok(()));
    }

    #[test]
    fn the_header_is_required() {
        let none = check(&AdminToken::new("s"), "127.0.0.1".parse().expect("ip"), &headers(&[("host", "localhost")]));
        assert_eq!(none.map_err(|e| e.kind()), Err("forbidden"));
    }

    #[test]
    fn web_pages_may_not_even_with_the_token() {
        let token = ("authorization", "Bearer secret");
        for header in [("origin", "null"), ("origin", "http://127.0.0.1:8098"), ("referer", "http://x/")] {
            assert_eq!(verdict("127.0.0.1", &[("host", "localhost"), header]), Err("forbidden"), "{header:?}");
            assert_eq!(verdict("127.0.0.1", &[("host", "localhost"), header, token]), Err("forbidden"), "{header:?}");
        }
    }

    #[test]
    fn a_name_that_was_made_to_point_here_is_not_this_machine() {
        for host in ["evil.example:8098", "127.0.0.1.evil.example", "localhost.evil.example", "", "10.0.0.1:8098"] {
            assert_eq!(verdict("127.0.0.1", &[("host", host)]), Err("forbidden"), "{host}");
        }
        assert_eq!(verdict("127.0.0.1", &[]), Err("forbidden"));
    }

    #[test]
    fn other_machines_and_proxies_need_the_token() {
        let host = ("host", "db.example:8098");
        assert_eq!(verdict("10.0.0.7", &[("host", "localhost")]), Err("forbidden"));
        assert_eq!(verdict("127.0.0.1", &[("host", "localhost"), ("x-forwarded-for", "1.2.3.4")]), Err("forbidden"));
        assert_eq!(verdict("10.0.0.7", &[host, ("authorization", "Bearer secret")]), Ok(()));
        for wrong in ["Bearer secre", "Bearer secret2", "Bearer ", "secret", "Basic secret"] {
            assert_eq!(verdict("127.0.0.1", &[host, ("authorization", wrong)]), Err("bad_token"), "{wrong}");
        }
    }

    #[test]
    fn an_empty_token_opens_nothing() {
        let given = headers(&[("x-ombak-admin", "1"), ("authorization", "Bearer ")]);
        assert!(check(&AdminToken::new(""), "10.0.0.1".parse().expect("ip"), &given).is_err());
    }
}
