//! Result files, charts and comparisons (docs/riak/basho-bench.md §6, §7).
//!
//! What it is: [`CsvFiles`] are written in basho_bench's format during a run. [`write`] turns a
//! finished run into a page and pictures, and [`compare`] does so for several runs.
//!
//! Parts: `csv` writes and `basho` reads the files of basho_bench; `plotted_windows` and `condense`
//! prepare the windows of a run; `chosen_charts` chooses the charts; `charts` draws them;
//! `graphics` turns drawings into SVG and PNG; `page`, `run_page` and `picture` arrange them.
//!
//! What it is not: it does not know how the numbers were measured, and it does not smooth them.
//!
//! Invariants:
//! * A page loads nothing else, and a picture uses no font of the machine.
//! * Charts that show the same metric for several operations have the same axes.
//! * A logarithmic axis is labelled as such.

mod basho;
mod charts;
mod chosen_charts;
mod compare;
mod condense;
mod csv;
mod error;
mod graphics;
mod metric;
mod page;
mod picture;
mod plotted_windows;
mod run_page;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub use compare::compare;
pub use csv::CsvFiles;
pub use error::ReportError;
pub use write::write;
