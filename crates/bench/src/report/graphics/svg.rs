//! Writes drawings as SVG inside a page. Colours are classes of the page's style sheet
//! ([`ColorRole::style_sheet`]).

use crate::report::text::escaped;
use std::fmt::{self, Display, Formatter};

use super::color_role::ColorRole;
use super::drawing::{Anchor, Drawing, Point, Shape};

/// A drawing as an `svg` element. `label` describes it for screen readers.
pub(in crate::report) struct Svg<'a> {
    pub(in crate::report) drawing: &'a Drawing,
    pub(in crate::report) label: &'a str,
}

impl Display for Svg<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Drawing { width, height, shapes } = self.drawing;
        let label = escaped(self.label);
        write!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">"
        )?;
        shapes.iter().try_for_each(|shape| write_shape(f, shape))?;
        f.write_str("</svg>\n")
    }
}

fn write_shape(f: &mut Formatter<'_>, shape: &Shape) -> fmt::Result {
    match shape {
        Shape::Line { points, role, width } => {
            f.write_str("<path d=\"")?;
            for (at, Point { x, y }) in points.iter().enumerate() {
                write!(f, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" })?;
            }
            let dash = if role.dashed() { " stroke-dasharray=\"5 3\"" } else { "" };
            let name = role.name();
            write!(f, "\" class=\"s-{name}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dash}/>")
        }
        Shape::Dot { at: Point { x, y }, radius, role } => {
            write!(f, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" class=\"f-{}\"/>", role.name())
        }
        Shape::Text { at, text, size, bold, anchor, role } => write_text(f, *at, text, *size, *bold, *anchor, *role),
    }
}

fn write_text(
    f: &mut Formatter<'_>,
    Point { x, y }: Point,
    text: &str,
    size: f32,
    bold: bool,
    anchor: Anchor,
    role: ColorRole,
) -> fmt::Result {
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let weight = if bold { " font-weight=\"600\"" } else { "" };
    let (name, text) = (role.name(), escaped(text));
    write!(f, "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" class=\"f-{name}\"{anchor}{weight}>{text}</text>")
}
