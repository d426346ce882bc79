//! The decoder of the external term format.

use super::{DEPTH_MAX, EtfError, INTEGER_BYTES_MAX, MAGIC, Term};
use crate::decode_budget::{DecodeBudget, TooLarge, allocated};
use flate2::{Decompress, FlushDecompress, Status};
use num_bigint::{BigInt, Sign};
use std::borrow::Cow;

/// The limits of one call of the decoder.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of terms. Each term takes about 40 bytes of memory.
    pub terms_max: usize,
    /// Maximum number of bytes that a compressed term may inflate to.
    pub inflated_bytes_max: usize,
    /// Maximum nesting of terms.
    pub depth_max: usize,
}

impl Default for Limits {
    /// The limits for the largest objects that Riak stores by default (`max_object_size`, 50 MB).
    fn default() -> Self {
        Self { terms_max: 1 << 20, inflated_bytes_max: 64 << 20, depth_max: DEPTH_MAX }
    }
}

/// Decodes one term that fills `bytes`, within the default limits.
pub fn decode(bytes: &[u8]) -> Result<Term, EtfError> {
    decode_with(bytes, Limits::default())
}

/// Decodes one term that fills `bytes`.
pub fn decode_with(bytes: &[u8], limits: Limits) -> Result<Term, EtfError> {
    decode_within(bytes, limits, &mut DecodeBudget::unlimited())
}

/// Decodes one term that fills `bytes`. What the term takes counts in the budget.
pub fn decode_within(bytes: &[u8], limits: Limits, budget: &mut DecodeBudget) -> Result<Term, EtfError> {
    decode_all(bytes, limits, budget, None)
}

/// Decodes one term that fills `bytes`, without the elements of one list, which are visited one
/// after the other instead. It is the second element of the first pair with the atom `name` in the
/// outermost list. In the result it is empty, or improper if it has a tail that is no list. An
/// element counts in the budget, and as terms, until it was visited.
pub fn decode_visiting(
    bytes: &[u8],
    limits: Limits,
    budget: &mut DecodeBudget,
    name: &str,
    visit: &mut Visit<'_>,
) -> Result<Term, EtfError> {
    decode_all(bytes, limits, budget, Some(Visited { name, visit }))
}

/// Takes the elements of a list one after the other. What it keeps of them it counts itself.
pub type Visit<'a> = dyn FnMut(Term, &mut DecodeBudget) -> Result<(), TooLarge> + 'a;

/// The list whose elements are visited.
struct Visited<'a, 'v> {
    name: &'a str,
    visit: &'a mut Visit<'v>,
}

fn decode_all(
    bytes: &[u8],
    limits: Limits,
    budget: &mut DecodeBudget,
    visited: Option<Visited<'_, '_>>,
) -> Result<Term, EtfError> {
    let (&magic, rest) = bytes.split_first().ok_or(EtfError::CutShort)?;
    if magic != MAGIC {
        return Err(EtfError::NoMagic);
    }
    let body = inflated(rest, limits.inflated_bytes_max, budget)?;
    let mut decoder =
        Decoder { rest: &body, terms_left: limits.terms_max, depth_max: limits.depth_max, budget, visited };
    let term = decoder.term(0)?;
    if decoder.rest.is_empty() { Ok(term) } else { Err(EtfError::TrailingBytes) }
}

/// The bytes after the magic byte, inflated if they are compressed: 80, size:32, zlib stream.
fn inflated<'a>(rest: &'a [u8], bytes_max: usize, budget: &mut DecodeBudget) -> Result<Cow<'a, [u8]>, EtfError> {
    let Some((80, compressed)) = rest.split_first().map(|(tag, rest)| (*tag, rest)) else {
        return Ok(Cow::Borrowed(rest));
    };
    let (size, stream) = compressed.split_first_chunk::<4>().ok_or(EtfError::CutShort)?;
    let size = u32::from_be_bytes(*size) as usize;
    if size > bytes_max {
        return Err(EtfError::TooLarge);
    }
    // While the bytes move to more room, they take three times as much.
    budget.take(3 * allocated(size))?;
    let out = inflate(Decompress::new(true), stream, size).ok_or(EtfError::BadCompression)?;
    budget.give(allocated(size));
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

struct Decoder<'a, 'b, 'v> {
    rest: &'a [u8],
    terms_left: usize,
    depth_max: usize,
    budget: &'b mut DecodeBudget,
    /// `None` as soon as the list was found.
    visited: Option<Visited<'b, 'v>>,
}

