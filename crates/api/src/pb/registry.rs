//! Finds the handler of a message. Hot.
//!
//! A feature appears here once, with the list of its handlers. The table is built when the program
//! is compiled. Two handlers for one message code do not compile.

use super::handler::Handler;
use super::refusal::Refusal;
use super::{
    bucket, counters, cs_bucket, datatypes, folds, index, listing, login, map_reduce, message, object, search,
    search_administration, server_info, start_tls, unsupported,
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
    search::HANDLERS,
    search_administration::HANDLERS,
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

/// The handler of a message, or why there is none. A node without search does not know the messages
/// of search.
#[inline]
pub(super) fn find(frame: &Frame, has_search: bool) -> Result<&'static Handler, Refusal> {
    match HANDLERS[usize::from(frame.code)] {
        Some(handler) if handler.takes(frame) && (has_search || !handler.is_of_search) => Ok(handler),
        _ => Err(refusal(frame, has_search)),
    }
}

/// Why no handler takes a message.
#[cold]
fn refusal(frame: &Frame, has_search: bool) -> Refusal {
    if frame.body.len() > message::MESSAGE_BYTES_MAX {
        return message::too_large(frame);
    }
    let is_known = |service| service == Service::Registered || has_search && service == Service::OfSearch;
    match code::info(frame.code) {
        Some(info) if is_known(info.service) && info.direction == Direction::Response => {
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
            let info = code::info(code).filter(|info| info.direction == Direction::Request);
            let service = info.map(|info| info.service).filter(|service| *service != Service::NotLoaded);
            let handler = HANDLERS[usize::from(code)];
            assert_eq!(handler.map(|handler| handler.code), service.map(|_| code), "code {code}");
            let is_of_search = handler.map(|handler| handler.is_of_search);
            assert_eq!(is_of_search, service.map(|service| service == Service::OfSearch), "code {code}");
        }
    }
}
