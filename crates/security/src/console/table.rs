//! Tables as Riak draws them.

use crate::shown::push_shown;

/// A column: its title and its least width, in characters.
pub(super) type Column = (&'static str, usize);

/// Draws a table: a blank line, the table, and a blank line whose end is missing. A title stands
/// above. Without rows there is nothing, not even the title.
pub(super) fn table(title: Option<&str>, columns: &[Column], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let cells: Vec<Vec<Vec<String>>> =
        rows.iter().map(|row| row.iter().map(|cell| cell.lines().map(str::to_owned).collect()).collect()).collect();
    let width = |(index, (_, least)): (usize, &Column)| {
        let lines = cells.iter().filter_map(|row| row.get(index)).flatten();
        lines.map(|line| line.chars().count()).max().unwrap_or(0).max(*least)
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(width).collect();
    let border: String = widths.iter().map(|width| format!("+{}", "-".repeat(*width))).collect::<String>() + "+\n";
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let mut out = title.map_or_else(|| "\n".to_owned(), |title| format!("{title}\n\n"));
    out += &border;
    out += &line(&titles, &widths);
    out += &border;
    for row in &cells {
        for index in 0..row.iter().map(Vec::len).max().unwrap_or(0) {
            let parts: Vec<&str> = row.iter().map(|cell| cell.get(index).map_or("", String::as_str)).collect();
            out += &line(&parts, &widths);
        }
    }
    out += &border;
    out
}

fn line(cells: &[&str], widths: &[usize]) -> String {
    let centred = cells.iter().zip(widths).map(|(cell, width)| centred(cell, *width));
    centred.fold("|".to_owned(), |line, cell| line + &cell + "|") + "\n"
}

/// Centres a text. An odd blank is on the right.
fn centred(text: &str, width: usize) -> String {
    let chars: String = text.chars().take(width).collect();
    let blanks = width - chars.chars().count();
    format!("{}{chars}{}", " ".repeat(blanks / 2), " ".repeat(blanks - blanks / 2))
}

/// Names with commas between them, in lines that fit a width. Within a line the order is the
/// reverse of the alphabet, as in Riak.
pub(super) fn wrapped<'a>(names: impl IntoIterator<Item = &'a str>, width: usize) -> String {
    let mut sorted: Vec<&str> = names.into_iter().collect();
    sorted.sort_unstable();
    let chars = |name: &str| name.chars().count();
    let mut lines: Vec<Vec<&str>> = Vec::new();
    for name in sorted {
        match lines.last_mut() {
            Some(line) if chars(name) + line.iter().map(|other| chars(other) + 2).sum::<usize>() + 2 <= width => {
                line.insert(0, name);
            }
            _ => lines.push(vec![name]),
        }
    }
    lines.iter().map(|line| line.join(", ")).collect::<Vec<_>>().join(",\n")
}

/// A text that a cell shows as one line: control characters are escaped.
pub(super) fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_shown(&mut out, c));
    out
}

/// Options as Riak prints them, which is a term of Erlang.
pub(super) fn options_term<'a>(options: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let string = |text: &str| match text {
        "" => "[]".to_owned(),
        _ => format!("\"{}\"", cell(&text.replace('\\', "\\\\").replace('"', "\\\""))),
    };
    let pairs: Vec<String> =
        options.into_iter().map(|(name, value)| format!("{{{},{}}}", string(name), string(value))).collect();
    format!("[{}]", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_as_recorded() {
        let four = ["riak_kv.get", "riak_core.set_bucket", "riak_kv.list_keys", "riak_kv.mapreduce"];
        let recorded = "riak_kv.get, riak_core.set_bucket,\nriak_kv.mapreduce, riak_kv.list_keys";
        assert_eq!(wrapped(four, 40), recorded);
        assert_eq!(wrapped(["alice", "boss", "nopw"], 20), "nopw, boss, alice");
        assert_eq!(wrapped([], 20), "");
    }

    #[test]
    fn a_cell_cannot_break_the_table() {
        let rows = vec![vec![cell("a\n|b|\u{1b}[1m"), "x".repeat(12)]];
        let drawn = table(Some("Title"), &[("one", 5), ("two", 5)], &rows);
        let widths: Vec<usize> = drawn.lines().skip(2).map(|line| line.chars().count()).collect();
        assert!(widths.windows(2).all(|two| two[0] == two[1]), "{drawn}");
        assert_eq!(drawn.lines().count(), 7);
        assert!(drawn.contains("\n|a\\u{a}|b|\\u{1b}[1m|xxxxxxxxxxxx|\n"), "{drawn}");
        assert!(!drawn.contains('\u{1b}'));
    }

    #[test]
    fn options_are_a_term() {
        let options =
            crate::record::Options::from([("a\"\\".to_owned(), "1".to_owned()), ("b".to_owned(), String::new())]);
        assert_eq!(options_term(&options), r#"[{"a\"\\","1"},{"b",[]}]"#);
    }
}
