//! What went wrong with TLS, in words for the log.

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};
use std::io;

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// What is wrong with a certificate: the end of a sentence that begins with the certificate.
pub(crate) fn of_certificate(error: &Error) -> String {
    let Error::InvalidCertificate(why) = error else { return format!("cannot be used: {error}") };
    match why {
        CertificateError::ExpiredContext { time, not_after } => expired(*time, *not_after),
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("{}: is the clock of this machine right?", not_valid_yet(*time, *not_before))
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "does not come from an authority that this node trusts".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is for one side of a connection only: its extendedKeyUsage needs both serverAuth and clientAuth, or has \
             to be absent"
                .to_owned()
        }
        CertificateError::BadEncoding => "is damaged".to_owned(),
        CertificateError::Other(other) => match other.to_string() {
            text if text.contains("CaUsedAsEndEntity") => {
                "is that of an authority (CA:TRUE): a node needs a certificate that an authority has issued to it"
                    .to_owned()
            }
            text if text.contains("UnsupportedCertVersion") => {
                "is of version 1 of X.509: it has to be issued with extensions, so that it is of version 3".to_owned()
            }
            text => format!("is not valid: {text}"),
        },
        other => format!("is not valid: {other:?}"),
    }
}

/// A certificate has ended: the end of a sentence that begins with the certificate.
pub(crate) fn expired(time: UnixTime, not_after: UnixTime) -> String {
    let ago = span(time.as_secs().saturating_sub(not_after.as_secs()));
    format!("has expired {ago} ago, or one that comes with it has")
}

/// A certificate has not begun: the end of a sentence that begins with the certificate.
pub(crate) fn not_valid_yet(time: UnixTime, not_before: UnixTime) -> String {
    format!("becomes valid in {} only", span(not_before.as_secs().saturating_sub(time.as_secs())))
}

/// A time span in the largest unit that fits.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / DAY_SECONDS),
    }
}

/// An error of a connection, with words that say which side has to change what.
pub(crate) fn of_connection(error: io::Error) -> io::Error {
    let kind = error.kind();
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else { return error };
    io::Error::new(kind, text(tls))
}

/// An error of the side that opened the connection, before TLS is established.
pub(crate) fn of_connecting(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => io::Error::new(
            error.kind(),
            "the other side closed the connection during the TLS handshake: it may be configured without TLS, and its \
             log says why",
        ),
        _ => of_connection(error),
    }
}

fn text(error: &Error) -> String {
    match error {
        Error::InvalidMessage(_) => {
            "the other side does not speak TLS: a node of this cluster would be configured with a certificate"
                .to_owned()
        }
        Error::NoCertificatesPresented => "the other side has no certificate".to_owned(),
        Error::InvalidCertificate(_) => format!("the certificate of the other side {}", of_certificate(error)),
        Error::AlertReceived(alert) => refused(*alert),
        other => format!("TLS failed: {other}"),
    }
}

fn refused(alert: AlertDescription) -> String {
    let why = match alert {
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "it does not come from an authority that the other side trusts"
        }
        AlertDescription::CertificateExpired => "it has expired, or is not valid yet by the other side's clock",
        AlertDescription::CertificateRequired => "this node has sent none",
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRevoked
        | AlertDescription::AccessDenied => "the log of the other side says why",
        other => return format!("the other side ended TLS with the alert {other:?}, and its log says why"),
    };
    format!("the other side refused the certificate of this node: {why}")
}
