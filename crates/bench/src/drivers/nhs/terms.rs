//! The index entries of the records, and parts of the queries for them (docs/riak/basho-bench.md
//! §4.2).

use crate::generators::Draw;
use ombak_proto::request::put_index;
use ombak_types::time::{GREGORIAN_OFFSET_SECS, UnixMicros};
use std::io::Write;

/// Postcode areas, with the number and the order that basho_bench has.
#[rustfmt::skip]
const AREAS: [&str; 76] = [
    "AB", "AL", "B", "BA", "BB", "BD", "BH", "BL", "BN", "BR", "BS", "BT", "CA", "CB", "CF", "CH", "CM", "CO", "CR",
    "CT", "CV", "CW", "DA", "DD", "DE", "DG", "DH", "DL", "DN", "DT", "DU", "E", "EC", "EH", "EN", "EX", "FK", "FY",
    "G", "GL", "GU", "HA", "HD", "HG", "HP", "HR", "HS", "HU", "HX", "IG", "IP", "IV", "KA", "KT", "KW", "KY", "L",
    "LA", "LD", "LE", "LL", "LS", "LU", "M", "ME", "MK", "ML", "N", "NE", "NG", "MM", "NP", "NR", "NW", "OL", "OX",
];

/// The number of districts in each area.
const DISTRICTS: u64 = 26;

/// The beginnings of a postcode query within its district.
const STARTS: [&str; 8] = ["ba", "ca", "da", "ea", "fa", "ga", "gb", "gc"];

/// The earliest birthday in Gregorian seconds, and the number of seconds over which birthdays are
/// spread.
const BIRTHDAYS: (u64, u64) = (61_000_000_000, 2_500_000_000);

/// The index of postcodes.
pub const POSTCODE: &[u8] = b"postcode_bin";

/// The index of birthdays.
pub const DATE_OF_BIRTH: &[u8] = b"dateofbirth_bin";

/// The index of the time of the last change.
pub const LAST_MODIFIED: &[u8] = b"lastmodified_bin";

/// Writes index entries, and reuses the memory of one entry for the next.
#[derive(Debug, Default)]
pub struct Terms {
    term: Vec<u8>,
}

impl Terms {
    /// Appends the entries of a record: from 1 to `postcodes_max` postcodes of one person, a
    /// birthday, and the current time.
    pub fn put_record(&mut self, postcodes_max: u64, now: UnixMicros, draw: &mut Draw, out: &mut Vec<u8>) {
        let person = person(draw);
        for _ in 0..draw.uniform(postcodes_max.max(1)) {
            self.term.clear();
            put_district(draw, &mut self.term);
            self.term.push(b'|');
            self.term.extend_from_slice(&person);
            put_index(POSTCODE, &self.term, out);
        }
        self.term.clear();
        let seconds = BIRTHDAYS.0 + draw.uniform(BIRTHDAYS.1);
        put_date(seconds as i64 - GREGORIAN_OFFSET_SECS as i64, "", &mut self.term);
        self.term.push(b'|');
        self.term.extend_from_slice(&self::person(draw));
        put_index(DATE_OF_BIRTH, &self.term, out);
        self.put_last_modified(now, out);
    }

    /// Appends the entry with the time, as `YYYY-MM-DDTHH:MM:SS`.
    pub fn put_last_modified(&mut self, now: UnixMicros, out: &mut Vec<u8>) {
        self.term.clear();
        let second = now.secs() % 86_400;
        put_date(now.secs() as i64, "-", &mut self.term);
        // Writing to memory cannot fail.
        let _ = write!(self.term, "T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        put_index(LAST_MODIFIED, &self.term, out);
    }
}

/// Appends a random area with a district, such as `LS12`.
pub fn put_district(draw: &mut Draw, out: &mut Vec<u8>) {
    let area = AREAS.get(draw.uniform(AREAS.len() as u64) as usize - 1).copied().unwrap_or("AB");
    let _ = write!(out, "{area}{}", draw.uniform(DISTRICTS));
}

/// The beginning of a query within a district, such as `ba`. Each query ends at `gd`.
pub fn query_start(draw: &mut Draw) -> &'static str {
    STARTS.get(draw.uniform(STARTS.len() as u64) as usize - 1).copied().unwrap_or("ba")
}

/// Four random bytes in base64, which are eight characters.
fn person(draw: &mut Draw) -> [u8; 8] {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // 32 bits are five characters, and two bits of a sixth one.
    let bits = (draw.uniform(1 << 32) - 1) << 4;
    let mut text = *b"======";
    for (place, shift) in text.iter_mut().zip([30, 24, 18, 12, 6, 0]) {
        *place = ALPHABET[(bits >> shift) as usize % 64];
    }
    let [a, b, c, d, e, f] = text;
    [a, b, c, d, e, f, b'=', b'=']
}

/// Appends the date of a second since the Unix epoch, with `between` between its parts.
fn put_date(unix_secs: i64, between: &str, out: &mut Vec<u8>) {
    let (year, month, day) = date(unix_secs.div_euclid(86_400));
    let _ = write!(out, "{year:04}{between}{month:02}{between}{day:02}");
}

/// The year, month and day of a day since the Unix epoch. Years are counted from March on, so that
/// a leap day is the last day of a year.
pub fn date(unix_day: i64) -> (i64, i64, i64) {
    let day = unix_day + 719_468;
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * from_march + 2) / 5 + 1)
}
