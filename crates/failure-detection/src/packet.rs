//! The envelope of everything that a failure detector sends.
//!
//! ```text
//! version u8 = 1 | kind u8 | sender (process, 28 bytes) | known boot number u64 | body
//! ```
//!
//! The known boot number is the highest of the receiver that the sender knows. It shows a node that
//! its data directory is older than one that was used before (docs/design/replication.md §8).

use crate::codec::{put_process, read_process};
use crate::process::Process;
use crate::reader::{Malformed, Reader};
use bytes::{BufMut, Bytes};

const VERSION: u8 = 1;

/// What a packet is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    /// A message of the failure detector.
    Detector(&'a [u8]),
    /// A version of the sender's soft state.
    State {
        /// Rises with each change, and begins anew with each process.
        number: u64,
        /// The state, encoded.
        state: &'a [u8],
    },
    /// The sender has this version of the receiver's soft state.
    StateReceived { number: u64 },
    /// The sender stops on purpose.
    Leaving,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) from: Process,
    pub(crate) known_boot_number: u64,
    pub(crate) body: Body<'a>,
}

impl<'a> Packet<'a> {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(64);
        out.push(VERSION);
        out.push(match self.body {
            Body::Detector(_) => 1,
            Body::State { .. } => 2,
            Body::StateReceived { .. } => 3,
            Body::Leaving => 4,
        });
        put_process(&self.from, &mut out);
        out.put_u64_le(self.known_boot_number);
        match self.body {
            Body::Detector(message) => out.extend_from_slice(message),
            Body::State { number, state } => {
                out.put_u64_le(number);
                out.extend_from_slice(state);
            }
            Body::StateReceived { number } => out.put_u64_le(number),
            Body::Leaving => {}
        }
        out.into()
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        if reader.u8()? != VERSION {
            return Err(Malformed);
        }
        let kind = reader.u8()?;
        let from = read_process(&mut reader)?;
        let known_boot_number = reader.u64()?;
        let body = match kind {
            1 => Body::Detector(std::mem::take(&mut reader.0)),
            2 => Body::State { number: reader.u64()?, state: std::mem::take(&mut reader.0) },
            3 => Body::StateReceived { number: reader.u64()? },
            4 => Body::Leaving,
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(Self { from, known_boot_number, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::NodeId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_come_back(kind in 0..4u8, number in any::<u64>(), body in prop::collection::vec(any::<u8>(), 0..50)) {
            let body = match kind {
                0 => Body::Detector(&body),
                1 => Body::State { number, state: &body },
                2 => Body::StateReceived { number },
                _ => Body::Leaving,
            };
            let packet = Packet { from: Process::new(NodeId::new(number), 3, 4), known_boot_number: number, body };
            let bytes = packet.encode();
            prop_assert_eq!(Packet::decode(&bytes), Ok(packet));
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Packet::decode(&bytes);
        }
    }

    #[test]
    fn an_unknown_version_and_trailing_bytes_are_refused() {
        let packet = Packet { from: Process::any_of(NodeId::new(1)), known_boot_number: 0, body: Body::Leaving };
        let bytes = packet.encode();
        let mut other = bytes.to_vec();
        other[0] = 2;
        assert_eq!(Packet::decode(&other), Err(Malformed));
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert_eq!(Packet::decode(&longer), Err(Malformed));
    }
}
