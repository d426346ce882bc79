//! The node that a command talks to.

use super::admin_token::AdminToken;
use super::args::Common;
use super::failure::Failure;
use super::local_config;
use crate::config::HostPort;
use crate::node::record::{NodeRecord, reachable};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

const DEFAULT_HTTP: &str = "127.0.0.1:8098";
const DEFAULT_PB: &str = "127.0.0.1:8087";

/// The address of a node that may be running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The HTTP address. If a single address was given by hand, it is that one, and it may be of
    /// either interface.
    pub http: SocketAddr,
    /// The Protocol Buffers address. `None` if a single address was given by hand; then the node
    /// has to be asked.
    pub pb: Option<SocketAddr>,
    /// How messages to the user name the address.
    pub source: String,
    /// The data directory, if the node was found through it.
    pub data_dir: Option<PathBuf>,
    /// The token for administration requests.
    pub token: AdminToken,
}

impl Target {
    /// Finds the node: from `--node` or OMBAK_NODE, otherwise from `running.json` in the data
    /// directory, otherwise from the configuration, otherwise on the default ports.
    pub fn find(common: &Common) -> Result<Self, Failure> {
        let data_dir = local_config::data_dir(common);
        let record = NodeRecord::read(&data_dir);
        if let Some(node) = &common.node {
            let http = resolve(node)?;
            let token = AdminToken::find(&data_dir, record.as_ref(), http);
            return Ok(Self { http, pb: None, source: node.clone(), data_dir: None, token });
        }
        local_config::check_named(common)?;
        if let Some(record) = &record
            && let (Some(http), Some(pb)) = (record.http.first(), record.pb.first())
        {
            let source = format!("{http} ({})", NodeRecord::path(&data_dir).display());
            let (http, pb) = (reachable(*http), reachable(*pb));
            let token = AdminToken::find(&data_dir, Some(record), http);
            return Ok(Self { http, pb: Some(pb), source, data_dir: Some(data_dir), token });
        }
        let listeners = local_config::listeners(common);
        let has_errors = listeners.is_none();
        let (http, pb) = listeners.unwrap_or_default();
        let http = http.map_or_else(|| resolve(DEFAULT_HTTP), Ok)?;
        let pb = pb.map_or_else(|| resolve(DEFAULT_PB), Ok)?;
        let token = match AdminToken::find(&data_dir, None, http) {
            AdminToken::Unknown if common.data.is_some() => {
                let dir = data_dir.display();
                AdminToken::Unreadable(format!("no node runs in {dir}, so the one at {http} was asked"))
            }
            AdminToken::Unknown if has_errors => AdminToken::Unreadable(format!(
                "the configuration has errors, which 'ombak config check' shows, so the one at {http} was asked"
            )),
            token => token,
        };
        Ok(Self { http, pb: Some(pb), source: http.to_string(), data_dir: None, token })
    }

    /// The failure of a command when no node answers.
    pub fn unreachable(&self, why: &str) -> Failure {
        self.advised(Failure::no_node(format!(
            "no node answers at {}: {why}; start one with 'ombak start', or name another with --node HOST:PORT",
            self.source
        )))
    }

    /// The same failure, with the reason if it may be another node than the user means.
    pub fn advised(&self, failure: Failure) -> Failure {
        match self.token.unreadable() {
            Some(advice) => Failure { message: format!("{failure} ({advice})"), ..failure },
            None => failure,
        }
    }
}

