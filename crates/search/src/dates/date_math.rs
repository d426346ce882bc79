//! Expressions for dates: a date or `NOW`, and steps such as `+6MONTHS` and `/DAY`.

use super::date::{DAY_MS, Date, days_in_month};

/// Steps of an expression.
pub const MATH_STEPS_MAX: usize = 32;

/// A text is no date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDate {
    /// It begins with neither `NOW` nor a date.
    #[error("a date is written 2012-01-01T00:00:00Z, with Z and perhaps a fraction of a second, or NOW")]
    NoDate,
    /// A month, a day or a time that does not exist.
    #[error("the date or the time of day does not exist, or the year is not in -9999 to 9999")]
    NoSuchDay,
    /// A step that is none.
    #[error(
        "a step of date math is /UNIT, +2UNITS or -2UNITS at character {offset_chars}; units are YEAR, MONTH, DAY, \
         DATE, HOUR, MINUTE, SECOND, MILLI, MILLISECOND, and the same with S"
    )]
    BadStep {
        /// How many characters lie before the step.
        offset_chars: usize,
    },
    /// The result is no date.
    #[error("date math leaves the years -9999 to 9999")]
    OutOfRange,
    /// Too many steps.
    #[error("date math has at most {MATH_STEPS_MAX} steps")]
    TooManySteps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Milli,
}

impl Unit {
    /// Solr knows units in capitals, and no weeks, because their first day differs by country.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "YEAR" | "YEARS" => Self::Year,
            "MONTH" | "MONTHS" => Self::Month,
            "DAY" | "DAYS" | "DATE" => Self::Day,
            "HOUR" | "HOURS" => Self::Hour,
            "MINUTE" | "MINUTES" => Self::Minute,
            "SECOND" | "SECONDS" => Self::Second,
            "MILLI" | "MILLIS" | "MILLISECOND" | "MILLISECONDS" => Self::Milli,
            _ => return None,
        })
    }

    /// How long it is, if it is always as long.
    fn ms(self) -> Option<i64> {
        match self {
            Self::Year | Self::Month => None,
            Self::Day => Some(DAY_MS),
            Self::Hour => Some(3_600_000),
            Self::Minute => Some(60_000),
            Self::Second => Some(1_000),
            Self::Milli => Some(1),
        }
    }
}

/// Reads a date or an expression. `NOW` is `now`.
///
/// # Errors
/// The text is none, or its result is outside the years that dates have.
pub fn read_date(text: &str, now: Date) -> Result<Date, BadDate> {
    let (mut date, steps) = match text.strip_prefix("NOW") {
        Some(steps) => (now, steps),
        None => {
            let (date, steps) = text.split_once('Z').ok_or(BadDate::NoDate)?;
            (read_plain(date)?, steps)
        }
    };
    let mut rest = steps;
    let mut count = 0;
    while !rest.is_empty() {
        count += 1;
        if count > MATH_STEPS_MAX {
            return Err(BadDate::TooManySteps);
        }
        let offset_chars = text.chars().count() - rest.chars().count();
        let (step, behind) = Step::read(rest).ok_or(BadDate::BadStep { offset_chars })?;
        date = step.of(date).ok_or(BadDate::OutOfRange)?;
        rest = behind;
    }
    Ok(date)
}

/// Reads a date up to its `Z`.
fn read_plain(text: &str) -> Result<Date, BadDate> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text),
    };
    let mut rest = unsigned;
    let mut part = |digits: usize, separator: &str| -> Result<i64, BadDate> {
        rest = rest.strip_prefix(separator).ok_or(BadDate::NoDate)?;
        let number = rest.get(..digits).ok_or(BadDate::NoDate)?;
        rest = &rest[digits..];
        number_of(number).ok_or(BadDate::NoDate)
    };
    let year = part(4, "")?;
    let (month, day) = (part(2, "-")?, part(2, "-")?);
    let (hour, minute, second) = (part(2, "T")?, part(2, ":")?, part(2, ":")?);
    let ms = match rest.strip_prefix('.') {
        None if rest.is_empty() => 0,
        Some(fraction) if !fraction.is_empty() && fraction.len() <= 9 => {
            number_of(fraction).ok_or(BadDate::NoDate)?;
            // What is less than a millisecond is cut.
            number_of(&format!("{fraction:0<3}")[..3]).ok_or(BadDate::NoDate)?
        }
        _ => return Err(BadDate::NoDate),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return Err(BadDate::NoSuchDay);
    }
    let day_ms = ((hour * 60 + minute) * 60 + second) * 1_000 + ms;
    let year = if is_negative { -year } else { year };
    // The numbers have at most four digits.
    Date::of_parts(year as i32, month as u32, day as u32, day_ms).ok_or(BadDate::NoSuchDay)
}

/// The number of digits, and of nothing else.
fn number_of(digits: &str) -> Option<i64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// A step of an expression.
enum Step {
    /// `/UNIT`: back to the beginning of the unit.
    Round(Unit),
    /// `+2UNITS` or `-2UNITS`
    Add(i64, Unit),
}

