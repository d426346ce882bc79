//! The digests of Erlang's `crypto:hash`.

use md5::Digest;

/// A digest function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Md4,
    Md5,
    Ripemd160,
    Sha,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// All digest functions.
    pub(super) const ALL: [Self; 8] =
        [Self::Md4, Self::Md5, Self::Ripemd160, Self::Sha, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];

    /// The name in Erlang.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Md4 => "md4",
            Self::Md5 => "md5",
            Self::Ripemd160 => "ripemd160",
            Self::Sha => "sha",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// Replaces all bytes from `begin` on by their digest.
    pub(super) fn replace(self, out: &mut Vec<u8>, begin: usize) {
        match self {
            Self::Md4 => replace::<md4::Md4>(out, begin),
            Self::Md5 => replace::<md5::Md5>(out, begin),
            Self::Ripemd160 => replace::<ripemd::Ripemd160>(out, begin),
            Self::Sha => replace::<sha1::Sha1>(out, begin),
            Self::Sha224 => replace::<sha2::Sha224>(out, begin),
            Self::Sha256 => replace::<sha2::Sha256>(out, begin),
            Self::Sha384 => replace::<sha2::Sha384>(out, begin),
            Self::Sha512 => replace::<sha2::Sha512>(out, begin),
        }
    }
}

fn replace<D: Digest>(out: &mut Vec<u8>, begin: usize) {
    let digest = D::digest(out.get(begin..).unwrap_or_default());
    out.truncate(begin);
    out.extend_from_slice(&digest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_published_ones_of_abc() {
        for (hash, hex_begin, bytes) in [
            (Hash::Md4, "a448017a", 16),
            (Hash::Md5, "90015098", 16),
            (Hash::Ripemd160, "8eb208f7", 20),
            (Hash::Sha, "a9993e36", 20),
            (Hash::Sha224, "23097d22", 28),
            (Hash::Sha256, "ba7816bf", 32),
            (Hash::Sha384, "cb00753f", 48),
            (Hash::Sha512, "ddaf35a1", 64),
        ] {
            let mut out = b"keep abc".to_vec();
            hash.replace(&mut out, 5);
            assert_eq!(out.len(), 5 + bytes, "{hash:?}");
            assert!(out.starts_with(b"keep "));
            let begin: String = out[5..9].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(begin, hex_begin, "{hash:?}");
        }
    }
}
