//! Terms in several lines, as Erlang's `~p` writes them for a line of 80 characters.
//!
//! Riak answers with such texts, and clients show them as they are. The rules are those of
//! `io_lib_pretty` in OTP 25, without its limits of depth and length: what fits into the rest of a
//! line stays in it; elements fill lines; a tuple that begins with an atom has its other elements
//! below the second one, or nearer to the left where the atoms nest too deep for that.

mod node;

use super::Term;
use node::{Node, Shape, digits, len_of_pair, line, line_of_pair};
use std::fmt::{self, Write};

/// The length of a line.
const LINE: isize = 80;

/// Formats a term in several lines. The text ends with dots when it has more than a number of
/// bytes.
pub struct Pretty<'a> {
    /// The term.
    pub term: &'a Term,
    /// The length after which the text is cut, in bytes.
    pub bytes_max: usize,
}

impl fmt::Display for Pretty<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = Node::of(self.term);
        let mut out = Limited { out: f, left: self.bytes_max };
        // The only error of a writer that is cut is its own.
        let result = print(&node, &mut out);
        if out.left == 0 { f.write_str("...") } else { result }
    }
}

/// Writes until a number of bytes is reached.
struct Limited<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    left: usize,
}

impl Write for Limited<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() < self.left {
            self.left -= text.len();
            return self.out.write_str(text);
        }
        let mut end = self.left;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.left = 0;
        self.out.write_str(&text[..end])?;
        Err(fmt::Error)
    }
}

/// Where something is written.
#[derive(Clone, Copy)]
struct Place {
    /// The column of the next character, beginning with 1.
    column: isize,
    /// The blanks before a further line.
    indent: isize,
    /// How many brackets follow in the same line.
    closing: isize,
    /// How many characters the line has already, without its blanks.
    width: isize,
}

impl Place {
    /// Whether so many more characters fit into the line.
    const fn fits(&self, len: isize, width_max: isize) -> bool {
        len < LINE - self.column - self.closing && len + self.width + self.closing <= width_max
    }

    const fn at_width(self, width: isize) -> Self {
        Self { width, ..self }
    }
}

fn print(node: &Node, out: &mut dyn Write) -> fmt::Result {
    if node.len < LINE - 1 {
        return line(node, out);
    }
    let start = Place { column: 1, indent: 0, closing: 0, width: 0 };
    let layout = |tag_indent, is_trial| Layout { width_max: node.len, tag_indent, is_trial };
    // What does not fit at the place that it wants is tried nearer to the left.
    let works = |tag_indent: &isize| layout(*tag_indent, true).node(node, start, &mut NoText).is_ok();
    let tag_indent = [-1, 4].into_iter().find(works).unwrap_or(1);
    layout(tag_indent, false).node(node, start, out)
}

struct NoText;

impl Write for NoText {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        Ok(())
    }
}

/// How a term is divided into lines.
struct Layout {
    /// The maximum number of characters of a line, without its blanks.
    width_max: isize,
    /// How far the elements of a tuple that begins with an atom are indented; as far as they want
    /// if it is not above 0.
    tag_indent: isize,
    /// Whether this finds out if the layout works. It fails where something would begin too far to
    /// the right.
    is_trial: bool,
}

impl Layout {
    fn node(&self, node: &Node, at: Place, out: &mut dyn Write) -> fmt::Result {
        if at.fits(node.len, self.width_max) {
            return line(node, out);
        }
        let inside = |by: isize| Place { column: at.column + by, indent: at.indent + by, width: at.width + 1, ..at };
        match &node.shape {
            Shape::Whole(text) => out.write_str(text),
            Shape::Bytes(bytes) => self.bytes(bytes, Place { width: at.width, ..inside(2) }, out),
            Shape::List(items, tail) => {
                out.write_char('[')?;
                self.list(items, tail.as_deref(), inside(1), out)?;
                out.write_char(']')
            }
            Shape::Tuple { items, is_tagged } => {
                out.write_char('{')?;
                match items.split_first().filter(|_| *is_tagged) {
                    Some((tag, items)) => self.tagged(tag, items, at.at_width(at.width + 1), out)?,
                    None => self.list(items, None, inside(1), out)?,
                }
                out.write_char('}')
            }
            Shape::Map(pairs) => {
                out.write_str("#{")?;
                self.map(pairs, inside(2), out)?;
                out.write_char('}')
            }
        }
    }

    /// The elements of a tuple that begins with an atom. The place is that of its bracket.
    fn tagged(&self, tag: &Node, items: &[Node], at: Place, out: &mut dyn Write) -> fmt::Result {
        let wanted = tag.len + 2;
        line(tag, out)?;
        if self.tag_indent > 0 && wanted > self.tag_indent {
            let below = at.column + self.tag_indent;
            if self.is_trial && !(self.width_max + below <= LINE || below <= LINE / 2) {
                return Err(fmt::Error);
            }
            let first = Place { column: below, indent: at.indent + self.tag_indent, ..at };
            return self.tail(items, None, first, at.column + wanted, at.width + tag.len, out);
        }
        let behind = at.column + wanted;
        if self.is_trial && !(self.width_max + behind < LINE || behind < LINE / 2) {
            return Err(fmt::Error);
        }
        out.write_char(',')?;
        let first = Place { column: behind, indent: at.indent + wanted, width: at.width + tag.len + 1, ..at };
        self.list(items, None, first, out)
    }

