//! Rules for web pages: what they may do here, and by which names they may call this machine.
//!
//! A browser sends requests of any page to any address. Two rules prevent pages of other sites from
//! using this interface through the browser of a visitor. Programs other than browsers are not
//! affected.
//!
//! * A write with an `Origin` is accepted only from a page of this interface or from an allowed
//!   origin. Riak accepts it from every origin if there is no `Referer`, which a page can leave
//!   out. `Origin: null` does not name an origin and is always refused. A few gets of Riak change
//!   objects. They are writes here, and because browsers send most gets without an `Origin`,
//!   `Sec-Fetch-Site` counts, too.
//! * If no listener uses a wildcard address, a request over a loopback address must name this
//!   machine in `Host`. If the name of a page's site resolves to 127.0.0.1, the browser sends that
//!   name in `Host`; without this rule such a page would pass for a page of this interface. Ports
//!   are ignored, and a request without `Host` does not come from a browser.
//!
//! Riak's rule about `Referer` is in [`super::csrf`].

use super::csrf::authority;
use super::request::Request;
use super::wire::request_lines::line;
use std::net::{IpAddr, SocketAddr};

/// The key that lists allowed origins.
pub const ORIGINS_KEY: &str = "http.allowed_origins";
/// The key that lists further names of this machine.
pub const HOSTS_KEY: &str = "http.allowed_hosts";

/// The highest number of characters of a client's input that a refusal repeats.
const SHOWN_CHARS_MAX: usize = 200;

/// The two rules, with the exceptions that the operator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRules {
    origins: Vec<(String, String, u16)>,
    hosts: Vec<String>,
    serves_any_address: bool,
}

impl PageRules {
    /// Creates the rules. Besides this interface's own, these origins (`SCHEME://HOST[:PORT]`) and
    /// host names are allowed. Invalid origins are ignored.
    pub fn new(origins: &[String], hosts: &[String], listeners: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self {
            origins: origins.iter().filter_map(|origin| parse_origin(origin)).collect(),
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            serves_any_address: listeners.into_iter().any(|listener| listener.ip().is_unspecified()),
        }
    }

    /// Checks whether a request from `peer` is allowed. The error is the text for the client.
    pub fn check(&self, peer: IpAddr, request: &Request) -> Result<(), String> {
        // If a listener uses a wildcard address, a loopback peer may be a proxy that passes on any
        // name.
        if peer.to_canonical().is_loopback() && !self.serves_any_address {
            self.check_host(request)?;
        }
        if request.method.is_safe() { Ok(()) } else { self.check_origin(request) }
    }

    /// Checks a get that changes objects. A browser sends it for any page, with the credentials
    /// that it knows, so it has to come from a program, from a page of this interface or of an
    /// allowed origin, or from the person in front of the browser.
    pub fn check_changing_get(&self, request: &Request) -> Result<(), String> {
        let is_from_elsewhere =
            |site: &&[u8]| !site.eq_ignore_ascii_case(b"same-origin") && !site.eq_ignore_ascii_case(b"none");
        match request.lines.all(line::SEC_FETCH_SITE).find(is_from_elsewhere) {
            Some(site) if !request.lines.contains(line::ORIGIN) => Err(format!(
                "This request changes objects, and a page of another site has caused a browser to send it \
                 (Sec-Fetch-Site: {}). Send it with a program\n",
                shown(site)
            )),
            _ => self.check_origin(request),
        }
    }

    fn check_host(&self, request: &Request) -> Result<(), String> {
        let named = request.lines.all(line::HOST).chain(request.target.authority().map(str::as_bytes));
        for host in named.filter(|host| !host.is_empty()) {
            if !std::str::from_utf8(host).is_ok_and(|host| self.is_own_name(host)) {
                return Err(format!(
                    "This address serves this machine only, and '{}' is none of its names. To allow the name, add it to \
                     {HOSTS_KEY}\n",
                    shown(host)
                ));
            }
        }
        Ok(())
    }

    fn is_own_name(&self, host: &str) -> bool {
        let name = without_port(host);
        let is = |own: &str| own.eq_ignore_ascii_case(name);
        is_loopback(name) || is("localhost") || self.hosts.iter().any(|own| is(own))
    }

