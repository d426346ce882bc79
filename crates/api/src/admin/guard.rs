//! Decides which clients may use the administration interface.
//!
//! A client that knows the node's admin token may use it, from any address. The address proves
//! nothing: every user of the machine can connect to its loopback addresses, and so can everybody
//! behind a proxy that runs there.
//!
//! A web page may not use it, even if it knows the token. A browser cannot set [`ADMIN_HEADER`]
//! across origins without asking first, which is never allowed, and it names the page's origin in
//! `Origin` or `Referer`.

use super::AdminError;
use crate::http::request_lines::{LineName, RequestLines, line};

/// The header that every request must carry, with the value `1`.
pub const ADMIN_HEADER: &str = "x-ombak-admin";
const ADMIN_LINE: LineName = LineName::new(ADMIN_HEADER);

/// The secret that gives access to the administration interface (`Authorization: Bearer …`).
#[derive(Clone)]
pub struct AdminToken(String);

impl AdminToken {
    /// Creates the token from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Compares a given token in a time that does not reveal how much of it is right.
    fn matches(&self, given: &[u8]) -> bool {
        let mine = self.0.as_bytes();
        !mine.is_empty()
            && mine.len() == given.len()
            && std::hint::black_box(mine.iter().zip(given).fold(0, |diff, (a, b)| diff | (a ^ b))) == 0
    }
}

impl std::fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

/// Checks whether a request with these header lines is allowed.
pub fn check(token: &AdminToken, lines: &RequestLines) -> Result<(), AdminError> {
    if lines.get(ADMIN_LINE).is_none_or(|v| v != b"1") {
        return Err(AdminError::Forbidden("administration requests need the header X-Ombak-Admin: 1"));
    }
    if lines.contains(line::ORIGIN) || lines.contains(line::REFERER) {
        return Err(AdminError::Forbidden("administration is not for web pages: Origin and Referer are refused"));
    }
    let mut given = lines.all(line::AUTHORIZATION);
    match (given.next(), given.next()) {
        (None, _) => Err(AdminError::NoToken),
        (Some(given), None) if given.strip_prefix(b"Bearer ").is_some_and(|g| token.matches(g)) => Ok(()),
        _ => Err(AdminError::BadToken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const RIGHT: (&str, &str) = ("authorization", "Bearer secret");

    fn verdict(extra: &[(&str, &str)]) -> Result<(), &'static str> {
        let mut all = vec![("x-ombak-admin", "1")];
        all.extend_from_slice(extra);
        check(&AdminToken::new("secret"), &RequestLines::sample(&all)).map_err(|e| e.kind())
    }

    #[test]
    fn the_token_is_required_whatever_the_request_says_of_itself() {
        assert_eq!(verdict(&[RIGHT]), Ok(()));
        for host in ["127.0.0.1:8098", "localhost", "[::1]:8098", "db.example"] {
            assert_eq!(verdict(&[("host", host)]), Err("no_token"), "{host}");
            assert_eq!(verdict(&[("host", host), RIGHT]), Ok(()), "{host}");
        }
        assert_eq!(verdict(&[("host", "localhost"), ("x-forwarded-for", "127.0.0.1")]), Err("no_token"));
    }

    #[test]
    fn a_wrong_token_opens_nothing() {
        for wrong in ["Bearer secre", "Bearer secret2", "Bearer Secret", "Bearer ", "secret", "Basic secret", ""] {
            assert_eq!(verdict(&[("authorization", wrong)]), Err("bad_token"), "{wrong}");
            assert_eq!(verdict(&[("authorization", wrong), RIGHT]), Err("bad_token"), "{wrong} beside the right one");
        }
    }

    #[test]
    fn the_header_is_required() {
        let verdict = check(&AdminToken::new("secret"), &RequestLines::sample(&[("host", "localhost"), RIGHT]));
        assert_eq!(verdict.map_err(|e| e.kind()), Err("forbidden"));
    }

    #[test]
    fn web_pages_may_not_even_with_the_token() {
        for header in [("origin", "null"), ("origin", "http://127.0.0.1:8098"), ("referer", "http://x/")] {
            assert_eq!(verdict(&[("host", "localhost"), header]), Err("forbidden"), "{header:?}");
            assert_eq!(verdict(&[("host", "localhost"), header, RIGHT]), Err("forbidden"), "{header:?}");
        }
    }

    #[test]
    fn an_empty_token_opens_nothing() {
        let given = RequestLines::sample(&[("x-ombak-admin", "1"), ("authorization", "Bearer ")]);
        assert!(check(&AdminToken::new(""), &given).is_err());
    }
}
