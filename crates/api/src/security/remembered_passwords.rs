//! Passwords that were verified, so that a request need not pay for a hash again. Hot.
//!
//! What is kept is a digest under a key that exists in this process alone, so nobody can use what
//! is kept to guess passwords faster elsewhere. The digest is one of the user, the password and the
//! stored hash against which the password was verified. When a user gets another password, the
//! stored hash differs, and what was kept is worth nothing.

use hmac::{Hmac, Mac};
use parking_lot::Mutex;
use sha2::Sha256;
use std::collections::HashMap;
use std::fmt;

/// How many users' are kept. There can be no more users at a time. Beyond that, any other one is
/// forgotten and verified anew.
const PASSWORDS_MAX: usize = 10_000;

type Digest = [u8; 32];

/// Passwords that were verified.
pub(super) struct RememberedPasswords {
    key: Hmac<Sha256>,
    /// For each user, what was verified last.
    verified: Mutex<HashMap<Digest, Digest>>,
}

impl RememberedPasswords {
    /// None yet. `key` is random.
    pub(super) fn new(key: [u8; 32]) -> Self {
        let key = <Hmac<Sha256> as Mac>::new_from_slice(&key);
        #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
        let key = key.expect("a key of any length");
        Self { key, verified: Mutex::default() }
    }

    /// Whether this password of a user was verified against this stored hash.
    pub(super) fn has(&self, user: &str, password: &[u8], stored: &str) -> bool {
        let verified = self.verified.lock().get(&self.digest(&[user.as_bytes()])).copied();
        verified.is_some_and(|verified| verified == self.digest(&[user.as_bytes(), password, stored.as_bytes()]))
    }

    /// Notes that this password of a user was verified against this stored hash.
    pub(super) fn note(&self, user: &str, password: &[u8], stored: &str) {
        let (user, digest) =
            (self.digest(&[user.as_bytes()]), self.digest(&[user.as_bytes(), password, stored.as_bytes()]));
        let mut verified = self.verified.lock();
        if verified.len() >= PASSWORDS_MAX
            && !verified.contains_key(&user)
            && let Some(other) = verified.keys().next().copied()
        {
            verified.remove(&other);
        }
        verified.insert(user, digest);
    }

    /// The digest of some parts, which have their lengths in front, so that no two lists of parts
    /// are the same bytes.
    fn digest(&self, parts: &[&[u8]]) -> Digest {
        let mut mac = self.key.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for RememberedPasswords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RememberedPasswords(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_counts_for_its_user_and_its_hash_alone() {
        let remembered = RememberedPasswords::new([7; 32]);
        assert!(!remembered.has("alice", b"secret", "hash"));
        remembered.note("alice", b"secret", "hash");
        assert!(remembered.has("alice", b"secret", "hash"));
        for (user, password, stored) in [
            ("bob", &b"secret"[..], "hash"),
            ("alice", b"Secret", "hash"),
            ("alice", b"secret", "other"),
            ("alic", b"esecret", "hash"),
        ] {
            assert!(!remembered.has(user, password, stored), "{user}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_is_not_forgotten_all_at_once() {
        let remembered = RememberedPasswords::new([7; 32]);
        for number in 0..=PASSWORDS_MAX {
            remembered.note(&number.to_string(), b"secret", "hash");
            assert!(remembered.verified.lock().len() <= PASSWORDS_MAX);
        }
        assert_eq!(remembered.verified.lock().len(), PASSWORDS_MAX);
        assert!(remembered.has(&PASSWORDS_MAX.to_string(), b"secret", "hash"));
    }
}
