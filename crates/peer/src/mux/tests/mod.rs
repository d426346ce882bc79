//! Tests of one side alone, and of two sides that are joined by a pipe.

mod guards;
mod histories;
mod order;

use super::*;
use crate::clock::ClockSample;
use crate::frame::{Priority, StreamId};
use crate::identity::RingVersion;
use bytes::BytesMut;
use std::io::IoSlice;

const EXACT: ClockSample = ClockSample { asked_at_us: 0, theirs_us: 0, answered_at_us: 0 };

/// One side, with what it has sent and what has arrived.
struct End {
    mux: Mux<u64>,
    out: OutputBuffer,
    arrived: BytesMut,
    events: Vec<Event<u64>>,
}

impl End {
    fn new(side: Side, config: &MuxConfig) -> Self {
        let mux = Mux::new(side, config, EXACT, 0);
        Self { mux, out: OutputBuffer::default(), arrived: BytesMut::new(), events: Vec::new() }
    }

    /// Everything that one wake-up writes.
    fn write(&mut self, now_us: i64, bytes_target: usize) -> Vec<u8> {
        self.mux.fill(now_us, bytes_target, &mut self.out, &mut self.events);
        written(&mut self.out)
    }

    fn read(&mut self, bytes: &[u8], now_us: i64) -> Result<(), ConnectionError> {
        self.arrived.extend_from_slice(bytes);
        self.mux.receive(&mut self.arrived, now_us, &mut self.events)
    }

    fn events(&mut self) -> Vec<Event<u64>> {
        std::mem::take(&mut self.events)
    }

    /// The only request that has arrived.
    fn request(&mut self) -> ArrivedRequest {
        match self.events().as_slice() {
            [Event::Request(request)] => request.clone(),
            other => panic!("expected one request: {other:?}"),
        }
    }

    /// The only response that has arrived.
    fn response(&mut self) -> Response {
        match self.events().as_slice() {
            [Event::Answered { response, .. }] => response.clone(),
            other => panic!("expected one response: {other:?}"),
        }
    }
}

/// Takes everything out of an output buffer, a few slices at a time.
fn written(out: &mut OutputBuffer) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !out.is_empty() {
        let mut slices = [IoSlice::new(&[]); 3];
        let filled = out.fill_slices(&mut slices);
        let mut piece = Vec::new();
        slices[..filled].iter().for_each(|slice| piece.extend_from_slice(slice));
        let taken = piece.len().min(100_000);
        bytes.extend_from_slice(&piece[..taken]);
        out.advance(taken);
    }
    bytes
}

fn request(priority: Priority, body: impl Into<Body>) -> Request {
    Request {
        service: 7,
        priority,
        ring: RingVersion { lineage: 3, number: 4 },
        born_us: 0,
        send_by_us: i64::MAX,
        deadline_us: 10_000_000,
        window_bytes: 0,
        body: body.into(),
    }
}

/// Two sides whose wakes follow each other without delay.
struct Pair {
    left: End,
    right: End,
    now_us: i64,
}

impl Pair {
    fn new(config: &MuxConfig) -> Self {
        Self { left: End::new(Side::Initiator, config), right: End::new(Side::Responder, config), now_us: 0 }
    }

    /// Moves bytes until both sides have nothing more to say.
    fn settle(&mut self) {
        loop {
            let (there, back) = (self.left.write(self.now_us, 1 << 17), self.right.write(self.now_us, 1 << 17));
            if there.is_empty() && back.is_empty() {
                return;
            }
            self.right.read(&there, self.now_us).unwrap();
            self.left.read(&back, self.now_us).unwrap();
        }
    }
}

fn stream_of(number: u64) -> StreamId {
    StreamId(number)
}
