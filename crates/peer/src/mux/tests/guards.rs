//! What is refused, and when.

use super::*;
use crate::error::{PeerError, RefusalCode};
use crate::frame::{AnswerHead, AnswerStatus, Frame, FrameError, GoodbyeReason, encode_frame};
use bytes::Bytes;

fn small() -> MuxConfig {
    MuxConfig {
        calls_max: [2, 3, 2],
        queued_bytes_max: [10_000, 300_000, 300_000],
        served_max: [2, 3, 2],
        served_bytes_max: [10_000, 300_000, 300_000],
        answers_bytes_max: 300_000,
        arriving_bytes_max: 300_000,
        body_bytes_max: 200_000,
        ping_interval_us: 1_000_000,
        answer_max_us: 60_000_000,
        ..MuxConfig::default()
    }
}

fn streamed(window_bytes: usize) -> Request {
    Request { window_bytes, ..request(Priority::Request, vec![1]) }
}

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(frame, &mut out);
    out
}

fn item(stream: u64, length: u32, chunk: &'static [u8]) -> Vec<u8> {
    encoded(&Frame::Item { stream: stream_of(stream), length, chunk: Bytes::from_static(chunk) })
}

#[test]
fn a_request_and_its_answer() {
    let mut pair = Pair::new(&small());
    let sent = Request { born_us: -50, ..request(Priority::Request, vec![9; 150_000]) };
    pair.left.mux.call(sent, 1).unwrap();
    pair.settle();
    let arrived = pair.right.request();
    assert_eq!((arrived.service, arrived.ring.number, arrived.born_us), (7, 4, -50));
    assert_eq!(arrived.body, vec![9; 150_000]);
    pair.right.mux.answer(arrived.stream, AnswerStatus::Done, vec![8; 180_000].into());
    pair.settle();
    assert_eq!(pair.left.response(), Ok(Bytes::from(vec![8; 180_000])));
    assert_eq!(pair.left.mux.held(), Default::default());
    assert_eq!(pair.right.mux.held(), Default::default());
}

#[test]
fn both_sides_may_ask() {
    let mut pair = Pair::new(&small());
    let ours = pair.left.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    let theirs = pair.right.mux.call(request(Priority::Request, vec![2]), 2).unwrap();
    assert!(ours.is_of_initiator() && !theirs.is_of_initiator());
    pair.settle();
    assert_eq!((pair.right.request().body, pair.left.request().body), (vec![1].into(), vec![2].into()));
}

#[test]
fn a_full_queue_answers_overload_at_once_and_keeps_no_heartbeat_out() {
    let mut end = End::new(Side::Initiator, &small());
    for token in 0..3 {
        end.mux.call(request(Priority::Request, vec![1]), token).unwrap();
    }
    assert_eq!(end.mux.call(request(Priority::Request, vec![1]), 9), Err(PeerError::Overload));
    assert!(PeerError::Overload.was_not_executed());
    assert!(end.mux.call(request(Priority::Control, vec![1]), 9).is_ok());

    let mut end = End::new(Side::Initiator, &small());
    end.mux.call(request(Priority::Request, vec![1; 200_000]), 1).unwrap();
    assert_eq!(end.mux.call(request(Priority::Request, vec![1; 100_001]), 2), Err(PeerError::Overload));
    assert!(end.mux.call(request(Priority::Bulk, vec![1; 200_000]), 2).is_ok(), "each priority has its own bytes");
    assert!(end.mux.call(request(Priority::Request, vec![1; 100_000]), 3).is_ok());
    assert_eq!(end.mux.held().queued_bytes, [0, 300_000, 200_000]);

    let mut end = End::new(Side::Initiator, &small());
    assert_eq!(end.mux.call(request(Priority::Request, vec![1; 200_001]), 2), Err(PeerError::Overload));
    assert_eq!(end.mux.call(streamed(300_001), 2), Err(PeerError::Overload), "a window is memory, too");
    assert_eq!(end.mux.held(), Default::default());
}

