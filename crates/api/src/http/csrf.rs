//! Protection against web pages that cause a browser to send requests here (docs/riak/http-api.md
//! §0).

use super::request::Request;
use super::wire::request_lines::line;
use http::Uri;

/// Whether a request says that it comes from a page of another site: `Origin: null`, or a `Referer`
/// whose scheme, host or port differs from that of the request. A request without these headers is
/// accepted. [`super::pages`] checks other origins.
pub fn is_foreign(request: &Request) -> bool {
    if request.lines.get(line::ORIGIN).is_some_and(|origin| origin.eq_ignore_ascii_case(b"null")) {
        return true;
    }
    if !request.lines.contains(line::REFERER) {
        return false;
    }
    let scheme = if request.session().is_encrypted { "https" } else { "http" };
    let own = request.lines.get_text(line::HOST).map(|host| authority(scheme, host));
    let theirs = request.lines.get_text(line::REFERER).and_then(|r| r.parse::<Uri>().ok()).and_then(|uri| {
        let scheme = uri.scheme_str()?;
        Some(authority(scheme, uri.authority()?.as_str()))
    });
    theirs.is_none() || own != theirs
}

/// Scheme, host and port in a form that can be compared.
pub(super) fn authority(scheme: &str, host: &str) -> (String, String, u16) {
    let scheme = scheme.to_ascii_lowercase();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let standard = if scheme == "https" { 443 } else { 80 };
    match host.rsplit_once(':').and_then(|(name, port)| Some((name.to_owned(), port.parse().ok()?))) {
        Some((name, port)) => (scheme, name, port),
        None => (scheme, host, standard),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn foreign(headers: &[(&str, &str)]) -> bool {
        let mut all = vec![("host", "127.0.0.1:8098")];
        all.extend_from_slice(headers);
        is_foreign(&Request::sample(Method::PUT, "/buckets/b/keys/k", &all))
    }

    #[test]
    fn pages_of_other_sites_are_foreign() {
        assert!(foreign(&[("referer", "http://evil.example/")]));
        assert!(foreign(&[("referer", "http://127.0.0.1:8099/")]));
        assert!(foreign(&[("referer", "https://127.0.0.1:8098/")]));
        assert!(foreign(&[("referer", "zork")]));
        assert!(foreign(&[("origin", "null")]));
    }

    #[test]
    fn the_scheme_is_that_of_the_connection() {
        let over_tls = |referer: &str| {
            let headers = [("host", "127.0.0.1:8443"), ("referer", referer)];
            is_foreign(&Request::sample(Method::PUT, "/buckets/b/keys/k", &headers).over_tls())
        };
        assert!(!over_tls("https://127.0.0.1:8443/buckets"));
        assert!(over_tls("http://127.0.0.1:8443/buckets"));
        assert!(over_tls("https://127.0.0.1/buckets"));
    }

    #[test]
    fn own_pages_and_programs_are_not() {
        assert!(!foreign(&[]));
        assert!(!foreign(&[("referer", "http://127.0.0.1:8098/buckets?buckets=true")]));
        assert!(!foreign(&[("origin", "http://evil.example")]));
        let request = Request::sample(Method::GET, "/", &[("host", "Node"), ("referer", "http://node:80/x")]);
        assert!(!is_foreign(&request));
    }
}
