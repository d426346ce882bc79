//! How much memory a message takes once it is decoded, before it is decoded.
//!
//! An empty element of a repeated field has two bytes in a message and up to some hundred in
//! memory. So the elements are counted while they are still encoded, which allocates nothing.

use crate::lenient::schema::MESSAGES;
use crate::wire::{Fields, Value};
use prost::Name;

/// Maximum nesting of messages; the generated decoders refuse deeper ones.
const DEPTH_MAX: u32 = 100;

/// The memory of bytes or a text: twice its place while a list of them moves to more room, and the
/// operation that it becomes.
const BYTES_BYTES: usize = 104;

/// The memory of a message within others.
const MESSAGE_BYTES: usize = 200;

/// The memory of messages that have much more, the operation or property that they become included.
const LARGE_MESSAGES: [(&str, usize); 3] = [("MapUpdate", 900), ("MapField", 280), ("RpbCommitHook", 2_000)];

/// The highest number of bytes that a message takes beside its own when it is decoded and made into
/// a request. Bytes and texts within it share the memory of the message. A message that does not
/// decode is counted up to the error.
pub fn decoded_bytes<M: Name>(message: &[u8]) -> usize {
    let index = MESSAGES.iter().position(|(name, _)| *name == M::NAME);
    index.map_or(0, |index| count(index, message, DEPTH_MAX))
}

fn count(index: usize, message: &[u8], depth_left: u32) -> usize {
    let (Some((_, declared)), Some(depth_left)) = (MESSAGES.get(index), depth_left.checked_sub(1)) else { return 0 };
    let (mut fields, mut bytes) = (Fields::new(message), 0);
    while let Ok(Some((number, value))) = fields.next() {
        let Value::Bytes(inner) = value else { continue };
        bytes += match declared.iter().find(|field| field.number == number && field.wire == 2) {
            Some(field) => match field.message {
                Some(index) => own_bytes(index) + count(index, inner, depth_left),
                None => BYTES_BYTES,
            },
            None => 0,
        };
    }
    bytes
}

fn own_bytes(index: usize) -> usize {
    let name = MESSAGES.get(index).map(|(name, _)| *name);
    LARGE_MESSAGES.iter().find(|(large, _)| Some(*large) == name).map_or(MESSAGE_BYTES, |(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{DtUpdateReq, MapOp, MapUpdate, RpbMapRedReq, RpbPair, RpbSetBucketReq, SetOp};
    use prost::Message;

    #[test]
    fn the_elements_of_a_message_count() {
        let mut update = DtUpdateReq::default();
        let few = decoded_bytes::<DtUpdateReq>(&update.encode_to_vec());
        update.op.set_op = Some(SetOp { adds: vec!["".into(); 1_000], removes: vec!["".into(); 1_000] });
        assert_eq!(decoded_bytes::<DtUpdateReq>(&update.encode_to_vec()), few + MESSAGE_BYTES + 2_000 * BYTES_BYTES);
        let inner = MapOp { updates: vec![MapUpdate::default(); 1_000], ..MapOp::default() };
        let middle = MapUpdate { map_op: Some(inner), ..MapUpdate::default() };
        update.op.map_op = Some(MapOp { updates: vec![middle], ..MapOp::default() });
        assert!(decoded_bytes::<DtUpdateReq>(&update.encode_to_vec()) > 1_000 * size_of::<MapUpdate>() * 3);
        // The second field of this message is text, however much it looks like messages.
        let job =
            RpbMapRedReq { request: RpbPair::default().encode_to_vec().repeat(1_000).into(), ..Default::default() };
        assert!(decoded_bytes::<RpbMapRedReq>(&job.encode_to_vec()) < 1_000);
        assert_eq!(decoded_bytes::<RpbSetBucketReq>(b"\xff\xff"), 0);
    }

    #[test]
    fn the_places_of_elements_are_counted_in_full() {
        for (bytes, counted) in [
            (size_of::<MapUpdate>(), own("MapUpdate")),
            (size_of::<crate::messages::MapField>(), own("MapField")),
            (size_of::<crate::messages::RpbCommitHook>(), own("RpbCommitHook")),
            (size_of::<RpbPair>(), own("RpbPair")),
            (size_of::<bytes::Bytes>(), BYTES_BYTES),
        ] {
            assert!(3 * bytes <= counted, "{bytes} {counted}");
        }
    }

    fn own(name: &str) -> usize {
        own_bytes(MESSAGES.iter().position(|(known, _)| *known == name).unwrap())
    }
}
