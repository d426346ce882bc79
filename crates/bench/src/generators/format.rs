//! Erlang format strings with one argument, such as `io_lib:format("user~10..0w", [Key])`. They are
//! parsed once and printed often.
//!
//! What it is: `~w ~p ~s ~b ~B ~#` with width, precision and padding, and the constants `~n ~~`.
//! The output is byte for byte what Erlang prints.
//!
//! What it is not: it does not support directives with further arguments (`~*w ~W ~x`), floats (`~e
//! ~f ~g`, because no generator yields floats), and `~p` for strings and binaries, which Erlang
//! breaks into lines.

use super::reader::Reader;
use super::words::print;
use crate::config::ConfigError;
use std::fmt;

/// The widest field and the longest format, in bytes. No key can be longer.
const FIELD_BYTES_MAX: usize = 65_536;

/// The Erlang type of what a generator yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Binary,
    /// A list of characters.
    String,
}

impl Kind {
    /// The plural in words.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Integer => "integers",
            Self::Binary => "binaries",
            Self::String => "strings",
        }
    }
}

/// The argument to print.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument<'a> {
    Integer(i64),
    Binary(&'a [u8]),
    String(&'a [u8]),
}

/// A format string with one directive.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Format {
    before: Vec<u8>,
    directive: Directive,
    after: Vec<u8>,
}

/// A directive `~F.P.PadC`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Directive {
    control: Control,
    width: Option<usize>,
    to_left: bool,
    precision: Option<usize>,
    pad: u8,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Control {
    /// `~w`: prints a term in Erlang's syntax.
    Written,
    /// `~p` of an integer: the same as `~w`, except that the width is that of a line.
    Pretty,
    /// `~s`: prints the bytes themselves.
    Bytes,
    /// `~b ~B ~# ~+`: prints an integer to a base.
    Based { uppercase: bool, prefix: bool },
}

impl Format {
    /// The format `~w`.
    pub(super) const DECIMAL: Self = Self {
        before: Vec::new(),
        directive: Directive { control: Control::Written, width: None, to_left: false, precision: None, pad: b' ' },
        after: Vec::new(),
    };

    /// Parses a format for arguments of this kind.
    pub(super) fn parse(reader: Reader, text: &[u8], argument: Kind) -> Result<Self, ConfigError> {
        let mut constants = [Vec::new(), Vec::new()];
        let mut found = None;
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let [before, behind] = &mut constants;
            let constant = if found.is_none() { before } else { behind };
            if byte != b'~' {
                constant.push(byte);
                continue;
            }
            let Sequence { fields, letter } = Sequence::read(&mut rest).map_err(|what| reader.error(what))?;
            match (letter, constant_of(letter)) {
                (_, Some(byte)) => {
                    let count = fields.width.unwrap_or(1);
                    constant.extend(std::iter::repeat_n(byte, count));
                }
                _ if found.is_some() => {
                    return Err(reader.error("the format prints more than one argument; there is one, the key"));
                }
                _ => found = Some(fields.directive(letter, argument).map_err(|what| reader.error(what))?),
            }
        }
        let [before, after] = constants;
        match found {
            Some(_) if before.len() + after.len() > FIELD_BYTES_MAX => {
                Err(reader.error(format!("the format is longer than {FIELD_BYTES_MAX} bytes, which no key can be")))
            }
            Some(directive) => Ok(Self { before, directive, after }),
            None => Err(reader.error("the format prints no argument; it should print the key, for example with ~w")),
        }
    }

    /// Appends the argument as the format prints it.
    pub(super) fn print(&self, argument: Argument<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.before);
        let begin = out.len();
        self.directive.print(argument, out);
        self.directive.fit(begin, out);
        out.extend_from_slice(&self.after);
    }
}

/// The byte that `~~` or `~n` stands for.
const fn constant_of(letter: u8) -> Option<u8> {
    match letter {
        b'~' => Some(b'~'),
        b'n' => Some(b'\n'),
        _ => None,
    }
}

/// The part of a directive after its `~`.
struct Sequence {
    fields: Fields,
    letter: u8,
}

