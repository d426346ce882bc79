//! An instant, and its parts in the calendar.

use std::fmt;

/// The first year that a date can have.
pub const YEAR_MIN: i32 = -9_999;

/// The last year that a date can have.
pub const YEAR_MAX: i32 = 9_999;

pub(super) const DAY_MS: i64 = 86_400_000;

/// An instant in milliseconds since the Unix epoch, in the years [`YEAR_MIN`] to [`YEAR_MAX`] of
/// the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i64);

impl Date {
    /// The date of an instant; `None` outside the years that dates have.
    pub fn from_unix_ms(unix_ms: i64) -> Option<Self> {
        let first = days_of(YEAR_MIN, 1, 1) * DAY_MS;
        let end = days_of(YEAR_MAX + 1, 1, 1) * DAY_MS;
        (first..end).contains(&unix_ms).then_some(Self(unix_ms))
    }

    /// Milliseconds since the Unix epoch.
    pub fn unix_ms(self) -> i64 {
        self.0
    }

    /// The year, month and day, and the milliseconds of the day.
    pub(super) fn parts(self) -> (i32, u32, u32, i64) {
        let (year, month, day) = date_of(self.0.div_euclid(DAY_MS));
        (year, month, day, self.0.rem_euclid(DAY_MS))
    }

    /// The date of a year, a month and a day that exist, and the milliseconds of the day.
    pub(super) fn of_parts(year: i32, month: u32, day: u32, day_ms: i64) -> Option<Self> {
        if !(YEAR_MIN..=YEAR_MAX).contains(&year) || !(1..=12).contains(&month) {
            return None;
        }
        if day == 0 || day > days_in_month(year, month) {
            return None;
        }
        Some(Self(days_of(year, month, day) * DAY_MS + day_ms))
    }
}

/// Solr's text of a date: without a fraction of a second if that is 0, and otherwise without zeros
/// at the end of the fraction. The year 0 is the one before the year 1.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day, day_ms) = self.parts();
        let (secs, ms) = (day_ms / 1_000, day_ms % 1_000);
        if year < 0 {
            f.write_str("-")?;
        }
        write!(f, "{:04}-{month:02}-{day:02}", year.unsigned_abs())?;
        write!(f, "T{:02}:{:02}:{:02}", secs / 3_600, secs / 60 % 60, secs % 60)?;
        if ms != 0 {
            write!(f, ".{}", format!("{ms:03}").trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// How many days a month has.
pub(super) fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days in 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// Days from the first of March of the year 0 to the Unix epoch. With years that begin in March the
/// day that leap years add is their last.
const EPOCH_DAYS: i64 = 719_468;

/// Days between the Unix epoch and a date.
pub(super) fn days_of(year: i32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * ERA_DAYS + day_of_era - EPOCH_DAYS
}

/// The year, month and day that lie a number of days behind the Unix epoch.
fn date_of(days: i64) -> (i32, u32, u32) {
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    // The numbers are small: a date has a year of four digits.
    (year as i32, month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_both_ways() {
        assert_eq!(days_of(1970, 1, 1), 0);
        assert_eq!(days_of(2000, 3, 1), 11_017);
        assert_eq!(days_of(1969, 12, 31), -1);
        let mut expected = days_of(YEAR_MIN, 1, 1);
        for year in YEAR_MIN..=YEAR_MAX {
            for month in 1..=12 {
                for day in [1, days_in_month(year, month)] {
                    let days = expected + i64::from(day) - 1;
                    assert_eq!(days_of(year, month, day), days);
                    assert_eq!(date_of(days), (year, month, day));
                }
                expected += i64::from(days_in_month(year, month));
            }
        }
    }

    #[test]
    fn dates_have_solrs_text() {
        let text = |unix_ms| Date::from_unix_ms(unix_ms).unwrap().to_string();
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(1_325_376_000_120), "2012-01-01T00:00:00.12Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(text(days_of(-44, 3, 15) * DAY_MS), "-0044-03-15T00:00:00Z");
    }

    #[test]
    fn years_are_bounded() {
        assert_eq!(Date::from_unix_ms(i64::MAX), None);
        assert_eq!(Date::from_unix_ms(i64::MIN), None);
        let last = days_of(10_000, 1, 1) * DAY_MS - 1;
        assert_eq!(Date::from_unix_ms(last).unwrap().to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Date::from_unix_ms(last + 1), None);
    }
}
