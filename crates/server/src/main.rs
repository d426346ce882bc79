//! The `ombak` program.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
mod config;
fn main() {
    let _ = config::Effective::load(None, &config::Overrides::default());
}