#[test]
fn a_full_peer_answers_overload_and_serves_heartbeats() {
    let mut left = End::new(Side::Initiator, &MuxConfig::default());
    let mut right = End::new(Side::Responder, &small());
    for token in 0..4 {
        left.mux.call(request(Priority::Request, vec![1]), token).unwrap();
    }
    left.mux.call(request(Priority::Control, vec![1]), 9).unwrap();
    right.read(&left.write(0, 1 << 20), 0).unwrap();
    let events = right.events();
    assert_eq!(events.len(), 4, "three requests and a heartbeat");
    left.read(&right.write(0, 1 << 20), 0).unwrap();
    assert_eq!(left.events(), [Event::Answered { token: 3, response: Err(PeerError::Overload) }]);
    // A service that ends makes room.
    let Event::Request(served) = &events[1] else { panic!() };
    right.mux.answer(served.stream, AnswerStatus::Done, Body::new());
    left.mux.call(request(Priority::Request, vec![1]), 5).unwrap();
    right.read(&left.write(0, 1 << 20), 0).unwrap();
    right.request();
}

#[test]
fn bodies_that_arrive_are_counted_before_they_are_held() {
    let mut left = End::new(Side::Initiator, &MuxConfig::default());
    let mut right = End::new(Side::Responder, &small());
    left.mux.call(request(Priority::Request, vec![1; 199_000]), 1).unwrap();
    left.mux.call(request(Priority::Request, vec![1; 199_000]), 2).unwrap();
    left.mux.call(request(Priority::Request, vec![1; 400_000]), 3).unwrap();
    // One chunk of each, then everything.
    right.read(&left.write(0, 190_000), 0).unwrap();
    assert_eq!(right.mux.held().served_bytes, [0, 199_000, 0]);
    right.read(&left.write(0, 1 << 20), 0).unwrap();
    right.request();
    left.read(&right.write(0, 1 << 20), 0).unwrap();
    let too_large = PeerError::Refused { code: RefusalCode::TOO_LARGE, detail: Bytes::new() };
    assert!(too_large.was_not_executed());
    let refused = [(2, PeerError::Overload), (3, too_large)];
    let expected = refused.map(|(token, error)| Event::Answered { token, response: Err(error) });
    assert_eq!(left.events(), expected);
}

#[test]
fn a_request_that_comes_too_late_is_not_executed() {
    // The deadline is 10 s, less the 12 ms by which the clocks can have drifted apart.
    for (arrives_us, executed) in [(9_980_000, true), (9_990_000, false)] {
        let mut pair = Pair::new(&small());
        pair.left.mux.call(request(Priority::Request, vec![1; 100_000]), 1).unwrap();
        let bytes = pair.left.write(0, 1 << 20);
        let (most, rest) = bytes.split_at(bytes.len() - 1);
        pair.right.read(most, 1).unwrap();
        pair.right.read(rest, arrives_us).unwrap();
        assert_eq!(pair.right.events().iter().any(|event| matches!(event, Event::Request(_))), executed);
        let sent = pair.right.write(arrives_us, 1 << 20);
        pair.left.read(&sent, arrives_us).unwrap();
        if !executed {
            let expired = PeerError::Refused { code: RefusalCode::EXPIRED, detail: Bytes::new() };
            assert_eq!(pair.left.response(), Err(expired));
        }
    }
}

#[test]
fn a_paused_receiver_sees_the_age_when_it_wakes() {
    let config = MuxConfig { lifetime_us: 2_000_000, silence_max_us: 60_000_000, ..small() };
    for (pause_us, executed) in [(1_000_000, true), (3_000_000, false)] {
        // The clocks differ by an hour, which the handshake found out to 100 µs.
        let hour_us = 3_600_000_000;
        let clock = ClockSample { asked_at_us: hour_us, theirs_us: 50, answered_at_us: hour_us + 100 };
        let mut left = End::new(Side::Initiator, &config);
        let mut right = End::new(Side::Responder, &config);
        right.mux = Mux::new(Side::Responder, &config, clock, hour_us + 100);
        // The bytes lie in the socket's buffer while the receiver stands still.
        left.mux.call(Request { born_us: 100, ..request(Priority::Request, vec![1]) }, 1).unwrap();
        right.read(&left.write(100, 1 << 20), hour_us + 100 + pause_us).unwrap();
        let events = right.events();
        assert_eq!(!events.is_empty(), executed);
        if let [Event::Request(arrived)] = &events[..] {
            let age_us = hour_us + 100 + pause_us - arrived.born_us;
            // The real age is the pause, 50 µs more or less; the drift since the sample is added.
            assert!((pause_us..pause_us + 2_000).contains(&age_us), "{age_us}");
        }
    }
}

