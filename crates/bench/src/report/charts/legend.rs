//! The legend of a chart.

use crate::report::graphics::{Anchor, ColorRole, Drawing, Point, font};

use super::series::Series;
use super::sizes::{FONT_WIDTH_FACTOR_MAX, LABEL_SIZE, ROW_HEIGHT};

/// The length of the line before a name.
const SWATCH_WIDTH: f32 = 14.0;
/// The distance between that line and the name.
const SWATCH_GAP: f32 = 5.0;
/// The distance between a name and the next entry.
const ENTRY_GAP: f32 = 14.0;

/// Draws the legend in as many rows as it needs, below the base line `above`. Lines without a name
/// are left out. Returns the base line of the last row, which is `above` if there is none.
pub(super) fn draw_legend(drawing: &mut Drawing, series: &[Series], above: f32) -> f32 {
    let (mut x, mut y) = (0.0, above);
    for series in series.iter().filter(|series| !series.name.is_empty()) {
        let name_width_max = drawing.width / FONT_WIDTH_FACTOR_MAX - SWATCH_WIDTH - SWATCH_GAP;
        let name = font::fitted(&series.name, LABEL_SIZE, false, name_width_max);
        let width = SWATCH_WIDTH + SWATCH_GAP + font::width(&name, LABEL_SIZE, false) * FONT_WIDTH_FACTOR_MAX;
        if y == above {
            y += ROW_HEIGHT + 3.0;
        } else if x + width > drawing.width {
            x = 0.0;
            y += ROW_HEIGHT;
        }
        let middle = y - 4.0;
        drawing.line(vec![Point::new(x, middle), Point::new(x + SWATCH_WIDTH, middle)], series.role, 2.5);
        let name_at = Point::new(x + SWATCH_WIDTH + SWATCH_GAP, y);
        drawing.text(name_at, Anchor::Start, LABEL_SIZE, ColorRole::Text, name);
        x += width + ENTRY_GAP;
    }
    y
}
