//! The bytes of foca's messages, and which of their contents reach foca.
//!
//! A message is a header and, for most kinds, a list of updates:
//!
//! ```text
//! header  sender (process), sender's incarnation u16, receiver (process), kind u8,
//!         for probes: number u8, for indirect probes: one more process
//! updates count u16 (big-endian: foca writes it), then for each: process, incarnation u16, state
//! u8 process node u64, boot number u64, session u64, renewal u32
//! ```
//!
//! Fields are little-endian. All have a fixed length.

use crate::process::Process;
use crate::reader::{Malformed, Reader};
use bytes::{Buf, BufMut};
use foca::{Header, Member, Message, State};
use ombak_types::NodeId;

/// The length of an update in bytes.
const UPDATE_BYTES: usize = Process::BYTES + 3;

/// There is no room for the value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    #[error("no room for a message")]
    Full,
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// The codec that foca uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketCodec;

impl foca::Codec<Process> for PacketCodec {
    type Error = CodecError;

    fn encode_header(&mut self, header: &Header<Process>, mut buf: impl BufMut) -> Result<(), CodecError> {
        let mut bytes = Vec::with_capacity(3 * Process::BYTES + 4);
        put_process(&header.src, &mut bytes);
        bytes.put_u16_le(header.src_incarnation);
        put_process(&header.dst, &mut bytes);
        put_message(&header.message, &mut bytes);
        put_all(&bytes, &mut buf)
    }

    fn decode_header(&mut self, buf: impl Buf) -> Result<Header<Process>, CodecError> {
        read(buf, read_header)
    }

    fn encode_member(&mut self, member: &Member<Process>, mut buf: impl BufMut) -> Result<(), CodecError> {
        let mut bytes = Vec::with_capacity(UPDATE_BYTES);
        put_process(member.id(), &mut bytes);
        bytes.put_u16_le(member.incarnation());
        bytes.put_u8(match member.state() {
            State::Alive => 0,
            State::Suspect => 1,
            State::Down => 2,
        });
        put_all(&bytes, &mut buf)
    }

    fn decode_member(&mut self, buf: impl Buf) -> Result<Member<Process>, CodecError> {
        read(buf, read_member)
    }
}

fn put_all(bytes: &[u8], buf: &mut impl BufMut) -> Result<(), CodecError> {
    if buf.remaining_mut() < bytes.len() {
        return Err(CodecError::Full);
    }
    buf.put_slice(bytes);
    Ok(())
}

/// Decodes one value from the front of a buffer, which foca promises to be contiguous.
fn read<T>(mut buf: impl Buf, decode: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>) -> Result<T, CodecError> {
    let chunk = buf.chunk();
    let mut reader = Reader(chunk);
    let value = decode(&mut reader)?;
    let used = chunk.len() - reader.0.len();
    buf.advance(used);
    Ok(value)
}

pub(crate) fn put_process(process: &Process, out: &mut Vec<u8>) {
    out.put_u64_le(process.node.get());
    out.put_u64_le(process.boot_number);
    out.put_u64_le(process.session);
    out.put_u32_le(process.renewal);
}

pub(crate) fn read_process(reader: &mut Reader<'_>) -> Result<Process, Malformed> {
    let node = NodeId::new(reader.u64()?);
    Ok(Process { node, boot_number: reader.u64()?, session: reader.u64()?, renewal: reader.u32()? })
}

fn put_message(message: &Message<Process>, out: &mut Vec<u8>) {
    let mut indirect = |kind: u8, number: u8, process: &Process| {
        out.extend_from_slice(&[kind, number]);
        put_process(process, out);
    };
    match message {
        Message::PingReq { target, probe_number } => indirect(3, *probe_number, target),
        Message::IndirectPing { origin, probe_number } => indirect(4, *probe_number, origin),
        Message::IndirectAck { target, probe_number } => indirect(5, *probe_number, target),
        Message::ForwardedAck { origin, probe_number } => indirect(6, *probe_number, origin),
        Message::Ping(number) => out.extend_from_slice(&[1, *number]),
        Message::Ack(number) => out.extend_from_slice(&[2, *number]),
        Message::Announce => out.push(7),
        Message::Feed => out.push(8),
        Message::Gossip => out.push(9),
        Message::Broadcast => out.push(10),
        Message::TurnUndead => out.push(11),
    }
}

fn read_message(reader: &mut Reader<'_>) -> Result<Message<Process>, Malformed> {
    Ok(match reader.u8()? {
        1 => Message::Ping(reader.u8()?),
        2 => Message::Ack(reader.u8()?),
        3 => {
            let probe_number = reader.u8()?;
            Message::PingReq { target: read_process(reader)?, probe_number }
        }
        4 => {
            let probe_number = reader.u8()?;
            Message::IndirectPing { origin: read_process(reader)?, probe_number }
        }
        5 => {
            let probe_number = reader.u8()?;
            Message::IndirectAck { target: read_process(reader)?, probe_number }
        }
        6 => {
            let probe_number = reader.u8()?;
            Message::ForwardedAck { origin: read_process(reader)?, probe_number }
        }
        7 => Message::Announce,
        8 => Message::Feed,
        9 => Message::Gossip,
        10 => Message::Broadcast,
        11 => Message::TurnUndead,
        _ => return Err(Malformed),
    })
}

