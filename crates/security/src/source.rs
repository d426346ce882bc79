//! How clients from some addresses prove who they are.

use crate::address_range::AddressRange;
use crate::bounds::SOURCES_MAX;
use crate::record::{Options, check_options};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// How a client proves that it is the user whom it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Its address is enough.
    Trust,
    /// By the password of the user.
    Password,
    /// By a certificate of TLS whose common name is the name of the user.
    Certificate,
}

impl SourceKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Trust, Self::Password, Self::Certificate];

    /// Its name in commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Password => "password",
            Self::Certificate => "certificate",
        }
    }
}

/// How clients from some addresses prove who they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The addresses.
    #[serde(rename = "cidr")]
    pub range: AddressRange,
    /// How they prove it.
    pub kind: SourceKind,
    /// Options, which mean nothing for the kinds that exist.
    #[serde(default)]
    pub options: Options,
}

/// The source of the most bits that has an address.
pub(crate) fn most_specific(sources: &[Source], address: IpAddr) -> Option<&Source> {
    sources.iter().filter(|source| source.range.contains(address)).max_by_key(|source| source.range.bits())
}

/// Checks the sources of a record. A range has one source.
pub(crate) fn check_sources(sources: &[Source]) -> Result<(), String> {
    if sources.len() > SOURCES_MAX {
        return Err(format!("there can be at most {SOURCES_MAX} sources"));
    }
    let mut ranges: Vec<_> = sources.iter().map(|source| (source.range.first(), source.range.bits())).collect();
    ranges.sort_unstable();
    if ranges.windows(2).any(|two| two[0] == two[1]) {
        return Err("two sources are for the same addresses".to_owned());
    }
    sources.iter().try_for_each(|source| check_options(&source.options))
}
