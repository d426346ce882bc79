//! The address of a server, as the command line gives it.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// An address of the form `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The host: a name or an IP address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "an address is HOST:PORT, as in 127.0.0.1:8087 or [::1]:8087".to_owned();
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let plain = match host.strip_prefix('[').map(|host| host.strip_suffix(']')) {
            Some(inside) => inside.ok_or_else(wrong)?,
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        if plain.is_empty() { Err(wrong()) } else { Ok(Self { host: plain.to_owned(), port }) }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_host_and_a_port() {
        for (text, host, port) in
            [("db1:8087", "db1", 8087), ("127.0.0.1:1", "127.0.0.1", 1), ("[::1]:8098", "::1", 8098)]
        {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port));
            assert_eq!(address.to_string(), text);
        }
        for text in ["", "db1", ":8087", "db1:", "db1:0", "db1:65536", "db1:x", "::1:8087", "[::1:8087", "[]:8087"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
