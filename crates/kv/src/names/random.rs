//! Random bytes from the operating system.

use crate::start::OpenError;
use ombak_types::{Error, StoreFailure, StoreFailureKind};

/// A random number for an identity.
pub(crate) fn random_u64() -> Result<u64, OpenError> {
    getrandom::u64()
        .map_err(|e| OpenError::System { what: "random bytes", source: std::io::Error::other(e.to_string()) })
}

/// 160 random bits.
pub(crate) fn random_160() -> Result<[u8; 20], Error> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes)
        .map_err(|e| StoreFailure::new(StoreFailureKind::Io, format!("no random bytes: {e}")))?;
    Ok(bytes)
}