fn read_header(reader: &mut Reader<'_>) -> Result<Header<Process>, Malformed> {
    Ok(Header {
        src: read_process(reader)?,
        src_incarnation: reader.u16()?,
        dst: read_process(reader)?,
        message: read_message(reader)?,
    })
}

fn read_member(reader: &mut Reader<'_>) -> Result<Member<Process>, Malformed> {
    let process = read_process(reader)?;
    let incarnation = reader.u16()?;
    let state = match reader.u8()? {
        0 => State::Alive,
        1 => State::Suspect,
        2 => State::Down,
        _ => return Err(Malformed),
    };
    Ok(Member::new(process, incarnation, state))
}

/// A message of foca, decoded before foca sees it.
pub(crate) struct Arrived<'a> {
    /// The header.
    pub(crate) header: Header<Process>,
    header_bytes: &'a [u8],
    has_updates: bool,
    updates: Vec<(Member<Process>, &'a [u8])>,
}

impl<'a> Arrived<'a> {
    /// Decodes a whole message. Its length bounds how many updates it has.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let header = read_header(&mut reader)?;
        let header_bytes = &bytes[..bytes.len() - reader.0.len()];
        let has_updates = !reader.0.is_empty();
        let mut updates = Vec::new();
        if has_updates {
            let count = usize::from(reader.u16()?.swap_bytes());
            if reader.0.len() != count * UPDATE_BYTES {
                return Err(Malformed);
            }
            while !reader.0.is_empty() {
                let raw = reader.take(UPDATE_BYTES)?;
                updates.push((read_member(&mut Reader(raw))?, raw));
            }
        }
        Ok(Self { header, header_bytes, has_updates, updates })
    }

    /// The processes that the message names beside sender and receiver, updates excepted.
    pub(crate) fn third(&self) -> Option<Process> {
        match self.header.message {
            Message::PingReq { target, .. } | Message::IndirectAck { target, .. } => Some(target),
            Message::IndirectPing { origin, .. } | Message::ForwardedAck { origin, .. } => Some(origin),
            _ => None,
        }
    }

    /// The message without the updates that `keep` refuses.
    pub(crate) fn filtered(&self, mut keep: impl FnMut(&Member<Process>) -> bool) -> Vec<u8> {
        let mut out = self.header_bytes.to_vec();
        if self.has_updates {
            let kept: Vec<&[u8]> =
                self.updates.iter().filter(|(update, _)| keep(update)).map(|(_, raw)| *raw).collect();
            // At most as many as were decoded, whose count had two bytes.
            out.put_u16(kept.len() as u16);
            kept.iter().for_each(|raw| out.extend_from_slice(raw));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foca::Codec;
    use proptest::prelude::*;

    fn process() -> impl Strategy<Value = Process> {
        (0..5u64, 0..3u64, any::<u64>(), 0..3u32).prop_map(|(node, boot_number, session, renewal)| Process {
            node: NodeId::new(node),
            boot_number,
            session,
            renewal,
        })
    }

    fn message() -> impl Strategy<Value = Message<Process>> {
        (0..11u8, any::<u8>(), process()).prop_map(|(kind, probe_number, third)| match kind {
            0 => Message::Ping(probe_number),
            1 => Message::Ack(probe_number),
            2 => Message::PingReq { target: third, probe_number },
            3 => Message::IndirectPing { origin: third, probe_number },
            4 => Message::IndirectAck { target: third, probe_number },
            5 => Message::ForwardedAck { origin: third, probe_number },
            6 => Message::Announce,
            7 => Message::Feed,
            8 => Message::Gossip,
            9 => Message::Broadcast,
            _ => Message::TurnUndead,
        })
    }

    fn member() -> impl Strategy<Value = Member<Process>> {
        let state = prop_oneof![Just(State::Alive), Just(State::Suspect), Just(State::Down)];
        (process(), any::<u16>(), state)
            .prop_map(|(process, incarnation, state)| Member::new(process, incarnation, state))
    }

    proptest! {
        #[test]
        fn messages_come_back_and_lose_exactly_the_refused_updates(
            src in process(), dst in process(), src_incarnation in any::<u16>(), message in message(),
            members in prop::collection::vec(member(), 0..6), refused in 0..5u64,
        ) {
            let header = Header { src, src_incarnation, dst, message };
            let mut bytes = Vec::new();
            PacketCodec.encode_header(&header, &mut bytes).unwrap();
            bytes.put_u16(members.len() as u16);
            for member in &members {
                PacketCodec.encode_member(member, &mut bytes).unwrap();
            }
            let arrived = Arrived::decode(&bytes).unwrap();
            prop_assert_eq!(&arrived.header, &header);
            prop_assert_eq!(&arrived.filtered(|_| true), &bytes);
            let left = arrived.filtered(|member| member.id().node.get() != refused);
            let again = Arrived::decode(&left).unwrap();
            let expected: Vec<_> = members.into_iter().filter(|member| member.id().node.get() != refused).collect();
            prop_assert_eq!(again.updates.into_iter().map(|(member, _)| member).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Arrived::decode(&bytes);
            let _ = PacketCodec.decode_header(&bytes[..]);
            let _ = PacketCodec.decode_member(&bytes[..]);
        }
    }
}
