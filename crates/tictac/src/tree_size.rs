//! The sizes of trees.

use crate::tree::LEAVES;

/// How many branches a tree has (docs/riak/semantics.md §8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeSize {
    /// 16 branches.
    XxSmall,
    /// 64 branches.
    XSmall,
    /// 256 branches.
    Small,
    /// 1,024 branches.
    Medium,
    /// 4,096 branches. The trees that Riak keeps have this size.
    Large,
    /// 16,384 branches.
    XLarge,
}

impl TreeSize {
    /// All sizes, in the order of Riak's numbers for them.
    pub const ALL: [Self; 6] = [Self::XxSmall, Self::XSmall, Self::Small, Self::Medium, Self::Large, Self::XLarge];

    /// The name in paths and filters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XxSmall => "xxsmall",
            Self::XSmall => "xsmall",
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
            Self::XLarge => "xlarge",
        }
    }

    /// The size with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.name() == name)
    }

    /// Riak's number for the size, between nodes and clients.
    pub const fn number(self) -> u8 {
        match self {
            Self::XxSmall => 0,
            Self::XSmall => 1,
            Self::Small => 2,
            Self::Medium => 3,
            Self::Large => 4,
            Self::XLarge => 5,
        }
    }

    /// The size with this number.
    pub fn of_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|size| u64::from(size.number()) == number)
    }

    /// The number of branches.
    pub const fn branches(self) -> u32 {
        16 << (2 * self.number())
    }

    /// The leaf of a [segment](crate::Segment) in a tree of this size.
    pub const fn leaf_of(self, segment: u32) -> u32 {
        segment & (self.branches() * LEAVES as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_riaks_widths() {
        let widths = TreeSize::ALL.map(TreeSize::branches);
        assert_eq!(widths, [16, 64, 256, 1024, 4096, 16_384]);
        for size in TreeSize::ALL {
            assert_eq!(TreeSize::of_name(size.name()), Some(size));
            assert_eq!(TreeSize::of_number(size.number().into()), Some(size));
            assert_eq!(size.leaf_of(u32::MAX), size.branches() * 256 - 1);
        }
        assert_eq!(TreeSize::of_name("huge"), None);
        assert_eq!(TreeSize::of_number(6), None);
    }
}
