//! The names of a map's fields.

use bytes::Bytes;
use ombak_types::etf::BinaryText;
use std::fmt;

/// The type of a field. The order is the one of Riak's names, by which values are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldType {
    /// A counter: `riak_dt_emcntr`.
    Counter,
    /// A register: `riak_dt_lwwreg`.
    Register,
    /// A map: `riak_dt_map`.
    Map,
    /// A flag: `riak_dt_od_flag`.
    Flag,
    /// A set: `riak_dt_orswot`.
    Set,
}

impl FieldType {
    /// All types.
    pub const ALL: [Self; 5] = [Self::Counter, Self::Register, Self::Map, Self::Flag, Self::Set];

    /// The name by which Riak stores the type.
    pub const fn riak_name(self) -> &'static str {
        match self {
            Self::Counter => "riak_dt_emcntr",
            Self::Register => "riak_dt_lwwreg",
            Self::Map => "riak_dt_map",
            Self::Flag => "riak_dt_od_flag",
            Self::Set => "riak_dt_orswot",
        }
    }

    /// The type of a name by which Riak stores it.
    pub fn from_riak_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.riak_name() == name)
    }
}

/// A field of a map. Fields with the same name and different types are different fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    /// The name.
    pub name: Bytes,
    /// The type of its value.
    pub kind: FieldType,
}

impl Field {
    /// Creates a field.
    pub fn new(name: impl Into<Bytes>, kind: FieldType) -> Self {
        Self { name: name.into(), kind }
    }
}

impl fmt::Display for Field {
    /// Erlang's text of the field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{},{}}}", BinaryText(&self.name), self.kind.riak_name())
    }
}
