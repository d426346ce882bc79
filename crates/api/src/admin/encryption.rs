//! What is encrypted on a node, as `ombak admin security status` shows it.

use super::NodeInfo;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;

/// What somebody who reads the network sees of the connections to one kind of listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encryption {
    /// Nothing.
    Always,
    /// Nothing after `RpbStartTls`, which clients use if they want, or have to.
    AfterStartTls,
    /// Everything.
    Never,
}

impl Encryption {
    const fn word(self) -> &'static str {
        match self {
            Self::Always => "yes",
            Self::AfterStartTls => "after_start_tls",
            Self::Never => "no",
        }
    }
}

/// The addresses of one kind, with what people should know of them.
struct Kind<'a> {
    name: &'static str,
    addresses: &'a [SocketAddr],
    encryption: Encryption,
    text: &'static str,
}

/// The lines for people, and the value for programs.
pub(super) fn shown(node: &NodeInfo, has_tls: bool, is_on: bool) -> (String, Value) {
    let kinds = kinds(node, has_tls, is_on);
    let rows = || kinds.iter().flat_map(|kind| kind.addresses.iter().map(move |address| (kind, address)));
    let mut text = "What is encrypted on this node:".to_owned();
    for (Kind { name, text: says, .. }, address) in rows() {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {name:<17} {address:<21} {says}");
    }
    let row = |(kind, address): (&Kind<'_>, &SocketAddr)| json!({ "listener": kind.name, "address": address.to_string(), "encrypted": kind.encryption.word() });
    (text, Value::Array(rows().map(row).collect()))
}

fn kinds(node: &NodeInfo, has_tls: bool, is_on: bool) -> [Kind<'_>; 4] {
    let http = match is_on {
        true => "no; clients are refused while security is on",
        false => "no",
    };
    let (pb_encryption, pb) = match (has_tls, is_on) {
        (true, true) => (Encryption::AfterStartTls, "after RpbStartTls, with which clients have to begin"),
        (true, false) => (Encryption::AfterStartTls, "after RpbStartTls, if a client asks for it"),
        (false, _) => (Encryption::Never, "no; ssl.certfile is not set"),
    };
    let (peer_encryption, peer) = match node.encrypts_peers {
        true => (Encryption::Always, "yes"),
        false => (Encryption::Never, "NO: who reads this network reads all data; set cluster.ssl.certfile"),
    };
    let kind = |name, addresses, encryption, text| Kind { name, addresses, encryption, text };
    [
        kind("listener.http", &node.http[..], Encryption::Never, http),
        kind("listener.https", &node.https[..], Encryption::Always, "yes"),
        kind("listener.protobuf", &node.pb[..], pb_encryption, pb),
        kind("listener.peer", node.peer.as_slice(), peer_encryption, peer),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(shown: &Value) -> Vec<(String, String)> {
        let word = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        shown.as_array().unwrap().iter().map(|row| (word(row, "listener"), word(row, "encrypted"))).collect()
    }

    fn pair((name, word): (&str, &str)) -> (String, String) {
        (name.to_owned(), word.to_owned())
    }

    #[test]
    fn each_listener_says_whether_it_is_encrypted() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let node = NodeInfo {
            https: vec![address(3)],
            peer: Some(address(4)),
            ..NodeInfo::sample(vec![address(1)], vec![address(2)])
        };
        let (text, json) = shown(&node, true, true);
        let all = [
            ("listener.http", "no"),
            ("listener.https", "yes"),
            ("listener.protobuf", "after_start_tls"),
            ("listener.peer", "no"),
        ];
        assert_eq!(words(&json), all.map(pair));
        assert!(text.contains("listener.peer     127.0.0.1:4           NO: who reads this network"), "{text}");
        let (text, json) = shown(&NodeInfo { encrypts_peers: true, ..node }, false, false);
        assert_eq!(words(&json)[2..], [("listener.protobuf", "no"), ("listener.peer", "yes")].map(pair));
        assert!(text.contains("127.0.0.1:4           yes") && !text.contains("refused"), "{text}");
    }
}
