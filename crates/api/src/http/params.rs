//! The query parameters of object requests: quorums, switches, time limits.
//!
//! Every parameter is checked on every method, even where it has no effect. The first invalid one
//! is answered with Riak's error text (docs/riak/http-api.md §0, §17).

use super::reply;
use super::request::Request;
use http::StatusCode;
use ombak_kv::{GetOptions, PutOptions};
use ombak_types::Quorum;
use ombak_types::etf::CharListText;
use ombak_types::props::SyncOnWrite;
use reply::Reply;
use std::time::Duration;

/// The parameters of an object request; `None` for those that are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "Riak's parameter names")]
pub struct ObjectParams {
    pub r: Option<Quorum>,
    pub pr: Option<Quorum>,
    pub w: Option<Quorum>,
    pub dw: Option<Quorum>,
    pub pw: Option<Quorum>,
    pub rw: Option<Quorum>,
    pub node_confirms: Option<Quorum>,
    pub basic_quorum: Option<bool>,
    pub notfound_ok: Option<bool>,
    pub sync_on_write: Option<SyncOnWrite>,
    pub timeout: Option<TimeLimit>,
    pub return_body: bool,
    pub asis: bool,
}

/// The value of the parameter `timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// A limit in the future.
    Within(Duration),
    /// The value is 0 or negative, so the time has passed already.
    Passed,
}

impl ObjectParams {
    /// Parses all parameters. The error is the answer about the first invalid one.
    pub fn parse(request: &Request) -> Result<Self, Reply> {
        if !request.has_parameters() {
            return Ok(Self::default());
        }
        let timeout = time_limit(request)?;
        let quorum = |name| quorum(request, name);
        Ok(Self {
            r: quorum("r")?,
            pr: quorum("pr")?,
            w: quorum("w")?,
            dw: quorum("dw")?,
            pw: quorum("pw")?,
            rw: quorum("rw")?,
            node_confirms: quorum("node_confirms")?,
            basic_quorum: boolean(request, "basic_quorum")?,
            notfound_ok: boolean(request, "notfound_ok")?,
            sync_on_write: sync_on_write(request)?,
            timeout,
            return_body: request.parameter_is("returnbody", "true"),
            asis: request.parameter_is("asis", "true"),
        })
    }

    /// The time limit for the engine. The error is the answer if the time has passed already.
    pub fn remaining(&self) -> Result<Option<Duration>, Reply> {
        match self.timeout {
            None => Ok(None),
            Some(TimeLimit::Within(limit)) => Ok(Some(limit)),
            Some(TimeLimit::Passed) => Err(reply::text(StatusCode::SERVICE_UNAVAILABLE, "request timed out\n")),
        }
    }

    /// The options of a read.
    pub fn get_options(&self) -> Result<GetOptions, Reply> {
        Ok(GetOptions {
            r: self.r,
            pr: self.pr,
            node_confirms: self.node_confirms,
            basic_quorum: self.basic_quorum,
            notfound_ok: self.notfound_ok,
            timeout: self.remaining()?,
            ..GetOptions::default()
        })
    }

    /// The options of a write.
    pub fn put_options(&self) -> Result<PutOptions, Reply> {
        Ok(PutOptions {
            w: self.w,
            dw: self.dw,
            pw: self.pw,
            node_confirms: self.node_confirms,
            sync_on_write: self.sync_on_write,
            timeout: self.remaining()?,
            asis: self.asis,
            return_body: self.return_body,
            ..PutOptions::default()
        })
    }
}

/// Parses the parameter `timeout`, in milliseconds.
pub fn time_limit(request: &Request) -> Result<Option<TimeLimit>, Reply> {
    let Some(text) = request.parameter("timeout") else { return Ok(None) };
    match integer(text) {
        Some(ms) => Ok(Some(match u64::try_from(ms) {
            Ok(ms) if ms > 0 => TimeLimit::Within(Duration::from_millis(ms)),
            _ => TimeLimit::Passed,
        })),
        None => Err(bad_time_limit(text)),
    }
}

fn bad_time_limit(text: &[u8]) -> Reply {
    bad(format!("Bad timeout value {}\n", CharListText(text)))
}

/// Parses the parameter `timeout` of a data type: 0 means no limit, and less than 0 is refused.
pub fn time_limit_above_zero(request: &Request) -> Result<Option<TimeLimit>, Reply> {
    match (time_limit(request)?, request.parameter("timeout")) {
        (Some(TimeLimit::Passed), Some(text)) if integer(text) == Some(0) => Ok(None),
        (Some(TimeLimit::Passed), Some(text)) => Err(bad_time_limit(text)),
        (limit, _) => Ok(limit),
    }
}