#[test]
fn a_request_that_must_leave_early_ends_early_unless_it_has_left() {
    let early = |bytes| Request { send_by_us: 1_000, ..request(Priority::Request, vec![1; bytes]) };
    let mut end = End::new(Side::Initiator, &MuxConfig { silence_max_us: 60_000_000, ..small() });
    end.mux.call(early(100), 1).unwrap();
    end.mux.on_time(0, &mut end.events).unwrap();
    assert_eq!(end.mux.next_time_us(false), 1_000);
    assert!(!end.write(999, 1 << 20).is_empty());
    // Only the first of several frames leaves.
    end.mux.call(early(150_000), 2).unwrap();
    assert!(!end.write(999, 1).is_empty());
    end.mux.call(early(100), 3).unwrap();
    end.mux.on_time(1_000, &mut end.events).unwrap();
    let unreachable = |token| Event::Answered { token, response: Err(PeerError::Unreachable) };
    assert_eq!(end.events(), [unreachable(2), unreachable(3)], "the first has left and waits for its answer");
    end.mux.on_time(10_000_000, &mut end.events).unwrap();
    assert_eq!(end.events(), [Event::Answered { token: 1, response: Err(PeerError::Timeout) }]);
    assert_eq!(end.mux.held(), Default::default());
}

#[test]
fn a_request_older_than_its_lifetime_is_never_sent() {
    let config = MuxConfig { lifetime_us: 2_000_000, ..small() };
    let mut end = End::new(Side::Initiator, &config);
    end.mux.call(Request { born_us: 5_000_000, ..request(Priority::Request, vec![1]) }, 1).unwrap();
    end.mux.call(Request { born_us: 5_000_001, ..request(Priority::Request, vec![1]) }, 2).unwrap();
    let sent = end.write(7_000_001, 1 << 20);
    assert_eq!(end.events(), [Event::Answered { token: 1, response: Err(PeerError::Unreachable) }]);
    let mut peer = End::new(Side::Responder, &MuxConfig::default());
    peer.read(&sent, 7_000_001).unwrap();
    assert_eq!(peer.request().born_us, 5_000_001 - 7_000_001 * 1200 / 1_000_000, "the drift since the sample");
}

#[test]
fn a_deadline_ends_a_call_and_says_what_is_known() {
    let mut pair = Pair::new(&small());
    pair.left.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    let bytes = pair.left.write(0, 1 << 20);
    pair.left.mux.call(request(Priority::Request, vec![2]), 2).unwrap();
    assert_eq!(pair.left.mux.next_time_us(true), 5_000_000, "the end of the silence comes first");
    pair.left.read(&[], 9_000_000).unwrap();
    assert_eq!(pair.left.mux.next_time_us(true), 10_000_000);
    pair.left.mux.on_time(10_000_000, &mut pair.left.events).unwrap();
    let answered = |token, error| Event::Answered { token, response: Err(error) };
    assert_eq!(pair.left.events(), [answered(1, PeerError::Timeout), answered(2, PeerError::Unreachable)]);
    assert!(!PeerError::Timeout.was_not_executed());
    // The peer is told, and its late answer hurts nobody.
    pair.right.read(&bytes, 1).unwrap();
    let arrived = pair.right.request();
    let cancel = pair.left.write(10_000_000, 1 << 20);
    pair.right.read(&cancel, 2).unwrap();
    assert!(pair.right.mux.is_cancelled(arrived.stream));
    pair.right.mux.answer(arrived.stream, AnswerStatus::Done, vec![1].into());
    assert_eq!(pair.right.mux.held(), Default::default());
}

