//! Reading a message. Hot path: a read of a replica needs a few of these calls on each side. They
//! allocate nothing: every part of a message is a slice of the bytes that arrived.

use super::VERSION;
use bytes::Bytes;

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a malformed message: {0}")]
pub struct Malformed(pub(crate) &'static str);

/// The maximum length of a varint: a 64-bit number with seven bits in each byte.
const VARINT_BYTES_MAX: usize = 10;

/// The rest of a message.
pub(crate) struct Reader<'a> {
    whole: &'a Bytes,
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    /// Reads a message from its start. Refuses other versions of its layout.
    pub(crate) fn of_message(message: &'a Bytes) -> Result<Self, Malformed> {
        let mut reader = Self { whole: message, at: 0, end: message.len() };
        match reader.u8()? {
            VERSION => Ok(reader),
            _ => Err(Malformed("its version is not known")),
        }
    }

    fn left(&self) -> usize {
        self.end - self.at
    }

    /// The next `count` bytes.
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        if count > self.left() {
            return Err(Malformed("it is cut short"));
        }
        let taken = &self.whole[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed("it is cut short"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let rest = &self.whole[self.at..self.end];
        let (mut number, mut shift) = (0u64, 0);
        for (read, &byte) in rest.iter().enumerate().take(VARINT_BYTES_MAX) {
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                self.at += read + 1;
                // The tenth byte has room for only one bit.
                return if shift == 63 && byte > 1 { Err(Malformed("a number is too long")) } else { Ok(number) };
            }
            shift += 7;
        }
        Err(Malformed(if rest.len() < VARINT_BYTES_MAX { "it is cut short" } else { "a number is too long" }))
    }

    /// A number of 32 bits, as a varint.
    pub(crate) fn varint32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed("a number is too large"))
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        match usize::try_from(self.varint()?) {
            Ok(length) if length <= self.left() => Ok(length),
            _ => Err(Malformed("a length runs past the end")),
        }
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self) -> Result<Bytes, Malformed> {
        let length = self.length()?;
        self.slice(length)
    }

    fn slice(&mut self, length: usize) -> Result<Bytes, Malformed> {
        let start = self.at;
        self.take(length)?;
        Ok(self.whole.slice(start..self.at))
    }

    /// A text behind its length, of at most `bytes_max` bytes.
    pub(crate) fn text(&mut self, bytes_max: usize) -> Result<&'a str, Malformed> {
        let length = self.length()?;
        if length > bytes_max {
            return Err(Malformed("a text is too long"));
        }
        str::from_utf8(self.take(length)?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    /// Bytes behind their length, to be read by themselves.
    pub(crate) fn part(&mut self) -> Result<Reader<'a>, Malformed> {
        let length = self.length()?;
        let part = Reader { whole: self.whole, at: self.at, end: self.at + length };
        self.at += length;
        Ok(part)
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> Result<Bytes, Malformed> {
        self.slice(self.left())
    }

    /// The head and the body of an object, which end a message.
    pub(crate) fn object(&mut self) -> Result<(Bytes, Bytes), Malformed> {
        Ok((self.bytes()?, self.rest()?))
    }

    /// Whether everything was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// Checks that everything was read.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.left() == 0 { Ok(()) } else { Err(Malformed("bytes follow its end")) }
    }
}
