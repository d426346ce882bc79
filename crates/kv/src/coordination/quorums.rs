//! Computes counts from quorum options and properties.

use ombak_types::{BucketProps, Error, Quorum};

/// The n of a request: the option `n_val` may lower the bucket's n.
pub(crate) fn effective_n(option: Option<u32>, props: &BucketProps) -> Result<u32, Error> {
    match option {
        None => Ok(props.n_val),
        Some(n) if (1..=props.n_val).contains(&n) => Ok(n),
        Some(n) => Err(Error::NValViolation(n)),
    }
}

/// The count that the option, or else the bucket's property, stands for. A count above `n` is
/// refused.
pub(crate) fn quorum(option: Option<Quorum>, property: Quorum, n: u32) -> Result<u32, Error> {
    let count = expand(option, property, n);
    if count > n { Err(Error::NValViolation(n)) } else { Ok(count) }
}

pub(crate) fn expand(option: Option<Quorum>, property: Quorum, n: u32) -> u32 {
    // A property that says `default` means Riak's built-in majority.
    option.unwrap_or(Quorum::Default).or_if_default(property).or_if_default(Quorum::Majority).expand(n).unwrap_or(n)
}
