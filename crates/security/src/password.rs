//! Stored passwords.
//!
//! A password is stored as a hash that is costly to compute. New hashes are argon2id. Hashes of
//! Riak (PBKDF2 with SHA-1) are read, so that users can be taken over from it.

use crate::bounds::PASSWORD_BYTES_MAX;
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::pbkdf2;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::num::NonZeroU32;

/// What a new hash costs: 19 MiB, two passes, one lane. It is what OWASP recommends where memory is
/// scarce. A node compares several passwords at once, and each takes this memory while it does.
const MEMORY_KIB: u32 = 19 << 10;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// What a stored hash may cost. A record must not make a node spend gigabytes or minutes.
const MEMORY_KIB_MAX: u32 = 64 << 10;
const PASSES_MAX: u32 = 8;
const LANES_MAX: u32 = 4;
const ITERATIONS_MAX: u32 = 1_000_000;

/// How many bytes a salt has.
const SALT_BYTES: std::ops::RangeInclusive<usize> = 8..=64;
/// How many bytes the hash of argon2id has.
const HASH_BYTES: std::ops::RangeInclusive<usize> = 16..=64;
/// How many bytes the hash of Riak has. A longer one would cost more.
const SHA1_BYTES: usize = 20;

/// The salt of work whose hash nobody keeps.
const DECOY_SALT: [u8; 16] = [0x5a; 16];

const PBKDF2: &str = "pbkdf2-sha1";
const ARGON2ID: &str = "argon2id";

/// A password as it is stored. It is neither shown nor in errors.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredPassword {
    method: Method,
    salt: Box<[u8]>,
    hash: Box<[u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Pbkdf2Sha1 {
        iterations: NonZeroU32,
    },
    Argon2id {
        memory_kib: u32,
        passes: u32,
        lanes: u32,
    },
    /// As costly as a new hash. No password matches it.
    Decoy,
}

impl Method {
    /// Whether comparing costs less than with a new hash.
    const fn is_cheap(self) -> bool {
        match self {
            Self::Argon2id { memory_kib, passes, .. } => memory_kib * passes < MEMORY_KIB * PASSES,
            Self::Pbkdf2Sha1 { .. } | Self::Decoy => true,
        }
    }
}

/// Why there is no stored password. It has no part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPassword {
    /// A password is empty, or has more than [`PASSWORD_BYTES_MAX`] bytes.
    Length,
    /// A stored hash is not one of those that are known, or costs too much.
    Stored,
    /// There is not enough memory to compute the hash.
    NoMemory,
}

impl fmt::Display for BadPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => write!(f, "a password has 1 to {PASSWORD_BYTES_MAX} bytes"),
            Self::Stored => write!(
                f,
                "a stored password is ${PBKDF2}$i=ITERATIONS$SALT$HASH with hexadecimal digits and at most \
                 {ITERATIONS_MAX} iterations, or ${ARGON2ID}$v=19$m=KIB,t=PASSES,p=LANES$SALT$HASH with at most \
                 {MEMORY_KIB_MAX} KiB, {PASSES_MAX} passes and {LANES_MAX} lanes"
            ),
            Self::NoMemory => f.write_str("there is not enough memory to hash the password"),
        }
    }
}

impl std::error::Error for BadPassword {}

