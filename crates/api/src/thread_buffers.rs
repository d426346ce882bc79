//! Buffers that the connections of a thread share.
//!
//! A connection needs a buffer only from the moment when bytes arrive until they are answered. One
//! pair of buffers per thread stays in the processor's cache, while one pair per connection would
//! not, and an idle connection holds none.

use bytes::BytesMut;
use std::cell::Cell;

/// The room for one read, in bytes. Many small requests fit into it.
pub(crate) const INPUT_BYTES: usize = 16 << 10;

/// The largest output buffer that is kept for reuse, in bytes.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

thread_local! {
    static INPUT: Cell<Option<BytesMut>> = const { Cell::new(None) };
    static OUTPUT: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// Takes an empty buffer with room for a read.
pub(crate) fn input() -> BytesMut {
    INPUT.take().unwrap_or_else(|| BytesMut::with_capacity(INPUT_BYTES))
}

/// Returns a buffer. Everything that was split off it must have been dropped; otherwise the next
/// user gets newly allocated memory.
pub(crate) fn give_input(mut buffer: BytesMut) {
    buffer.clear();
    // This makes the front of the buffer, which was split off, usable again.
    buffer.reserve(INPUT_BYTES);
    if buffer.capacity() < 2 * INPUT_BYTES {
        INPUT.set(Some(buffer));
    }
}

/// Takes an empty output buffer.
pub(crate) fn output() -> Vec<u8> {
    OUTPUT.take().unwrap_or_default()
}

pub(crate) fn give_output(mut buffer: Vec<u8>) {
    buffer.clear();
    if (1..=OUTPUT_BYTES_MAX).contains(&buffer.capacity()) {
        OUTPUT.set(Some(buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_uses_the_same_buffers_again() {
        let mut buffer = input();
        let (start, capacity) = (buffer.as_ptr(), buffer.capacity());
        for _ in 0..100 {
            buffer.extend_from_slice(&[1; 1000]);
            drop(buffer.split_to(1000).freeze());
            give_input(buffer);
            buffer = input();
            assert_eq!((buffer.as_ptr(), buffer.capacity(), buffer.len()), (start, capacity, 0));
        }
        let mut out = output();
        out.extend_from_slice(b"frame");
        let start = out.as_ptr();
        give_output(out);
        let again = output();
        assert_eq!((again.as_ptr(), again.len()), (start, 0));
    }

    #[test]
    fn what_is_still_read_is_not_written_over() {
        let mut buffer = input();
        buffer.extend_from_slice(b"kept");
        let kept = buffer.split_to(4).freeze();
        give_input(buffer);
        input().extend_from_slice(b"lost");
        assert_eq!(kept, "kept");
    }

    #[test]
    fn large_buffers_are_let_go() {
        give_output(Vec::with_capacity(OUTPUT_BYTES_MAX + 1));
        assert_eq!(output().capacity(), 0);
        give_input(BytesMut::with_capacity(1 << 20));
        assert!(input().capacity() < 2 * INPUT_BYTES);
    }
}
