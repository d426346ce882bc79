//! The command line of `ombak-bench`.

fn main() {}
