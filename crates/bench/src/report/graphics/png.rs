//! Draws pictures as PNG files.

use crate::report::ReportError;
use std::fs;
use std::path::Path;
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};

use super::color_role::ColorRole;
use super::drawing::{Anchor, Drawing, Point, Shape};
use super::font;

/// Pixels per unit of a drawing, for screens with a high resolution.
const SCALE: f32 = 2.0;

/// Writes a drawing to `path` as a PNG file.
pub(in crate::report) fn write(path: &Path, drawing: &Drawing) -> Result<(), ReportError> {
    let refused = |what: String| ReportError::Picture { path: path.to_owned(), what };
    let (width, height) = ((drawing.width * SCALE).ceil() as u32, (drawing.height * SCALE).ceil() as u32);
    let mut pixels =
        Pixmap::new(width, height).ok_or_else(|| refused(format!("no picture has {width} x {height} pixels")))?;
    pixels.fill(color(ColorRole::Paper));
    drawing.shapes.iter().for_each(|shape| draw(&mut pixels, shape));
    let bytes = pixels.encode_png().map_err(|error| refused(error.to_string()))?;
    fs::write(path, bytes).map_err(ReportError::io(path))
}

fn draw(pixels: &mut Pixmap, shape: &Shape) {
    match shape {
        Shape::Line { points, role, width } => draw_line(pixels, points, *role, *width),
        Shape::Dot { at, radius, role } => {
            if let Some(circle) = PathBuilder::from_circle(at.x, at.y, *radius) {
                fill(pixels, &circle, *role, Point::new(0.0, 0.0));
            }
        }
        Shape::Text { at, text, size, bold, anchor, role } => {
            let width = font::width(text, *size, *bold);
            let x = match anchor {
                Anchor::Start => at.x,
                Anchor::Middle => at.x - width / 2.0,
                Anchor::End => at.x - width,
            };
            if let Some(outline) = font::outline(text, *size, *bold) {
                fill(pixels, &outline, *role, Point::new(x, at.y));
            }
        }
    }
}

fn draw_line(pixels: &mut Pixmap, points: &[Point], role: ColorRole, width: f32) {
    let mut path = PathBuilder::new();
    for (at, point) in points.iter().enumerate() {
        match at {
            0 => path.move_to(point.x, point.y),
            _ => path.line_to(point.x, point.y),
        }
    }
    let Some(path) = path.finish() else { return };
    let dash = if role.dashed() { StrokeDash::new(vec![5.0, 3.0], 0.0) } else { None };
    let stroke = Stroke { width, line_cap: LineCap::Butt, line_join: LineJoin::Round, dash, ..Stroke::default() };
    pixels.stroke_path(&path, &paint(role), &stroke, Transform::from_scale(SCALE, SCALE), None);
}

fn fill(pixels: &mut Pixmap, path: &tiny_skia::Path, role: ColorRole, at: Point) {
    let transform = Transform::from_translate(at.x, at.y).post_scale(SCALE, SCALE);
    pixels.fill_path(path, &paint(role), FillRule::Winding, transform, None);
}

fn paint(role: ColorRole) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(color(role));
    paint.anti_alias = true;
    paint
}

fn color(role: ColorRole) -> Color {
    let [red, green, blue] = role.light();
    Color::from_rgba8(red, green, blue, u8::MAX)
}
