//! HyperLogLogs: Riak's `riak_kv_hll`, which estimates how many distinct members were added.

mod biases;
mod estimate;
mod estimates;
mod precision;

pub use precision::Precision;

use sha1::{Digest, Sha1};
use std::collections::BTreeMap;

/// A HyperLogLog.
///
/// A member is hashed by SHA-1. The first P bits of the hash choose a register. The register keeps
/// the largest number of zeros at the beginning of the next P bits, plus 1.
///
/// Invariants: It has 2^P registers, and none is larger than 63.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hll {
    precision: Precision,
    registers: Vec<u8>,
}

/// The registers that a request raised. It needs no past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HllDelta {
    pub(crate) precision: Precision,
    /// Values of registers, not 0.
    pub(crate) registers: BTreeMap<u32, u8>,
}

impl Hll {
    /// The largest value of a register: Riak stores 6 bits.
    pub(crate) const REGISTER_MAX: u8 = 63;

    /// The HyperLogLog that has seen nothing.
    pub fn new(precision: Precision) -> Self {
        Self { precision, registers: vec![0; precision.registers()] }
    }

    /// The estimate.
    pub fn value(&self) -> u64 {
        estimate::estimate(&self.registers, self.precision)
    }

    /// The precision.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// What adding members changes.
    pub fn delta<M: AsRef<[u8]>>(&self, members: impl IntoIterator<Item = M>) -> HllDelta {
        let mut delta = HllDelta::of_members(self.precision, members);
        delta.registers.retain(|index, value| self.registers[*index as usize] < *value);
        delta
    }

    /// Merges what a request changed. The lower precision of both stays.
    pub fn merge_delta(&mut self, delta: &HllDelta) {
        self.reduce(delta.precision);
        delta.registers.iter().for_each(|(index, value)| self.raise(*index as usize, *value));
    }

    /// Merges another copy. The lower precision of both stays.
    pub fn merge(&mut self, other: &Self) {
        self.reduce(other.precision);
        for (index, value) in other.registers.iter().enumerate() {
            self.raise(index, *value);
        }
    }

    /// Lowers the precision. A higher one than the present changes nothing.
    pub fn reduce(&mut self, precision: Precision) {
        if precision < self.precision {
            let before = std::mem::replace(self, Self::new(precision));
            for (index, value) in before.registers.iter().enumerate() {
                self.raise(index, *value);
            }
        }
    }

    /// The bytes that Riak's statistics give for it (`hll_bytes`): the size of its term in memory
    /// while few registers have a value, and then that of the registers.
    pub fn riak_bytes(&self) -> usize {
        let set = self.registers.iter().filter(|value| **value > 0).count();
        if set < self.precision.riak_buffer_max() { 48 + 40 * set } else { self.precision.registers() * 6 / 8 }
    }

    /// The registers in their order.
    pub(crate) fn registers(&self) -> &[u8] {
        &self.registers
    }

    /// Raises the register to which an index of this or of a higher precision leads.
    pub(crate) fn raise(&mut self, index: usize, value: u8) {
        let register = &mut self.registers[index % self.precision.registers()];
        *register = (*register).max(value);
    }
}

impl HllDelta {
    /// What adding members changes at most: for a request that does not read the registers.
    pub fn of_members<M: AsRef<[u8]>>(precision: Precision, members: impl IntoIterator<Item = M>) -> Self {
        let mut registers = BTreeMap::new();
        for member in members {
            let (index, value) = place(member.as_ref(), precision);
            let known = registers.entry(index).or_insert(value);
            *known = value.max(*known);
        }
        Self { precision, registers }
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.registers.is_empty()
    }
}

/// The register of a member, and the value that it asks for.
fn place(member: &[u8], precision: Precision) -> (u32, u8) {
    let hash = Sha1::digest(member);
    let first = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    let bits = u32::from(precision.bits());
    let index = first >> (32 - bits);
    let next = (first << bits) >> (32 - bits);
    // The leading zeros among the next P bits: at most P.
    let zeros = next.leading_zeros() - (32 - bits);
    (index, zeros as u8 + 1)
}

#[cfg(test)]
mod tests;
