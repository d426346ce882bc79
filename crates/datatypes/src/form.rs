//! The form of a value in its sibling.
//!
//! ```text
//! 01 state                            a small value: the state alone
//! 02 u32 length, state, addition*     a large value: its base, and what was added since
//! addition = u32 length, delta        lengths are big-endian
//! ```
//!
//! Additions are written behind the value, so the bytes before them stay. They come in any order in
//! which each builds on what is before it; copies can have different ones.

use bytes::{Buf, Bytes};
use ombak_crdt::{BadBytes, Delta, State};

/// A value of up to this many bytes is written as a whole with each update.
pub const WHOLE_BYTES_MAX: usize = 8 << 10;

const WHOLE: u8 = 1;
const GROWING: u8 = 2;

/// The bytes of a small value.
pub(crate) fn whole(state: &Bytes) -> Bytes {
    [&[WHOLE][..], state].concat().into()
}

/// The bytes of a large value without additions.
pub(crate) fn growing(state: &Bytes) -> Bytes {
    [&[GROWING][..], &length(state), state].concat().into()
}

/// What is written behind a large value.
pub(crate) fn addition(delta: &Delta) -> Bytes {
    let delta = delta.to_bytes();
    [&length(&delta)[..], &delta].concat().into()
}

/// Reads what is written behind a large value.
pub(crate) fn read_addition(bytes: &Bytes) -> Result<Delta, BadBytes> {
    let mut rest = bytes.clone();
    let delta = Delta::from_bytes(&take(&mut rest)?)?;
    if rest.is_empty() { Ok(delta) } else { Err(BadBytes::TrailingBytes) }
}

/// Reads a value.
pub(crate) fn read(value: &Bytes) -> Result<State, BadBytes> {
    let mut rest = value.clone();
    match value.first() {
        Some(&WHOLE) => State::from_bytes(&rest.split_off(1)),
        Some(&GROWING) => {
            rest.advance(1);
            let mut state = State::from_bytes(&take(&mut rest)?)?;
            while !rest.is_empty() {
                let delta = Delta::from_bytes(&take(&mut rest)?)?;
                state.merge_delta(&delta).map_err(|_| BadBytes::Unexpected("addition to the value before it"))?;
            }
            Ok(state)
        }
        Some(&form) => Err(BadBytes::UnknownVersion(form)),
        None => Err(BadBytes::CutShort),
    }
}

/// A state or delta that a node holds has fewer than 4 GB.
fn length(bytes: &Bytes) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes()
}

fn take(rest: &mut Bytes) -> Result<Bytes, BadBytes> {
    let length = rest.try_get_u32().map_err(|_| BadBytes::CutShort)? as usize;
    if length > rest.len() { Err(BadBytes::CutShort) } else { Ok(rest.split_to(length)) }
}
