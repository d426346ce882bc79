mod version_1;

use super::*;
use crate::error::RefusalCode;
use crate::identity::RingVersion;
use bytes::BytesMut;
use proptest::prelude::*;

fn stream() -> impl Strategy<Value = StreamId> {
    (1..u64::MAX).prop_map(StreamId)
}

fn chunk() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 1..2000).prop_map(Bytes::from)
}

fn request_head() -> impl Strategy<Value = RequestHead> {
    (any::<u16>(), 0usize..3, any::<u32>(), any::<(u64, u64)>(), any::<(i64, i64)>()).prop_map(
        |(service, priority, window_bytes, (lineage, number), (born_us, deadline_us))| RequestHead {
            service,
            priority: Priority::ALL[priority],
            window_bytes,
            body_bytes: 0,
            ring: RingVersion { lineage, number },
            born_us,
            deadline_us,
        },
    )
}

fn status() -> impl Strategy<Value = AnswerStatus> {
    prop_oneof![
        Just(AnswerStatus::Done),
        Just(AnswerStatus::Overload),
        Just(AnswerStatus::Lost),
        any::<u16>().prop_map(|code| AnswerStatus::Refused(RefusalCode(code))),
    ]
}

fn frame() -> impl Strategy<Value = Frame> {
    let more = 0u32..1 << 30;
    prop_oneof![
        (stream(), request_head(), chunk(), more.clone()).prop_map(|(stream, mut head, chunk, more)| {
            head.body_bytes = chunk.len() as u32 + more;
            Frame::Request { stream, head, chunk }
        }),
        (stream(), request_head()).prop_map(|(stream, head)| Frame::Request { stream, head, chunk: Bytes::new() }),
        (stream(), chunk()).prop_map(|(stream, chunk)| Frame::RequestChunk { stream, chunk }),
        (stream(), status(), chunk(), more.clone()).prop_map(|(stream, status, chunk, more)| {
            let head = AnswerHead { status, body_bytes: chunk.len() as u32 + more };
            Frame::Answer { stream, head, chunk }
        }),
        (stream(), chunk()).prop_map(|(stream, chunk)| Frame::AnswerChunk { stream, chunk }),
        (stream(), chunk(), more)
            .prop_map(|(stream, chunk, more)| { Frame::Item { stream, length: chunk.len() as u32 + more, chunk } }),
        (stream(), chunk()).prop_map(|(stream, chunk)| Frame::ItemChunk { stream, chunk }),
        stream().prop_map(|stream| Frame::Cancel { stream }),
        (stream(), any::<u32>()).prop_map(|(stream, bytes)| Frame::Credit { stream, bytes }),
        (any::<u64>(), any::<i64>()).prop_map(|(id, clock_us)| Frame::Ping { id, clock_us }),
        (any::<u64>(), any::<i64>()).prop_map(|(id, clock_us)| Frame::Pong { id, clock_us }),
        (any::<u16>(), any::<u64>(), "[a-zé]{0,100}").prop_map(|(code, taken, text)| Frame::Goodbye {
            reason: GoodbyeReason::from_code(code),
            taken,
            text
        }),
    ]
}

fn decode_one(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
    next_frame(&mut BytesMut::from(bytes))
}

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(frame, &mut out);
    out
}

proptest! {
    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut(
        frames in prop::collection::vec(frame(), 0..8),
        step in 1usize..300,
    ) {
        let bytes: Vec<u8> = frames.iter().flat_map(encoded).collect();
        let (mut buffer, mut found) = (BytesMut::new(), Vec::new());
        for piece in bytes.chunks(step) {
            buffer.extend_from_slice(piece);
            while let Some(frame) = next_frame(&mut buffer).unwrap() {
                found.push(frame);
            }
        }
        prop_assert_eq!(found, frames);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn a_decoded_frame_encodes_to_the_same_bytes(mut bytes in frame().prop_map(|frame| encoded(&frame)), at: u16, to: u8) {
        let at = usize::from(at) % bytes.len();
        bytes[at] = to;
        crate::fuzzing::frames(&bytes);
    }

    #[test]
    fn any_bytes_end_in_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        crate::fuzzing::frames(&bytes);
    }
}

