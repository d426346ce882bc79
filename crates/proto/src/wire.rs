//! Reads Protocol Buffers fields one by one, borrowed from the message.
//!
//! What it is not: it has no schema. Callers match on (number, kind). They thereby treat a field of
//! an unexpected kind as an unknown field and skip it, as Riak's decoder does.

/// Why bytes are not a Protocol Buffers message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(pub(crate) &'static str);

/// Maximum nesting of groups; groups are skipped, never used.
const GROUP_DEPTH_MAX: u32 = 64;

/// The payload of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2: bytes, text or a message.
    Bytes(&'a [u8]),
    /// Wire types 3 and 4: a group, which no message of this protocol has.
    Group,
    /// Wire type 5.
    Fixed32(u32),
}

impl Value<'_> {
    /// The number of the wire type.
    pub const fn wire_type(&self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Group => 3,
            Self::Fixed32(_) => 5,
        }
    }
}

/// An iterator over the fields of an encoded message.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Creates an iterator over an encoded message.
    pub const fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The bytes that were not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next field as (number, payload); `None` at the end.
    #[allow(clippy::should_implement_trait, reason = "an iterator of results would go on after an error")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire) = self.key()?;
        let value = match wire {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => Value::Bytes(self.bytes()?),
            3 => {
                self.skip_group(number)?;
                Value::Group
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(WireError("unknown wire type")),
        };
        Ok(Some((number, value)))
    }

    #[inline]
    fn key(&mut self) -> Result<(u32, u8), WireError> {
        let key = u32::try_from(self.varint()?).map_err(|_| WireError("field number out of range"))?;
        match key >> 3 {
            0 => Err(WireError("field number 0")),
            number => Ok((number, (key & 7) as u8)),
        }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, WireError> {
        match self.rest.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, WireError> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(WireError("cut short"))?;
            self.rest = rest;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return if shift == 63 && byte > 1 { Err(WireError("number too long")) } else { Ok(n) };
            }
        }
        Err(WireError("number too long"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(WireError("cut short"))?;
        self.rest = rest;
        Ok(*array)
    }

    #[inline]
    fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.varint()?).map_err(|_| WireError("cut short"))?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(WireError("cut short"))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn skip_group(&mut self, number: u32) -> Result<(), WireError> {
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            let (number, wire) = self.key()?;
            match wire {
                0 => drop(self.varint()?),
                1 => drop(self.array::<8>()?),
                2 => drop(self.bytes()?),
                3 if open.len() < GROUP_DEPTH_MAX as usize => open.push(number),
                3 => return Err(WireError("groups nested too deep")),
                4 if number == innermost => drop(open.pop()),
                5 => drop(self.array::<4>()?),
                _ => return Err(WireError("group ends wrongly")),
            }
        }
        Ok(())
    }
}

/// The length of a varint in bytes.
#[inline]
pub(crate) const fn varint_len(n: u64) -> usize {
    // ⌈significant bits / 7⌉, at least 1.
    ((63 - (n | 1).leading_zeros()) as usize * 9 + 73) / 64
}

/// Appends a varint.
#[inline]
pub fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_lengths_are_right_at_every_boundary() {
        for bits in 0..64u32 {
            for n in [(1u64 << bits) - 1, 1 << bits, (1u64 << bits) | 1, u64::MAX] {
                let mut out = Vec::new();
                put_varint(n, &mut out);
                assert_eq!(varint_len(n), out.len(), "{n}");
                assert_eq!(Fields::new(&out).varint(), Ok(n));
            }
        }
    }

    #[test]
    fn groups_are_skipped_and_their_depth_is_bounded() {
        let group = [0x0b, 0x10, 0x05, 0x13, 0x14, 0x0c, 0x18, 0x07];
        let mut fields = Fields::new(&group);
        assert_eq!(fields.next(), Ok(Some((1, Value::Group))));
        assert_eq!(fields.next(), Ok(Some((3, Value::Varint(7)))));
        assert_eq!(fields.next(), Ok(None));
        assert!(Fields::new(&[0x0b; 10_000]).next().is_err());
        assert!(Fields::new(&[0x0b, 0x14]).next().is_err(), "another group's end");
        assert!(Fields::new(&[0x0c]).next().is_err(), "an end without a start");
    }

    #[test]
    fn lengths_are_checked_against_what_is_there() {
        assert_eq!(Fields::new(&[0x0a, 0x05, b'a']).next(), Err(WireError("cut short")));
        assert_eq!(Fields::new(&[0xff; 12]).next(), Err(WireError("number too long")));
    }
}
