//! The frames of version 1, as nodes of that version send them.

use super::*;
use ombak_fixtures::FrozenMessages;
use std::collections::BTreeSet;

const STREAM: StreamId = StreamId(0x0102_0304_0506_0708);

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn request(priority: Priority) -> Frame {
    let head = RequestHead {
        service: 0x0102,
        priority,
        window_bytes: 300,
        body_bytes: 70_000,
        ring: RingVersion { lineage: 4, number: 5 },
        born_us: -1,
        deadline_us: 6,
    };
    Frame::Request { stream: STREAM, head, chunk: text("the body") }
}

fn answer(status: AnswerStatus) -> Frame {
    Frame::Answer { stream: STREAM, head: AnswerHead { status, body_bytes: 8 }, chunk: text("the body") }
}

fn goodbye(reason: GoodbyeReason) -> Frame {
    Frame::Goodbye { reason, taken: 7, text: "because é".into() }
}

fn frames() -> Vec<(&'static str, Frame)> {
    vec![
        ("request/control", request(Priority::Control)),
        ("request/request", request(Priority::Request)),
        ("request/bulk", request(Priority::Bulk)),
        ("request_chunk", Frame::RequestChunk { stream: STREAM, chunk: text("more") }),
        ("answer/done", answer(AnswerStatus::Done)),
        ("answer/overload", answer(AnswerStatus::Overload)),
        ("answer/refused", answer(AnswerStatus::Refused(RefusalCode(0x0304)))),
        ("answer/lost", answer(AnswerStatus::Lost)),
        ("answer_chunk", Frame::AnswerChunk { stream: STREAM, chunk: text("more") }),
        ("item", Frame::Item { stream: STREAM, length: 300, chunk: text("an item") }),
        ("item_chunk", Frame::ItemChunk { stream: STREAM, chunk: text("more") }),
        ("cancel", Frame::Cancel { stream: STREAM }),
        ("credit", Frame::Credit { stream: STREAM, bytes: 300 }),
        ("ping", Frame::Ping { id: 300, clock_us: -2 }),
        ("pong", Frame::Pong { id: 300, clock_us: -2 }),
        ("goodbye/shutting_down", goodbye(GoodbyeReason::ShuttingDown)),
        ("goodbye/protocol_error", goodbye(GoodbyeReason::ProtocolError)),
        ("goodbye/replaced", goodbye(GoodbyeReason::Replaced)),
        ("goodbye/silent", goodbye(GoodbyeReason::Silent)),
        ("goodbye/other", goodbye(GoodbyeReason::Other(0x0304))),
    ]
}

#[test]
fn frames_have_the_bytes_of_version_1() {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 1, "frames");
    for (name, frame) in frames() {
        frozen.check(name, &frame, encoded, |bytes| decode_one(bytes).map(Option::unwrap));
    }
    frozen.end();
}

#[test]
fn each_kind_of_frames_is_frozen() {
    let kinds: BTreeSet<u8> = frames().iter().map(|(_, frame)| encoded(frame)[4]).collect();
    let known = (0..=255).filter(|code| FrameKind::from_code(*code).is_some());
    assert_eq!(kinds, known.collect());
    let reasons: BTreeSet<u16> = frames()
        .into_iter()
        .filter_map(|(_, frame)| if let Frame::Goodbye { reason, .. } = frame { Some(reason.code()) } else { None })
        .collect();
    let known = (0..1000).filter(|code| !matches!(GoodbyeReason::from_code(*code), GoodbyeReason::Other(_)));
    assert_eq!(reasons, known.chain([0x0304]).collect());
}