impl StoredPassword {
    /// The hash of a password, with a random salt.
    pub fn new_argon2id(password: &[u8], salt: [u8; 16]) -> Result<Self, BadPassword> {
        if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
            return Err(BadPassword::Length);
        }
        let mut hash = [0; 32];
        argon2id(MEMORY_KIB, PASSES, LANES, &salt, password, &mut hash)?;
        let method = Method::Argon2id { memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES };
        Ok(Self { method, salt: salt.into(), hash: hash.into() })
    }

    /// What the password of nobody is compared with, so that an unknown user takes as long as a
    /// wrong password. No password matches it.
    pub fn decoy() -> Self {
        Self { method: Method::Decoy, salt: DECOY_SALT.into(), hash: [0; 32].into() }
    }

    /// Whether a password is the stored one. It computes a hash, which takes tens of milliseconds
    /// and [`memory_kib`](Self::memory_kib) of memory. How long it takes depends on no byte of the
    /// password and of the hash. Without memory the answer is no.
    ///
    /// A hash of Riak can cost next to nothing. Comparing with a hash that is cheaper than a new
    /// one costs a new one besides, so that its user cannot be told from nobody, whose passwords
    /// are compared with the decoy.
    pub fn matches(&self, given: &[u8]) -> bool {
        if given.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let is_right = match self.method {
            Method::Pbkdf2Sha1 { iterations } => {
                pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA1, iterations, &self.salt, given, &self.hash).is_ok()
            }
            Method::Argon2id { memory_kib, passes, lanes } => {
                let mut hash = vec![0; self.hash.len()];
                let made = argon2id(memory_kib, passes, lanes, &self.salt, given, &mut hash).is_ok();
                made & are_equal(&hash, &self.hash)
            }
            Method::Decoy => false,
        };
        // The work comes first, so that it is done for a wrong password, too.
        (!self.method.is_cheap() || does_the_work_of_a_new_hash(given)) & is_right
    }

    /// How much memory a comparison takes, in KiB.
    pub fn memory_kib(&self) -> u32 {
        match self.method {
            Method::Argon2id { memory_kib, .. } if !self.method.is_cheap() => memory_kib,
            Method::Argon2id { memory_kib, .. } => memory_kib.max(MEMORY_KIB),
            Method::Pbkdf2Sha1 { .. } | Method::Decoy => MEMORY_KIB,
        }
    }

    /// How it is hashed.
    pub fn method(&self) -> &'static str {
        match self.method {
            Method::Pbkdf2Sha1 { .. } => PBKDF2,
            Method::Argon2id { .. } | Method::Decoy => ARGON2ID,
        }
    }

    /// The last 40 hexadecimal digits of the hash, as tables show it. Of argon2id it is a part, and
    /// without the salt nothing can be tried against it.
    pub(crate) fn digits(&self) -> String {
        let hex = hex(&self.hash);
        hex.get(hex.len().saturating_sub(40)..).unwrap_or_default().to_owned()
    }

    /// The text that records have. Argon2id has the form of the PHC, and PBKDF2 one that is like
    /// it, with hexadecimal digits as Riak has them.
    pub fn to_text(&self) -> String {
        match self.method {
            Method::Pbkdf2Sha1 { iterations } => {
                format!("${PBKDF2}$i={iterations}${}${}", hex(&self.salt), hex(&self.hash))
            }
            Method::Argon2id { memory_kib, passes, lanes } => {
                let (salt, hash) = (STANDARD_NO_PAD.encode(&self.salt), STANDARD_NO_PAD.encode(&self.hash));
                format!("${ARGON2ID}$v=19$m={memory_kib},t={passes},p={lanes}${salt}${hash}")
            }
            Method::Decoy => String::new(),
        }
    }

    /// Reads the text of a record. What would cost too much to compare is refused.
    pub fn from_text(text: &str) -> Result<Self, BadPassword> {
        Self::read(text).ok_or(BadPassword::Stored)
    }

    fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.strip_prefix('$')?.split('$').take(7).collect();
        match parts.as_slice() {
            [PBKDF2, iterations, salt, hash] => {
                let iterations = NonZeroU32::new(number(iterations, "i=", ITERATIONS_MAX)?)?;
                let (salt, hash) = (from_hex(salt)?, from_hex(hash)?);
                let fits = SALT_BYTES.contains(&salt.len()) && hash.len() == SHA1_BYTES;
                fits.then(|| Self { method: Method::Pbkdf2Sha1 { iterations }, salt: salt.into(), hash: hash.into() })
            }
            [ARGON2ID, "v=19", costs, salt, hash] => {
                let [memory, passes, lanes] = costs.splitn(3, ',').collect::<Vec<_>>().try_into().ok()?;
                let memory_kib = number(memory, "m=", MEMORY_KIB_MAX)?;
                let passes = number(passes, "t=", PASSES_MAX)?;
                let lanes = number(lanes, "p=", LANES_MAX)?;
                let (salt, hash) = (STANDARD_NO_PAD.decode(salt).ok()?, STANDARD_NO_PAD.decode(hash).ok()?);
                let fits = SALT_BYTES.contains(&salt.len()) && HASH_BYTES.contains(&hash.len());
                Params::new(memory_kib, passes, lanes, Some(hash.len())).ok().filter(|_| fits)?;
                let method = Method::Argon2id { memory_kib, passes, lanes };
                Some(Self { method, salt: salt.into(), hash: hash.into() })
            }
            _ => None,
        }
    }
}

/// Computes a hash as costly as a new one, and forgets it. False without memory.
fn does_the_work_of_a_new_hash(password: &[u8]) -> bool {
    let mut hash = [0; 32];
    let made = argon2id(MEMORY_KIB, PASSES, LANES, &DECOY_SALT, password, &mut hash).is_ok();
    std::hint::black_box(hash);
    made
}

fn argon2id(
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: &[u8],
    password: &[u8],
    hash: &mut [u8],
) -> Result<(), BadPassword> {
    let params = Params::new(memory_kib, passes, lanes, Some(hash.len())).map_err(|_| BadPassword::Stored)?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into(password, salt, hash).map_err(|_| BadPassword::NoMemory)
}

/// Compares in a time that depends on the lengths alone.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (a, b)| std::hint::black_box(sum | (a ^ b)));
    one.len() == other.len() && difference == 0
}

/// A decimal number of at most `max` after a prefix.
fn number(text: &str, prefix: &str, max: u32) -> Option<u32> {
    let digits = text.strip_prefix(prefix)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() <= 10;
    digits.parse().ok().filter(|number| is_number && *number <= max)
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef".get(usize::from(half)).copied().unwrap_or(b'0'));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect())?
}

impl fmt::Debug for StoredPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredPassword({})", self.method())
    }
}

impl Serialize for StoredPassword {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for StoredPassword {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_text(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