#[test]
fn the_end_of_a_connection_says_what_is_known() {
    let mut end = End::new(Side::Initiator, &small());
    end.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    end.write(0, 1 << 20);
    end.mux.call(request(Priority::Request, vec![1; 100_000]), 2).unwrap();
    end.write(0, 1);
    end.mux.call(request(Priority::Request, vec![1]), 3).unwrap();
    end.mux.close(&mut end.events);
    let answered = |token, error| Event::Answered { token, response: Err(error) };
    let expected = [
        answered(1, PeerError::Closed),
        // Half a request is not executed.
        answered(2, PeerError::Unreachable),
        answered(3, PeerError::Unreachable),
    ];
    assert_eq!(end.events(), expected);
    assert_eq!(end.mux.held().calls, [0; 3]);
}

#[test]
fn cancelling_frees_both_sides() {
    let mut pair = Pair::new(&small());
    // One that was not sent, one of which half was sent, one that is being executed.
    let executed = pair.left.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    pair.settle();
    let arrived = pair.right.request();
    let half = pair.left.mux.call(request(Priority::Request, vec![1; 150_000]), 2).unwrap();
    let bytes = pair.left.write(0, 1);
    pair.right.read(&bytes, 0).unwrap();
    let unsent = pair.left.mux.call(request(Priority::Request, vec![1; 50_000]), 3).unwrap();
    assert_eq!(pair.right.mux.held().served_bytes, [0, 150_001, 0]);
    for stream in [executed, half, unsent] {
        pair.left.mux.cancel(stream);
    }
    assert_eq!(pair.left.mux.held(), Default::default());
    pair.settle();
    assert!(pair.left.events().is_empty(), "nobody waits for these");
    assert_eq!(pair.right.events(), [Event::Room { stream: arrived.stream }]);
    assert_eq!(pair.right.mux.held().served, [0, 1, 0], "the service still costs");
    pair.right.mux.answer(arrived.stream, AnswerStatus::Done, vec![1; 1000].into());
    assert_eq!(pair.right.mux.held(), Default::default());
}

#[test]
fn an_answer_that_does_not_fit_is_lost_and_not_taken_for_overload() {
    let mut pair = Pair::new(&small());
    for token in 0..2 {
        pair.left.mux.call(request(Priority::Request, vec![1]), token).unwrap();
    }
    pair.settle();
    let arrived = pair.right.events();
    for event in &arrived {
        let Event::Request(arrived) = event else { panic!() };
        pair.right.mux.answer(arrived.stream, AnswerStatus::Done, vec![1; 199_000].into());
    }
    assert_eq!(pair.right.mux.held().answers_bytes, 199_000);
    pair.settle();
    let events = pair.left.events();
    assert!(events.contains(&Event::Answered { token: 1, response: Err(PeerError::AnswerLost) }));
    assert!(!PeerError::AnswerLost.was_not_executed());
    // The caller's bounds hold as well.
    let mut left = End::new(Side::Initiator, &MuxConfig { arriving_bytes_max: 4096, body_bytes_max: 4096, ..small() });
    left.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    let head = AnswerHead { status: AnswerStatus::Done, body_bytes: 4097 };
    let answer = Frame::Answer { stream: stream_of(1), head, chunk: Bytes::from_static(b"x") };
    left.read(&encoded(&answer), 0).unwrap();
    assert_eq!(left.response(), Err(PeerError::AnswerLost));
}