    fn check_origin(&self, request: &Request) -> Result<(), String> {
        for origin in request.lines.all(line::ORIGIN) {
            if origin.eq_ignore_ascii_case(b"null") {
                return Err(
                    "A page that does not say where it comes from (Origin: null) may not write here\n".to_owned()
                );
            }
            let parsed = std::str::from_utf8(origin).ok().and_then(parse_origin);
            if !parsed.is_some_and(|parsed| self.origins.contains(&parsed) || is_own_origin(&parsed, request)) {
                return Err(format!(
                    "A page of {} may not write here. To allow it, add that origin to {ORIGINS_KEY}\n",
                    shown(origin)
                ));
            }
        }
        Ok(())
    }
}

/// Parses `SCHEME://HOST[:PORT]` into a form that can be compared. `None` for anything else.
pub fn parse_origin(text: &str) -> Option<(String, String, u16)> {
    let (scheme, host) = text.split_once("://")?;
    let is_plain = |c: char| c.is_ascii_graphic() && !"/@?#\\,".contains(c);
    let well_formed = !scheme.is_empty() && !host.is_empty() && host.chars().all(is_plain);
    well_formed.then(|| authority(scheme, host))
}

/// Whether a page of this origin was served under the name by which this request calls the server.
/// The scheme is ignored, because a proxy may terminate TLS.
fn is_own_origin(origin: &(String, String, u16), request: &Request) -> bool {
    let (scheme, ..) = origin;
    let own = request.lines.get_text(line::HOST);
    matches!(scheme.as_str(), "http" | "https") && own.is_some_and(|host| authority(scheme, host) == *origin)
}

/// Removes port and brackets from `NAME`, `NAME:PORT`, `[V6]` or `[V6]:PORT`.
fn without_port(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(v6) => v6.split_once(']').filter(|(_, port)| is_port(port)).map_or("", |(v6, _)| v6),
        None => host.find(':').map_or(host, |at| if is_port(&host[at..]) { &host[..at] } else { "" }),
    }
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

