//! Files, charts and comparisons (docs/riak/basho-bench.md §6, §7).
//!
//! [`CsvFiles`] are written while a run goes on, in basho_bench's forms; [`write`] makes of a finished run a page and pictures,
//! [`compare`] of several. A chart is a `drawing`, which becomes SVG in a page and pixels in a picture: both show the same.
//!
//! What it is not: it knows nothing of how numbers came about, and it smooths none.
//!
//! Invariants:
//! * a page needs nothing but itself, and a picture no font of the machine;
//! * charts of the same number of several operations have the same axes;
//! * an axis is logarithmic only where it says so.

mod basho;
mod chart;
mod compare;
mod condense;
mod course;
mod csv;
mod drawing;
mod error;
mod font;
mod html;
mod ink;
mod metric;
mod page;
mod panels;
mod picture;
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
