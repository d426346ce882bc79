//! Bytes that are being read.

use super::Codec;
use crate::{BadBytes, Clock, Dot, MAP_DEPTH_MAX};
use bytes::Bytes;
use ombak_types::Actor;

/// Reads values one after the other.
pub(crate) struct Reader {
    bytes: Bytes,
    at: usize,
    /// The actors by their numbers, each with its newest event that was read.
    actors: Vec<Dot>,
    depth: usize,
}

impl Reader {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, at: 0, actors: Vec::new(), depth: 0 }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, BadBytes> {
        let byte = *self.bytes.get(self.at).ok_or(BadBytes::CutShort)?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn number(&mut self) -> Result<u128, BadBytes> {
        let mut number = 0;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(BadBytes::TooLarge);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(BadBytes::TooLarge)
    }

    pub(crate) fn small(&mut self) -> Result<u64, BadBytes> {
        u64::try_from(self.number()?).map_err(|_| BadBytes::TooLarge)
    }

    /// The length of what follows. Everything has at least one byte.
    pub(crate) fn len(&mut self) -> Result<usize, BadBytes> {
        let len = usize::try_from(self.number()?).map_err(|_| BadBytes::CutShort)?;
        if len <= self.bytes.len() - self.at { Ok(len) } else { Err(BadBytes::CutShort) }
    }

    /// Bytes, without a copy.
    pub(crate) fn bytes(&mut self) -> Result<Bytes, BadBytes> {
        let len = self.len()?;
        let bytes = self.bytes.slice(self.at..self.at + len);
        self.at += len;
        Ok(bytes)
    }

    fn actor(&mut self) -> Result<usize, BadBytes> {
        let number = usize::try_from(self.number()?).map_err(|_| BadBytes::TooLarge)?;
        if number == self.actors.len() {
            let actor = Actor::try_new(&self.bytes()?).ok_or(BadBytes::TooLarge)?;
            self.actors.push(Dot::new(actor, 0));
        }
        if number < self.actors.len() { Ok(number) } else { Err(BadBytes::Unexpected("actor")) }
    }

    /// The bytes of an actor that is not the actor of a dot.
    pub(crate) fn lone_actor(&mut self) -> Result<Actor, BadBytes> {
        let number = self.actor()?;
        Ok(self.actors[number].actor.clone())
    }

    /// An event. It counts for [`Reader::with_clock`].
    pub(crate) fn dot(&mut self) -> Result<Dot, BadBytes> {
        let number = self.actor()?;
        let count = self.small()?;
        if count > Dot::COUNT_MAX {
            return Err(BadBytes::TooLarge);
        }
        let newest = &mut self.actors[number];
        newest.count = newest.count.max(count);
        Ok(Dot::new(newest.actor.clone(), count))
    }

    /// Reads a value, and returns with it the clock that has seen all dots in it.
    pub(crate) fn with_clock<T: Codec>(&mut self) -> Result<(T, Clock), BadBytes> {
        self.actors.iter_mut().for_each(|actor| actor.count = 0);
        let value = T::read(self)?;
        Ok((value, self.actors.iter().collect()))
    }

    /// Goes one map deeper.
    pub(crate) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, BadBytes>) -> Result<T, BadBytes> {
        if self.depth >= MAP_DEPTH_MAX {
            return Err(BadBytes::TooDeep);
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    pub(crate) fn finish(self) -> Result<(), BadBytes> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(BadBytes::TrailingBytes) }
    }
}
