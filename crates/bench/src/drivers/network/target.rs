//! The addresses of servers.

use crate::config::ConfigError;
use crate::term::Term;
use std::fmt;
use std::sync::Arc;

/// The address of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The host: a name or an IP address.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The target of worker k: the entry with index k mod n of n (docs/riak/basho-bench.md §4.1).
pub fn of_worker(targets: &[Target], worker: usize) -> Option<&Target> {
    targets.get(worker % targets.len().max(1))
}

impl Target {
    /// Parses a list of `Ip`, `{Ip, Port}` and `{Ip, [Port]}`, which must not be empty.
    pub fn parse_all(key: &str, term: &Term, port: u16) -> Result<Vec<Self>, ConfigError> {
        let wrong = || {
            let what = "a list of addresses is needed, such as [\"127.0.0.1\", {\"10.0.0.2\", 8087}]";
            ConfigError::setting(key, what)
        };
        let Term::List(items) = term else { return Err(wrong()) };
        let mut targets = Vec::new();
        for item in items {
            match item {
                Term::Tuple(pair) if pair.len() == 2 => {
                    let host = pair.first().and_then(host).ok_or_else(wrong)?;
                    let ports = match pair.get(1) {
                        Some(Term::List(ports)) => ports.as_slice(),
                        Some(port) => std::slice::from_ref(port),
                        None => &[],
                    };
                    for port in ports {
                        targets.push(Self { host: host.clone(), port: number(port).ok_or_else(wrong)? });
                    }
                }
                item => targets.push(Self { host: host(item).ok_or_else(wrong)?, port }),
            }
        }
        if targets.is_empty() { Err(wrong()) } else { Ok(targets) }
    }
}

/// Parses a host: a text, a binary, an atom, or the numbers of an IP address as a tuple.
fn host(term: &Term) -> Option<Arc<str>> {
    let text = match term {
        Term::Text(text) | Term::Atom(text) => text.clone(),
        Term::Binary(bytes) => String::from_utf8(bytes.clone()).ok()?,
        Term::Tuple(parts) if parts.len() == 4 => {
            let part = |part: &Term| match part {
                Term::Integer(n) => u8::try_from(*n).ok().map(|n| n.to_string()),
                _ => None,
            };
            parts.iter().map(part).collect::<Option<Vec<_>>>()?.join(".")
        }
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty()).map(Arc::from)
}

fn number(term: &Term) -> Option<u16> {
    match term {
        Term::Integer(n) => u16::try_from(*n).ok().filter(|&n| n > 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(term: Term) -> Result<Vec<String>, ConfigError> {
        Ok(Target::parse_all("riakc_pb_ips", &term, 8087)?.iter().map(Target::to_string).collect())
    }

    #[test]
    fn every_spelling_of_an_address_is_read() {
        let ip = |last| Term::Tuple([10, 0, 0, last].map(Term::Integer).to_vec());
        let ports = Term::List([1, 2].map(Term::Integer).to_vec());
        let list = Term::List(vec![
            ip(1),
            Term::Text("node".into()),
            Term::Atom("localhost".into()),
            Term::Tuple(vec![Term::Binary(b"h".to_vec()), Term::Integer(9)]),
            Term::Tuple(vec![ip(2), ports]),
        ]);
        let expected = ["10.0.0.1:8087", "node:8087", "localhost:8087", "h:9", "10.0.0.2:1", "10.0.0.2:2"];
        assert_eq!(targets(list).unwrap(), expected);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in [
            Term::List(vec![]),
            Term::Text("127.0.0.1".into()),
            Term::List(vec![Term::Integer(1)]),
            Term::List(vec![Term::Tuple(vec![Term::Text("h".into()), Term::Integer(70_000)])]),
        ] {
            assert!(targets(wrong).unwrap_err().to_string().starts_with("riakc_pb_ips: a list of addresses"));
        }
    }

    #[test]
    fn workers_take_turns() {
        let at = |port| Target { host: "h".into(), port };
        let all = [at(1), at(2), at(3)];
        let ports: Vec<_> = (1..=4).map(|k| of_worker(&all, k).unwrap().port).collect();
        assert_eq!(ports, [2, 3, 1, 2]);
    }
}
