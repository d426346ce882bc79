//! The shapes of a chart, before they become SVG or pixels.

use super::color_role::ColorRole;

/// Lines, dots and text on a surface. The unit is a screen pixel, and y grows downwards.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::report) struct Drawing {
    pub(in crate::report) width: f32,
    pub(in crate::report) height: f32,
    pub(in crate::report) shapes: Vec<Shape>,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) enum Shape {
    /// Straight lines from point to point.
    Line { points: Vec<Point>, role: ColorRole, width: f32 },
    /// A filled circle.
    Dot { at: Point, radius: f32, role: ColorRole },
    /// One line of text. `at` is on its base line.
    Text { at: Point, text: String, size: f32, bold: bool, anchor: Anchor, role: ColorRole },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::report) struct Point {
    pub(in crate::report) x: f32,
    pub(in crate::report) y: f32,
}

/// Which part of a text is at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Anchor {
    Start,
    Middle,
    End,
}

impl Point {
    pub(in crate::report) fn new(x: f32, y: f32) -> Self {
        Self { x, y }
    }
}

impl Drawing {
    pub(in crate::report) fn new(width: f32, height: f32) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    /// Copies another drawing onto this one.
    pub(in crate::report) fn place(&mut self, at: Point, other: Drawing) {
        self.shapes.extend(other.shapes.into_iter().map(|shape| shape.moved(at)));
    }

    pub(in crate::report) fn line(&mut self, points: Vec<Point>, role: ColorRole, width: f32) {
        self.shapes.push(Shape::Line { points, role, width });
    }

    pub(in crate::report) fn dot(&mut self, at: Point, radius: f32, role: ColorRole) {
        self.shapes.push(Shape::Dot { at, radius, role });
    }

    /// Adds text of normal weight.
    pub(in crate::report) fn text(
        &mut self,
        at: Point,
        anchor: Anchor,
        size: f32,
        role: ColorRole,
        text: impl Into<String>,
    ) {
        self.shapes.push(Shape::Text { at, text: text.into(), size, bold: false, anchor, role });
    }

    /// Adds a heading.
    pub(in crate::report) fn heading(&mut self, at: Point, size: f32, text: impl Into<String>) {
        self.shapes.push(Shape::Text {
            at,
            text: text.into(),
            size,
            bold: true,
            anchor: Anchor::Start,
            role: ColorRole::Text,
        });
    }
}

impl Shape {
    fn moved(self, by: Point) -> Self {
        let moved = |point: Point| Point::new(point.x + by.x, point.y + by.y);
        match self {
            Self::Line { points, role, width } => {
                Self::Line { points: points.into_iter().map(moved).collect(), role, width }
            }
            Self::Dot { at, radius, role } => Self::Dot { at: moved(at), radius, role },
            Self::Text { at, text, size, bold, anchor, role } => {
                Self::Text { at: moved(at), text, size, bold, anchor, role }
            }
        }
    }
}
