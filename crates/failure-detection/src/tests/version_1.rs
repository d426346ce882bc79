//! What nodes of version 1 tell each other about who is up.

use crate::codec::{Arrived, PacketCodec};
use crate::packet::{Body, Packet};
use crate::process::Process;
use crate::soft_state::{ClassSet, RingVersionKnown, SoftState};
use bytes::BufMut;
use foca::{Codec, Header, Member, Message, State};
use ombak_fixtures::FrozenMessages;
use ombak_types::NodeId;
use std::collections::BTreeSet;

const fn process(node: u64) -> Process {
    Process { node: NodeId::new(node), boot_number: 300, session: 0x0102_0304_0506_0708, renewal: 4 }
}

fn packet(body: Body<'_>) -> Packet<'_> {
    Packet { from: process(7), known_boot_number: 299, body }
}

fn packets() -> [(&'static str, Packet<'static>); 4] {
    [
        ("packet/detector", packet(Body::Detector(b"a message"))),
        ("packet/state", packet(Body::State { number: 300, state: b"a state" })),
        ("packet/state_received", packet(Body::StateReceived { number: 300 })),
        ("packet/leaving", packet(Body::Leaving)),
    ]
}

fn messages() -> [(&'static str, Message<Process>); 11] {
    let (target, origin, probe_number) = (process(8), process(9), 200);
    [
        ("detector/ping", Message::Ping(probe_number)),
        ("detector/ack", Message::Ack(probe_number)),
        ("detector/ping_req", Message::PingReq { target, probe_number }),
        ("detector/indirect_ping", Message::IndirectPing { origin, probe_number }),
        ("detector/indirect_ack", Message::IndirectAck { target, probe_number }),
        ("detector/forwarded_ack", Message::ForwardedAck { origin, probe_number }),
        ("detector/announce", Message::Announce),
        ("detector/feed", Message::Feed),
        ("detector/gossip", Message::Gossip),
        ("detector/broadcast", Message::Broadcast),
        ("detector/turn_undead", Message::TurnUndead),
    ]
}

/// A message of the failure detector with updates of all kinds, as foca writes it.
fn of_detector(message: &Message<Process>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = Header { src: process(7), src_incarnation: 3, dst: process(6), message: message.clone() };
    PacketCodec.encode_header(&header, &mut bytes).unwrap();
    bytes.put_u16(3);
    for (node, state) in [(10, State::Alive), (11, State::Suspect), (12, State::Down)] {
        PacketCodec.encode_member(&Member::new(process(node), 300, state), &mut bytes).unwrap();
    }
    bytes
}

fn state() -> SoftState {
    SoftState {
        ring: RingVersionKnown { lineage: 7, number: 300 },
        avoids_coverage: true,
        filling: ClassSet::Listed([(300, 3), (4, 2)].into()),
        owed: [(NodeId::new(8), ClassSet::All), (NodeId::new(9), ClassSet::Listed([(1, 3)].into()))].into(),
        foreign_bytes: [(NodeId::new(8), 3000)].into(),
        counters: [(300, 4000)].into(),
        handoff: "progress".into(),
    }
}

#[test]
fn packets_have_the_bytes_of_version_1() {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 1, "membership");
    for (name, packet) in packets() {
        // A packet borrows from its bytes, so what it says is compared as a text.
        let text = format!("{packet:?}");
        frozen.check(name, &text, |_| packet.encode().to_vec(), |b| Packet::decode(b).map(|p| format!("{p:?}")));
    }
    for (name, message) in messages() {
        let decode = |bytes: &[u8]| {
            let arrived = Arrived::decode(bytes)?;
            assert_eq!(arrived.filtered(|member| member.incarnation() == 300), bytes, "an update was read wrongly");
            Ok::<_, crate::reader::Malformed>(arrived.header.message)
        };
        frozen.check(name, &message, of_detector, decode);
    }
    for (name, state) in [("state/all", state()), ("state/none", SoftState::default())] {
        frozen.check(name, &state, |s| s.encode().to_vec(), |b| SoftState::decode(b).ok_or("it is refused"));
    }
    frozen.end();
}

#[test]
fn each_kind_of_messages_is_frozen() {
    let kinds: BTreeSet<u8> = packets().iter().map(|(_, packet)| packet.encode()[1]).collect();
    let known = |kind: &u8| {
        let decodes = |(_, packet): &(&str, Packet<'_>)| {
            let mut bytes = packet.encode().to_vec();
            bytes[1] = *kind;
            Packet::decode(&bytes).is_ok()
        };
        packets().iter().any(decodes)
    };
    assert_eq!(kinds, (0..=255).filter(known).collect());
    /// What precedes the kind: two processes, and the incarnation of the first.
    const KIND_AT: usize = 2 * Process::BYTES + 2;
    let kinds: BTreeSet<u8> = messages().iter().map(|(_, message)| of_detector(message)[KIND_AT]).collect();
    let known = |kind: &u8| {
        let decodes = |(_, message): &(&str, Message<Process>)| {
            let mut bytes = of_detector(message);
            bytes[KIND_AT] = *kind;
            Arrived::decode(&bytes).is_ok()
        };
        messages().iter().any(decodes)
    };
    assert_eq!(kinds, (0..=255).filter(known).collect());
}