#[test]
fn items_wait_for_credit() {
    let mut pair = Pair::new(&small());
    pair.left.mux.call(streamed(8192), 1).unwrap();
    pair.settle();
    let arrived = pair.right.request();
    let item = || Body::from(vec![3; 1000]);
    let mut taken = 0;
    for _ in 0..100 {
        while pair.right.mux.send_item(arrived.stream, item()).is_ok() {
            taken += 1;
        }
        pair.settle();
    }
    // The caller has consumed nothing: one window is on its way to it, and one waits here. One item
    // belongs to both.
    assert_eq!(taken, 2 * (8192 / 1064) + 1);
    assert_eq!(pair.right.mux.send_item(arrived.stream, item()), Err(ItemRefused::Full));
    let received = pair.left.events().len();
    assert_eq!(received, 8192 / 1064);
    assert!(pair.left.mux.held().arriving_bytes == 8192);
    pair.right.events();
    for _ in 0..received {
        pair.left.mux.consumed(arrived.stream, 1000);
    }
    pair.settle();
    assert!(pair.right.events().contains(&Event::Room { stream: arrived.stream }));
    assert!(pair.right.mux.send_item(arrived.stream, item()).is_ok());
    let too_large = Body::from(vec![3; 4097 - ITEM_COST_BYTES]);
    assert_eq!(pair.right.mux.send_item(arrived.stream, too_large), Err(ItemRefused::TooLarge));
}

/// The caller may never consume anything, and what it holds for the answer has to end with it.
#[test]
fn a_refusal_does_not_wait_behind_items_without_credit() {
    let mut pair = Pair::new(&small());
    pair.left.mux.call(streamed(8192), 1).unwrap();
    pair.settle();
    let arrived = pair.right.request();
    for _ in 0..100 {
        while pair.right.mux.send_item(arrived.stream, Body::from(vec![3; 1000])).is_ok() {}
        pair.settle();
    }
    pair.right.mux.answer(arrived.stream, AnswerStatus::Refused(RefusalCode::EXPIRED), Body::new());
    pair.settle();
    let is_refusal =
        |event: &Event<_>| matches!(event, Event::Answered { response: Err(PeerError::Refused { .. }), .. });
    assert_eq!(pair.left.events().iter().filter(|event| is_refusal(event)).count(), 1);
    assert_eq!(pair.left.mux.held().arriving_bytes, 0);
}

#[test]
fn a_peer_that_exceeds_its_credit_is_cut_off() {
    let start = |window_bytes| {
        let mut end = End::new(Side::Initiator, &small());
        end.mux.call(streamed(window_bytes), 1).unwrap();
        end
    };
    // Empty items cost, too.
    let mut end = start(4096);
    for _ in 0..4096 / ITEM_COST_BYTES {
        end.read(&item(1, 0, b""), 0).unwrap();
    }
    assert_eq!(end.read(&item(1, 0, b""), 0), Err(ConnectionError::CreditExceeded));
    let mut end = start(4096);
    assert_eq!(end.read(&item(1, 4096, b"x"), 0), Err(ConnectionError::CreditExceeded), "a length beyond the window");
    let mut end = End::new(Side::Initiator, &small());
    end.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    assert_eq!(end.read(&item(1, 0, b""), 0), Err(ConnectionError::CreditExceeded), "no stream was asked for");
}

#[test]
fn a_peer_that_breaks_the_protocol_is_cut_off() {
    let fresh = || End::new(Side::Responder, &small());
    let send = |frames: &[Frame]| {
        let bytes: Vec<u8> = frames.iter().flat_map(encoded).collect();
        fresh().read(&bytes, 0)
    };
    let request = |stream, body_bytes, chunk: &'static [u8]| {
        let mut bytes = BytesMut::from(
            &{
                let mut left = End::new(Side::Initiator, &small());
                left.mux.call(super::request(Priority::Request, vec![1]), 1).unwrap();
                left.write(0, 1 << 20)
            }[32..],
        );
        let Ok(Some(Frame::Request { mut head, .. })) = crate::frame::next_frame(&mut bytes) else { panic!() };
        head.body_bytes = body_bytes;
        Frame::Request { stream: stream_of(stream), head, chunk: Bytes::from_static(chunk) }
    };
    assert_eq!(send(&[request(2, 1, b"x")]), Err(ConnectionError::WrongSide));
    assert_eq!(send(&[request(1, 1, b"x"), request(1, 1, b"x")]), Err(ConnectionError::NumberInUse));
    let chunk = |stream| Frame::RequestChunk { stream: stream_of(stream), chunk: Bytes::from_static(b"xy") };
    assert_eq!(send(&[request(1, 2, b"x"), chunk(1)]), Err(ConnectionError::BodyTooLong));
    assert_eq!(send(&[request(1, 1, b"x"), chunk(1)]), Err(ConnectionError::BodyTooLong));
    assert_eq!(send(&[chunk(3)]), Ok(()), "of a request that was refused or cancelled");
    assert_eq!(send(&[Frame::Cancel { stream: stream_of(3) }]), Ok(()));
    assert_eq!(send(&[Frame::Credit { stream: stream_of(3), bytes: u32::MAX }]), Ok(()));
    assert_eq!(
        fresh().read(&[0; 16], 0),
        Err(ConnectionError::Frame(FrameError::Kind { kind: 0 })),
        "no bytes are skipped"
    );
}

