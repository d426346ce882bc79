//! The font of the pictures. It is part of the program, so that the machine needs no fonts.

use std::sync::LazyLock;
use tiny_skia::{Path, PathBuilder, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

#[expect(clippy::expect_used, reason = "the fonts are part of the program")]
static REGULAR: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(notosans::REGULAR_TTF, 0).expect("the font can be read"));

#[expect(clippy::expect_used, reason = "the fonts are part of the program")]
static BOLD: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(notosans::BOLD_TTF, 0).expect("the font can be read"));

/// The width of a text in a picture.
pub(in crate::report) fn width(text: &str, size: f32, bold: bool) -> f32 {
    let face = face(bold);
    text.chars().map(|c| advance(face, glyph(face, c))).sum::<f32>() * scale(face, size)
}

/// As much of a text as fits into `width_max`, with an ellipsis if it was cut.
pub(in crate::report) fn fitted(text: &str, size: f32, bold: bool, width_max: f32) -> String {
    if width(text, size, bold) <= width_max {
        return text.to_owned();
    }
    let mut cut = text.to_owned();
    while cut.pop().is_some() && width(&cut, size, bold) + width("…", size, bold) > width_max {}
    cut + "…"
}

/// The outlines of a text whose base line begins at (0, 0). `None` for a text without outlines,
/// such as a space.
pub(super) fn outline(text: &str, size: f32, bold: bool) -> Option<Path> {
    let face = face(bold);
    let mut pen = Pen { path: PathBuilder::new(), x: 0.0 };
    for c in text.chars() {
        let glyph = glyph(face, c);
        face.outline_glyph(glyph, &mut pen);
        pen.x += advance(face, glyph);
    }
    // In fonts y grows upwards.
    let scale = scale(face, size);
    pen.path.finish()?.transform(Transform::from_scale(scale, -scale))
}

fn face(bold: bool) -> &'static Face<'static> {
    if bold { &BOLD } else { &REGULAR }
}

fn scale(face: &Face<'_>, size: f32) -> f32 {
    size / f32::from(face.units_per_em())
}

/// The glyph of a character. A character that the font does not have gets the font's replacement
/// glyph.
fn glyph(face: &Face<'_>, c: char) -> GlyphId {
    face.glyph_index(c).unwrap_or(GlyphId(0))
}

fn advance(face: &Face<'_>, glyph: GlyphId) -> f32 {
    f32::from(face.glyph_hor_advance(glyph).unwrap_or_default())
}

struct Pen {
    path: PathBuilder,
    /// The x position at which the current glyph begins.
    x: f32,
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.x + x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.x + x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(self.x + x1, y1, self.x + x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.path.cubic_to(self.x + x1, y1, self.x + x2, y2, self.x + x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_where_it_does_not_fit() {
        let name = "alwaysget_updatewith2i";
        let whole = width(name, 13.0, true);
        assert!(whole > 100.0 && whole < 250.0, "{whole}");
        assert_eq!(fitted(name, 13.0, true, whole), name);
        let cut = fitted(name, 13.0, true, whole / 2.0);
        assert!(cut.starts_with("always") && cut.ends_with('…') && width(&cut, 13.0, true) <= whole / 2.0, "{cut}");
        assert_eq!(fitted(name, 13.0, true, 0.0), "…");
    }

    #[test]
    fn letters_have_outlines_and_blanks_have_none() {
        let bounds = outline("Hg", 100.0, false).unwrap().bounds();
        assert!(bounds.top() < -50.0 && bounds.bottom() > 5.0, "above and below the base line: {bounds:?}");
        assert!(bounds.right() <= width("Hg", 100.0, false), "{bounds:?}");
        assert_eq!(outline(" ", 100.0, false), None);
    }
}
