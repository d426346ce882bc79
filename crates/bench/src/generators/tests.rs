//! Whole generators.
