//! Numbers as Java writes them, and as Erlang does.
//!
//! Both languages write the fewest digits that give the number back, except that Java before 19
//! writes more of them for some numbers. That is not followed.

use std::fmt::{Display, LowerExp};

/// The text of a number of 32 bits.
pub(super) fn float_text(number: f32) -> String {
    let size = number.abs();
    if number.is_finite() {
        finite(number, size == 0.0 || (1e-3..1e7).contains(&size))
    } else {
        other(f64::from(number))
    }
}

/// The text of a number of 64 bits.
pub(super) fn double_text(number: f64) -> String {
    let size = number.abs();
    if number.is_finite() { finite(number, size == 0.0 || (1e-3..1e7).contains(&size)) } else { other(number) }
}

/// Numbers from 0.001 up to ten million have no exponent, and all have a fraction.
fn finite(number: impl Display + LowerExp, is_plain: bool) -> String {
    if is_plain {
        let text = number.to_string();
        return if text.contains('.') { text } else { text + ".0" };
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let fraction = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{fraction}E{exponent}")
}

/// The text of a finite number as Erlang writes it: 20 digits behind the point, which show all that
/// is known of the number, and two of an exponent.
pub(super) fn erlang_text(number: f64) -> String {
    let text = format!("{number:.20e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

fn other(number: f64) -> String {
    let name = match number {
        number if number.is_nan() => "NaN",
        number if number > 0.0 => "Infinity",
        _ => "-Infinity",
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_written_as_in_java() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (0.001, "0.001"),
            (0.00099, "9.9E-4"),
            (9_999_999.0, "9999999.0"),
            (10_000_000.0, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (1e-5, "1.0E-5"),
            (1e300, "1.0E300"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(double_text(number), text);
        }
        for (number, text) in [
            (0.30685282_f32, "0.30685282"),
            (3.25, "3.25"),
            (12.947323, "12.947323"),
            (1.0, "1.0"),
            (16_777_216.0, "1.6777216E7"),
            (f32::MAX, "3.4028235E38"),
            (f32::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float_text(number), text);
        }
    }

    #[test]
    #[expect(clippy::approx_constant, reason = "a number of Riak's own tests")]
    fn numbers_are_written_as_in_erlang() {
        for (number, text) in [
            (0.0, "0.00000000000000000000e+00"),
            (-0.0, "-0.00000000000000000000e+00"),
            (1.0, "1.00000000000000000000e+00"),
            (3.14, "3.14000000000000012434e+00"),
            (3.336138, "3.33613800000000004786e+00"),
            (8.04973, "8.04973000000000027399e+00"),
            (-1.5e-7, "-1.49999999999999993212e-07"),
            (1e100, "1.00000000000000001590e+100"),
        ] {
            assert_eq!(erlang_text(number), text);
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_back(double in any::<f64>(), float in any::<f32>()) {
            prop_assert_eq!(double_text(double).parse::<f64>().unwrap().to_bits(), double.to_bits());
            prop_assert_eq!(erlang_text(double).parse::<f64>().unwrap().to_bits(), double.to_bits());
            prop_assert_eq!(float_text(float).parse::<f32>().unwrap().to_bits(), float.to_bits());
        }
    }
}
