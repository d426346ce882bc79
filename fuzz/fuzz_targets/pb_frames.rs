//! A client's bytes, cut into arbitrary pieces and read as frames. If the generated decoder accepts
//! a get or a put, the hand-written one must accept it too and return the same.

#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use ombak_proto::frame::{self, Frame};
use ombak_proto::get_req::GetReq;
use ombak_proto::lenient;
use ombak_proto::messages::{RpbGetReq, RpbPutReq, RpbSetBucketReq};
use ombak_proto::put_req::PutReq;

const FRAME_BYTES_MAX: usize = 1 << 20;

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (bytes, piece) = input;
    let (mut whole, mut pieces) = (BytesMut::from(&bytes[..]), BytesMut::new());
    let mut together = Vec::new();
    while let Ok(Some(frame)) = frame::next_frame(&mut whole, FRAME_BYTES_MAX) {
        together.push(frame);
    }
    let mut apart = Vec::new();
    'read: for part in bytes.chunks(usize::from(piece) + 1) {
        frame::make_room(&mut pieces, part.len());
        pieces.extend_from_slice(part);
        loop {
            assert_eq!(
                frame::has_frame(&pieces, FRAME_BYTES_MAX),
                !matches!(frame::next_frame(&mut pieces.clone(), FRAME_BYTES_MAX), Ok(None))
            );
            match frame::next_frame(&mut pieces, FRAME_BYTES_MAX) {
                Ok(Some(frame)) => apart.push(frame),
                Ok(None) => break,
                Err(_) => break 'read,
            }
        }
    }
    assert_eq!(together, apart, "where the reads are cut must not matter");
    together.iter().for_each(decode);
    decode(&Frame { code: 9, body: Bytes::from(bytes.clone()) });
    decode(&Frame { code: 11, body: Bytes::from(bytes) });
});

fn decode(frame: &Frame) {
    match frame.code {
        9 => {
            let (generated, ours) = (lenient::decode::<RpbGetReq>(&frame.body), GetReq::decode(&frame.body));
            if let Ok(generated) = generated {
                let ours = ours.expect("what the generated decoder takes is taken");
                assert_eq!((generated.bucket.as_deref(), generated.key.as_deref()), (ours.bucket, ours.key));
            }
        }
        11 => {
            let (generated, ours) = (lenient::decode::<RpbPutReq>(&frame.body), PutReq::decode(&frame.body));
            if let Ok(generated) = generated {
                let ours = ours.expect("what the generated decoder takes is taken");
                assert_eq!(generated.bucket.as_deref(), ours.bucket);
            }
        }
        _ => drop(lenient::decode::<RpbSetBucketReq>(&frame.body)),
    }
}
