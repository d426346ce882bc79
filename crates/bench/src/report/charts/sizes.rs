//! Sizes that the parts of a chart share, in units of a drawing.

/// The font size of all text but the title.
pub(super) const LABEL_SIZE: f32 = 11.0;
/// The distance between the base lines of two rows of text.
pub(super) const ROW_HEIGHT: f32 = 16.0;
/// Some browsers have fonts that are wider than the font of the pictures, by up to this factor.
pub(super) const FONT_WIDTH_FACTOR_MAX: f32 = 1.13;
