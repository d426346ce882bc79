//! What guesses are counted under.

use super::client_network::ClientNetwork;
use sha2::{Digest, Sha256};

/// What guesses are counted under: a network, or a user there. It is a digest, so a long name costs
/// no more memory than a short one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GuessKey([u8; 32]);

impl GuessKey {
    /// All guesses from a network.
    pub(super) fn of_network(network: ClientNetwork) -> Self {
        Self(Sha256::digest(network.bytes()).into())
    }

    /// The guesses for a user from a network. Only the last part has no fixed length, so no two
    /// pairs are the same bytes.
    pub(super) fn of_pair(user: &str, network: ClientNetwork) -> Self {
        Self(Sha256::new().chain_update(network.bytes()).chain_update([b'/']).chain_update(user).finalize().into())
    }
}
