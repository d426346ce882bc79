//! Which frames leave in which order.

use super::*;
use crate::frame::{Frame, PAYLOAD_BYTES_MAX, next_frame};
use bytes::Bytes;
use std::collections::BTreeMap;

const WAKE_UP_BYTES: usize = 2 * PAYLOAD_BYTES_MAX;

fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut buffer = BytesMut::from(bytes);
    std::iter::from_fn(|| next_frame(&mut buffer).unwrap()).collect()
}

fn stream_of_frame(frame: &Frame) -> u64 {
    match frame {
        Frame::Request { stream, .. } | Frame::RequestChunk { stream, .. } => stream.0,
        _ => 0,
    }
}

/// The streams of the frames of a few wake-ups, one frame for each. The first is a ping.
fn order(end: &mut End, wake_ups: usize) -> Vec<u64> {
    let sent = (0..wake_ups).flat_map(|_| end.write(0, 1)).collect::<Vec<u8>>();
    frames(&sent).iter().map(stream_of_frame).filter(|stream| *stream > 0).collect()
}

#[test]
fn a_heartbeat_passes_a_body_of_50_megabytes() {
    let mut end = End::new(Side::Initiator, &MuxConfig::default());
    let large = end.mux.call(request(Priority::Bulk, vec![1; 50 << 20]), 1).unwrap();
    let mut wake_ups = 0;
    loop {
        let before = frames(&end.write(0, WAKE_UP_BYTES));
        if !before.iter().any(|frame| stream_of_frame(frame) == large.0) {
            break;
        }
        // The next wake-up finds an urgent request of another task.
        let urgent = end.mux.call(request(Priority::Control, vec![2; 10]), 2).unwrap();
        let sent = frames(&end.write(0, WAKE_UP_BYTES));
        assert_eq!(stream_of_frame(&sent[0]), urgent.0, "the urgent request is the first frame");
        assert!(sent.iter().skip(1).all(|frame| stream_of_frame(frame) == large.0));
        assert!(sent.len() <= 4, "a wake-up takes at most a chunk more than its target: {}", sent.len());
        end.mux.cancel(urgent);
        wake_ups += 1;
    }
    assert!(wake_ups > 100, "{wake_ups}");
}

#[test]
fn pings_and_pongs_go_before_everything() {
    let mut end = End::new(Side::Initiator, &MuxConfig::default());
    end.mux.call(request(Priority::Control, vec![1; 1 << 20]), 1).unwrap();
    end.write(0, WAKE_UP_BYTES);
    let mut ping = Vec::new();
    crate::frame::encode_frame(&Frame::Ping { id: 9, clock_us: 5 }, &mut ping);
    end.read(&ping, 10).unwrap();
    assert!(end.mux.has_output(10));
    let sent = frames(&end.write(20, WAKE_UP_BYTES));
    assert_eq!(sent[0], Frame::Pong { id: 9, clock_us: 20 });
    // A driver whose clock was read before the ping arrived tells no moment before that.
    end.read(&ping, 30).unwrap();
    assert_eq!(frames(&end.write(25, WAKE_UP_BYTES))[0], Frame::Pong { id: 9, clock_us: 30 });
}

#[test]
fn streams_of_one_priority_take_turns() {
    let mut end = End::new(Side::Initiator, &MuxConfig::default());
    for token in 0..3 {
        end.mux.call(request(Priority::Request, vec![0; 3 * PAYLOAD_BYTES_MAX]), token).unwrap();
    }
    assert_eq!(order(&mut end, 10), [1, 3, 5, 1, 3, 5, 1, 3, 5]);
}

#[test]
fn transfers_are_slower_than_requests_and_do_not_starve() {
    let mut end = End::new(Side::Initiator, &MuxConfig::default());
    let bulk = end.mux.call(request(Priority::Bulk, vec![0; 20 * PAYLOAD_BYTES_MAX]), 0).unwrap();
    end.mux.call(request(Priority::Request, vec![0; 60 * PAYLOAD_BYTES_MAX]), 1).unwrap();
    let mut counts = BTreeMap::new();
    for stream in order(&mut end, 46) {
        *counts.entry(stream == bulk.0).or_insert(0) += 1;
    }
    assert_eq!(counts, BTreeMap::from([(true, 5), (false, 40)]));
}

#[test]
fn what_one_wake_up_has_to_say_is_one_write() {
    let mut end = End::new(Side::Initiator, &MuxConfig::default());
    for token in 0..100 {
        end.mux.call(request(Priority::Request, vec![0; 1000]), token).unwrap();
    }
    end.mux.fill(0, WAKE_UP_BYTES, &mut end.out, &mut end.events);
    let mut slices = [IoSlice::new(&[]); 8];
    assert_eq!(end.out.fill_slices(&mut slices), 1, "small frames lie in one piece of memory");
    assert_eq!(end.out.only_piece().map(<[u8]>::len), Some(end.out.len()));
    assert_eq!(frames(&written(&mut end.out)).len(), 101, "a ping, too");
}

#[test]
fn large_parts_are_not_copied() {
    let mut end = End::new(Side::Initiator, &MuxConfig::default());
    let part = Bytes::from(vec![5; 10_000]);
    let body = Body::new().with(&b"head"[..]).with(part.clone());
    end.mux.call(request(Priority::Request, body), 0).unwrap();
    end.mux.fill(0, WAKE_UP_BYTES, &mut end.out, &mut end.events);
    let mut slices = [IoSlice::new(&[]); 8];
    assert_eq!(end.out.only_piece(), None);
    let filled = end.out.fill_slices(&mut slices);
    assert!(slices[..filled].iter().any(|slice| slice.as_ptr() == part.as_ptr()));
}

#[test]
fn a_small_body_is_a_slice_of_what_was_read() {
    let config = MuxConfig::default();
    let (mut left, mut right) = (End::new(Side::Initiator, &config), End::new(Side::Responder, &config));
    left.mux.call(request(Priority::Request, vec![5; 10_000]), 0).unwrap();
    let bytes = left.write(0, WAKE_UP_BYTES);
    right.arrived = BytesMut::from(&bytes[..]);
    let read = right.arrived.as_ptr() as usize..right.arrived.as_ptr() as usize + bytes.len();
    right.read(&[], 0).unwrap();
    assert!(read.contains(&(right.request().body.as_ptr() as usize)));
}
