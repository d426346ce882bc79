//! A chart: what it shows, and how its parts are arranged.

use crate::report::graphics::{Drawing, Point, font};

use super::axis::Axis;
use super::legend::draw_legend;
use super::plot::Plot;
use super::range::Range;
use super::series::Series;
use super::sizes::{FONT_WIDTH_FACTOR_MAX, ROW_HEIGHT};
use super::unit::Unit;

const TITLE_SIZE: f32 = 13.0;

/// A chart with lines and two axes.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Chart {
    pub(in crate::report) title: String,
    pub(in crate::report) x: Axis,
    pub(in crate::report) y: Unit,
    /// The values for which the y axis is made. Charts that are compared share a range.
    pub(in crate::report) range: Range,
    pub(in crate::report) series: Vec<Series>,
}

impl Chart {
    /// Draws the chart in a rectangle of this size: the title, the legend below it, and the plot in
    /// the remaining space.
    pub(in crate::report) fn draw(&self, width: f32, height: f32) -> Drawing {
        let mut drawing = Drawing::new(width, height);
        let title = font::fitted(&self.title, TITLE_SIZE, true, width / FONT_WIDTH_FACTOR_MAX);
        drawing.heading(Point::new(0.0, TITLE_SIZE), TITLE_SIZE, title);
        let legend_end = draw_legend(&mut drawing, &self.series, TITLE_SIZE);
        let plot = Plot::new((width, height), legend_end + ROW_HEIGHT + 12.0, &self.x, self.y, self.range);
        plot.draw_axes(&mut drawing);
        if self.range.is_empty() {
            plot.draw_note(&mut drawing, "nothing to draw");
        }
        self.series.iter().for_each(|series| plot.draw_series(&mut drawing, series));
        drawing
    }
}

#[cfg(test)]
mod tests {
    use crate::report::charts::RangeKind;
    use crate::report::graphics::{ColorRole, Shape};

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
