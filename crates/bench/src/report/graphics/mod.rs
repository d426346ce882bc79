//! Drawings: lines, dots and text in colours, and their two forms, SVG and PNG.
//!
//! What it is: a [`Drawing`] is a list of shapes. [`Svg`] writes it into a page, where text stays
//! text and colours follow the light or dark mode of the reader. [`png::write`] draws it with the
//! fonts of the program. [`font`] measures text for those who arrange it.
//!
//! What it is not: it knows nothing of charts, units or runs.
//!
//! Why no library for charts draws this: the libraries that were examined write fixed colours into
//! the SVG and so do not follow dark mode, or draw no PNG, or place lines and letters in a PNG at
//! whole pixels only.
//!
//! Invariants:
//! * SVG and PNG show the same shapes.
//! * Nothing depends on fonts of the machine.

mod color_role;
mod drawing;
pub(super) mod font;
pub(super) mod png;
mod svg;

pub(super) use color_role::ColorRole;
#[cfg(test)]
pub(super) use drawing::Shape;
pub(super) use drawing::{Anchor, Drawing, Point};
pub(super) use svg::Svg;
