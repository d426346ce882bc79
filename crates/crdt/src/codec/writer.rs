//! Bytes that are being written.

use bytes::Bytes;
use ombak_types::Actor;

/// Writes values one after the other.
#[derive(Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
    actors: Vec<Actor>,
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
        // Dots of one actor come in runs, and values have few actors.
        let known = self.actors.iter().rposition(|known| known == actor);
        self.len(known.unwrap_or(self.actors.len()));
        if known.is_none() {
            self.actors.push(actor.clone());
            self.bytes(actor.as_bytes());
        }
    }

    pub(crate) fn finish(self) -> Bytes {
        self.out.into()
    }
}
