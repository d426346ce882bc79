//! Finds the handler of a message. Hot.
//!
//! A feature appears here once, with the list of its handlers. The table is built when the program
//! is compiled. Two handlers for one message code do not compile.

use super::handler::Handler;
use super::refusal::Refusal;
use super::{
    bucket, counters, cs_bucket, datatypes, folds, index, listing, login, map_reduce, message, object, server_info,
    start_tls, unsupported,
};
use ombak_proto::Frame;
use ombak_proto::code::{self, Direction, Service};

/// The handlers of every feature.
const FEATURES: &[&[Handler]] = &[
    object::HANDLERS,
    server_info::HANDLERS,
    start_tls::HANDLERS,
    login::HANDLERS,
    listing::HANDLERS,
    index::HANDLERS,
    cs_bucket::HANDLERS,
    bucket::HANDLERS,
    datatypes::HANDLERS,
    counters::HANDLERS,
    map_reduce::HANDLERS,
    folds::HANDLERS,
    unsupported::HANDLERS,
];

/// The handler of each message code.
static HANDLERS: [Option<&'static Handler>; 256] = table(FEATURES);

const fn table(features: &'static [&'static [Handler]]) -> [Option<&'static Handler>; 256] {
    let mut table = [None; 256];
    let mut feature = 0;
    while feature < features.len() {
        let handlers = features[feature];
        let mut at = 0;
        while at < handlers.len() {
            let handler = &handlers[at];
            let code = handler.code as usize;
            assert!(table[code].is_none(), "two handlers have the same message code");
            table[code] = Some(handler);
            at += 1;
        }
        feature += 1;
    }
    table
}

/// The codes of all messages that have a handler.
#[cfg(test)]
pub(crate) fn codes() -> Vec<u8> {
    (0..=u8::MAX).filter(|code| HANDLERS[usize::from(*code)].is_some()).collect()
}

/// The handler of a message, or why there is none.
#[inline]
pub(super) fn find(frame: &Frame) -> Result<&'static Handler, Refusal> {
    match HANDLERS[usize::from(frame.code)] {
        Some(handler) if handler.takes(frame) => Ok(handler),
        _ => Err(refusal(frame)),
    }
}

/// Why no handler takes a message.
#[cold]
fn refusal(frame: &Frame) -> Refusal {
    if frame.body.len() > message::MESSAGE_BYTES_MAX {
        return message::too_large(frame);
    }
    match code::info(frame.code) {
        Some(info) if info.service == Service::Registered && info.direction == Direction::Response => {
            let (name, code) = (info.name, info.code);
            Refusal::new(format!("Error processing incoming message: {name} ({code}) is not a request"))
        }
        _ => Refusal::new(format!("Unknown message code: {}", frame.code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_that_riak_knows_has_a_handler_and_nothing_else_has() {
        for code in 0..=u8::MAX {
            let is_request = code::info(code)
                .is_some_and(|info| info.service == Service::Registered && info.direction == Direction::Request);
            let handler = HANDLERS[usize::from(code)];
            assert_eq!(handler.map(|handler| handler.code), is_request.then_some(code), "code {code}");
        }
    }
}
