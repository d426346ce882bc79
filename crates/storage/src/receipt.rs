//! What a store tells of the version that an append has replaced or removed.

/// What an index knows of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedVersion {
    /// The digest that came with the write.
    pub digest: u64,
    /// The position in the store's append order.
    pub seq: u64,
    /// Unix seconds at which the version expires, by the wish of its writer or by the configuration
    /// of the store; 0: never. Folds give the same number.
    pub expires_secs: u32,
}

/// What an append has replaced or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// The key was absent.
    Nothing,
    /// This version, which may have expired.
    Version(IndexedVersion),
    /// Something that the store cannot name, because its index is damaged at this place. The key
    /// may have been absent, too.
    Unknown,
}

impl Previous {
    /// The digest of the version, if it is known.
    pub const fn digest(self) -> Option<u64> {
        match self {
            Self::Version(version) => Some(version.digest),
            Self::Nothing | Self::Unknown => None,
        }
    }
}

/// The receipt of an append. It exists only after the write call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// What this append replaced or removed, also if it had expired.
    pub previous: Previous,
    /// The position in the store's append order.
    pub seq: u64,
    /// Unix seconds at which the appended version expires, as the index has it; 0: never, or
    /// nothing was put.
    pub expires_secs: u32,
}
