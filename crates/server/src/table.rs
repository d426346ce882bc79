//! Tables as Riak draws them.

/// A table as Riak draws it: every cell is in the middle of its column.
pub fn table<const COLUMNS: usize>(head: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| {
        let of_rows = rows.iter().map(|row| row[column].chars().count());
        of_rows.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let rule = format!("+{}", widths.iter().map(|width| "-".repeat(*width) + "+").collect::<String>());
    let line = |cells: [&str; COLUMNS]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:^width$}|"));
        format!("|{}", cells.collect::<String>())
    };
    let rows = rows.iter().map(|row| line(std::array::from_fn(|column| row[column].as_str())));
    let lines: Vec<String> = [rule.clone(), line(head), rule.clone()].into_iter().chain(rows).chain([rule]).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_look_like_riaks() {
        let row = ["dev1@127.0.0.1".to_owned(), "22".to_owned(), " 34.4".to_owned()];
        let expected = "\
+--------------+----------+-----+
|     node     |partitions| pct |
+--------------+----------+-----+
|dev1@127.0.0.1|    22    | 34.4|
+--------------+----------+-----+";
        assert_eq!(table(["node", "partitions", "pct"], &[row]), expected);
    }
}
