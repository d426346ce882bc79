//! The header `Date` of answers.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The length of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
const BYTES: usize = 29;

thread_local! {
    /// The last second for which the text was made, and the text.
    static LAST: Cell<(u64, [u8; BYTES])> = const { Cell::new((u64::MAX, [0; BYTES])) };
}

/// Appends the current date. Each thread makes the text once per second.
#[expect(clippy::disallowed_methods, reason = "Date is a date of the wall clock")]
pub fn write_now(out: &mut Vec<u8>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    out.extend_from_slice(&text_of(now.as_secs()));
}

fn text_of(secs: u64) -> [u8; BYTES] {
    let (last_secs, last) = LAST.get();
    if last_secs == secs {
        return last;
    }
    let mut text = [b' '; BYTES];
    let made = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(secs));
    for (to, from) in text.iter_mut().zip(made.bytes()) {
        *to = from;
    }
    LAST.set((secs, text));
    text
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_text_is_that_of_the_second() {
        assert_eq!(&text_of(1_795_209_089), b"Fri, 20 Nov 2026 21:11:29 GMT");
        assert_eq!(&text_of(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&text_of(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
