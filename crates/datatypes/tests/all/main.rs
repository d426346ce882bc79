//! Tests of data types over several engines, in one program, because each program takes seconds to
//! link.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod counts;
#[path = "../../../repair/tests/all/engines/mod.rs"]
mod engines;
mod large_values;
#[path = "../../../kv/tests/all/support/random.rs"]
mod random;
mod random_histories;
