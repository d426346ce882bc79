//! The bound on the memory for requests and answers in flight.

use super::machine;
use super::problem::Problem;
use super::reader::Reader;

/// The smallest bound that follows from a percentage of the machine's memory. It leaves room for
/// several of the largest requests at once.
const BYTES_MIN: u64 = 256 << 20;

/// The bound in bytes, from `request_memory` or `request_memory.percent`.
pub(super) fn request_memory_bytes(from: &Reader<'_>) -> Result<u64, Problem> {
    match from.optional("request_memory") {
        Some(_) => from.bytes("request_memory"),
        None => Ok(share(machine::memory_bytes(), from.count("request_memory.percent")?)),
    }
}

fn share(memory_bytes: u64, percent: u64) -> u64 {
    (memory_bytes / 100 * percent).max(BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_never_too_small_for_a_large_request() {
        assert_eq!(share(100 << 30, 15), 15 << 30);
        assert_eq!(share(1 << 30, 15), BYTES_MIN);
    }
}