impl Step {
    /// Reads the first step of a text; what lies behind it.
    fn read(text: &str) -> Option<(Self, &str)> {
        let sign = text.chars().next()?;
        let rest = text.get(sign.len_utf8()..)?;
        let unit_at = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (digits, rest) = rest.split_at(unit_at);
        let unit_end = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_uppercase()).len();
        let unit = Unit::of(&rest[..unit_end])?;
        let step = match (sign, digits) {
            ('/', "") => Self::Round(unit),
            // Java's integers have 32 bits.
            ('+', digits) => Self::Add(i64::from(digits.parse::<i32>().ok()?), unit),
            ('-', digits) => Self::Add(-i64::from(digits.parse::<i32>().ok()?), unit),
            _ => return None,
        };
        Some((step, &rest[unit_end..]))
    }

    fn of(&self, date: Date) -> Option<Date> {
        let (year, month, day, day_ms) = date.parts();
        match *self {
            Self::Round(Unit::Year) => Date::of_parts(year, 1, 1, 0),
            Self::Round(Unit::Month) => Date::of_parts(year, month, 1, 0),
            Self::Round(unit) => Date::of_parts(year, month, day, day_ms - day_ms % unit.ms()?),
            Self::Add(count, unit) => match unit.ms() {
                Some(ms) => Date::from_unix_ms(date.unix_ms().checked_add(count.checked_mul(ms)?)?),
                None => {
                    let months = if unit == Unit::Year { 12 * count } else { count };
                    let months = i64::from(year) * 12 + i64::from(month) - 1 + months;
                    let year = i32::try_from(months.div_euclid(12)).ok()?;
                    let month = u32::try_from(months.rem_euclid(12)).ok()? + 1;
                    // A month that is shorter ends earlier.
                    Date::of_parts(year, month, day.min(days_in_month(year, month)), day_ms)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2012-02-29T13:14:15.678Z
    fn now() -> Date {
        Date::from_unix_ms(1_330_521_255_678).unwrap()
    }

    fn read(text: &str) -> Result<String, BadDate> {
        read_date(text, now()).map(|date| date.to_string())
    }

    #[test]
    fn dates_and_expressions_are_read() {
        for (text, is) in [
            ("NOW", "2012-02-29T13:14:15.678Z"),
            ("NOW/DAY", "2012-02-29T00:00:00Z"),
            ("NOW/DATE", "2012-02-29T00:00:00Z"),
            ("NOW/HOUR", "2012-02-29T13:00:00Z"),
            ("NOW/MINUTE", "2012-02-29T13:14:00Z"),
            ("NOW/SECONDS", "2012-02-29T13:14:15Z"),
            ("NOW/MILLI", "2012-02-29T13:14:15.678Z"),
            ("NOW/MONTH", "2012-02-01T00:00:00Z"),
            ("NOW/YEARS", "2012-01-01T00:00:00Z"),
            ("NOW/DAY-7DAYS", "2012-02-22T00:00:00Z"),
            ("NOW+6MONTHS+3DAYS/DAY", "2012-09-01T00:00:00Z"),
            // The 29th of February is the 28th in other years.
            ("NOW+1YEAR", "2013-02-28T13:14:15.678Z"),
            ("NOW-48MONTHS", "2008-02-29T13:14:15.678Z"),
            ("NOW-90000SECONDS", "2012-02-28T12:14:15.678Z"),
            ("NOW+2MILLIS", "2012-02-29T13:14:15.68Z"),
            ("2012-01-01T00:00:00Z", "2012-01-01T00:00:00Z"),
            ("2012-01-01T00:00:00.5Z", "2012-01-01T00:00:00.5Z"),
            ("2012-01-01T00:00:00.1239Z", "2012-01-01T00:00:00.123Z"),
            ("2012-01-01T00:00:00Z+1YEAR", "2013-01-01T00:00:00Z"),
            ("2012-01-31T00:00:00Z+1MONTH", "2012-02-29T00:00:00Z"),
            ("1969-12-31T23:59:59.999Z/HOUR", "1969-12-31T23:00:00Z"),
            ("-0044-03-15T00:00:00Z", "-0044-03-15T00:00:00Z"),
            ("0000-01-01T00:00:00Z-1MILLI", "-0001-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(is), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for (text, bad) in [
            ("", BadDate::NoDate),
            ("now", BadDate::NoDate),
            ("2012-01-01", BadDate::NoDate),
            ("2012-01-01T00:00:00", BadDate::NoDate),
            ("2012-1-1T00:00:00Z", BadDate::NoDate),
            ("2012-01-01T00:00:00.Z", BadDate::NoDate),
            ("2012-01-01T00:00:00+01:00", BadDate::NoDate),
            ("+012-01-01T00:00:00Z", BadDate::NoDate),
            ("2011-02-29T00:00:00Z", BadDate::NoSuchDay),
            ("2012-13-01T00:00:00Z", BadDate::NoSuchDay),
            ("2012-01-01T24:00:00Z", BadDate::NoSuchDay),
            ("NOWÉ", BadDate::BadStep { offset_chars: 3 }),
            ("NOW/DAY-DAYS", BadDate::BadStep { offset_chars: 7 }),
            ("NOW/2DAYS", BadDate::BadStep { offset_chars: 3 }),
            ("NOW+1WEEK", BadDate::BadStep { offset_chars: 3 }),
            ("NOW+1day", BadDate::BadStep { offset_chars: 3 }),
            ("NOW+99999999999DAYS", BadDate::BadStep { offset_chars: 3 }),
            ("NOW+2147483647YEARS", BadDate::OutOfRange),
            ("NOW-2147483647DAYS", BadDate::OutOfRange),
            ("NOW+8000YEARS", BadDate::OutOfRange),
        ] {
            assert_eq!(read(text), Err(bad), "{text}");
        }
        assert_eq!(read(&format!("NOW{}", "/DAY".repeat(33))), Err(BadDate::TooManySteps));
    }

    proptest! {
        #[test]
        fn the_text_of_a_date_is_that_date(unix_ms in -300_000_000_000_000_i64..250_000_000_000_000) {
            let date = Date::from_unix_ms(unix_ms).unwrap();
            prop_assert_eq!(read_date(&date.to_string(), now()), Ok(date));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(NOW|[0-9T:.Z-]{0,24})([/+-][0-9]{0,10}[A-Z]{0,8}){0,4}\\PC{0,2}") {
            let _ = read_date(&text, now());
        }
    }
}
