//! A chart: lines in a plot with two axes.

use super::color_role::ColorRole;
use super::drawing::{Anchor, Drawing, Point};
use super::font;
use super::scale::{Scale, Unit};

/// The highest number of points on a line for which each point is marked.
const MARKED_POINTS_MAX: usize = 60;
/// The factor above which the span of the values gets a logarithmic axis.
const LINEAR_SPAN_MAX: f64 = 30.0;

const TITLE_SIZE: f32 = 13.0;
const LABEL_SIZE: f32 = 11.0;
const ROW: f32 = 16.0;
const SWATCH: f32 = 14.0;
/// Some browsers have fonts that are wider than the font of the pictures, by up to this factor.
const WIDER: f32 = 1.13;

/// A chart with lines and two axes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Unit,
    /// The values for which the y axis is made. Charts that are compared share a range.
    pub(super) range: Range,
    pub(super) series: Vec<Series>,
}

/// The x axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) label: &'static str,
    pub(super) unit: Unit,
    /// The end of the axis, which begins at 0.
    pub(super) to: f64,
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    /// The name in the legend; empty if the title says enough.
    pub(super) name: String,
    pub(super) role: ColorRole,
    /// The points, ordered by x. A point without y leaves a gap in the line.
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// The range of the y values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Range {
    pub(super) kind: RangeKind,
    /// The least value above 0.
    min: Option<f64>,
    max: Option<f64>,
}

/// The kind of y axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RangeKind {
    /// A linear axis from 0.
    #[default]
    Linear,
    /// A linear axis from 0, or a logarithmic one if the values are far apart.
    Latency,
}

impl Range {
    /// The range of all values of these lines.
    pub(super) fn of<'a>(kind: RangeKind, series: impl IntoIterator<Item = &'a Series>) -> Self {
        let mut range = Self { kind, min: None, max: None };
        for y in series.into_iter().flat_map(|series| &series.points).filter_map(|(_, y)| *y) {
            range.max = Some(range.max.map_or(y, |max| max.max(y)));
            if y > 0.0 {
                range.min = Some(range.min.map_or(y, |min| min.min(y)));
            }
        }
        range
    }

    fn scale(self, unit: Unit, ticks_max: usize) -> Scale {
        match (self.kind, self.min, self.max) {
            (RangeKind::Latency, Some(min), Some(max)) if max / min > LINEAR_SPAN_MAX => {
                Scale::logarithmic(unit, min, max)
            }
            (_, _, max) => Scale::linear(unit, max.unwrap_or_default(), ticks_max, true),
        }
    }
}

/// The area of the lines, with the scales of both axes.
struct Plot {
    left: f32,
    right: f32,
    top: f32,
    bottom: f32,
    x: Scale,
    y: Scale,
}

impl Plot {
    fn x(&self, value: f64) -> f32 {
        self.left + (self.right - self.left) * self.x.place(value) as f32
    }

    fn y(&self, value: f64) -> f32 {
        self.bottom - (self.bottom - self.top) * self.y.place(value) as f32
    }
}

impl Chart {
    /// Draws the chart in a rectangle of this size.
    pub(super) fn draw(&self, width: f32, height: f32) -> Drawing {
        let mut drawing = Drawing::new(width, height);
        let title = font::fitted(&self.title, TITLE_SIZE, true, width / WIDER);
        drawing.heading(Point::new(0.0, TITLE_SIZE), TITLE_SIZE, title);
        let legend_end = self.draw_legend(&mut drawing, TITLE_SIZE);
        let plot = self.plot(width, height, legend_end + ROW + 12.0);
        drawing.text(Point::new(0.0, plot.top - 10.0), Anchor::Start, LABEL_SIZE, ColorRole::Muted, &plot.y.unit);
        self.draw_axes(&mut drawing, &plot);
        if self.range.max.is_none() {
            let middle = Point::new((plot.left + plot.right) / 2.0, (plot.top + plot.bottom) / 2.0);
            drawing.text(middle, Anchor::Middle, LABEL_SIZE, ColorRole::Muted, "nothing to draw");
        }
        self.series.iter().for_each(|series| draw_series(&mut drawing, &plot, series));
        drawing
    }

    /// Draws the legend in as many rows as it needs, below the base line `above`. Returns the base
    /// line of the last row.
    fn draw_legend(&self, drawing: &mut Drawing, above: f32) -> f32 {
        let (mut x, mut y) = (0.0, above);
        for series in self.series.iter().filter(|series| !series.name.is_empty()) {
            let name = font::fitted(&series.name, LABEL_SIZE, false, drawing.width / WIDER - SWATCH - 5.0);
            let width = SWATCH + 5.0 + font::width(&name, LABEL_SIZE, false) * WIDER;
            if y == above {
                y += ROW + 3.0;
            } else if x + width > drawing.width {
                x = 0.0;
                y += ROW;
            }
            let middle = y - 4.0;
            drawing.line(vec![Point::new(x, middle), Point::new(x + SWATCH, middle)], series.role, 2.5);
            drawing.text(Point::new(x + SWATCH + 5.0, y), Anchor::Start, LABEL_SIZE, ColorRole::Text, name);
            x += width + 14.0;
        }
        y
    }

    fn plot(&self, width: f32, height: f32, top: f32) -> Plot {
        let bottom = height - 2.0 * ROW - 4.0;
        let y = self.range.scale(self.y, if bottom - top > 130.0 { 5 } else { 4 });
        let labels = y.ticks.iter().map(|(_, label)| font::width(label, LABEL_SIZE, false)).fold(0.0, f32::max);
        let (left, right) = (labels * WIDER + 7.0, width - 14.0);
        let x = Scale::linear(self.x.unit, self.x.to, ((right - left) / 60.0).max(2.0) as usize, false);
        Plot { left, right, top, bottom, x, y }
    }

