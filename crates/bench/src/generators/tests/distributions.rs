//! Tests of the distributions of keys and values. Seeds are fixed, so each test has the same result
//! every time. The limits are such that a correct generator fails with fewer than one seed in a
//! thousand.

use super::*;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

const DRAWS: usize = 200_000;

/// Pearson's chi-squared statistic for counts that should be equal.
fn chi_squared(counts: &[u32]) -> f64 {
    let expected = counts.iter().map(|count| f64::from(*count)).sum::<f64>() / counts.len() as f64;
    counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
}

/// The bound below which the statistic stays with a probability of 0.999 (approximation of Wilson
/// and Hilferty).
fn chi_squared_limit(counts: &[u32]) -> f64 {
    let freedom = counts.len() as f64 - 1.0;
    let spread = 2.0 / (9.0 * freedom);
    freedom * (1.0 - spread + 3.09 * spread.sqrt()).powi(3)
}

fn assert_alike(counts: &[u32], what: &str) {
    let (found, limit) = (chi_squared(counts), chi_squared_limit(counts));
    assert!(found < limit, "{what}: chi-squared {found:.1} of {} cells, at most {limit:.1}", counts.len());
}

/// Asserts a share of `DRAWS` draws within 3.3 standard deviations.
fn assert_share(found: usize, share: f64, what: &str) {
    let deviation = (share * (1.0 - share) / DRAWS as f64).sqrt();
    let found = found as f64 / DRAWS as f64;
    assert!((found - share).abs() < 3.3 * deviation, "{what}: {found:.4} of about {share:.4}");
}

#[test]
fn the_test_tells_even_from_uneven() {
    assert_alike(&[1000, 1010, 990, 1000], "even");
    let uneven = [1000, 1200, 1000, 1000];
    assert!(chi_squared(&uneven) > chi_squared_limit(&uneven));
    // The value of the tables for 79 degrees of freedom is 123.6.
    assert!((chi_squared_limit(&[0; 80]) - 123.6).abs() < 0.5);
}

#[test]
fn uniform_integers_are_all_alike() {
    for (text, first) in [("{uniform_int, 100}", 1), ("{uniform_int, -7, 100}", -7)] {
        let (mut draw, mut counts) = (keys_of(text), [0; 100]);
        (0..DRAWS).for_each(|_| counts[(number(&mut draw) - first) as usize] += 1);
        assert_alike(&counts, text);
    }
}

#[test]
fn four_of_five_draws_hit_the_lowest_fifth_and_both_parts_are_even() {
    let (mut draw, mut counts) = (keys_of("{eightytwenty_int, 503}"), [0_u32; 500]);
    (0..DRAWS).for_each(|_| counts[number(&mut draw) as usize - 1] += 1);
    let (lowest, rest) = counts.split_at(100);
    assert_share(lowest.iter().sum::<u32>() as usize, 0.8, "the lowest fifth");
    assert_alike(lowest, "the lowest fifth");
    assert_alike(rest, "the rest");
}

#[test]
fn pareto_integers_have_the_quantiles_of_their_formula() {
    const MAX: f64 = 1_000_000.0;
    let scale = 0.2 * MAX * 0.5;
    let mut draw = keys_of("{pareto_int, 1000000}");
    let drawn: Vec<_> = (0..DRAWS).map(|_| number(&mut draw)).collect();
    for share in [0.1_f64, 0.25, 0.5, 0.75, 0.8, 0.9, 0.99, 0.999] {
        let quantile = ((1.0 - share).powf(-1.0 / 1.5) - 1.0) * scale;
        let below = drawn.iter().filter(|n| (**n as f64) < quantile).count();
        assert_share(below, share, &format!("below {quantile:.0}"));
    }
    assert!(drawn.iter().all(|n| *n >= 0));
    assert!(drawn.iter().any(|n| *n as f64 > MAX), "it has no upper end");
}