#[derive(Default)]
struct Fields {
    width: Option<usize>,
    to_left: bool,
    precision: Option<usize>,
    pad: Option<u8>,
}

impl Sequence {
    fn read(rest: &mut &[u8]) -> Result<Self, String> {
        let mut fields = Fields { to_left: eat(rest, b'-'), ..Fields::default() };
        fields.width = number(rest)?;
        if eat(rest, b'.') {
            fields.precision = number(rest)?;
        }
        if eat(rest, b'.') {
            fields.pad = Some(next(rest)?);
        }
        // The modifier `t` (Unicode) changes nothing for bytes.
        let _ = eat(rest, b't');
        Ok(Self { fields, letter: next(rest)? })
    }
}

impl Fields {
    fn directive(self, letter: u8, argument: Kind) -> Result<Directive, String> {
        let letter_shown = char::from(letter);
        let control = match letter {
            b'w' => Control::Written,
            b'p' => Control::Pretty,
            b's' => Control::Bytes,
            b'b' => Control::Based { uppercase: false, prefix: false },
            b'B' => Control::Based { uppercase: true, prefix: false },
            b'+' => Control::Based { uppercase: false, prefix: true },
            b'#' => Control::Based { uppercase: true, prefix: true },
            b'e' | b'f' | b'g' => {
                return Err(format!("~{letter_shown} prints floats, and no generator gives one; integers: ~w or ~b"));
            }
            b'W' | b'P' | b'x' | b'X' | b'*' => {
                return Err(format!("~{letter_shown} takes two arguments; there is one, the key"));
            }
            _ => return Err(format!("~{letter_shown} is none of ~w ~p ~s ~b ~B ~# ~+ ~n ~~")),
        };
        let Self { width, to_left, precision, pad } = self;
        match (control, argument) {
            (Control::Bytes, Kind::Integer) => return Err("~s prints strings and binaries; integers: ~w or ~b".into()),
            (Control::Based { .. }, Kind::Binary | Kind::String) => {
                return Err(format!("~{letter_shown} prints integers; {}: ~s", argument.plural()));
            }
            (Control::Pretty, Kind::Binary | Kind::String) => {
                return Err(format!("~p breaks {} into lines; the bytes themselves: ~s", argument.plural()));
            }
            (Control::Pretty, Kind::Integer) if to_left => return Err("~p has no width below 0; ~w has".into()),
            (Control::Based { .. }, _) if precision.is_some_and(|base| !(2..=36).contains(&base)) => {
                return Err(format!("the base of ~{letter_shown} must be from 2 to 36"));
            }
            (Control::Bytes, _) if width.zip(precision).is_some_and(|(width, precision)| width < precision) => {
                return Err("~s must not have a precision above its width".into());
            }
            _ => {}
        }
        Ok(Directive { control, width, to_left, precision, pad: pad.unwrap_or(b' ') })
    }
}

fn eat(rest: &mut &[u8], wanted: u8) -> bool {
    match rest.split_first() {
        Some((&byte, after)) if byte == wanted => {
            *rest = after;
            true
        }
        _ => false,
    }
}

fn next(rest: &mut &[u8]) -> Result<u8, String> {
    let (&byte, after) = rest.split_first().ok_or("the format ends within a control sequence")?;
    *rest = after;
    Ok(byte)
}

fn number(rest: &mut &[u8]) -> Result<Option<usize>, String> {
    let mut read = None;
    while let Some((digit @ b'0'..=b'9', after)) = rest.split_first() {
        *rest = after;
        let n = read.unwrap_or(0) * 10 + usize::from(digit - b'0');
        if n > FIELD_BYTES_MAX {
            return Err(format!("a field of more than {FIELD_BYTES_MAX} bytes is longer than a key can be"));
        }
        read = Some(n);
    }
    Ok(read)
}