#[test]
fn a_peer_that_takes_no_answers_is_cut_off() {
    let mut right = End::new(Side::Responder, &MuxConfig { served_max: [0; 3], ..small() });
    let mut left = End::new(Side::Initiator, &small());
    let mut ended = None;
    for round in 0..40_000 {
        let stream = left.mux.call(request(Priority::Request, vec![1]), round).unwrap();
        let bytes = left.write(0, 1 << 20);
        if let Err(error) = right.read(&bytes, 0) {
            ended = Some((round, error));
            break;
        }
        // A caller that cancels frees the answer as well; this one hides that.
        left.mux.cancel(stream);
        left.write(0, 0);
    }
    assert_eq!(ended, Some((32 << 10, ConnectionError::TooManyRequests)));
}

#[test]
fn a_silent_peer_is_given_up() {
    let mut pair = Pair::new(&small());
    pair.settle();
    let mut now_us = 0;
    while now_us < 20_000_000 {
        now_us = pair.left.mux.next_time_us(true).max(pair.right.mux.next_time_us(true));
        pair.now_us = now_us;
        pair.left.mux.on_time(now_us, &mut pair.left.events).unwrap();
        pair.right.mux.on_time(now_us, &mut pair.right.events).unwrap();
        pair.settle();
    }
    // Its pings are not answered any more.
    let next_us = pair.left.mux.next_time_us(true);
    assert_eq!(next_us, now_us + 1_000_000);
    pair.left.write(next_us, 1);
    let end_us = pair.left.mux.next_time_us(true);
    assert_eq!(end_us, next_us + 5_000_000);
    assert_eq!(pair.left.mux.on_time(end_us - 1, &mut pair.left.events), Ok(()));
    assert_eq!(pair.left.mux.on_time(end_us, &mut pair.left.events), Err(ConnectionError::Silent));
}

/// A connection whose left side is pinged and answered every 0.5 s, and waits 1.5 s for an answer.
fn pinged(until_us: i64) -> Pair {
    let times = MuxConfig { ping_interval_us: 500_000, answer_max_us: 1_500_000, ..small() };
    let mut pair = Pair::new(&times);
    pair.settle();
    while pair.now_us + 500_000 <= until_us {
        pair.now_us += 500_000;
        pair.left.mux.on_time(pair.now_us, &mut pair.left.events).unwrap();
        pair.settle();
    }
    pair
}

