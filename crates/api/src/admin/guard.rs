//! Decides which clients may use the administration interface.
//!
//! A client that knows the node's admin token may use it, from any address. The address proves
//! nothing: every user of the machine can connect to its loopback addresses, and so can everybody
//! behind a proxy that runs there.
//!
//! The token is a proof of the session, as a certificate is. Whether the session may do what the
//! path needs is decided by the policy of the node, as for every other request. The policy is not
//! asked about a session that has proved nothing. A node without a policy asks for the token. A
//! user who has logged in needs a role or the permission of the path instead of the token.
//!
//! A web page may not use it, even if it knows the token. A browser cannot set [`ADMIN_HEADER`]
//! across origins without asking first, which is never allowed, and it names the page's origin in
//! `Origin` or `Referer`.

use super::AdminError;
use crate::access::{Access, AccessPolicy, Proof, Session};
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

/// Decides whether a request with these header lines, which does this, is allowed.
///
/// A request that proves nothing is refused, whatever the policy says. So a policy that was written
/// for data, and allows what it does not know, does not open administration.
pub(super) fn admit(
    token: &AdminToken,
    policy: Option<&dyn AccessPolicy>,
    session: &Session,
    lines: &RequestLines,
    access: &Access<'_>,
) -> Result<(), AdminError> {
    check_origin(lines)?;
    // A user has logged in with the header line that has the token otherwise.
    let knows_token = session.user.is_none() && check_token(token, lines)?;
    match policy {
        None if knows_token => Ok(()),
        None => Err(AdminError::NoToken),
        Some(policy) => {
            let proved = knows_token.then(|| session.with_proof(Proof::AdminToken));
            let session = proved.as_ref().unwrap_or(session);
            if session.proof == Proof::Nothing {
                return Err(AdminError::NoToken);
            }
            policy.check(session, access).map_err(AdminError::NotPermitted)
        }
    }
}

/// Refuses requests that a web page could have caused.
fn check_origin(lines: &RequestLines) -> Result<(), AdminError> {
    if lines.get(ADMIN_LINE).is_none_or(|v| v != b"1") {
        return Err(AdminError::Forbidden("administration requests need the header X-Ombak-Admin: 1"));
    }
    if lines.contains(line::ORIGIN) || lines.contains(line::REFERER) {
        return Err(AdminError::Forbidden("administration is not for web pages: Origin and Referer are refused"));
    }
    Ok(())
}

/// Whether a request has the token. A wrong one is refused.
fn check_token(token: &AdminToken, lines: &RequestLines) -> Result<bool, AdminError> {
    let mut given = lines.all(line::AUTHORIZATION);
    match (given.next(), given.next()) {
        (None, _) => Ok(false),
        (Some(given), None) if given.strip_prefix(b"Bearer ").is_some_and(|g| token.matches(g)) => Ok(true),
        _ => Err(AdminError::BadToken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AdminRole, NotedAccesses, Permission};

    const STOP: Access<'_> = Access::to_administration(Permission::named("ombak_admin.stop"), AdminRole::Operator);
    const RIGHT: (&str, &str) = ("authorization", "Bearer secret");

    fn verdict(extra: &[(&str, &str)]) -> Result<(), &'static str> {
        verdict_of(None, extra)
    }

    fn verdict_of(policy: Option<&dyn AccessPolicy>, extra: &[(&str, &str)]) -> Result<(), &'static str> {
        let mut all = vec![("x-ombak-admin", "1")];
        all.extend_from_slice(extra);
        admitted(policy, "secret", &all)
    }

    fn admitted(policy: Option<&dyn AccessPolicy>, token: &str, lines: &[(&str, &str)]) -> Result<(), &'static str> {
        admitted_as(&Session::sample(), policy, token, lines)
    }

    fn admitted_as(
        session: &Session,
        policy: Option<&dyn AccessPolicy>,
        token: &str,
        lines: &[(&str, &str)],
    ) -> Result<(), &'static str> {
        let (token, lines) = (AdminToken::new(token), RequestLines::sample(lines));
        admit(&token, policy, session, &lines, &STOP).map_err(|e| e.kind())
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
        assert_eq!(admitted(None, "secret", &[("host", "localhost"), RIGHT]), Err("forbidden"));
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
        assert_eq!(admitted(None, "", &[("x-ombak-admin", "1"), ("authorization", "Bearer ")]), Err("bad_token"));
    }

    #[test]
    fn a_policy_decides_and_sees_the_token_as_a_proof() {
        let policy = NotedAccesses::default();
        assert_eq!(verdict_of(Some(&policy), &[RIGHT]), Ok(()));
        assert_eq!(policy.take(), [("ombak_admin.stop", "-/-".to_owned())]);
        assert_eq!(policy.take_session().map(|session| session.proof), Some(Proof::AdminToken));
        let known = Session::sample().with_proof(Proof::Certificate { name: "operator".into() });
        assert_eq!(
            admitted_as(&known, Some(&policy), "secret", &[("x-ombak-admin", "1")]),
            Ok(()),
            "another proof may do"
        );
        assert_eq!(policy.take_session().map(|session| session.proof), Some(known.proof.clone()));
        let refusing = NotedAccesses::refusing();
        assert_eq!(verdict_of(Some(&refusing), &[RIGHT]), Err("not_permitted"));
        refusing.take();
        for request in [("authorization", "Bearer wrong"), ("origin", "null")] {
            assert!(verdict_of(Some(&refusing), &[request]).is_err());
            assert!(refusing.take().is_empty(), "it is refused before the policy is asked");
        }
    }

    #[test]
    fn a_policy_that_allows_everything_opens_nothing_to_those_who_prove_nothing() {
        let allowing = NotedAccesses::default();
        assert_eq!(verdict_of(Some(&allowing), &[]), Err("no_token"));
        assert!(allowing.take().is_empty(), "it is refused before the policy is asked");
        let known = Session::sample().with_proof(Proof::Certificate { name: "operator".into() });
        let lines = [("x-ombak-admin", "1")];
        assert_eq!(
            admitted_as(&known, None, "secret", &lines),
            Err("no_token"),
            "without a policy only the token counts"
        );
    }
}