#[test]
fn a_payload_beyond_the_limit_is_refused_with_its_header() {
    let mut bytes = encode_header(FrameKind::RequestChunk, StreamId(1), PAYLOAD_BYTES_MAX);
    assert_eq!(decode_one(&bytes), Ok(None), "the largest payload is awaited");
    bytes[0..4].copy_from_slice(&(PAYLOAD_BYTES_MAX as u32 + 1).to_le_bytes());
    assert_eq!(decode_one(&bytes), Err(FrameError::TooLarge { length: PAYLOAD_BYTES_MAX as u32 + 1 }));
    bytes[0..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(decode_one(&bytes), Err(FrameError::TooLarge { length: u32::MAX }));
}

#[test]
fn what_this_version_does_not_know_is_refused() {
    let cancel = encoded(&Frame::Cancel { stream: StreamId(3) });
    let changed = |at: usize, to: u8| {
        let mut bytes = cancel.clone();
        bytes[at] = to;
        decode_one(&bytes)
    };
    assert_eq!(changed(4, 0), Err(FrameError::Kind { kind: 0 }));
    assert_eq!(changed(4, 12), Err(FrameError::Kind { kind: 12 }));
    assert_eq!(changed(5, 1), Err(FrameError::Reserved), "flags");
    assert_eq!(changed(6, 1), Err(FrameError::Reserved));
    assert_eq!(changed(8, 0), Err(FrameError::Stream), "a request has a number");
    assert_eq!(changed(4, FrameKind::Ping as u8), Err(FrameError::Stream), "a ping has none");
    assert_eq!(changed(4, FrameKind::Credit as u8), Err(FrameError::Length));
    assert_eq!(changed(4, FrameKind::RequestChunk as u8), Err(FrameError::EmptyChunk));
}

#[test]
fn a_first_chunk_fits_its_body() {
    let head = AnswerHead { status: AnswerStatus::Done, body_bytes: 2 };
    let answer = |chunk: &'static [u8]| {
        decode_one(&encoded(&Frame::Answer { stream: StreamId(1), head, chunk: Bytes::from_static(chunk) }))
    };
    assert!(answer(b"ab").unwrap().is_some());
    assert_eq!(answer(b"abc"), Err(FrameError::ChunkTooLong));
    assert_eq!(answer(b""), Err(FrameError::EmptyChunk), "a frame that brings the body no further");
}

/// The bytes of version 1. They may not change as long as nodes of that version exist.
#[test]
fn the_layout_of_version_1_is_fixed() {
    let head = RequestHead {
        service: 0x0102,
        priority: Priority::Bulk,
        window_bytes: 3,
        body_bytes: 2,
        ring: RingVersion { lineage: 4, number: 5 },
        born_us: -1,
        deadline_us: 6,
    };
    let request = Frame::Request { stream: StreamId(7), head, chunk: Bytes::from_static(b"hi") };
    let expected: Vec<u8> = [
        &[46, 0, 0, 0, 1, 0, 0, 0][..],
        &[7, 0, 0, 0, 0, 0, 0, 0],
        &[2, 1, 2, 0, 3, 0, 0, 0, 2, 0, 0, 0],
        &[4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0],
        &[255, 255, 255, 255, 255, 255, 255, 255, 6, 0, 0, 0, 0, 0, 0, 0],
        b"hi",
    ]
    .concat();
    assert_eq!(encoded(&request), expected);
    let goodbye = Frame::Goodbye { reason: GoodbyeReason::ShuttingDown, taken: 7, text: "bye".into() };
    assert_eq!(
        encoded(&goodbye),
        [&[13, 0, 0, 0, 11, 0, 0, 0][..], &[0; 8], &[1, 0], &[7, 0, 0, 0, 0, 0, 0, 0], b"bye"].concat()
    );
}
