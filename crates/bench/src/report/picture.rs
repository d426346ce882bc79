//! Combines several charts into one picture.

use super::chosen_charts::Section;
use super::graphics::{Drawing, Point};

/// The width of the picture, the same as in basho_bench.
const WIDTH: f32 = 1280.0;
const MARGIN: f32 = 24.0;
const GAP: f32 = 24.0;
const TITLE_SIZE: f32 = 20.0;
const SECTION_SIZE: f32 = 15.0;
const CHART_HEIGHT: f32 = 250.0;
/// The highest number of charts in a row. Further charts go to the next row.
const COLUMNS_MAX: usize = 4;

/// Draws a title with the sections below it, one after the other.
pub(super) fn picture(title: &str, sections: &[Section]) -> Drawing {
    let mut drawing = Drawing::new(WIDTH, 0.0);
    let mut y = MARGIN + TITLE_SIZE;
    drawing.heading(Point::new(MARGIN, y), TITLE_SIZE, title);
    for section in sections {
        y += GAP + SECTION_SIZE;
        drawing.heading(Point::new(MARGIN, y), SECTION_SIZE, section.title);
        y += 14.0;
        let columns = section.charts.len().clamp(1, COLUMNS_MAX);
        let width = (WIDTH - 2.0 * MARGIN - GAP * (columns - 1) as f32) / columns as f32;
        for row in section.charts.chunks(columns) {
            for (column, chart) in row.iter().enumerate() {
                let x = MARGIN + (width + GAP) * column as f32;
                drawing.place(Point::new(x, y), chart.draw(width, CHART_HEIGHT));
            }
            y += CHART_HEIGHT + GAP / 2.0;
        }
    }
    drawing.height = y + MARGIN;
    drawing
}
