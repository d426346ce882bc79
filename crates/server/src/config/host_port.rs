//! An address of a node for other nodes: a host, by its name or its IP address, and a port.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The longest name of a host in the Domain Name System, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// What a text has to look like.
const SYNTAX: &str = "must be HOST:PORT, such as 10.0.0.1:8099, [::1]:8099 or node-1.example:8099";

/// A host and a port. A name is resolved when the address is used (`node/names.rs`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Ip(IpAddr),
    Name(String),
}

impl HostPort {
    /// Parses an address that others connect to. The error says what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        match Self::parse_to_listen(text)? {
            Self { port: 0, .. } => Err(format!("{SYNTAX}: nobody can connect to port 0")),
            address => Ok(address),
        }
    }

    /// Parses an address to listen on. Port 0 stands for any free port.
    pub fn parse_to_listen(text: &str) -> Result<Self, String> {
        let Some((host, port)) = text.rsplit_once(':') else {
            return Err(format!("{SYNTAX}: the port is missing"));
        };
        if host.is_empty() {
            return Err(format!("{SYNTAX}: the host is missing"));
        }
        Ok(Self { host: Host::parse(host)?, port: parse_port(port)? })
    }

    /// The address, if the host is an IP address.
    pub const fn address(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Ip(ip) => Some(SocketAddr::new(ip, self.port)),
            Host::Name(_) => None,
        }
    }

    /// The name of the host, if it has to be resolved.
    pub const fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Ip(_) => None,
            Host::Name(name) => Some(name.as_str()),
        }
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl Host {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(inner) = text.strip_prefix('[') {
            let ip = inner.strip_suffix(']').and_then(|inner| inner.parse().ok());
            return ip.map(|ip| Self::Ip(IpAddr::V6(ip))).ok_or_else(|| format!("'{text}' is not an IPv6 address"));
        }
        if text.contains(':') {
            return Err(format!("{SYNTAX}: an IPv6 address stands in brackets"));
        }
        if let Ok(ip) = text.parse() {
            return Ok(Self::Ip(IpAddr::V4(ip)));
        }
        let labels = text.strip_suffix('.').unwrap_or(text).split('.');
        // A resolver would take 10.1 for an address: of those, only the usual form is accepted.
        if labels.clone().all(|label| label.bytes().all(|b| b.is_ascii_digit())) {
            return Err(format!("'{text}' is not an IP address"));
        }
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if text.len() > NAME_BYTES_MAX || labels.clone().any(|label| label.is_empty() || !label.bytes().all(is_plain)) {
            return Err(format!("'{text}' is not the name of a host"));
        }
        Ok(Self::Name(text.to_owned()))
    }
}

fn parse_port(text: &str) -> Result<u16, String> {
    // The parser of numbers takes a sign, too.
    let digits = Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("{SYNTAX}: '{text}' is not a port, which is a number up to 65535"))
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => write!(f, "{}", SocketAddr::new(*ip, self.port)),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_of_both_kinds_keep_their_form() {
        for text in ["10.0.0.1:8099", "[::1]:8099", "node-1.example:1", "db_2:65535", "a.b.:80", "1a.2:7"] {
            assert_eq!(HostPort::parse(text).map(|parsed| parsed.to_string()), Ok(text.to_owned()));
        }
        let named = HostPort::parse("db:80").unwrap();
        assert_eq!((named.name(), named.address(), named.port()), (Some("db"), None, 80));
        let plain = HostPort::parse("[::1]:80").unwrap();
        assert_eq!((plain.name(), plain.address()), (None, "[::1]:80".parse().ok()));
    }

    #[test]
    fn what_is_no_host_or_no_port_is_named() {
        for (text, why) in [
            ("db", "the port is missing"),
            (":8099", "the host is missing"),
            ("db:", "'' is not a port"),
            ("db:+80", "'+80' is not a port"),
            ("db:-1", "'-1' is not a port"),
            ("db:65536", "'65536' is not a port"),
            ("db: 80", "' 80' is not a port"),
            ("db:0", "nobody can connect to port 0"),
            ("::1:8099", "an IPv6 address stands in brackets"),
            ("[10.0.0.1]:80", "'[10.0.0.1]' is not an IPv6 address"),
            ("[::1:80", "'[::1' is not an IPv6 address"),
            ("300.0.0.1:80", "'300.0.0.1' is not an IP address"),
            ("10.1:80", "'10.1' is not an IP address"),
            ("a..b:80", "'a..b' is not the name of a host"),
            ("ä:80", "'ä' is not the name of a host"),
            ("riak@db:80", "'riak@db' is not the name of a host"),
        ] {
            let refused = HostPort::parse(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        let long = format!("{}:80", "a".repeat(NAME_BYTES_MAX + 1));
        assert!(HostPort::parse(&long).is_err());
        assert_eq!(HostPort::parse_to_listen("127.0.0.1:0").map(|on| on.port()), Ok(0));
    }
}
