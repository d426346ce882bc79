//! The encoder of the external term format. It writes what `term_to_binary` of Erlang/OTP 26
//! writes, uncompressed.

use super::{MAGIC, STRING_BYTES_MAX, Term};
use num_bigint::{BigInt, Sign};

/// The external format of a term.
pub fn encode(term: &Term) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    encode_to(term, &mut out);
    out
}

/// Appends the external format of a term. The recursion is as deep as the term nests; decoded terms
/// have bounded nesting.
pub fn encode_to(term: &Term, out: &mut Vec<u8>) {
    out.push(MAGIC);
    put(term, out);
}

fn put(term: &Term, out: &mut Vec<u8>) {
    match term {
        Term::Int(n) => put_int(*n, out),
        Term::Big(n) => put_big(n, out),
        Term::Float(n) => {
            out.push(70);
            out.extend_from_slice(&n.to_be_bytes());
        }
        Term::Atom(name) => put_atom(name, out),
        Term::Binary(bytes) => {
            out.push(109);
            put_len32(bytes.len(), out);
            out.extend_from_slice(bytes);
        }
        Term::String(bytes) => put_string(bytes, out),
        Term::Tuple(items) => {
            match u8::try_from(items.len()) {
                Ok(arity) => out.extend_from_slice(&[104, arity]),
                Err(_) => {
                    out.push(105);
                    put_len32(items.len(), out);
                }
            }
            items.iter().for_each(|item| put(item, out));
        }
        Term::List(items) => {
            if !items.is_empty() {
                put_elements(items, out);
            }
            out.push(106);
        }
        Term::ImproperList(items, tail) => {
            put_elements(items, out);
            put(tail, out);
        }
        Term::Map(pairs) => {
            out.push(116);
            put_len32(pairs.len(), out);
            for (key, value) in pairs {
                put(key, out);
                put(value, out);
            }
        }
    }
}

fn put_elements(items: &[Term], out: &mut Vec<u8>) {
    out.push(108);
    put_len32(items.len(), out);
    items.iter().for_each(|item| put(item, out));
}

fn put_string(bytes: &[u8], out: &mut Vec<u8>) {
    match u16::try_from(bytes.len()) {
        Ok(len) => {
            out.push(107);
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(bytes);
        }
        Err(_) => {
            debug_assert!(bytes.len() > STRING_BYTES_MAX, "shorter lists fit in 16 bits");
            out.push(108);
            put_len32(bytes.len(), out);
            bytes.iter().for_each(|&b| out.extend_from_slice(&[97, b]));
            out.push(106);
        }
    }
}

fn put_int(n: i64, out: &mut Vec<u8>) {
    if let Ok(small) = u8::try_from(n) {
        out.extend_from_slice(&[97, small]);
    } else if let Ok(n) = i32::try_from(n) {
        out.push(98);
        out.extend_from_slice(&n.to_be_bytes());
    } else {
        let magnitude = n.unsigned_abs().to_le_bytes();
        let len = magnitude.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
        out.extend_from_slice(&[110, len as u8, u8::from(n < 0)]);
        out.extend_from_slice(&magnitude[..len]);
    }
}

fn put_big(n: &BigInt, out: &mut Vec<u8>) {
    let (sign, magnitude) = n.to_bytes_le();
    match u8::try_from(magnitude.len()) {
        Ok(len) => out.extend_from_slice(&[110, len]),
        Err(_) => {
            out.push(111);
            put_len32(magnitude.len(), out);
        }
    }
    out.push(u8::from(sign == Sign::Minus));
    out.extend_from_slice(&magnitude);
}

fn put_atom(name: &str, out: &mut Vec<u8>) {
    match u8::try_from(name.len()) {
        Ok(len) => out.extend_from_slice(&[119, len]),
        Err(_) => {
            out.push(118);
            out.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    out.extend_from_slice(name.as_bytes());
}

/// No encoded part comes near four gigabytes, because objects are limited to far less.
fn put_len32(len: usize, out: &mut Vec<u8>) {
    assert!(u32::try_from(len).is_ok(), "a term part of {len} bytes does not fit the external format");
    out.extend_from_slice(&(len as u32).to_be_bytes());
}
