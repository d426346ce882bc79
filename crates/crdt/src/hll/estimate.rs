//! The estimate of HyperLogLog++: the raw estimate of HyperLogLog, corrected by known biases, and
//! linear counting for small sets. It computes what Riak computes, to the last digit that shows.

use super::Precision;
use super::biases::BIASES;
use super::estimates::ESTIMATES;

/// Up to these sizes linear counting is better, by precision from 4 to 16.
const THRESHOLDS: [f64; 13] =
    [10.0, 20.0, 40.0, 80.0, 220.0, 400.0, 900.0, 1_800.0, 3_100.0, 6_500.0, 11_500.0, 20_000.0, 50_000.0];

/// How many known biases are averaged.
const NEIGHBOURS: usize = 6;

/// How many distinct members registers have seen.
pub(super) fn estimate(registers: &[u8], precision: Precision) -> u64 {
    let count = precision.registers() as f64;
    let row = usize::from(precision.bits() - 4);
    // A sum of powers of two: it is exact, in any order.
    let sum: f64 = registers.iter().map(|value| (-f64::from(*value)).exp2()).sum();
    let raw = alpha(precision) * count * count / sum;
    let corrected = if raw <= 5.0 * count { raw - bias(raw, ESTIMATES[row], BIASES[row]) } else { raw };
    let zeros = registers.iter().filter(|value| **value == 0).count();
    let linear = if zeros == 0 { corrected } else { count * (count / zeros as f64).ln() };
    let best = if linear <= THRESHOLDS[row] { linear } else { corrected };
    best.round() as u64
}

fn alpha(precision: Precision) -> f64 {
    match precision.bits() {
        4 => 0.673,
        5 => 0.697,
        6 => 0.709,
        _ => 0.7213 / (1.0 + 1.079 / precision.registers() as f64),
    }
}

/// The mean bias of the nearest known estimates. Of two that are equally near the smaller counts.
fn bias(raw: f64, estimates: &[f64], biases: &[f64]) -> f64 {
    let mut nearest: Vec<(f64, f64)> =
        estimates.iter().zip(biases).map(|(estimate, bias)| ((raw - estimate).powi(2), *bias)).collect();
    nearest.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    nearest.truncate(NEIGHBOURS);
    nearest.iter().map(|(_, bias)| bias).sum::<f64>() / nearest.len() as f64
}
