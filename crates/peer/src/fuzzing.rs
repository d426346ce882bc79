//! The properties of the decoders of a peer's bytes, for the fuzz targets and for the tests of this
//! crate.

use crate::frame::{encode_frame, next_frame};
use crate::handshake::{Handshake, LocalPeer, Secret};
use crate::identity::{Lane, NodeIdentity};
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
