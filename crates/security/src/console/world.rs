//! What commands need of the outside.

use super::ConsoleError;

/// What commands need of the outside.
pub trait World {
    /// Fills a buffer with random bytes that nobody can guess.
    fn random_bytes(&self, bytes: &mut [u8]) -> Result<(), ConsoleError>;

    /// Whether TLS has the cipher suite of this name, as OpenSSL or the standard calls it.
    fn is_known_cipher(&self, name: &str) -> bool;
}
