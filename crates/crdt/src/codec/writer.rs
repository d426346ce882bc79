//! Bytes that are being written.

use bytes::Bytes;
use ombak_types::Actor;
use std::collections::BTreeMap;

/// Writes values one after the other.
#[derive(Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
    /// The actors with their numbers.
    actors: BTreeMap<Actor, usize>,
    last: Option<(Actor, usize)>,
}

impl Writer {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// A number, seven bits in a byte, the low ones first.
    pub(crate) fn number(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    pub(crate) fn len(&mut self, len: usize) {
        self.number(len as u128);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.len(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    /// An actor: its number. The next free number introduces a new actor, whose bytes follow.
    pub(crate) fn actor(&mut self, actor: &Actor) {
        // Dots of one actor come in runs.
        if let Some((_, number)) = self.last.as_ref().filter(|(last, _)| last == actor) {
            return self.len(*number);
        }
        let next = self.actors.len();
        let number = *self.actors.entry(actor.clone()).or_insert(next);
        self.last = Some((actor.clone(), number));
        self.len(number);
        if number == next {
            self.bytes(actor.as_bytes());
        }
    }

    pub(crate) fn finish(self) -> Bytes {
        self.out.into()
    }
}
