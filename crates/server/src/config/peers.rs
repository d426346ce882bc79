//! The settings of a node among other nodes: where it listens, whom it asks, how it proves itself.

use super::effective::{Origin, Setting};
use super::host_port::HostPort;
use super::problem::Problem;
use super::reader::Reader;
use super::value::Value;
use ombak_tls::CertificateFiles;
use std::path::PathBuf;
use std::time::Duration;

/// Where a node listens for other nodes, with the key that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerListen {
    /// The key, for example `listener.peer.internal`.
    pub key: String,
    /// The address. Its host may be a name.
    pub on: HostPort,
}

/// The keys of the files with certificates for other nodes.
pub const CERTIFICATE_KEYS: [&str; 3] = ["cluster.ssl.certfile", "cluster.ssl.keyfile", "cluster.ssl.cacertfile"];

/// The files with certificates for other nodes: all of them, or none.
pub(super) fn peer_certificates(from: &Reader<'_>) -> Result<Option<CertificateFiles>, Problem> {
    let missing: Vec<&str> = CERTIFICATE_KEYS.into_iter().filter(|key| from.optional(key).is_none()).collect();
    match missing.as_slice() {
        [] => {
            let [certificate, key, authorities] = CERTIFICATE_KEYS.map(|key| from.text(key).map(PathBuf::from));
            Ok(Some(CertificateFiles { certificate: certificate?, key: key?, authorities: authorities? }))
        }
        all if all.len() == CERTIFICATE_KEYS.len() => Ok(None),
        some => Err(Problem::whole(format!(
            "{} has no value: TLS between nodes needs all of {}",
            some.join(" and "),
            CERTIFICATE_KEYS.join(", ")
        ))),
    }
}

/// The addresses of other nodes, of which a new node asks whether their cluster knows it.
pub(super) fn peers(from: &Reader<'_>) -> Result<Vec<HostPort>, Problem> {
    let address =
        |word: String| HostPort::parse(&word).map_err(|why| Problem::whole(format!("cluster.peers: '{word}': {why}")));
    from.words("cluster.peers")?.into_iter().map(address).collect()
}

/// The file with the secret of the cluster. With certificates there is none unless it was asked
/// for: each node would make a secret of its own.
pub(super) fn peer_secret_file(from: &Reader<'_>) -> Result<Option<PathBuf>, Problem> {
    const KEY: &str = "cluster.secret_file";
    let is_set = from.effective().setting(KEY).is_some_and(|setting| setting.origin != Origin::Default);
    if !is_set && peer_certificates(from)?.is_some() {
        return Ok(None);
    }
    Ok(Some(from.text(KEY)?.into()))
}

/// How old a request between nodes may become.
pub(super) fn peer_request_lifetime(from: &Reader<'_>) -> Result<Duration, Problem> {
    const KEY: &str = "cluster.request_lifetime";
    let lifetime = from.duration(KEY)?;
    if lifetime < Duration::from_secs(1) {
        return Err(Problem::whole(format!(
            "{KEY} must be at least 1s: clocks of nodes are compared over the network"
        )));
    }
    Ok(lifetime)
}

/// The listener for other nodes. A node has at most one address for them.
pub(super) fn peer_listener(from: &Reader<'_>) -> Result<Option<PeerListen>, Problem> {
    let mut listeners = from.effective().instances("listener.peer.$name");
    match (listeners.next(), listeners.next()) {
        (Some(first), Some(second)) => Err(Problem::whole(format!(
            "{} and {} are set: a node has at most one listener for other nodes",
            first.key, second.key
        ))),
        (Some(Setting { key, value: Some(Value::Host(on)), .. }), None) => {
            Ok(Some(PeerListen { key: key.clone(), on: on.clone() }))
        }
        (Some(other), None) => Err(Problem::whole(format!("{} has no address", other.key))),
        (None, _) => Ok(None),
    }
}
