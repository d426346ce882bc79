//! Common parts of the HTML pages. A page is well-formed XML as well as HTML, and loads nothing
//! else.

use std::fmt::Write as _;

use super::chosen_charts::Section;
use super::graphics::{ColorRole, Drawing, Svg};
use super::text::escaped;

/// The size of a chart on a narrow screen, or of one of many charts.
const SMALL: (f32, f32) = (400.0, 240.0);
/// The size of a chart that fills half a row.
const HALF: (f32, f32) = (600.0, 270.0);
/// The size of a chart that fills a row.
const BROAD: (f32, f32) = (1200.0, 300.0);

/// A page that is being written. Writing to a `String` cannot fail, so the results of `write!` are
/// ignored.
pub(super) struct Page {
    html: String,
}

impl Page {
    pub(super) fn new(title: &str) -> Self {
        let (title, style) = (escaped(title), ColorRole::style_sheet() + include_str!("page.css"));
        let html = format!(
            "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{title}</title>\n\
             <style>\n{style}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        Self { html }
    }

    /// Appends text that is HTML already.
    pub(super) fn raw(&mut self, html: &str) {
        self.html.push_str(html);
    }

    pub(super) fn heading(&mut self, text: &str) {
        let _ = writeln!(self.html, "<h2>{}</h2>", escaped(text));
    }

    pub(super) fn paragraph(&mut self, class: &str, text: &str) {
        let _ = writeln!(self.html, "<p class=\"{class}\">{}</p>", escaped(text));
    }

    /// Appends notes about the run, if there are any.
    pub(super) fn notes(&mut self, notes: &[String]) {
        if !notes.is_empty() {
            let items: String = notes.iter().map(|note| format!("<li>{}</li>\n", escaped(note))).collect();
            let _ = write!(self.html, "<ul class=\"notes\">\n{items}</ul>\n");
        }
    }

    /// Appends preformatted text.
    pub(super) fn verbatim(&mut self, lines: &[String]) {
        let _ = writeln!(self.html, "<pre>{}</pre>", escaped(&lines.join("\n")));
    }

    /// Appends a table. The first column is text, the others are numbers.
    pub(super) fn table(&mut self, class: &str, head: &[String], rows: &[Vec<String>]) {
        let headings: String = head.iter().map(|cell| format!("<th>{}</th>", escaped(cell))).collect();
        // On a narrow screen each cell is a line of its own, which begins with the column's name.
        let cell =
            |(cell, name): (&String, &String)| format!("<td data-column=\"{}\">{}</td>", escaped(name), escaped(cell));
        let row = |cells: &Vec<String>| format!("<tr>{}</tr>\n", cells.iter().zip(head).map(cell).collect::<String>());
        let body: String = rows.iter().map(row).collect();
        let _ = write!(
            self.html,
            "<div class=\"table\"><table class=\"{class}\">\n<thead>\n<tr>{headings}</tr>\n</thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
        );
    }

    /// Appends headings with their charts. If a section has few charts, they are also drawn in a
    /// wide version for wide screens.
    pub(super) fn sections(&mut self, sections: &[Section]) {
        for section in sections {
            self.heading(section.title);
            let (columns, broad) = match section.charts.len() {
                1 => (" one", Some(BROAD)),
                2 | 4 => (" two", Some(HALF)),
                _ => ("", None),
            };
            self.raw(&format!("<div class=\"charts{columns}\">\n"));
            for chart in &section.charts {
                let label = format!("{}: {}", section.title, chart.title);
                let small = chart.draw(SMALL.0, SMALL.1);
                match broad {
                    Some((width, height)) => {
                        self.figure("broad", &label, &chart.draw(width, height));
                        self.figure("narrow", &label, &small);
                    }
                    None => self.figure("small", &label, &small),
                }
            }
            self.raw("</div>\n");
        }
    }

    fn figure(&mut self, class: &str, label: &str, drawing: &Drawing) {
        let _ = writeln!(self.html, "<div class=\"{class}\">{}</div>", Svg { drawing, label });
    }

    pub(super) fn finish(mut self) -> String {
        self.html.push_str("</main>\n</body>\n</html>\n");
        self.html
    }
}
