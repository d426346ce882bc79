//! Processor time of another process.

use std::fs;
use std::io;
use std::time::Duration;

/// User and system time that all threads of process `pid` have used so far (Linux).
pub fn used(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = ticks(&stat).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat: no processor time in it")))?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// The sum of fields 14 and 15. The second field, the name, may contain blanks and brackets itself.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_found_behind_any_name() {
        assert_eq!(ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 500 25 0 0"), Some(525));
        assert_eq!(ticks("7 (short) S 1 2"), None);
    }

    #[test]
    fn work_shows_up() {
        let before = used(std::process::id()).unwrap();
        let mut n = 1u64;
        while used(std::process::id()).unwrap() <= before {
            n = (0..100_000).fold(n, |n, i| n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i));
        }
        assert_ne!(n, 0);
    }
}
