//! The keys of one worker.

use super::draw::Exhausted;
use super::format::{Argument, Format, Kind};
use super::hash::Hash;
use super::integers::IntegerSource;
use super::keys::Order;
use super::lines::Lines;
use super::random::Random;
use super::value_source::ValueSource;
use super::words::print;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use std::sync::Arc;

/// A source of keys. Each generator appends to the buffer of the generators around it. A generator
/// that needs the inner result separately has a buffer of its own.
#[derive(Debug)]
pub(super) enum KeySource {
    Integers(IntegerSource),
    Constant(Bytes),
    Uuid,
    Lines(Arc<Lines>),
    Value(Box<ValueSource>),
    Packed { bytes: usize, order: Order, integers: IntegerSource },
    PrintedInteger { format: Format, integers: IntegerSource },
    PrintedBytes { format: Format, kind: Kind, argument: Box<Self>, buffer: Vec<u8> },
    Base64 { inner: Box<Self>, buffer: Vec<u8> },
    Hashed(Hash, Box<Self>),
    Joined(Box<[Self; 2]>),
}

impl KeySource {
    /// Appends the next key.
    pub(super) fn append(&mut self, random: &mut Random, out: &mut Vec<u8>) -> Result<(), Exhausted> {
        match self {
            Self::Integers(integers) => {
                let n = integers.next(random)?;
                print(out, format_args!("{n}"));
            }
            Self::Constant(bytes) => out.extend_from_slice(bytes),
            Self::Uuid => out.extend_from_slice(&uuid(random)),
            Self::Lines(lines) => lines.append(out)?,
            Self::Value(values) => out.extend_from_slice(values.next(random)),
            Self::Packed { bytes, order, integers } => pack(integers.next(random)?, *bytes, *order, out),
            Self::PrintedInteger { format, integers } => {
                format.print(Argument::Integer(integers.next(random)?), out);
            }
            Self::PrintedBytes { format, kind, argument, buffer } => {
                buffer.clear();
                argument.append(random, buffer)?;
                let argument = match kind {
                    Kind::String => Argument::String(buffer),
                    Kind::Binary | Kind::Integer => Argument::Binary(buffer),
                };
                format.print(argument, out);
            }
            Self::Base64 { inner, buffer } => {
                buffer.clear();
                inner.append(random, buffer)?;
                print(out, format_args!("{}", Base64Display::new(buffer, &STANDARD)));
            }
            Self::Hashed(hash, inner) => {
                let begin = out.len();
                inner.append(random, out)?;
                hash.replace(out, begin);
            }
            Self::Joined(both) => {
                for each in both.iter_mut() {
                    each.append(random, out)?;
                }
            }
        }
        Ok(())
    }
}

/// A random UUID, version 4 (RFC 9562 §5.4).
fn uuid(random: &mut Random) -> [u8; 16] {
    let high = random.next_u64() & !0xf000 | 0x4000;
    let low = random.next_u64() >> 2 | 1 << 63;
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

/// Appends the lowest bytes of an integer, as Erlang's `<<N:Bits/big>>` and `<<N:Bits/little>>` do.
fn pack(n: i64, bytes: usize, order: Order, out: &mut Vec<u8>) {
    const BYTES: usize = size_of::<i64>();
    let sign = if n < 0 { 0xff } else { 0 };
    let (filling, own) = (bytes.saturating_sub(BYTES), bytes.min(BYTES));
    match order {
        Order::BigEndian => {
            out.resize(out.len() + filling, sign);
            out.extend(n.to_be_bytes().into_iter().skip(BYTES - own));
        }
        Order::LittleEndian => {
            out.extend(n.to_le_bytes().into_iter().take(own));
            out.resize(out.len() + filling, sign);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn uuids_are_of_version_4_and_differ() {
        let mut random = Random::new([42, 23, 12], 1);
        let (mut all_ones, mut all_zeros) = ([0xff; 16], [0; 16]);
        for _ in 0..1000 {
            let uuid = uuid(&mut random);
            assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (4, 2));
            for (i, byte) in uuid.into_iter().enumerate() {
                all_ones[i] &= byte;
                all_zeros[i] |= byte;
            }
        }
        assert_eq!(u128::from_be_bytes(all_ones), 0x4000 << 64 | 2 << 62);
        assert_eq!(u128::from_be_bytes(all_zeros), !(0xb000 << 64 | 1 << 62));
    }

    proptest! {
        #[test]
        fn packed_integers_are_erlangs(n in any::<i64>()) {
            let packed = |bytes, order| {
                let mut out = vec![7];
                pack(n, bytes, order, &mut out);
                out.split_off(1)
            };
            prop_assert_eq!(packed(4, Order::BigEndian), (n as u32).to_be_bytes());
            prop_assert_eq!(packed(4, Order::LittleEndian), (n as u32).to_le_bytes());
            prop_assert_eq!(packed(16, Order::BigEndian), i128::from(n).to_be_bytes());
            prop_assert_eq!(packed(16, Order::LittleEndian), i128::from(n).to_le_bytes());
            prop_assert_eq!(packed(3, Order::BigEndian), &n.to_be_bytes()[5..]);
        }
    }
}