#[test]
fn a_request_to_a_peer_that_answers_no_ping_ends_and_a_transfer_does_not() {
    let mut pair = pinged(3_000_000);
    pair.left.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    pair.left.mux.call(request(Priority::Bulk, vec![2]), 2).unwrap();
    pair.left.mux.call(streamed(8_192), 3).unwrap();
    // From here on nothing of the right side arrives.
    let ping_us = pair.left.mux.next_time_us(true);
    assert_eq!(ping_us, 3_500_000);
    let mut lost = pair.left.write(ping_us, 1 << 20);
    let end_us = pair.left.mux.next_time_us(true);
    assert_eq!(end_us, 5_000_000);
    pair.left.mux.on_time(end_us - 1, &mut pair.left.events).unwrap();
    assert_eq!(pair.left.events(), []);
    pair.left.mux.on_time(end_us, &mut pair.left.events).unwrap();
    let timeout = |token| Event::Answered { token, response: Err(PeerError::Timeout) };
    assert_eq!(pair.left.events(), [timeout(1), timeout(3)]);
    // What would wait for it in vain is not sent at all, so another peer may be asked.
    assert_eq!(pair.left.mux.call(request(Priority::Request, vec![3]), 4), Err(PeerError::Unreachable));
    pair.left.mux.call(request(Priority::Control, vec![4]), 5).unwrap();
    assert_eq!(pair.left.mux.next_time_us(true), 8_500_000, "the end of the silence");
    // The peer goes on: its pong lets requests pass again, and the transfer is answered.
    lost.extend_from_slice(&pair.left.write(end_us, 1 << 20));
    pair.right.read(&lost, end_us + 1).unwrap();
    let pong = pair.right.write(end_us + 1, 1 << 20);
    pair.left.read(&pong, end_us + 2).unwrap();
    pair.left.mux.on_time(end_us + 2, &mut pair.left.events).unwrap();
    pair.left.mux.call(request(Priority::Request, vec![3]), 6).unwrap();
}

#[test]
fn a_peer_that_answers_something_is_not_silent() {
    let mut pair = pinged(3_000_000);
    let stream = pair.left.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    let other = pair.left.mux.call(request(Priority::Request, vec![2]), 2).unwrap();
    let sent = pair.left.write(3_500_000, 1 << 20);
    pair.right.read(&sent, 3_500_000).unwrap();
    // The pong is late behind an answer.
    pair.right.mux.answer(stream, AnswerStatus::Done, Body::from(vec![9]));
    let answer = encoded(&Frame::Answer {
        stream,
        head: AnswerHead { status: AnswerStatus::Done, body_bytes: 1 },
        chunk: Bytes::from_static(&[9]),
    });
    pair.left.read(&answer, 4_900_000).unwrap();
    pair.left.mux.on_time(5_000_000, &mut pair.left.events).unwrap();
    assert_eq!(pair.left.events().len(), 1, "the answer, and no end of the other request {other:?}");
    assert_eq!(pair.left.mux.next_time_us(true), 6_400_000);
}

#[test]
fn a_ping_behind_a_large_body_may_take_longer() {
    let mut pair = pinged(3_000_000);
    pair.left.mux.call(request(Priority::Request, vec![1; 200_000]), 1).unwrap();
    pair.left.write(3_500_000, 1 << 20);
    pair.left.mux.on_time(5_000_000, &mut pair.left.events).unwrap();
    assert_eq!((pair.left.events(), pair.left.mux.next_time_us(true)), (vec![], 5_200_000));
    pair.left.mux.on_time(5_200_000, &mut pair.left.events).unwrap();
    assert_eq!(pair.left.events(), [Event::Answered { token: 1, response: Err(PeerError::Timeout) }]);
}

/// The socket takes no more bytes, so the ping cannot leave either.
#[test]
fn a_peer_that_takes_no_bytes_is_silent_as_well() {
    let mut pair = pinged(3_000_000);
    pair.left.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    pair.left.write(3_100_000, 1 << 20);
    assert_eq!(pair.left.mux.next_time_us(false), 3_500_000);
    pair.left.mux.on_time(3_500_000, &mut pair.left.events).unwrap();
    assert_eq!(pair.left.mux.next_time_us(false), 5_000_000);
    pair.left.mux.on_time(5_000_000, &mut pair.left.events).unwrap();
    assert_eq!(pair.left.events(), [Event::Answered { token: 1, response: Err(PeerError::Timeout) }]);
}

/// A node that was stopped itself has not read yet what its peer has sent.
#[test]
fn a_node_that_was_stopped_waits_for_its_peer_anew() {
    let mut pair = pinged(3_000_000);
    pair.left.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    pair.left.write(3_500_000, 1 << 20);
    pair.left.mux.on_time(7_000_000, &mut pair.left.events).unwrap();
    assert_eq!((pair.left.events(), pair.left.mux.next_time_us(true)), (vec![], 8_500_000));
    pair.left.mux.on_time(8_499_999, &mut pair.left.events).unwrap();
    assert_eq!(pair.left.events(), []);
}

