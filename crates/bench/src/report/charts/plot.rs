//! The area of a chart that holds its lines, and the axes around it.

use crate::report::graphics::{Anchor, ColorRole, Drawing, Point, font};

use super::axis::Axis;
use super::range::Range;
use super::scale::Scale;
use super::series::Series;
use super::sizes::{FONT_WIDTH_FACTOR_MAX, LABEL_SIZE, ROW_HEIGHT};
use super::unit::Unit;

/// The highest number of points on a line for which each point is marked.
const MARKED_POINTS_MAX: usize = 60;
/// The least width for each tick of the x axis.
const TICK_WIDTH_MIN: f32 = 60.0;
/// The length of the mark of a tick of the x axis.
const TICK_LENGTH: f32 = 4.0;

/// The area of the lines, with the scales of both axes.
pub(super) struct Plot {
    left: f32,
    right: f32,
    top: f32,
    bottom: f32,
    x: Scale,
    y: Scale,
    x_label: &'static str,
}

impl Plot {
    /// Places the plot of a chart with this width and height below `top`. The labels of the y axis
    /// have their place at the left, those of the x axis below.
    pub(super) fn new((width, height): (f32, f32), top: f32, x: &Axis, y: Unit, range: Range) -> Self {
        let bottom = height - 2.0 * ROW_HEIGHT - 4.0;
        let y_scale = range.scale(y, if bottom - top > 130.0 { 5 } else { 4 });
        let labels = y_scale.ticks.iter().map(|(_, label)| font::width(label, LABEL_SIZE, false)).fold(0.0, f32::max);
        let (left, right) = (labels * FONT_WIDTH_FACTOR_MAX + 7.0, width - 14.0);
        let ticks_max = ((right - left) / TICK_WIDTH_MIN).max(2.0) as usize;
        let x_scale = Scale::linear(x.unit, x.to, ticks_max, false);
        Self { left, right, top, bottom, x: x_scale, y: y_scale, x_label: x.label }
    }

    pub(super) fn draw_axes(&self, drawing: &mut Drawing) {
        self.draw_y_axis(drawing);
        self.draw_x_axis(drawing);
    }

    /// Draws the unit above the axis, and a grid line with a label for each tick.
    fn draw_y_axis(&self, drawing: &mut Drawing) {
        let unit_at = Point::new(0.0, self.top - 10.0);
        drawing.text(unit_at, Anchor::Start, LABEL_SIZE, ColorRole::Muted, &self.y.unit);
        for (value, label) in &self.y.ticks {
            let y = self.y(*value);
            drawing.line(vec![Point::new(self.left, y), Point::new(self.right, y)], ColorRole::Grid, 1.0);
            drawing.text(Point::new(self.left - 6.0, y + 4.0), Anchor::End, LABEL_SIZE, ColorRole::Muted, label);
        }
    }

    /// Draws the axis with a mark and a label for each tick, and what the axis shows below them.
    fn draw_x_axis(&self, drawing: &mut Drawing) {
        let axis = vec![Point::new(self.left, self.bottom), Point::new(self.right, self.bottom)];
        drawing.line(axis, ColorRole::Muted, 1.0);
        for (value, label) in &self.x.ticks {
            let x = self.x(*value);
            let mark = vec![Point::new(x, self.bottom), Point::new(x, self.bottom + TICK_LENGTH)];
            drawing.line(mark, ColorRole::Muted, 1.0);
            let at = Point::new(x, self.bottom + ROW_HEIGHT);
            drawing.text(at, Anchor::Middle, LABEL_SIZE, ColorRole::Muted, label);
        }
        let label_at = Point::new((self.left + self.right) / 2.0, self.bottom + 2.0 * ROW_HEIGHT);
        let label = format!("{} ({})", self.x_label, self.x.unit);
        drawing.text(label_at, Anchor::Middle, LABEL_SIZE, ColorRole::Muted, label);
    }

    /// Writes a text into the middle of the plot, in place of lines.
    pub(super) fn draw_note(&self, drawing: &mut Drawing, note: &str) {
        let middle = Point::new((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        drawing.text(middle, Anchor::Middle, LABEL_SIZE, ColorRole::Muted, note);
    }

    /// Draws a line, interrupted where no value is known. The points are marked if they are few.
    pub(super) fn draw_series(&self, drawing: &mut Drawing, series: &Series) {
        let marked = series.points.len() <= MARKED_POINTS_MAX;
        for stretch in series.points.split(|(_, y)| y.is_none()).filter(|stretch| !stretch.is_empty()) {
            let points: Vec<Point> =
                stretch.iter().filter_map(|(x, y)| Some(Point::new(self.x(*x), self.y((*y)?)))).collect();
            // A single point gives no line, so it is marked.
            if marked || points.len() == 1 {
                points.iter().for_each(|point| drawing.dot(*point, 2.0, series.role));
            }
            if points.len() > 1 {
                drawing.line(points, series.role, 1.5);
            }
        }
    }

    /// The horizontal position of a value.
    fn x(&self, value: f64) -> f32 {
        self.left + (self.right - self.left) * self.x.place(value) as f32
    }

    /// The vertical position of a value.
    fn y(&self, value: f64) -> f32 {
        self.bottom - (self.bottom - self.top) * self.y.place(value) as f32
    }
}