fn is_loopback(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().map(char::from).take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, headers: &[(&str, &str)]) -> Request {
        Request::sample(method.parse().expect("a method"), "/buckets/b/keys/k", headers)
    }

    fn listening_on(address: &str) -> PageRules {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let (origins, hosts) =
            (texts(&["https://App.example", "http://tool.example:81"]), texts(&["Riak1", "db.example"]));
        PageRules::new(&origins, &hosts, [address.parse().expect("an address")])
    }

    fn verdict(rules: &PageRules, peer: &str, request: &Request) -> Result<(), String> {
        rules.check(peer.parse().expect("an IP address"), request)
    }

    /// Whether a write with these headers is accepted on a loopback listener.
    fn writes(headers: &[(&str, &str)]) -> bool {
        let mut all = vec![("host", "127.0.0.1:8098")];
        all.extend_from_slice(headers);
        verdict(&listening_on("127.0.0.1:8098"), "127.0.0.1", &request("POST", &all)).is_ok()
    }

    #[test]
    fn pages_of_other_sites_do_not_write() {
        for origin in [
            "http://evil.example",
            "null",
            "NULL",
            "",
            "http://127.0.0.1:8099",
            "http://127.0.0.1",
            "http://localhost:8098",
            "127.0.0.1:8098",
            "http://x@127.0.0.1:8098",
            "http://127.0.0.1:8098/",
            "file://127.0.0.1:8098",
            "http://app.example",
            "http://tool.example",
        ] {
            assert!(!writes(&[("origin", origin)]), "{origin}");
        }
        assert!(!writes(&[("origin", "http://127.0.0.1:8098"), ("origin", "http://evil.example")]));
    }

    #[test]
    fn own_pages_and_allowed_ones_write_and_so_do_programs() {
        for origin in [
            "http://127.0.0.1:8098",
            "https://127.0.0.1:8098",
            "https://app.example",
            "https://APP.example:443",
            "http://tool.example:81",
        ] {
            assert!(writes(&[("origin", origin)]), "{origin}");
        }
        assert!(writes(&[]));
    }

    #[test]
    fn standard_ports_need_not_be_said() {
        let behind = |origin, host| {
            let request = request("PUT", &[("origin", origin), ("host", host)]);
            verdict(&listening_on("0.0.0.0:80"), "10.0.0.1", &request).is_ok()
        };
        assert!(behind("http://node", "Node:80") && behind("http://node:80", "node") && behind("https://node", "node"));
        assert!(
            !behind("https://node", "node:80") && !behind("http://node", "node:8080") && !behind("http://node", "")
        );
    }

    #[test]
    fn reading_is_for_every_page() {
        for method in ["GET", "HEAD", "OPTIONS"] {
            let request = request(method, &[("host", "localhost"), ("origin", "http://evil.example")]);
            assert_eq!(verdict(&listening_on("127.0.0.1:8098"), "127.0.0.1", &request), Ok(()), "{method}");
        }
    }

    #[test]
    fn a_get_that_changes_objects_comes_from_no_page_of_another_site() {
        let changes = |headers: &[(&str, &str)]| {
            let mut all = vec![("host", "localhost:8098")];
            all.extend_from_slice(headers);
            listening_on("127.0.0.1:8098").check_changing_get(&request("GET", &all)).is_ok()
        };
        for site in ["cross-site", "same-site", "Cross-Site", "", "new-word"] {
            assert!(!changes(&[("sec-fetch-site", site)]), "{site}");
            assert!(!changes(&[("sec-fetch-site", "none"), ("sec-fetch-site", site)]), "{site}");
        }
        for site in ["same-origin", "none"] {
            assert!(changes(&[("sec-fetch-site", site)]), "{site}");
        }
        assert!(changes(&[]), "a program");
        assert!(!changes(&[("origin", "https://evil.example")]));
        assert!(!changes(&[("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")]));
        assert!(changes(&[("sec-fetch-site", "cross-site"), ("origin", "https://app.example")]), "an allowed origin");
    }

    #[test]
    fn a_loopback_listener_has_to_be_called_by_its_name() {
        let called = |host: &str| {
            let request = request("GET", &[("host", host)]);
            verdict(&listening_on("127.0.0.1:8098"), "127.0.0.1", &request).is_ok()
        };
        for own in [
            "localhost",
            "LocalHost:1",
            "127.0.0.1",
            "127.9.9.9:80",
            "[::1]:8098",
            "[::1]",
            "riak1:8098",
            "DB.example",
            "",
        ] {
            assert!(called(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example:8098",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "10.0.0.1",
            "riak1.evil.example",
            "[::2]",
            "[::1",
            "localhost:x",
            "user@localhost",
        ] {
            assert!(!called(foreign), "{foreign}");
        }
        let nameless = request("GET", &[]);
        assert_eq!(verdict(&listening_on("127.0.0.1:8098"), "127.0.0.1", &nameless), Ok(()));
        let absolute = Request::sample("GET".parse().expect("a method"), "http://evil.example/ping", &[]);
        assert!(verdict(&listening_on("[::1]:8098"), "::1", &absolute).is_err());
    }

    #[test]
    fn a_wider_listener_goes_by_any_name() {
        let request = request("GET", &[("host", "evil.example")]);
        assert_eq!(verdict(&listening_on("0.0.0.0:8098"), "127.0.0.1", &request), Ok(()));
        assert_eq!(verdict(&listening_on("[::]:8098"), "::1", &request), Ok(()));
        assert_eq!(verdict(&listening_on("10.0.0.1:8098"), "10.0.0.1", &request), Ok(()));
    }

    #[test]
    fn a_refusal_says_which_key_to_set_and_repeats_little() {
        let rules = listening_on("127.0.0.1:8098");
        let host = "x".repeat(100_000);
        let refusal = verdict(&rules, "127.0.0.1", &request("GET", &[("host", &host)])).expect_err("refused");
        assert!(refusal.contains("add it to http.allowed_hosts") && refusal.len() < 1000, "{refusal}");
        let headers = [("host", "localhost"), ("origin", "http://evil.example")];
        let refusal = verdict(&rules, "127.0.0.1", &request("PUT", &headers)).expect_err("refused");
        assert_eq!(
            refusal,
            "A page of http://evil.example may not write here. To allow it, add that origin to http.allowed_origins\n"
        );
    }
}
