//! Tests of jobs, in one program, because each program takes seconds to link.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod one_node;
mod scripts;
mod searches;