#[test]
fn what_truncated_pareto_cuts_off_collects_at_the_end() {
    const MAX: i64 = 1000;
    let mut draw = keys_of("{truncated_pareto_int, 1000}");
    let drawn: Vec<_> = (0..DRAWS).map(|_| number(&mut draw)).collect();
    assert!(drawn.iter().all(|n| (0..=MAX).contains(n)));
    let at_end = drawn.iter().filter(|n| **n == MAX).count();
    assert_share(at_end, (1.0 + 1000.0 / 100.0_f64).powf(-1.5), "at the end");
    let lowest = drawn.iter().filter(|n| **n < MAX / 5).count();
    assert_share(lowest, 1.0 - 3.0_f64.powf(-1.5), "below a fifth");
}

#[test]
fn exponential_sizes_have_their_quantiles_and_their_mean() {
    let text = "{exponential_bin, 100, 2000}";
    let mut draw = values_of(text);
    let sizes: Vec<_> = (0..DRAWS).map(|_| draw.value().len()).collect();
    for share in [0.1_f64, 0.5, 0.9, 0.99, 0.999] {
        let quantile = 100.0 - (1.0 - share).ln() * 2000.0;
        let below = sizes.iter().filter(|size| (**size as f64) < quantile.floor()).count();
        assert_share(below, share, &format!("below {quantile:.0} bytes"));
    }
    let mean = sizes.iter().sum::<usize>() as f64 / DRAWS as f64;
    let told = value_spec(text).unwrap().mean_bytes().unwrap();
    assert!((told - 2099.5).abs() < 0.01, "{told}");
    assert!((mean - told).abs() < 3.3 * 2000.0 / (DRAWS as f64).sqrt(), "{mean} of {told}");
    assert!(sizes.iter().all(|size| *size >= 100));
}

#[test]
fn uniform_sizes_are_all_alike() {
    let text = "{uniform_bin, 10, 60}";
    let (mut draw, mut counts) = (values_of(text), [0; 50]);
    (0..DRAWS).for_each(|_| counts[draw.value().len() - 11] += 1);
    assert_alike(&counts, text);
    assert_eq!(value_spec(text).unwrap().mean_bytes(), Some(35.5));
}

#[test]
fn one_of_ten_semi_compressible_values_is_ten_times_as_large() {
    let text = "{semi_compressible, 8000, 8000, 10, 0.1}";
    let mut draw = values_of(text);
    let sizes: Vec<_> = (0..DRAWS).map(|_| draw.value().len()).collect();
    let mean = sizes.iter().sum::<usize>() as f64 / DRAWS as f64;
    // The standard deviation of a value's length is about 51,000 bytes.
    assert!((mean - 30_400.0).abs() < 3.3 * 51_000.0 / (DRAWS as f64).sqrt(), "{mean}");
    assert!((value_spec(text).unwrap().mean_bytes().unwrap() - 30_400.0).abs() < 1.0);
    assert!(sizes.iter().all(|size| *size >= 8000));
    // Of the values that are not enlarged, which are nine of ten, only those have 80,000 bytes or
    // more whose exponential part is nine times its mean.
    let large = sizes.iter().filter(|size| **size >= 80_000).count();
    assert_share(large, 0.1 + 0.9 * (-9.0_f64).exp(), "large");
}

/// The compressed size of a value, as a share of its size, with zlib.
fn zlib_ratio(value: &[u8]) -> f64 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(value).unwrap();
    encoder.finish().unwrap().len() as f64 / value.len() as f64
}

#[test]
fn zlib_shrinks_semi_compressible_values_by_about_a_third_and_others_not_at_all() {
    let mean_ratio = |text| {
        let mut draw = values_of(text);
        (0..200).map(|_| zlib_ratio(draw.value())).sum::<f64>() / 200.0
    };
    let semi = mean_ratio("{semi_compressible, 8000, 8000, 10, 0.1}");
    assert!((0.60..0.70).contains(&semi), "{semi}");
    let random = mean_ratio("{fixed_bin, 8000}");
    assert!(random > 1.0, "{random}");
}
