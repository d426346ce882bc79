//! The properties of the decoders of a peer's bytes, for the fuzz targets and for the tests of this
//! crate.

use crate::clock::ClockSample;
use crate::frame::{AnswerStatus, Priority, encode_frame, next_frame};
use crate::handshake::{Handshake, LocalPeer, Secret};
use crate::identity::{Lane, NodeIdentity, RingVersion};
use crate::mux::{Body, Event, Mux, MuxConfig, OutputBuffer, Request, Side};
use bytes::BytesMut;
use ombak_types::NodeId;
use std::collections::BTreeSet;

/// Any bytes end in frames, in an error, or in a wish for more bytes. A decoded frame encodes to
/// the bytes that it was decoded from, so two nodes never read the same bytes differently.
pub fn frames(bytes: &[u8]) {
    let mut buffer = BytesMut::from(bytes);
    let mut at = 0;
    while let Ok(Some(frame)) = next_frame(&mut buffer) {
        let mut again = Vec::new();
        encode_frame(&frame, &mut again);
        let end = bytes.len() - buffer.len();
        assert!(end > at, "a frame takes at least its header");
        assert_eq!(again, &bytes[at..end], "{frame:?}");
        at = end;
    }
}

/// Any bytes of a stranger end in an error or in a wish for more bytes. With `greeted`, a valid
/// greeting precedes them. No bytes are read beyond what a stranger may send.
pub fn handshake(bytes: &[u8], greeted: bool) {
    for responds in [true, false] {
        let mut handshake = start(responds);
        let mut buffer = BytesMut::new();
        if greeted {
            buffer.extend_from_slice(&start(!responds).take_greeting());
        }
        buffer.extend_from_slice(bytes);
        let outcome = handshake.receive(&mut buffer, 0, &mut |_| panic!("nobody has proved anything"));
        assert!(!matches!(outcome, Ok(Some(_))), "a stranger was taken for a peer");
        if responds {
            assert!(handshake.take_output().len() <= 48, "a stranger was told more than the greeting");
        }
    }
}

fn start(responds: bool) -> Handshake {
    let identity =
        NodeIdentity { cluster: 1, node: NodeId::new(1), boot_number: 1, session: 1, capabilities: BTreeSet::new() };
    let secret = Secret::new(b"a secret that no input knows").unwrap_or_else(|error| panic!("{error}"));
    let local = LocalPeer { identity, secret };
    match responds {
        true => Handshake::responder(local, [1; 32]),
        false => Handshake::initiator(local, None, Lane::Requests, [1; 32]),
    }
}

/// Any bytes of a peer that has proved itself leave a connection within its limits, or end it.
/// The input is read as frames whose headers are mostly right, because random headers seldom are.
pub fn connection(bytes: &[u8]) {
    let config = MuxConfig {
        served_max: [2; 3],
        served_bytes_max: [1 << 16; 3],
        answers_bytes_max: 1 << 16,
        arriving_bytes_max: 1 << 16,
        body_bytes_max: 1 << 16,
        ..MuxConfig::default()
    };
    let clock = ClockSample { asked_at_us: 0, theirs_us: 0, answered_at_us: 10 };
    let mut mux = Mux::new(Side::Responder, &config, clock, 0);
    for token in 0..4 {
        let window_bytes = if token < 2 { 8192 } else { 0 };
        let request = Request {
            service: 1,
            priority: Priority::Request,
            ring: RingVersion::default(),
            born_us: 0,
            send_by_us: 500_000,
            deadline_us: 1_000_000,
            window_bytes,
            body: Body::from(vec![0; 100]),
        };
        mux.call(request, token).unwrap_or_else(|error| panic!("{error}"));
    }
    let (mut arrived, mut out, mut events) = (BytesMut::new(), OutputBuffer::default(), Vec::new());
    let (mut ended, mut items_bytes) = ([false; 4], 0);
    for (round, piece) in bytes.chunks(24).enumerate() {
        arrived.extend_from_slice(&mostly_a_frame(piece));
        let now_us = round as i64 * 1000;
        let outcome = mux.receive(&mut arrived, now_us, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Answered { token, .. } => {
                    let ended: &mut bool = &mut ended[token];
                    assert!(!std::mem::replace(ended, true), "a request ended twice");
                }
                Event::Item { item, .. } => items_bytes += item.len(),
                Event::Request(request) => {
                    assert!(request.body.len() <= config.body_bytes_max);
                    if round % 2 == 0 {
                        mux.answer(request.stream, AnswerStatus::Done, request.body.into());
                    }
                }
                Event::Room { .. } | Event::Goodbye { .. } => {}
            }
        }
        // Nothing was consumed, so no window was opened again.
        assert!(items_bytes <= 2 * 8192, "more items than credit");
        if outcome.is_err() {
            return;
        }
        mux.fill(now_us, 1 << 17, &mut out, &mut events);
        out.advance(out.len());
    }
}

/// A frame with the kind, the stream and the payload that some bytes name.
fn mostly_a_frame(piece: &[u8]) -> Vec<u8> {
    let [kind, stream, length, payload @ ..] = piece else { return piece.to_vec() };
    if *kind >= 240 {
        return piece.to_vec();
    }
    let kind = kind % 11 + 1;
    let stream = if kind >= 9 { 0 } else { u64::from(stream % 8) + 1 };
    let mut payload = payload.to_vec();
    if kind == 1 {
        // A head with small numbers, and a deadline that lies ahead.
        let small = u32::from(*length) * 700;
        payload = [[1, 0, length % 3, 0], [0; 4], small.to_le_bytes()].concat();
        payload.extend_from_slice(&[0; 24]);
        payload.extend_from_slice(&1_000_000i64.to_le_bytes());
        payload.resize(payload.len() + usize::from(*length % 5), 7);
    }
    let mut frame = (payload.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&[kind, 0, 0, 0]);
    frame.extend_from_slice(&stream.to_le_bytes());
    frame.extend_from_slice(&payload);
    frame
}
