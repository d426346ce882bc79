//! HyperLogLogs: tag 86, `{hyper, P, {hyper_binary, Registers}}`. Registers are either
//! `{buffer, [{Index, Value}], Size, P, Threshold}`, while few have values, or
//! `{dense, Binary, [{Index, Value}], Size, Threshold}`. The binary has 6 bits for a register. What
//! is in a list counts: it has not been put into the binary yet.

use super::payload::{self, Payload};
use super::terms;
use crate::{BadBytes, Hll, Precision};
use bytes::Bytes;
use ombak_types::etf::Term;

const TAG: u8 = 86;
const REGISTER_BITS: usize = 6;

pub(super) fn read(payload: &Payload<'_>) -> Result<Hll, BadBytes> {
    payload.expect(TAG, &[1])?;
    let term = payload.term()?;
    let [tag, precision, registers] = term.as_tuple().ok_or(BadBytes::Unexpected("HyperLogLog"))?;
    let [backend, registers] = registers.as_tuple().ok_or(BadBytes::Unexpected("registers"))?;
    if tag.as_atom() != Some("hyper") || backend.as_atom() != Some("hyper_binary") {
        return Err(BadBytes::Unexpected("HyperLogLog"));
    }
    let precision = precision.as_u64().and_then(Precision::new).ok_or(BadBytes::Unexpected("precision"))?;
    let mut hll = Hll::new(precision);
    let Term::Tuple(parts) = registers else { return Err(BadBytes::Unexpected("registers")) };
    match parts.as_slice() {
        [tag, list, _size, _precision, _threshold] if tag.as_atom() == Some("buffer") => read_list(list, &mut hll)?,
        [tag, binary, list, _size, _threshold] if tag.as_atom() == Some("dense") => {
            read_dense(&terms::binary(binary)?, &mut hll)?;
            read_list(list, &mut hll)?;
        }
        _ => return Err(BadBytes::Unexpected("registers")),
    }
    Ok(hll)
}

fn read_list(term: &Term, hll: &mut Hll) -> Result<(), BadBytes> {
    for pair in terms::list(term)? {
        let [index, value] = pair.as_tuple().ok_or(BadBytes::Unexpected("register"))?;
        let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
        let index = index.filter(|index| *index < hll.precision().registers()).ok_or(BadBytes::TooLarge)?;
        let value = value.as_u64().and_then(|value| u8::try_from(value).ok());
        hll.raise(index, value.filter(|value| *value <= Hll::REGISTER_MAX).ok_or(BadBytes::TooLarge)?);
    }
    Ok(())
}

/// Reads six bits for each register.
pub(crate) fn read_dense(bytes: &Bytes, hll: &mut Hll) -> Result<(), BadBytes> {
    if bytes.len() != dense_len(hll.precision()) {
        return Err(BadBytes::Unexpected("registers"));
    }
    // Four registers are three bytes, and there are at least sixteen registers.
    for (group, chunk) in bytes.chunks_exact(3).enumerate() {
        let bits = u32::from_be_bytes([0, chunk[0], chunk[1], chunk[2]]);
        for at in 0..4 {
            hll.raise(4 * group + at, (bits >> (18 - REGISTER_BITS * at)) as u8 & Hll::REGISTER_MAX);
        }
    }
    Ok(())
}

fn dense_len(precision: Precision) -> usize {
    precision.registers() * REGISTER_BITS / 8
}

pub(super) fn write(hll: &Hll) -> Vec<u8> {
    let (precision, registers) = (hll.precision(), hll.registers());
    let set: Vec<(usize, u8)> = registers.iter().copied().enumerate().filter(|(_, value)| *value > 0).collect();
    let int = |number: usize| Term::Int(number as i64);
    // The sizes from which Riak's library changes the form.
    let (buffer_max, list_max) = (precision.riak_buffer_max(), (precision.registers() / 20).max(16));
    let form = if set.len() < buffer_max {
        let len = set.len();
        let list = set.into_iter().map(|(index, value)| Term::pair(int(index), int(value.into()))).collect();
        let bits = int(precision.bits().into());
        vec![Term::atom("buffer"), Term::List(list), int(len), bits, int(buffer_max)]
    } else {
        vec![Term::atom("dense"), Term::Binary(dense(registers)), Term::nil(), int(0), int(list_max)]
    };
    let registers = Term::pair(Term::atom("hyper_binary"), Term::Tuple(form));
    let record = vec![Term::atom("hyper"), int(precision.bits().into()), registers];
    payload::of_term(TAG, 1, &Term::Tuple(record))
}

/// Six bits for each register.
pub(crate) fn dense(registers: &[u8]) -> Bytes {
    let group = |values: &[u8]| {
        let bits = values.iter().fold(0u32, |bits, value| bits << REGISTER_BITS | u32::from(*value));
        let [_, a, b, c] = bits.to_be_bytes();
        [a, b, c]
    };
    registers.chunks_exact(4).flat_map(group).collect()
}