/// Parses the parameter `timeout` of a listing.
pub fn listing_timeout(request: &Request, default: Duration) -> Result<Duration, Reply> {
    Ok(match time_limit(request)? {
        None => default,
        Some(TimeLimit::Within(limit)) => limit,
        Some(TimeLimit::Passed) => Duration::ZERO,
    })
}

fn quorum(request: &Request, name: &str) -> Result<Option<Quorum>, Reply> {
    let Some(text) = request.parameter(name) else { return Ok(None) };
    if let Some(word) = std::str::from_utf8(text).ok().and_then(Quorum::from_word) {
        return Ok(Some(word));
    }
    match integer(text) {
        // Riak treats -1 as 0. A number that does not fit into 32 bits is above every n.
        Some(n) => Ok(Some(Quorum::Count(u32::try_from(n.max(0)).unwrap_or(u32::MAX)))),
        None => Err(bad(quorum_text(name))),
    }
}

/// The error text about an invalid quorum parameter, in Riak's words.
pub fn quorum_text(name: &str) -> String {
    format!("{name} query parameter must be an integer or one of the following words: 'one', 'quorum' or 'all'\n")
}

fn boolean(request: &Request, name: &str) -> Result<Option<bool>, Reply> {
    boolean_of(name, request.parameter(name))
}

/// Parses a boolean parameter of data types, which Riak takes in upper and lower case.
pub fn boolean_in_any_case(request: &Request, name: &str) -> Result<Option<bool>, Reply> {
    boolean_of(name, request.parameter(name).map(<[u8]>::to_ascii_lowercase).as_deref())
}

fn boolean_of(name: &str, text: Option<&[u8]>) -> Result<Option<bool>, Reply> {
    match text {
        None | Some(b"default") => Ok(None),
        Some(b"true") => Ok(Some(true)),
        Some(b"false") => Ok(Some(false)),
        Some(_) => Err(bad(format!("{name} query parameter must be true or false\n"))),
    }
}

fn sync_on_write(request: &Request) -> Result<Option<SyncOnWrite>, Reply> {
    match request.parameter("sync_on_write") {
        None | Some(b"default") => Ok(None),
        Some(b"backend") => Ok(Some(SyncOnWrite::Backend)),
        Some(b"one") => Ok(Some(SyncOnWrite::One)),
        Some(b"all") => Ok(Some(SyncOnWrite::All)),
        Some(_) => {
            Err(bad("sync_on_write query parameter must be one of the following words: [default,backend,one,all]\n"
                .to_owned()))
        }
    }
}

/// Parses a decimal integer with an optional sign. A number out of range becomes the closest one in
/// range.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX }))
}

fn bad(text: String) -> Reply {
    reply::text(StatusCode::BAD_REQUEST, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn parse(query: &str) -> Result<ObjectParams, StatusCode> {
        let request = Request::sample(Method::GET, &format!("/x?{query}"), &[]);
        ObjectParams::parse(&request).map_err(|r| r.status)
    }

    #[test]
    fn quorums_are_integers_or_words() {
        let params = parse("r=all&pr=default&w=-1&dw=99999999999999999999&pw=%2b2").expect("readable");
        assert_eq!(params.r, Some(Quorum::All));
        assert_eq!(params.pr, Some(Quorum::Default));
        assert_eq!(params.w, Some(Quorum::Count(0)));
        assert_eq!(params.dw, Some(Quorum::Count(u32::MAX)));
        assert_eq!(params.pw, Some(Quorum::Count(2)));
        assert_eq!(params.rw, None);
        for bad in ["r=", "r=foo", "rw=1.5", "node_confirms=%ff", "basic_quorum=foo", "sync_on_write=zork"] {
            assert_eq!(parse(bad), Err(StatusCode::BAD_REQUEST), "{bad}");
        }
    }

    #[test]
    fn a_time_limit_may_have_passed() {
        let limit = |query| parse(query).map(|p| p.timeout);
        assert_eq!(limit("timeout=1000"), Ok(Some(TimeLimit::Within(Duration::from_secs(1)))));
        assert_eq!(limit("timeout=0"), Ok(Some(TimeLimit::Passed)));
        assert_eq!(limit("timeout=-5"), Ok(Some(TimeLimit::Passed)));
        assert_eq!(limit("timeout=foo"), Err(StatusCode::BAD_REQUEST));
        assert_eq!(limit(""), Ok(None));
    }
}
