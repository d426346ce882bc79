//! What went wrong in a handshake with a client, in words for the log.

use crate::failure::{expired, not_valid_yet};
use rustls::{AlertDescription, CertRevocationListError, CertificateError, Error, PeerIncompatible};
use std::io;

/// An error of a handshake with a client, with words that say what has to change.
pub fn explain(error: io::Error) -> io::Error {
    let kind = error.kind();
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(tls) => io::Error::new(kind, text(tls)),
        None => error,
    }
}

fn text(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => format!("the certificate of the client {}", of_certificate(why)),
        Error::InvalidCertRevocationList(why) => {
            format!("the list of revoked certificates (ssl.crlfile) of the client's authority {}", of_list(why))
        }
        Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon) => {
            "the client has no cipher that this node allows with its certificate".to_owned()
        }
        Error::PeerIncompatible(
            // Every client of TLS 1.2 has this extension.
            PeerIncompatible::SignatureAlgorithmsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::ServerDoesNotSupportTls12Or13,
        ) => "the client offers no version of TLS that is on (tls_protocols)".to_owned(),
        Error::PeerIncompatible(why) => format!("the client and this node have too little in common: {why:?}"),
        Error::InvalidMessage(why) => format!("the client does not speak TLS, or breaks its rules: {why:?}"),
        Error::AlertReceived(alert) => refused(*alert),
        other => format!("TLS failed: {other}"),
    }
}

fn of_certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::ExpiredContext { time, not_after } => expired(*time, *not_after),
        CertificateError::NotValidYetContext { time, not_before } => not_valid_yet(*time, *not_before),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "does not come from an authority in ssl.cacertfile".to_owned()
        }
        CertificateError::Revoked => "is revoked, or one that comes with it is".to_owned(),
        CertificateError::UnknownRevocationStatus => {
            "may be revoked: ssl.crlfile has no list of its authority, or of one between".to_owned()
        }
        CertificateError::ExpiredRevocationList | CertificateError::ExpiredRevocationListContext { .. } => {
            "may be revoked: the list of its authority in ssl.crlfile is out of date".to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "is signed in a way that is not accepted, such as with SHA-1".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is not for clients: its extendedKeyUsage has no clientAuth".to_owned()
        }
        CertificateError::BadEncoding => "is damaged".to_owned(),
        CertificateError::Other(other) => match other.to_string() {
            text if text.contains("CaUsedAsEndEntity") => "is that of an authority (CA:TRUE)".to_owned(),
            text if text.contains("EndEntityUsedAsCa") => {
                "was issued with a certificate that is not that of an authority".to_owned()
            }
            text if text.contains("UnsupportedCertVersion") => "is of version 1 of X.509".to_owned(),
            text => format!("is not valid: {text}"),
        },
        other => format!("is not valid: {other:?}"),
    }
}

fn of_list(why: &CertRevocationListError) -> String {
    match why {
        CertRevocationListError::BadSignature => "is not signed with the key of that authority".to_owned(),
        other => format!("cannot be used: {other:?}"),
    }
}

fn refused(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked => {
            format!("the client refused the certificate of this node ({alert:?})")
        }
        other => format!("the client ended the handshake ({other:?})"),
    }
}
