//! Cipher suites by the names that OpenSSL gives them, and by those of IANA.
//!
//! Riak hands lists of names to OpenSSL. rustls has nine suites, with forward secrecy and without
//! CBC. Names of other suites are known here, so that an operator can be told that a name is right
//! but cannot be used.

use super::settings::Versions;
use rustls::crypto::ring::ALL_CIPHER_SUITES;
use rustls::{SignatureAlgorithm, SupportedCipherSuite};
use std::collections::HashSet;

/// Each line has OpenSSL's name of a suite and IANA's: what `openssl ciphers -stdname` of OpenSSL
/// 3.0 prints for all suites, and those that older versions had.
const KNOWN: &str = include_str!("known_ciphers.txt");

/// Why a list of ciphers cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CipherError {
    #[error("no known or supported ciphers in list: those that are supported are {}", supported_names().join(":"))]
    NoneSupported,
    #[error(
        "none of the ciphers fits the certificate of this node and the versions of TLS that are on: {fitting} would"
    )]
    NoneFits { fitting: String },
    #[error("{0}")]
    Unusable(String),
}

/// A list of ciphers, sorted by what can be done with its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CipherList {
    /// Names that can be used, as the list has them, in its order.
    pub supported: Vec<String>,
    /// Names of ciphers that this program does not have.
    pub unsupported: Vec<String>,
    /// Names of nothing.
    pub unknown: Vec<String>,
}

/// Sorts the names of a list, which colons, commas or blanks separate. OpenSSL's words for groups
/// of ciphers (`HIGH`, `!aNULL`, `@STRENGTH`) are names of nothing, as in Riak.
pub fn parse(list: &str) -> CipherList {
    let mut parsed = CipherList::default();
    for name in names(list) {
        let group = match suite(name) {
            Some(_) => &mut parsed.supported,
            None if is_known(name) => &mut parsed.unsupported,
            None => &mut parsed.unknown,
        };
        group.push(name.to_owned());
    }
    parsed
}

/// Whether this is the name of a cipher suite, be it supported or not.
pub fn is_known(name: &str) -> bool {
    standard_name(name).is_some()
}

/// Whether this is the name of a cipher suite that this program has.
pub fn is_supported(name: &str) -> bool {
    suite(name).is_some()
}

/// The suites of a list that this program has, each once, in the order of the list.
pub fn supported(list: &str) -> Vec<SupportedCipherSuite> {
    let mut seen = HashSet::new();
    names(list).filter_map(suite).filter(|suite| seen.insert(u16::from(suite.suite()))).collect()
}

/// OpenSSL's names of all suites that this program has, in its order of preference.
pub fn supported_names() -> Vec<&'static str> {
    ALL_CIPHER_SUITES.iter().filter_map(|suite| openssl_name(*suite)).collect()
}

/// The suites that a list allows. A version of TLS of which it names none keeps its own if it is
/// 1.3, as with OpenSSL.
pub(super) fn chosen(list: &str) -> Result<Vec<SupportedCipherSuite>, CipherError> {
    let mut suites = supported(list);
    if suites.is_empty() {
        return Err(CipherError::NoneSupported);
    }
    if suites.iter().all(|suite| suite.tls13().is_none()) {
        suites.extend(ALL_CIPHER_SUITES.iter().filter(|suite| suite.tls13().is_some()));
    }
    Ok(suites)
}

/// Whether a connection can use a suite with these versions and a key of this kind.
pub(super) fn serves(suite: SupportedCipherSuite, versions: Versions, key: SignatureAlgorithm) -> bool {
    match (suite.tls13(), openssl_name(suite)) {
        (Some(_), _) => versions.tls13,
        (None, Some(name)) => versions.tls12 && name.contains("ECDSA") != (key == SignatureAlgorithm::RSA),
        (None, None) => false,
    }
}