#[test]
fn goodbye_is_the_last_word() {
    let mut pair = Pair::new(&small());
    pair.left.mux.call(request(Priority::Request, vec![1; 100_000]), 1).unwrap();
    pair.left.mux.say_goodbye(GoodbyeReason::ShuttingDown, "shutting down");
    pair.settle();
    assert!(pair.left.mux.said_goodbye() && !pair.left.mux.has_output(0));
    let expected = Event::Goodbye { reason: GoodbyeReason::ShuttingDown, text: "shutting down".into() };
    assert_eq!(pair.right.events(), [expected]);
    assert_eq!(pair.left.mux.call(request(Priority::Request, vec![1]), 2), Err(PeerError::Unreachable));
}

#[test]
fn requests_that_cross_a_goodbye_were_not_executed() {
    let mut pair = Pair::new(&small());
    let call = |pair: &mut Pair, token| pair.left.mux.call(request(Priority::Request, vec![1]), token).unwrap();
    call(&mut pair, 1);
    pair.settle();
    let executing = pair.right.request();
    pair.right.mux.say_goodbye(GoodbyeReason::ShuttingDown, "shutting down");
    let goodbye = pair.right.write(0, 1 << 17);
    call(&mut pair, 2);
    let late = pair.left.write(0, 1 << 17);
    pair.right.read(&late, 0).unwrap();
    assert_eq!(pair.right.events(), [], "the request came after the goodbye");
    pair.left.read(&goodbye, 0).unwrap();
    let mut events = pair.left.events();
    pair.left.mux.close(&mut events);
    let responses: Vec<_> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::Answered { token, response } => Some((token, response.unwrap_err())),
            _ => None,
        })
        .collect();
    assert_eq!(executing.stream, stream_of(1));
    assert_eq!(responses, [(1, PeerError::Closed), (2, PeerError::Unreachable)]);
}

#[test]
fn an_answer_that_is_ready_leaves_before_the_goodbye() {
    let mut pair = Pair::new(&small());
    pair.left.mux.call(request(Priority::Request, vec![1]), 1).unwrap();
    pair.settle();
    let arrived = pair.right.request();
    pair.right.mux.answer(arrived.stream, AnswerStatus::Refused(RefusalCode::SHUTTING_DOWN), Body::new());
    pair.right.mux.say_goodbye(GoodbyeReason::ShuttingDown, "shutting down");
    pair.settle();
    let refused = Err(PeerError::Refused { code: RefusalCode::SHUTTING_DOWN, detail: Bytes::new() });
    let goodbye = Event::Goodbye { reason: GoodbyeReason::ShuttingDown, text: "shutting down".into() };
    assert_eq!(pair.left.events(), [Event::Answered { token: 1, response: refused }, goodbye]);
}

#[test]
fn limits_without_sense_are_refused() {
    assert_eq!(MuxConfig::default().check(), Ok(()));
    let refused = |config: MuxConfig| config.check().unwrap_err().name;
    assert_eq!(small().check(), Ok(()));
    assert_eq!(refused(MuxConfig { queued_bytes_max: [1 << 20, 199_999, 1 << 20], ..small() }), "queued_bytes_max");
    assert_eq!(refused(MuxConfig { served_bytes_max: [1 << 20, 1 << 20, 0], ..small() }), "served_bytes_max");
    assert_eq!(refused(MuxConfig { silence_max_us: 1_000_000, ..small() }), "silence_max_us");
    assert_eq!(refused(MuxConfig { answer_max_us: 0, ..small() }), "answer_max_us");
    assert_eq!(refused(MuxConfig { lifetime_us: 0, ..small() }), "lifetime_us");
    assert!(refused(MuxConfig { calls_max: [1, 40_000, 1], ..small() }).contains("calls_max"));
}