impl Directive {
    fn print(&self, argument: Argument<'_>, out: &mut Vec<u8>) {
        match (self.control, argument) {
            (Control::Based { uppercase, prefix }, Argument::Integer(n)) => {
                print_based(n, self.precision.unwrap_or(10), uppercase, prefix, out);
            }
            (_, Argument::Integer(n)) => print(out, format_args!("{n}")),
            (Control::Bytes, Argument::Binary(bytes) | Argument::String(bytes)) => out.extend_from_slice(bytes),
            (_, Argument::Binary(bytes)) => print(out, format_args!("<<{}>>", Commas(bytes))),
            (_, Argument::String(bytes)) => print(out, format_args!("[{}]", Commas(bytes))),
        }
    }

    /// Pads or cuts the printed text to the width of the field.
    fn fit(&self, begin: usize, out: &mut Vec<u8>) {
        let printed = out.len() - begin;
        match self.control {
            Control::Pretty => {}
            Control::Bytes => {
                let shown = self.precision.or(self.width).map_or(printed, |most| printed.min(most));
                out.truncate(begin + shown);
                // A precision without a width also counts as the width, and the text is then
                // left-aligned.
                match (self.width, self.precision) {
                    (Some(width), Some(precision)) => {
                        pad(out, begin, precision, true, self.pad);
                        pad(out, begin, width, self.to_left, self.pad);
                    }
                    (Some(width), None) => pad(out, begin, width, self.to_left, self.pad),
                    (None, Some(precision)) => pad(out, begin, precision, true, self.pad),
                    (None, None) => {}
                }
            }
            Control::Written | Control::Based { .. } => {
                let precision = if self.control == Control::Written { self.precision } else { None };
                let Some(width) = self.width.or(precision) else { return };
                // A number that does not fit is replaced by asterisks, because a truncated number
                // would be a different one.
                let most = precision.map_or(width, |precision| precision.min(width));
                if printed > most {
                    out.truncate(begin);
                    out.resize(begin + most, b'*');
                }
                pad(out, begin, width, self.to_left, self.pad);
            }
        }
    }
}

/// Pads the text from `begin` on to a width.
fn pad(out: &mut Vec<u8>, begin: usize, width: usize, to_left: bool, with: u8) {
    let end = out.len();
    let Some(missing) = (begin + width).checked_sub(end) else { return };
    out.resize(end + missing, with);
    if !to_left {
        out.copy_within(begin..end, begin + missing);
        if let Some(field) = out.get_mut(begin..begin + missing) {
            field.fill(with);
        }
    }
}

fn print_based(n: i64, base: usize, uppercase: bool, prefix: bool, out: &mut Vec<u8>) {
    if n < 0 {
        out.push(b'-');
    }
    if prefix {
        print(out, format_args!("{base}#"));
    }
    let begin = out.len();
    let (mut rest, base) = (n.unsigned_abs(), base as u64);
    loop {
        let digit = (rest % base) as u8;
        out.push(match digit {
            0..=9 => b'0' + digit,
            _ if uppercase => b'A' + digit - 10,
            _ => b'a' + digit - 10,
        });
        rest /= base;
        if rest == 0 {
            break;
        }
    }
    if let Some(digits) = out.get_mut(begin..) {
        digits.reverse();
    }
}

/// Displays bytes as `1,2,3`.
struct Commas<'a>(&'a [u8]);

