//! Stored bytes: Ombak's head and body, clocks that clients send back, and Riak's objects (v0 and
//! v1). Whatever can be decoded is the same after it is encoded and decoded again.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ombak_types::{riak_object, stored_object};

fuzz_target!(|input: (&[u8], &[u8])| {
    let (head, body) = (Bytes::copy_from_slice(input.0), Bytes::copy_from_slice(input.1));
    let _ = stored_object::decode(&head, Some(&body));
    if let Ok(object) = stored_object::decode(&head, None) {
        let mut again = Vec::new();
        stored_object::encode_head(&object, &mut again);
        assert_eq!(stored_object::decode(&Bytes::from(again), None), Ok(object));
    }
    let _ = stored_object::SingleSibling::read(&head, &body);
    if let Ok(clock) = stored_object::decode_clock(&head) {
        assert_eq!(stored_object::decode_clock(&stored_object::encode_clock(&clock)).as_ref(), Ok(&clock));
    }
    if let Ok(object) = riak_object::decode(&head) {
        let again = riak_object::decode(&Bytes::from(riak_object::encode(&object))).expect("what was written is read");
        assert_eq!(object, again);
        let mut head = Vec::new();
        stored_object::encode_head(&object, &mut head);
        stored_object::decode(&Bytes::from(head), None).expect("what was written is read");
    }
});
