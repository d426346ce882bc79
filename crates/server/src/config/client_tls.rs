//! The settings of TLS with clients.

use super::problem::Problem;
use super::reader::Reader;
use super::value::Value;
use ombak_tls::clients::{ClientFiles, ClientTlsSettings, Versions};
use std::path::PathBuf;
use std::time::Duration;

/// The keys of the files for TLS with clients.
pub const CLIENT_FILE_KEYS: [&str; 4] = ["ssl.certfile", "ssl.keyfile", "ssl.cacertfile", "ssl.crlfile"];

/// Versions of Riak's keys that no library for TLS should have any more.
const GONE_VERSIONS: [(&str, &str); 3] =
    [("tls_protocols.sslv3", "SSL 3"), ("tls_protocols.tlsv1", "TLS 1.0"), ("tls_protocols.tlsv1.1", "TLS 1.1")];

/// How a node uses TLS with its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTlsConfig {
    /// The files and what is allowed.
    pub tls: ClientTlsSettings,
    /// The time limit of a handshake.
    pub handshake_timeout: Duration,
    /// The number of handshakes under way at a time.
    pub handshakes_max: usize,
}

/// How the node uses TLS with its clients; `None` if it does not.
pub(super) fn client_tls(from: &Reader<'_>) -> Result<Option<ClientTlsConfig>, Problem> {
    let [certificate, key, authorities, revocations] = CLIENT_FILE_KEYS.map(|key| path(from, key));
    let (certificate, key) = match (certificate, key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) if authorities.is_none() && revocations.is_none() => return without_files(from),
        (certificate, _) => {
            let missing = if certificate.is_none() { "ssl.certfile" } else { "ssl.keyfile" };
            return Err(Problem::whole(format!(
                "{missing} has no value: TLS for clients needs both ssl.certfile and ssl.keyfile"
            )));
        }
    };
    let tls = ClientTlsSettings {
        files: ClientFiles { certificate, key, authorities, revocations },
        versions: versions(from)?,
        honors_own_order: from.flag("honor_cipher_order")?,
        checks_revocation: from.flag("check_crl")?,
    };
    Ok(Some(ClientTlsConfig {
        tls,
        handshake_timeout: from.duration("ssl.handshake_timeout")?,
        handshakes_max: from.count("ssl.max_handshakes")?,
    }))
}

fn path(from: &Reader<'_>, key: &str) -> Option<PathBuf> {
    match from.optional(key) {
        Some(Value::Text(path)) => Some(path.into()),
        _ => None,
    }
}

fn without_files(from: &Reader<'_>) -> Result<Option<ClientTlsConfig>, Problem> {
    match from.listeners("listener.https.$name")?.first() {
        None => Ok(None),
        Some(on) => Err(Problem::whole(format!(
            "{} = {} needs a certificate: set ssl.certfile and ssl.keyfile",
            on.key, on.address
        ))),
    }
}

fn versions(from: &Reader<'_>) -> Result<Versions, Problem> {
    for (key, name) in GONE_VERSIONS {
        if from.flag(key)? {
            return Err(Problem::whole(format!(
                "{key} = on: {name} is not safe and does not exist here; clients have to speak TLS 1.2 or 1.3. Set {key} \
                 = off"
            )));
        }
    }
    let versions = Versions { tls12: from.flag("tls_protocols.tlsv1.2")?, tls13: from.flag("tls_protocols.tlsv1.3")? };
    if !versions.tls12 && !versions.tls13 {
        return Err(Problem::whole(
            "tls_protocols.tlsv1.2 and tls_protocols.tlsv1.3 are both off, and there is no other version of TLS: set one \
             of them to on",
        ));
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::super::{Effective, Overrides, Settings};
    use super::*;
    use std::path::Path;

    const FILES: &str = "ssl.certfile = c.pem\nssl.keyfile = k.pem\n";

    fn settings(text: &str) -> Result<Settings, String> {
        let effective = Effective::merge(Some((Path::new("x.conf"), text)), &Overrides::default()).expect("valid");
        assert!(effective.warnings.is_empty(), "{:?}", effective.warnings);
        Settings::new(&effective).map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    fn tls(text: &str) -> ClientTlsConfig {
        settings(text).expect("valid").client_tls.expect("a certificate is set")
    }

    #[test]
    fn a_node_has_tls_for_clients_if_it_has_a_certificate() {
        assert_eq!(settings("").expect("valid").client_tls, None);
        let usual = tls(FILES);
        assert_eq!(usual.tls.files.certificate, Path::new("c.pem"));
        assert_eq!((usual.tls.files.authorities, usual.tls.files.revocations), (None, None));
        assert_eq!(usual.tls.versions, Versions { tls12: true, tls13: true });
        assert!(usual.tls.checks_revocation && !usual.tls.honors_own_order);
        assert_eq!((usual.handshake_timeout, usual.handshakes_max), (Duration::from_secs(10), 512));
        let other = tls(&format!(
            "{FILES}ssl.cacertfile = a.pem\nssl.crlfile = r.pem\ncheck_crl = off\nhonor_cipher_order = on\n\
             tls_protocols.tlsv1.2 = off\nssl.handshake_timeout = 2s\nssl.max_handshakes = 7\n"
        ));
        assert_eq!(other.tls.files.authorities.as_deref(), Some(Path::new("a.pem")));
        assert_eq!(other.tls.files.revocations.as_deref(), Some(Path::new("r.pem")));
        assert_eq!(other.tls.versions, Versions { tls12: false, tls13: true });
        assert!(!other.tls.checks_revocation && other.tls.honors_own_order);
        assert_eq!((other.handshake_timeout, other.handshakes_max), (Duration::from_secs(2), 7));
    }

    #[test]
    fn a_listener_for_https_needs_a_certificate_and_a_certificate_its_key() {
        let listener = "listener.https.a = 127.0.0.1:8443\n";
        let error = settings(listener).expect_err("no certificate");
        assert_eq!(error, "listener.https.a = 127.0.0.1:8443 needs a certificate: set ssl.certfile and ssl.keyfile");
        let valid = settings(&format!("{listener}{FILES}")).expect("valid");
        assert_eq!(valid.https.iter().map(|on| on.address.to_string()).collect::<Vec<_>>(), ["127.0.0.1:8443"]);
        let clash = settings(&format!("{listener}{FILES}listener.http.b = 127.0.0.1:8443\n")).err();
        assert_eq!(clash.as_deref(), Some("listener.http.b and listener.https.a are both 127.0.0.1:8443"));
        for (some, missing) in [
            ("ssl.certfile = c.pem", "ssl.keyfile"),
            ("ssl.keyfile = k.pem", "ssl.certfile"),
            ("ssl.cacertfile = a.pem", "ssl.certfile"),
            ("ssl.crlfile = r.pem", "ssl.certfile"),
        ] {
            let error = settings(some).expect_err("incomplete");
            assert!(error.starts_with(&format!("{missing} has no value")), "{error}");
        }
    }

    #[test]
    fn versions_that_do_not_exist_here_are_refused_where_they_would_count() {
        for (key, name) in GONE_VERSIONS {
            let on = format!("{key} = on\n");
            assert!(settings(&on).is_ok(), "there is no TLS");
            let error = settings(&format!("{FILES}{on}")).expect_err("it does not exist");
            assert!(error.starts_with(&format!("{key} = on: {name} is not safe")), "{error}");
        }
        let neither = "tls_protocols.tlsv1.2 = off\ntls_protocols.tlsv1.3 = off\n";
        assert!(settings(&format!("{FILES}{neither}")).expect_err("no version").contains("set one of them to on"));
    }
}