/// The address of the node that a user named. Of a host with addresses of both kinds, it is an IPv4
/// address: the default listeners have one.
fn resolve(node: &str) -> Result<SocketAddr, Failure> {
    let bad = |why: &str| Failure::usage(format!("--node {node}: {why}"));
    let host = HostPort::parse(node).map_err(|why| bad(&why))?;
    let Some(name) = host.name() else { return host.address().ok_or_else(|| bad("it is no address")) };
    let addresses: Vec<SocketAddr> =
        (name, host.port()).to_socket_addrs().map_err(|e| bad(&format!("the name cannot be resolved: {e}")))?.collect();
    let v4 = addresses.iter().find(|address| address.is_ipv4());
    v4.or(addresses.first()).copied().ok_or_else(|| bad("the name has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_of_the_data_directory_goes_before_the_default() {
        let dir = tempfile::tempdir().expect("tempdir");
        let common = Common { data: Some(dir.path().to_owned()), ..Common::default() };
        assert_eq!(Target::find(&common).map(|t| t.http.port()), Ok(8098));
        let address = |text: &str| vec![text.parse().expect("address")];
        NodeRecord::of_this_process("n@h", address("0.0.0.0:1111"), address("0.0.0.0:2222"))
            .write(dir.path())
            .expect("write");
        let found = Target::find(&common).expect("found");
        assert_eq!((found.http.to_string(), found.pb.map(|a| a.port())), ("127.0.0.1:1111".into(), Some(2222)));
        let named = Common { node: Some("127.0.0.1:7".into()), ..common };
        assert_eq!(Target::find(&named).map(|t| (t.http.port(), t.pb)), Ok((7, None)));
    }

    /// A user who may not read the data directory can still reach the node for requests that need
    /// no token.
    #[test]
    fn without_a_record_the_addresses_of_the_configuration_count() {
        let dir = tempfile::tempdir().expect("tempdir");
        let config = dir.path().join("ombak.conf");
        std::fs::write(&config, "listener.http.a = 0.0.0.0:1111\nlistener.protobuf.b = 127.0.0.1:2222").expect("write");
        let common = Common { data: Some(dir.path().to_owned()), config: Some(config), ..Common::default() };
        let found = Target::find(&common).expect("found");
        assert_eq!((found.http.to_string(), found.pb.map(|a| a.port())), ("127.0.0.1:1111".into(), Some(2222)));
    }

    #[test]
    fn a_directory_that_was_named_and_has_no_node_is_told_of() {
        let dir = tempfile::tempdir().expect("tempdir");
        let named = Common { data: Some(dir.path().to_owned()), ..Common::default() };
        let found = Target::find(&named).expect("found");
        let said = found.unreachable("refused").message;
        let expected = format!("(no node runs in {}, so the one at {} was asked)", dir.path().display(), found.http);
        assert!(said.ends_with(&expected), "{said}");
    }

    /// Otherwise a mistyped name would let `stop` end the node of the default directory.
    #[test]
    fn a_named_configuration_that_does_not_exist_finds_no_node() {
        let dir = tempfile::tempdir().expect("tempdir");
        let gone = dir.path().join("gone.conf");
        let common = Common { config: Some(gone.clone()), ..Common::default() };
        let refused = Target::find(&common).expect_err("refused").message;
        assert!(refused.starts_with(&format!("cannot read the configuration {}: ", gone.display())), "{refused}");
        let named = Common { node: Some("127.0.0.1:7".into()), ..common };
        assert!(Target::find(&named).is_ok(), "the address needs no configuration");
    }

    #[test]
    fn a_configuration_with_errors_is_told_of_when_no_node_answers() {
        let dir = tempfile::tempdir().expect("tempdir");
        let config = dir.path().join("ombak.conf");
        std::fs::write(&config, "zork = 1").expect("write");
        let common = Common { config: Some(config), ..Common::default() };
        let said = Target::find(&common).expect("found").unreachable("refused").message;
        assert!(said.contains("the configuration has errors"), "{said}");
    }

    #[test]
    fn a_node_without_a_port_is_wrong_usage() {
        for wrong in ["localhost", "localhost:+80", "localhost:0", ":8098", "::1:8098"] {
            let common = Common { node: Some(wrong.into()), ..Common::default() };
            let refused = Target::find(&common).expect_err(wrong);
            assert_eq!((refused.code, refused.message.matches("HOST:PORT").count()), (2, 1), "{refused}");
        }
    }

    #[test]
    fn a_node_is_named_by_its_host_or_its_address() {
        for (named, found) in [("localhost:7", "127.0.0.1:7"), ("[::1]:7", "[::1]:7"), ("127.0.0.1:7", "127.0.0.1:7")] {
            let common = Common { node: Some(named.into()), ..Common::default() };
            assert_eq!(Target::find(&common).map(|t| t.http.to_string()), Ok(found.into()));
        }
    }
}
