//! Result files, charts and comparisons (docs/riak/basho-bench.md §6, §7).
//!
//! What it is: [`CsvFiles`] are written in basho_bench's format during a run. [`write`] turns a
//! finished run into a page and pictures, and [`compare`] does so for several runs. A chart is a
//! `drawing`, which becomes SVG in a page and pixels in a picture, so that both show the same.
//!
//! What it is not: it does not know how the numbers were measured, and it does not smooth them.
//!
//! Invariants:
//! * A page loads nothing else, and a picture uses no font of the machine.
//! * Charts that show the same metric for several operations have the same axes.
//! * A logarithmic axis is labelled as such.

mod basho;
mod chart;
mod color_role;
mod compare;
mod condense;
mod csv;
mod drawing;
mod error;
mod font;
mod html;
mod metric;
mod page;
mod panels;
mod picture;
mod plotted_windows;
mod png;
mod scale;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub use compare::compare;
pub use csv::CsvFiles;
pub use error::ReportError;
pub use write::write;