    /// Elements with commas between them. `first` is the place of the first one.
    fn list(&self, items: &[Node], tail: Option<&Node>, first: Place, out: &mut dyn Write) -> fmt::Result {
        let Some((item, rest)) = items.split_first() else { return Ok(()) };
        let closing = closing(rest, first.closing);
        let len = self.element(item, Place { closing, ..first }, out)?;
        self.tail(rest, tail, first, first.column + len, first.width + len, out)
    }

    /// The elements behind the first one. `column` is where the line goes on, and `width` what it
    /// has already.
    fn tail(
        &self,
        items: &[Node],
        tail: Option<&Node>,
        first: Place,
        mut column: isize,
        mut width: isize,
        out: &mut dyn Write,
    ) -> fmt::Result {
        for (index, item) in items.iter().enumerate() {
            let closing = closing(&items[index + 1..], first.closing);
            out.write_char(',')?;
            let here = Place { column, width, ..first };
            if item.is_whole() && here.fits_behind_comma(item.len, closing, self.width_max) {
                line(item, out)?;
                (column, width) = (column + 1 + item.len, width + 1 + item.len);
            } else {
                new_line(first.indent, out)?;
                let len = self.element(item, Place { closing, width: 0, ..first }, out)?;
                (column, width) = (first.column + len, len);
            }
        }
        let Some(tail) = tail else { return Ok(()) };
        out.write_char('|')?;
        let here = Place { column, width, closing: first.closing + 1, ..first };
        if tail.is_whole() && here.fits(tail.len + 1, self.width_max) {
            return line(tail, out);
        }
        new_line(first.indent, out)?;
        let column = if self.is_trial { column } else { first.column };
        self.node(tail, Place { column, width: 0, closing: first.closing + 1, ..first }, out)
    }

    /// Writes an element. Returns how far the line went, which is to its end for one of several
    /// lines.
    fn element(&self, item: &Node, at: Place, out: &mut dyn Write) -> Result<isize, fmt::Error> {
        if item.is_whole() && at.fits(item.len, self.width_max) {
            line(item, out)?;
            return Ok(item.len);
        }
        self.node(item, at, out)?;
        Ok(LINE)
    }

    fn map(&self, pairs: &[(Node, Node)], first: Place, out: &mut dyn Write) -> fmt::Result {
        let mut column = first.column;
        let mut width = if self.is_trial { first.width + 1 } else { first.width };
        for (index, pair) in pairs.iter().enumerate() {
            let closing = closing(&pairs[index + 1..], first.closing);
            let is_whole = pair.0.is_whole() && pair.1.is_whole();
            if index == 0 {
                let len = self.pair(pair, Place { closing, width, ..first }, out)?;
                (column, width) = (first.column + len, if self.is_trial { width + len } else { len });
                continue;
            }
            out.write_char(',')?;
            let (here, len) = (Place { column, width, ..first }, len_of_pair(pair));
            if is_whole && here.fits_behind_comma(len, closing, self.width_max) {
                line_of_pair(pair, out)?;
                (column, width) = (column + 1 + len, width + 1 + len);
            } else {
                new_line(first.indent, out)?;
                let len = self.pair(pair, Place { closing, width: 0, ..first }, out)?;
                (column, width) = (first.column + len, len);
            }
        }
        Ok(())
    }

    fn pair(&self, pair: &(Node, Node), at: Place, out: &mut dyn Write) -> Result<isize, fmt::Error> {
        let len = len_of_pair(pair);
        if at.fits(len, self.width_max) {
            line_of_pair(pair, out)?;
            return Ok(if pair.0.is_whole() && pair.1.is_whole() { len } else { LINE });
        }
        let by = if self.tag_indent > 0 { self.tag_indent } else { 4 };
        self.node(&pair.0, at, out)?;
        out.write_str(" =>")?;
        let value = Place { column: at.column + by, indent: at.indent + by, width: 0, ..at };
        new_line(value.indent, out)?;
        self.node(&pair.1, value, out)?;
        Ok(LINE)
    }

    fn bytes(&self, bytes: &[u8], at: Place, out: &mut dyn Write) -> fmt::Result {
        let room = ((LINE - at.column).min(self.width_max - 4 - at.width) - at.closing).max(8);
        let mut left = room;
        out.write_str("<<")?;
        for (index, byte) in bytes.iter().enumerate() {
            let is_last = index + 1 == bytes.len();
            let len = digits(*byte) + isize::from(!is_last);
            if len > left {
                new_line(at.indent, out)?;
                left = room;
            }
            left -= len;
            write!(out, "{byte}{}", if is_last { "" } else { "," })?;
        }
        out.write_str(">>")
    }
}

impl Place {
    /// Whether something fits behind a comma, with what must follow it in the line.
    const fn fits_behind_comma(&self, len: isize, closing: isize, width_max: isize) -> bool {
        let len = 1 + len;
        if closing == 0 {
            len + 1 < LINE - self.column && self.width + len < width_max
        } else {
            len < LINE - self.column - closing && self.width + len + closing <= width_max
        }
    }
}

/// How many brackets follow an element: none if another element does.
const fn closing<T>(rest: &[T], outside: isize) -> isize {
    if rest.is_empty() { outside + 1 } else { 0 }
}

fn new_line(indent: isize, out: &mut dyn Write) -> fmt::Result {
    write!(out, "\n{:1$}", "", usize::try_from(indent).unwrap_or(0))
}

#[cfg(test)]
mod tests;
