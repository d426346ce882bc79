//! The secret of a cluster, and what is computed with it.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;

/// The length of a proof in bytes.
pub(super) const MAC_BYTES: usize = 32;

/// What all nodes of a cluster know and nobody else.
#[derive(Clone)]
pub struct Secret {
    /// HMAC with the key already mixed in.
    keyed: Hmac<Sha256>,
}

/// The secret could be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster's secret has {bytes} bytes and needs at least {}", Secret::BYTES_MIN)]
pub struct SecretTooShort {
    /// The length of the secret in bytes.
    pub bytes: usize,
}

impl Secret {
    /// The minimum length of a secret in bytes.
    pub const BYTES_MIN: usize = 16;

    /// Takes the secret.
    pub fn new(bytes: &[u8]) -> Result<Self, SecretTooShort> {
        let too_short = SecretTooShort { bytes: bytes.len() };
        if bytes.len() < Self::BYTES_MIN {
            return Err(too_short);
        }
        let keyed = Hmac::new_from_slice(bytes).map_err(|_| too_short)?;
        Ok(Self { keyed })
    }

    /// What stands in place of a secret if certificates alone decide who is let in: everybody knows
    /// it. The layer below has to prove who the other side is.
    pub fn known_to_everybody() -> Self {
        Self { keyed: Hmac::new(&Default::default()) }
    }

    /// The proof of `label` and `transcript`, the hash of all that was said.
    pub(super) fn prove(&self, label: &[u8], transcript: &[u8; 32]) -> [u8; MAC_BYTES] {
        self.mac(label, transcript).finalize().into_bytes().into()
    }

    /// Whether `proof` is the proof of `label` and `transcript`. The time that this takes does not
    /// depend on where they differ.
    pub(super) fn verifies(&self, label: &[u8], transcript: &[u8; 32], proof: &[u8; MAC_BYTES]) -> bool {
        self.mac(label, transcript).verify_slice(proof).is_ok()
    }

    fn mac(&self, label: &[u8], transcript: &[u8; 32]) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        // The transcript has a fixed length, so no other label and transcript give these bytes.
        mac.update(label);
        mac.update(transcript);
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