/// The names of the suites that a connection can use, for people.
pub(super) fn fitting(versions: Versions, key: SignatureAlgorithm) -> String {
    let fitting = ALL_CIPHER_SUITES.iter().filter(|suite| serves(**suite, versions, key));
    fitting.filter_map(|suite| openssl_name(*suite)).collect::<Vec<_>>().join(":")
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(|c: char| c == ':' || c == ',' || c.is_whitespace()).filter(|name| !name.is_empty())
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    KNOWN.lines().filter_map(|line| line.split_once(' '))
}

/// IANA's name of a suite that is named in either way.
fn standard_name(name: &str) -> Option<&'static str> {
    let is_named =
        |(openssl, iana): &(&str, &str)| openssl.eq_ignore_ascii_case(name) || iana.eq_ignore_ascii_case(name);
    lines().find(is_named).map(|(_, iana)| iana)
}

fn suite(name: &str) -> Option<SupportedCipherSuite> {
    let wanted = standard_name(name)?;
    ALL_CIPHER_SUITES.iter().find(|suite| iana_name(**suite).is_some_and(|iana| iana == wanted)).copied()
}

/// IANA's name of a suite of rustls, whose names of TLS 1.3 begin with the version.
fn iana_name(suite: SupportedCipherSuite) -> Option<String> {
    suite.suite().as_str().map(|name| name.replacen("TLS13_", "TLS_", 1))
}

fn openssl_name(suite: SupportedCipherSuite) -> Option<&'static str> {
    let wanted = iana_name(suite)?;
    lines().find(|(_, iana)| *iana == wanted).map(|(openssl, _)| openssl)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standard(list: &str) -> Vec<String> {
        supported(list).into_iter().filter_map(iana_name).collect()
    }

    #[test]
    fn names_of_openssl_and_of_iana_mean_the_same_suite() {
        let expected = ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"];
        assert_eq!(standard("ECDHE-RSA-AES256-GCM-SHA384:TLS_AES_128_GCM_SHA256"), expected);
        assert_eq!(standard("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls_aes_128_gcm_sha256"), expected);
        let twice = "ECDHE-RSA-AES256-GCM-SHA384:TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
        assert_eq!(standard(twice).len(), 1);
        assert_eq!(standard("ECDHE-RSA-CHACHA20-POLY1305"), ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"]);
    }

    #[test]
    fn every_suite_has_a_name_and_names_are_unique() {
        assert_eq!(supported_names().len(), ALL_CIPHER_SUITES.len());
        assert_eq!(supported(&supported_names().join(":")).len(), ALL_CIPHER_SUITES.len());
        let (openssl, iana): (HashSet<_>, HashSet<_>) = lines().unzip();
        assert_eq!((openssl.len(), iana.len()), (lines().count(), lines().count()));
    }

    #[test]
    fn a_name_that_is_known_need_not_be_supported() {
        let list = "DHE-RSA-AES256-SHA:ECDHE-RSA-AES128-GCM-SHA256:FOO:RC4-SHA:!aNULL:HIGH";
        let parsed = parse(list);
        assert_eq!(parsed.supported, ["ECDHE-RSA-AES128-GCM-SHA256"]);
        assert_eq!(parsed.unsupported, ["DHE-RSA-AES256-SHA", "RC4-SHA"]);
        assert_eq!(parsed.unknown, ["FOO", "!aNULL", "HIGH"]);
        assert!(is_known("AES128-SHA") && !is_supported("AES128-SHA") && !is_known("") && !is_known("AES128-SHA "));
    }

    #[test]
    fn a_list_without_a_supported_name_says_which_would_do() {
        for list in ["", "AES128-SHA", "FOO:BAR"] {
            let error = chosen(list).unwrap_err();
            assert!(error.to_string().contains("ECDHE-RSA-AES256-GCM-SHA384"), "{error}");
        }
    }

    #[test]
    fn a_list_limits_tls_1_3_only_if_it_names_something_of_it() {
        let of_13 = |list: &str| chosen(list).unwrap().iter().filter(|suite| suite.tls13().is_some()).count();
        assert_eq!(of_13("ECDHE-RSA-AES128-GCM-SHA256"), 3);
        assert_eq!(of_13("ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256"), 1);
        assert_eq!(chosen("TLS_AES_128_GCM_SHA256").unwrap().len(), 1);
    }
}