impl<'a> Decoder<'a, '_, '_> {
    fn term(&mut self, depth: usize) -> Result<Term, EtfError> {
        self.terms_left = self.terms_left.checked_sub(1).ok_or(EtfError::TooManyTerms)?;
        if depth > self.depth_max {
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
                Term::Tuple(self.tuple(arity, depth)?)
            }
            105 => {
                let arity = self.len32()?;
                Term::Tuple(self.tuple(arity, depth)?)
            }
            106 => Term::nil(),
            107 => {
                let len = usize::from(self.u16()?);
                Term::string(self.counted(len)?)
            }
            108 => self.list(depth)?,
            109 => {
                let len = self.len32()?;
                Term::binary(self.counted(len)?)
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
                latin1_atom(self.counted(len)?)?
            }
            116 => self.map(depth)?,
            118 => {
                let len = usize::from(self.u16()?);
                utf8_atom(self.counted(len)?)?
            }
            119 => {
                let len = usize::from(self.u8()?);
                utf8_atom(self.counted(len)?)?
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
            Term::List(tail) => Ok(Term::from_list(self.chain(items, tail)?)),
            Term::String(tail) => {
                self.spend(tail.len())?;
                let mut items = items;
                self.budget.reserve(&mut items, tail.len())?;
                items.extend(tail.iter().map(|&b| Term::Int(i64::from(b))));
                Ok(Term::from_list(items))
            }
            Term::ImproperList(more, tail) => Ok(Term::ImproperList(self.chain(items, more)?, tail)),
            tail => {
                self.budget.take(allocated(size_of::<Term>()))?;
                Ok(Term::ImproperList(items, Box::new(tail)))
            }
        }
    }

    /// The elements of a list and of its tail.
    fn chain(&mut self, mut items: Vec<Term>, mut tail: Vec<Term>) -> Result<Vec<Term>, EtfError> {
        self.budget.reserve(&mut items, tail.len())?;
        items.append(&mut tail);
        self.budget.give(allocated(tail.capacity() * size_of::<Term>()));
        Ok(items)
    }

    fn tuple(&mut self, arity: usize, depth: usize) -> Result<Vec<Term>, EtfError> {
        // A pair in the outermost list may have the list whose elements are visited.
        if arity != 2 || depth != 1 || self.visited.is_none() {
            return self.terms(arity, depth);
        }
        let mut pair = Vec::new();
        self.budget.reserve(&mut pair, 2)?;
        let name = self.term(depth + 1)?;
        let visited = self.visited.take_if(|visited| name.as_atom() == Some(visited.name));
        pair.push(name);
        pair.push(match (visited, self.rest.split_first()) {
            (Some(visited), Some((108, rest))) => {
                self.rest = rest;
                self.spend(1)?;
                self.visit(visited.visit, depth + 1)?
            }
            _ => self.term(depth + 1)?,
        });
        Ok(pair)
    }

    /// Visits the elements of a list behind its tag.
    fn visit(&mut self, visit: &mut Visit<'_>, depth: usize) -> Result<Term, EtfError> {
        let len = self.len32()?;
        if len > self.rest.len() {
            return Err(EtfError::CutShort);
        }
        for _ in 0..len {
            let (bytes_before, terms_before) = (self.budget.bytes_used(), self.terms_left);
            let item = self.term(depth + 1)?;
            let bytes = self.budget.bytes_used() - bytes_before;
            visit(item, self.budget)?;
            self.budget.give(bytes);
            self.terms_left = terms_before;
        }
        match self.term(depth + 1)? {
            Term::List(tail) => tail.into_iter().try_for_each(|item| visit(item, self.budget))?,
            Term::String(tail) => {
                tail.iter().try_for_each(|&b| visit(Term::Int(i64::from(b)), self.budget))?;
            }
            tail => {
                self.budget.take(allocated(size_of::<Term>()))?;
                return Ok(Term::ImproperList(Vec::new(), Box::new(tail)));
            }
        }
        Ok(Term::nil())
    }

    fn map(&mut self, depth: usize) -> Result<Term, EtfError> {
        let len = self.len32()?;
        if len > self.rest.len() / 2 {
            return Err(EtfError::CutShort);
        }
        let mut pairs = Vec::new();
        self.budget.reserve(&mut pairs, len.min(CAPACITY_MAX))?;
        for _ in 0..len {
            let pair = (self.term(depth + 1)?, self.term(depth + 1)?);
            self.budget.push(&mut pairs, pair)?;
        }
        Ok(Term::Map(pairs))
    }

    fn terms(&mut self, count: usize, depth: usize) -> Result<Vec<Term>, EtfError> {
        if count > self.rest.len() {
            return Err(EtfError::CutShort);
        }
        let mut terms = Vec::new();
        if count > 0 {
            self.budget.reserve(&mut terms, count.min(CAPACITY_MAX))?;
        }
        for _ in 0..count {
            let term = self.term(depth + 1)?;
            self.budget.push(&mut terms, term)?;
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
        Ok(Term::from(BigInt::from_bytes_le(sign, self.counted(len)?)))
    }

    /// The float format of old releases: 31 characters, padded with zeros.
    fn float_text(&mut self) -> Result<Term, EtfError> {
        let text = self.take(31)?.split(|&b| b == 0).next().unwrap_or_default();
        let number = std::str::from_utf8(text).ok().and_then(|t| t.trim().parse().ok()).ok_or(EtfError::BadNumber)?;
        Ok(Term::Float(finite(number)?))
    }

    fn latin1_atom_of_u16(&mut self) -> Result<Term, EtfError> {
        let len = usize::from(self.u16()?);
        latin1_atom(self.counted(len)?)
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

    /// Bytes of which the term has a copy, with what shares it.
    fn counted(&mut self, len: usize) -> Result<&'a [u8], EtfError> {
        let bytes = self.take(len)?;
        self.budget.take(allocated(len).saturating_add(SHARED_BYTES))?;
        Ok(bytes)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], EtfError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(EtfError::CutShort)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// The memory that copies of a binary share, in bytes.
const SHARED_BYTES: usize = 32;

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
