//! The decoder of the external term format.

use super::{DEPTH_MAX, INTEGER_BYTES_MAX, MAGIC, Term};
use flate2::{Decompress, FlushDecompress, Status};
use num_bigint::{BigInt, Sign};
use std::borrow::Cow;

/// Why bytes are not a term.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtfError {
    /// The first byte is not 131.
    #[error("the first byte is not 131")]
    NoMagic,
    /// A length exceeds the remaining bytes.
    #[error("cut short")]
    CutShort,
    /// Bytes follow the term.
    #[error("bytes after the end")]
    TrailingBytes,
    /// A kind of term that stored data never holds, or an invalid tag.
    #[error("unknown tag {0}")]
    UnknownTag(u8),
    /// Lists and tuples nest deeper than [`DEPTH_MAX`].
    #[error("nested deeper than {DEPTH_MAX}")]
    TooDeep,
    /// There are more terms than [`Limits::terms_max`].
    #[error("too many terms")]
    TooManyTerms,
    /// A compressed term is larger than [`Limits::inflated_bytes_max`].
    #[error("too large when inflated")]
    TooLarge,
    /// A compressed term does not inflate to its stated size.
    #[error("bad compression")]
    BadCompression,
    /// An atom is not a text or is longer than 255 characters.
    #[error("bad atom")]
    BadAtom,
    /// A float is not finite, or an integer has more than [`INTEGER_BYTES_MAX`].
    #[error("bad number")]
    BadNumber,
}

/// The limits of one call of the decoder.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of terms. Each term takes about 40 bytes of memory.
    pub terms_max: usize,
    /// Maximum number of bytes that a compressed term may inflate to.
    pub inflated_bytes_max: usize,
}

impl Default for Limits {
    /// The limits for the largest objects that Riak stores by default (`max_object_size`, 50 MB).
    fn default() -> Self {
        Self { terms_max: 1 << 20, inflated_bytes_max: 64 << 20 }
    }
}

/// Decodes one term that fills `bytes`, within the default limits.
pub fn decode(bytes: &[u8]) -> Result<Term, EtfError> {
    decode_with(bytes, Limits::default())
}

/// Decodes one term that fills `bytes`.
pub fn decode_with(bytes: &[u8], limits: Limits) -> Result<Term, EtfError> {
    let (&magic, rest) = bytes.split_first().ok_or(EtfError::CutShort)?;
    if magic != MAGIC {
        return Err(EtfError::NoMagic);
    }
    let body = inflated(rest, limits.inflated_bytes_max)?;
    let mut decoder = Decoder { rest: &body, terms_left: limits.terms_max };
    let term = decoder.term(0)?;
    if decoder.rest.is_empty() { Ok(term) } else { Err(EtfError::TrailingBytes) }
}

/// The bytes after the magic byte, inflated if they are compressed: 80, size:32, zlib stream.
fn inflated(rest: &[u8], bytes_max: usize) -> Result<Cow<'_, [u8]>, EtfError> {
    let Some((80, compressed)) = rest.split_first().map(|(tag, rest)| (*tag, rest)) else {
        return Ok(Cow::Borrowed(rest));
    };
    let (size, stream) = compressed.split_first_chunk::<4>().ok_or(EtfError::CutShort)?;
    let size = u32::from_be_bytes(*size) as usize;
    if size > bytes_max {
        return Err(EtfError::TooLarge);
    }
    let out = inflate(Decompress::new(true), stream, size).ok_or(EtfError::BadCompression)?;
    if out.len() == size { Ok(Cow::Owned(out)) } else { Err(EtfError::BadCompression) }
}

/// Inflates a whole stream of at most `bytes_max` bytes. Returns `None` if the stream is broken or
/// longer, or if other bytes follow it. Memory grows with the real content of the stream.
pub(crate) fn inflate(mut stream: Decompress, input: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    const STEP_BYTES: usize = 16 << 10;
    let mut out = Vec::new();
    loop {
        let consumed = usize::try_from(stream.total_in()).ok()?;
        // There is room for one byte more than allowed, so that a stream that ends exactly at the
        // limit can report its end.
        let room = (bytes_max + 1).saturating_sub(out.len()).min(STEP_BYTES.max(out.len()));
        out.reserve(room);
        let before = out.len();
        let status = stream.decompress_vec(input.get(consumed..)?, &mut out, FlushDecompress::None).ok()?;
        if out.len() > bytes_max {
            return None;
        }
        match status {
            Status::StreamEnd => {
                return (usize::try_from(stream.total_in()).ok()? == input.len()).then_some(out);
            }
            // The step read and wrote nothing, so the input ends before the stream does.
            _ if out.len() == before && usize::try_from(stream.total_in()).ok()? == consumed => return None,
            _ => {}
        }
    }
}

struct Decoder<'a> {
    rest: &'a [u8],
    terms_left: usize,
}