impl fmt::Display for Commas<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{byte}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn format(text: &str, argument: Argument<'_>) -> Result<String, String> {
        let kind = match argument {
            Argument::Integer(_) => Kind::Integer,
            Argument::Binary(_) => Kind::Binary,
            Argument::String(_) => Kind::String,
        };
        let format = Format::parse(Reader::new("key_generator"), text.as_bytes(), kind).map_err(|e| e.to_string())?;
        let mut out = b"kept ".to_vec();
        format.print(argument, &mut out);
        Ok(String::from_utf8(out).unwrap().strip_prefix("kept ").unwrap().to_owned())
    }

    /// The expected texts are what `io_lib:format` of Erlang/OTP 26 prints.
    #[test]
    fn integers_are_printed_as_erlang_prints_them() {
        for (text, n, printed) in [
            ("~w", 42, "42"),
            ("~p", -42, "-42"),
            ("~10..0w", 42, "0000000042"),
            ("~10..0w", -42, "0000000-42"),
            ("~10w", 42, "        42"),
            ("~-10w|", 42, "42        |"),
            ("~-6..xw", 42, "42xxxx"),
            ("~3w", 12345, "***"),
            ("~5.3w", 12345, "  ***"),
            ("~.3w", 42, " 42"),
            ("~0w", 42, ""),
            ("~10..0p", 42, "42"),
            ("~b", 255, "255"),
            ("~10..0b", 42, "0000000042"),
            ("~.16b", 255, "ff"),
            ("~.16B", 255, "FF"),
            ("~8.16.0B", -255, "00000-FF"),
            ("~.2b", 5, "101"),
            ("~.36b", 35, "z"),
            ("~.16#", -31, "-16#1F"),
            ("~.16+", 31, "16#1f"),
            ("~2b", 123, "**"),
            ("user~w@example~~~2n", 7, "user7@example~\n\n"),
            ("~tw", 7, "7"),
            ("~9..~w", 7, "~~~~~~~~7"),
        ] {
            assert_eq!(format(text, Argument::Integer(n)).as_deref(), Ok(printed), "{text} of {n}");
        }
        assert_eq!(format("~.2b", Argument::Integer(i64::MIN)).unwrap(), format!("-1{}", "0".repeat(63)));
    }

    #[test]
    fn strings_and_binaries_are_printed_as_erlang_prints_them() {
        let text = b"hello".as_slice();
        for (format_text, printed) in [
            ("~s", "hello"),
            ("~ts", "hello"),
            ("~10s", "     hello"),
            ("~-10s|", "hello     |"),
            ("~3s", "hel"),
            ("~.3s", "hel"),
            ("~.7s|", "hello  |"),
            ("~10.3s", "       hel"),
            ("~10.7..s", "...hello.."),
            ("~-10.3.-s", "hel-------"),
            ("~5.5s", "hello"),
        ] {
            assert_eq!(format(format_text, Argument::String(text)).as_deref(), Ok(printed), "{format_text}");
            assert_eq!(format(format_text, Argument::Binary(text)).as_deref(), Ok(printed), "{format_text}");
        }
        assert_eq!(format("~w", Argument::String(b"hi")).unwrap(), "[104,105]");
        assert_eq!(format("~w", Argument::Binary(b"hi")).unwrap(), "<<104,105>>");
        assert_eq!(format("~12w", Argument::Binary(b"hi")).unwrap(), " <<104,105>>");
        assert_eq!(format("~w", Argument::Binary(b"")).unwrap(), "<<>>");
    }

    #[test]
    fn what_erlang_refuses_or_cannot_be_a_key_is_refused_with_what_would_be_right() {
        for (text, argument, part) in [
            ("key", Argument::Integer(1), "prints no argument"),
            ("~w~w", Argument::Integer(1), "more than one argument"),
            ("~s", Argument::Integer(1), "~w or ~b"),
            ("~f", Argument::Integer(1), "prints floats"),
            ("~b", Argument::String(b""), "~s"),
            ("~p", Argument::Binary(b""), "into lines"),
            ("~*w", Argument::Integer(1), "two arguments"),
            ("~q", Argument::Integer(1), "~q is none of"),
            ("~10", Argument::Integer(1), "ends within"),
            ("~", Argument::Integer(1), "ends within"),
            ("~.37b", Argument::Integer(1), "2 to 36"),
            ("~3.5s", Argument::String(b""), "precision above its width"),
            ("~99999999999999999999w", Argument::Integer(1), "longer than a key"),
        ] {
            let error = format(text, argument).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_format_is_read_or_refused_and_prints_within_its_field(
            text in "[~.0-9*wpsbBtn a-z-]{0,12}", n in any::<i64>(), width in 1_usize..200,
        ) {
            let _ = format(&text, Argument::Integer(n));
            let _ = format(&text, Argument::Binary(text.as_bytes()));
            let printed = format(&format!("~{width}..0w"), Argument::Integer(n)).unwrap();
            prop_assert_eq!(printed.len(), width);
            let decimal = n.to_string();
            if decimal.len() <= width {
                prop_assert!(printed.ends_with(&decimal));
            } else {
                prop_assert_eq!(printed, "*".repeat(width));
            }
        }
    }
}
