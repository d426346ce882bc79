//! Quorum values: a count or one of Riak's words.

use std::fmt;

/// A quorum in a request or a bucket property (docs/riak/pb-api.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quorum {
    /// A count of positions; 0 requires none.
    Count(u32),
    /// One position.
    One,
    /// A majority of n.
    Majority,
    /// All n positions.
    All,
    /// The value of the bucket property.
    Default,
}

const WIRE_ONE: u32 = u32::MAX - 1;
const WIRE_QUORUM: u32 = u32::MAX - 2;
const WIRE_ALL: u32 = u32::MAX - 3;
const WIRE_DEFAULT: u32 = u32::MAX - 4;

impl Quorum {
    /// Decodes the number of a Protocol Buffers message.
    pub const fn from_wire(n: u32) -> Self {
        match n {
            WIRE_ONE => Self::One,
            WIRE_QUORUM => Self::Majority,
            WIRE_ALL => Self::All,
            WIRE_DEFAULT => Self::Default,
            n => Self::Count(n),
        }
    }

    /// Encodes the number of a Protocol Buffers message.
    pub const fn to_wire(self) -> u32 {
        match self {
            Self::One => WIRE_ONE,
            Self::Majority => WIRE_QUORUM,
            Self::All => WIRE_ALL,
            Self::Default => WIRE_DEFAULT,
            Self::Count(n) => n,
        }
    }

    /// Parses a word (`one`, `quorum`, `all`, `default`); `None` for any other text.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "one" => Self::One,
            "quorum" => Self::Majority,
            "all" => Self::All,
            "default" => Self::Default,
            _ => return None,
        })
    }

    /// The count that the quorum stands for with `n` replicas. `None` for `Default`: resolve it
    /// with the bucket's property first.
    pub const fn expand(self, n: u32) -> Option<u32> {
        match self {
            Self::Count(c) => Some(c),
            Self::One => Some(1),
            Self::Majority => Some(n / 2 + 1),
            Self::All => Some(n),
            Self::Default => None,
        }
    }

    /// This quorum, or `fallback` if it is `Default`.
    pub const fn or_if_default(self, fallback: Self) -> Self {
        match self {
            Self::Default => fallback,
            other => other,
        }
    }
}

impl fmt::Display for Quorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(n) => n.fmt(f),
            Self::One => f.write_str("one"),
            Self::Majority => f.write_str("quorum"),
            Self::All => f.write_str("all"),
            Self::Default => f.write_str("default"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_expand_to_counts() {
        assert_eq!(Quorum::Majority.expand(3), Some(2));
        assert_eq!(Quorum::Majority.expand(4), Some(3));
        assert_eq!(Quorum::All.expand(5), Some(5));
        assert_eq!(Quorum::One.expand(1), Some(1));
        assert_eq!(Quorum::Default.expand(3), None);
    }

    #[test]
    fn the_wire_form_round_trips() {
        for q in [Quorum::One, Quorum::Majority, Quorum::All, Quorum::Default, Quorum::Count(7)] {
            assert_eq!(Quorum::from_wire(q.to_wire()), q);
        }
        assert_eq!(Quorum::from_wire(4_294_967_291), Quorum::Default);
    }
}
