//! A table with the numbers of several runs and their ratios to the first run.

use super::text::{digits3, grouped};

/// One column for the first run, and for each other run a column and its ratio.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// Which of two numbers is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    /// The larger one, as of throughput.
    Larger,
    /// The smaller one, as of latency.
    Smaller,
}

/// A ratio is called better or worse if it differs from 1 by at least this much. Runs of the same
/// program differ by less, if the machine does nothing else.
const NOTABLE: f64 = 0.05;

/// One number of each run.
#[derive(Debug)]
pub(super) struct Row {
    what: String,
    better: Better,
    /// The text of each cell, and the number for its ratio.
    values: Vec<(String, Option<f64>)>,
}

impl Row {
    /// A row of numbers with ratios. `None` means that a run has no such number.
    pub(super) fn of_numbers(
        what: impl Into<String>,
        better: Better,
        values: impl Iterator<Item = Option<f64>>,
    ) -> Self {
        let shown = |value: Option<f64>| (value.map_or_else(|| "–".to_owned(), digits3), value);
        Self { what: what.into(), better, values: values.map(shown).collect() }
    }

    /// A row of counts without ratios, because the runs may differ in length.
    pub(super) fn of_counts(what: impl Into<String>, values: impl Iterator<Item = u64>) -> Self {
        let values = values.map(|value| (grouped(value), None)).collect();
        Self { what: what.into(), better: Better::Smaller, values }
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.what.clone()];
        let first = self.values.first().and_then(|(_, value)| *value);
        for (at, (shown, value)) in self.values.iter().enumerate() {
            cells.push(shown.clone());
            if at > 0 {
                cells.push(ratio(*value, first, self.better));
            }
        }
        cells
    }
}

fn ratio(value: Option<f64>, first: Option<f64>, better: Better) -> String {
    let (Some(value), Some(first)) = (value, first) else { return String::new() };
    if first <= 0.0 {
        return String::new();
    }
    let ratio = value / first;
    let word = match better {
        _ if (ratio - 1.0).abs() < NOTABLE => "",
        Better::Larger if ratio > 1.0 => " better",
        Better::Smaller if ratio < 1.0 => " better",
        _ => " worse",
    };
    format!("x {ratio:.2}{word}")
}

impl Table {
    /// The names of the columns.
    pub(super) fn head(&self) -> Vec<String> {
        let mut head = vec![String::new()];
        for (at, name) in self.names.iter().enumerate() {
            head.push(name.clone());
            if at > 0 {
                head.push("ratio".to_owned());
            }
        }
        head
    }

    /// The cells, one list for each row.
    pub(super) fn cells(&self) -> Vec<Vec<String>> {
        self.rows.iter().map(Row::cells).collect()
    }

    /// The table as text for a terminal.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![self.head()];
        lines.extend(self.cells());
        let columns = lines.first().map(Vec::len).unwrap_or_default();
        let width = |column: usize| {
            lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            });
            text.push_str(cells.collect::<String>().trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_are_neither_better_nor_worse() {
        assert_eq!(ratio(Some(104.0), Some(100.0), Better::Larger), "x 1.04");
        assert_eq!(ratio(Some(94.0), Some(100.0), Better::Larger), "x 0.94 worse");
        assert_eq!(ratio(Some(94.0), Some(100.0), Better::Smaller), "x 0.94 better");
        assert_eq!(ratio(Some(1.0), Some(0.0), Better::Smaller), "");
    }

    #[test]
    fn ratios_are_to_the_first() {
        let rows = vec![
            Row::of_numbers("ops/s", Better::Larger, [Some(2000.0), Some(3000.0), Some(500.0)].into_iter()),
            Row::of_counts("failed", [0, 7, 1].into_iter()),
            Row::of_numbers("get 99th ms", Better::Smaller, [Some(1.5), None, Some(3.0)].into_iter()),
        ];
        let table = Table { names: vec!["first".into(), "second".into(), "third".into()], rows };
        assert_eq!(
            table.text(),
            "             first  second          ratio  third         ratio\n\
             ops/s        2,000   3,000  x 1.50 better    500  x 0.25 worse\n\
             failed           0       7                     1\n\
             get 99th ms   1.50       –                  3.00  x 2.00 worse\n"
        );
    }
}