impl<'a> Decoder<'a> {
    fn term(&mut self, depth: usize) -> Result<Term, EtfError> {
        self.terms_left = self.terms_left.checked_sub(1).ok_or(EtfError::TooManyTerms)?;
        if depth > DEPTH_MAX {
            return Err(EtfError::TooDeep);
        }
        let tag = self.u8()?;
        Ok(match tag {
            70 => Term::Float(finite(f64::from_be_bytes(*self.chunk()?))?),
            97 => Term::Int(i64::from(self.u8()?)),
            98 => Term::Int(i64::from(i32::from_be_bytes(*self.chunk()?))),
            99 => self.float_text()?,
            100 => self.latin1_atom_of_u16()?,
            104 => {
                let arity = usize::from(self.u8()?);
                Term::Tuple(self.terms(arity, depth)?)
            }
            105 => {
                let arity = self.len32()?;
                Term::Tuple(self.terms(arity, depth)?)
            }
            106 => Term::nil(),
            107 => {
                let len = usize::from(self.u16()?);
                Term::string(self.take(len)?)
            }
            108 => self.list(depth)?,
            109 => {
                let len = self.len32()?;
                Term::binary(self.take(len)?)
            }
            110 => {
                let len = usize::from(self.u8()?);
                self.big(len)?
            }
            111 => {
                let len = self.len32()?;
                self.big(len)?
            }
            115 => {
                let len = usize::from(self.u8()?);
                latin1_atom(self.take(len)?)?
            }
            116 => self.map(depth)?,
            118 => {
                let len = usize::from(self.u16()?);
                utf8_atom(self.take(len)?)?
            }
            119 => {
                let len = usize::from(self.u8()?);
                utf8_atom(self.take(len)?)?
            }
            other => return Err(EtfError::UnknownTag(other)),
        })
    }

    fn list(&mut self, depth: usize) -> Result<Term, EtfError> {
        let len = self.len32()?;
        let items = self.terms(len, depth)?;
        match self.term(depth + 1)? {
            Term::List(tail) if tail.is_empty() => Ok(Term::from_list(items)),
            tail if items.is_empty() => Ok(tail),
            // A tail that is a list continues this list.
            Term::List(tail) => Ok(Term::from_list(items.into_iter().chain(tail).collect())),
            Term::String(tail) => {
                self.spend(tail.len())?;
                let tail = tail.iter().map(|&b| Term::Int(i64::from(b)));
                Ok(Term::from_list(items.into_iter().chain(tail).collect()))
            }
            Term::ImproperList(more, tail) => Ok(Term::ImproperList(items.into_iter().chain(more).collect(), tail)),
            tail => Ok(Term::ImproperList(items, Box::new(tail))),
        }
    }

    fn map(&mut self, depth: usize) -> Result<Term, EtfError> {
        let len = self.len32()?;
        if len > self.rest.len() / 2 {
            return Err(EtfError::CutShort);
        }
        let mut pairs = Vec::with_capacity(len.min(CAPACITY_MAX));
        for _ in 0..len {
            pairs.push((self.term(depth + 1)?, self.term(depth + 1)?));
        }
        Ok(Term::Map(pairs))
    }

    fn terms(&mut self, count: usize, depth: usize) -> Result<Vec<Term>, EtfError> {
        if count > self.rest.len() {
            return Err(EtfError::CutShort);
        }
        let mut terms = Vec::with_capacity(count.min(CAPACITY_MAX));
        for _ in 0..count {
            terms.push(self.term(depth + 1)?);
        }
        Ok(terms)
    }

    fn spend(&mut self, terms: usize) -> Result<(), EtfError> {
        self.terms_left = self.terms_left.checked_sub(terms).ok_or(EtfError::TooManyTerms)?;
        Ok(())
    }

    fn big(&mut self, len: usize) -> Result<Term, EtfError> {
        let sign = if self.u8()? == 0 { Sign::Plus } else { Sign::Minus };
        if len > INTEGER_BYTES_MAX {
            return Err(EtfError::BadNumber);
        }
        Ok(Term::from(BigInt::from_bytes_le(sign, self.take(len)?)))
    }

    /// The float format of old releases: 31 characters, padded with zeros.
    fn float_text(&mut self) -> Result<Term, EtfError> {
        let text = self.take(31)?.split(|&b| b == 0).next().unwrap_or_default();
        let number = std::str::from_utf8(text).ok().and_then(|t| t.trim().parse().ok()).ok_or(EtfError::BadNumber)?;
        Ok(Term::Float(finite(number)?))
    }

    fn latin1_atom_of_u16(&mut self) -> Result<Term, EtfError> {
        let len = usize::from(self.u16()?);
        latin1_atom(self.take(len)?)
    }

    fn u8(&mut self) -> Result<u8, EtfError> {
        self.chunk::<1>().map(|[b]| *b)
    }

    fn u16(&mut self) -> Result<u16, EtfError> {
        self.chunk().map(|b| u16::from_be_bytes(*b))
    }

    fn len32(&mut self) -> Result<usize, EtfError> {
        self.chunk().map(|b| u32::from_be_bytes(*b) as usize)
    }

    fn chunk<const N: usize>(&mut self) -> Result<&'a [u8; N], EtfError> {
        let (chunk, rest) = self.rest.split_first_chunk().ok_or(EtfError::CutShort)?;
        self.rest = rest;
        Ok(chunk)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], EtfError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(EtfError::CutShort)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Maximum capacity that is reserved for a sequence before its elements were read.
const CAPACITY_MAX: usize = 64;

fn finite(n: f64) -> Result<f64, EtfError> {
    if n.is_finite() { Ok(n) } else { Err(EtfError::BadNumber) }
}

fn latin1_atom(bytes: &[u8]) -> Result<Term, EtfError> {
    if bytes.len() > 255 {
        return Err(EtfError::BadAtom);
    }
    Ok(Term::Atom(bytes.iter().map(|&b| char::from(b)).collect::<String>().into()))
}

fn utf8_atom(bytes: &[u8]) -> Result<Term, EtfError> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().count() <= 255 => Ok(Term::atom(text)),
        _ => Err(EtfError::BadAtom),
    }
}