    fn draw_axes(&self, drawing: &mut Drawing, plot: &Plot) {
        for (value, label) in &plot.y.ticks {
            let y = plot.y(*value);
            drawing.line(vec![Point::new(plot.left, y), Point::new(plot.right, y)], ColorRole::Grid, 1.0);
            drawing.text(Point::new(plot.left - 6.0, y + 4.0), Anchor::End, LABEL_SIZE, ColorRole::Muted, label);
        }
        drawing.line(
            vec![Point::new(plot.left, plot.bottom), Point::new(plot.right, plot.bottom)],
            ColorRole::Muted,
            1.0,
        );
        for (value, label) in &plot.x.ticks {
            let x = plot.x(*value);
            drawing.line(vec![Point::new(x, plot.bottom), Point::new(x, plot.bottom + 4.0)], ColorRole::Muted, 1.0);
            let at = Point::new(x, plot.bottom + ROW);
            drawing.text(at, Anchor::Middle, LABEL_SIZE, ColorRole::Muted, label);
        }
        let middle = Point::new((plot.left + plot.right) / 2.0, plot.bottom + 2.0 * ROW);
        let label = format!("{} ({})", self.x.label, plot.x.unit);
        drawing.text(middle, Anchor::Middle, LABEL_SIZE, ColorRole::Muted, label);
    }
}

fn draw_series(drawing: &mut Drawing, plot: &Plot, series: &Series) {
    let marked = series.points.len() <= MARKED_POINTS_MAX;
    for stretch in series.points.split(|(_, y)| y.is_none()).filter(|stretch| !stretch.is_empty()) {
        let points: Vec<Point> =
            stretch.iter().filter_map(|(x, y)| Some(Point::new(plot.x(*x), plot.y((*y)?)))).collect();
        // A single point gives no line, so it is marked.
        if marked || points.len() == 1 {
            points.iter().for_each(|point| drawing.dot(*point, 2.0, series.role));
        }
        if points.len() > 1 {
            drawing.line(points, series.role, 1.5);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::drawing::Shape;
    use super::*;

    fn chart(kind: RangeKind, points: Vec<(f64, Option<f64>)>) -> Chart {
        let series = vec![Series { name: "one".to_owned(), role: ColorRole::Line(0), points }];
        let x = Axis { label: "elapsed", unit: Unit::Seconds, to: 50.0 };
        Chart { title: "get".to_owned(), x, y: Unit::Milliseconds, range: Range::of(kind, &series), series }
    }

    /// The lines of the first series, without the one in the legend.
    fn lines(drawing: &Drawing) -> Vec<&[Point]> {
        let line = |shape| match shape {
            &Shape::Line { ref points, role: ColorRole::Line(0), .. } => Some(points.as_slice()),
            _ => None,
        };
        drawing.shapes.iter().filter_map(line).skip(1).collect()
    }

    fn texts(drawing: &Drawing) -> Vec<&str> {
        drawing
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn points_are_where_their_values_are() {
        let drawing =
            chart(RangeKind::Linear, vec![(0.0, Some(0.0)), (25.0, Some(2.0)), (50.0, Some(4.0))]).draw(400.0, 240.0);
        let [line] = lines(&drawing)[..] else { panic!("{drawing:?}") };
        let [first, middle, last] = line else { panic!("{line:?}") };
        assert!(first.x < middle.x && first.y > middle.y && middle.y > last.y, "{line:?}");
        assert!((middle.x - (first.x + last.x) / 2.0).abs() < 0.01, "{line:?}");
        assert!((middle.y - (first.y + last.y) / 2.0).abs() < 0.01, "{line:?}");
        assert!(last.x <= 400.0 && first.y < 240.0 && last.y > 0.0, "{line:?}");
        let texts = texts(&drawing);
        assert!(
            ["get", "one", "ms", "elapsed (s)", "0", "1", "4", "50"].iter().all(|text| texts.contains(text)),
            "{texts:?}"
        );
    }

    #[test]
    fn nothing_is_drawn_where_nothing_is_known() {
        let points = vec![(10.0, Some(1.0)), (20.0, Some(1.0)), (30.0, None), (40.0, Some(1.0)), (50.0, Some(1.0))];
        let drawing = chart(RangeKind::Linear, points).draw(400.0, 240.0);
        assert_eq!(lines(&drawing).iter().map(|line| line.len()).collect::<Vec<_>>(), [2, 2]);
        let empty = chart(RangeKind::Latency, vec![(10.0, None)]).draw(400.0, 240.0);
        assert!(lines(&empty).is_empty() && texts(&empty).contains(&"nothing to draw"), "{empty:?}");
    }

    #[test]
    fn only_latencies_that_are_far_apart_get_a_logarithmic_axis() {
        let unit = |kind, max| {
            let drawing = chart(kind, vec![(10.0, Some(1.0)), (20.0, Some(max))]).draw(400.0, 240.0);
            texts(&drawing).into_iter().find(|text| text.starts_with("ms")).map(str::to_owned)
        };
        assert_eq!(unit(RangeKind::Latency, 20.0).as_deref(), Some("ms"));
        assert_eq!(unit(RangeKind::Latency, 2000.0).as_deref(), Some("ms, logarithmic"));
        assert_eq!(unit(RangeKind::Linear, 2000.0).as_deref(), Some("ms"));
    }
}
