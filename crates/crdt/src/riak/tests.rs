//! Bytes that a Riak KV 3.2.3 node stored, and what is made of them.

use super::*;
use crate::Clock;
use crate::testing::hex;
use ombak_types::etf::{self, Term};

/// A counter of Riak 1.4 that counted 15 up and 2 down, as read through the URL of objects
/// (recorded exchange http/445_counter_as_object).
const LEGACY_COUNTER: &str = "450147010000001e4601836c0000000168026d0000000c7e12738fae592e3900000003610f6a\
    0000001e4601836c0000000168026d0000000c7e12738fae592e390000000361026a";

/// A set that had two additions and is empty again, compressed, with dictionaries (recorded
/// exchange pb/200_dt_set_via_kv).
const SET: &str = "45020000000e7269616b5f64745f6f7273776f744b028350000000937801cb60ce61606060cc60ca05523c\
    7542c5fd06bc3bbe83841299b232385318585232934b121912058090233120d12043200b0d64306211235f2b00f6e32e10";

/// The context of that set after another addition (recorded exchange pb/188_dt_set_rem_ctx).
const CONTEXT: &str = "836c0000000168026d0000000c7e12738f300db8f70000000161026a";

fn read(digits: &str) -> RiakValue {
    RiakValue::from_bytes(&hex(digits)).unwrap()
}

#[test]
fn a_legacy_counter_is_read_and_written_as_riak_does() {
    let value = read(LEGACY_COUNTER);
    let RiakValue::Counter(counter, RiakCounter::Legacy) = &value else { panic!("{value:?}") };
    assert_eq!(counter.value(), 13);
    assert_eq!(value.to_bytes(), hex(LEGACY_COUNTER));
}

#[test]
fn a_stored_set_is_read() {
    let value = read(SET);
    let RiakValue::Set(set) = &value else { panic!("{value:?}") };
    assert!(set.is_empty());
    assert_eq!(set.context().to_context(), hex(CONTEXT));
    assert_eq!(RiakValue::from_bytes(&value.to_bytes()).as_ref(), Ok(&value));
}

#[test]
fn a_context_is_read_and_written_as_riak_does() {
    let clock = Clock::from_context(&hex(CONTEXT)).unwrap();
    assert_eq!(clock.iter().map(|dot| dot.count).collect::<Vec<_>>(), [2]);
    assert_eq!(clock.to_context(), hex(CONTEXT));
    assert_eq!(Clock::new().to_context(), hex("836a"));
    assert!(Clock::from_context(b"zork").is_err());
    assert!(Clock::from_context(&etf::encode(&Term::atom("zork"))).is_err());
}
