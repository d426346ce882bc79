//! Tests of pages and pictures from invented runs.

use crate::resources::ResourceSample;
use crate::stats::{Origin, Run, Tally, Window};
use roxmltree::{Document, ParsingOptions};
use std::fs;
use std::path::{Path, PathBuf};
use tiny_skia::Pixmap;

use super::graphics::ColorRole;
use super::{CsvFiles, compare, write};

const WINDOWS: usize = 12;

/// A run with the operations `get` and `put_unique`, whose file is named `put-unique`. Each window
/// of 10 s has 100 of both with latencies from `least_us` up. In the last window a `put_unique`
/// fails.
fn run(name: &str, least_us: u64) -> Run {
    let mut run = Run::new(name, vec!["get".into(), "put-unique".into()]);
    run.terms = vec!["get".into(), "put_unique".into()];
    let mut total = Tally::new(2);
    for window in 1..=WINDOWS {
        let mut tally = Tally::new(2);
        for n in 0..100 {
            tally.done(0, 1, least_us + n);
            tally.done(1, 1, 3 * (least_us + n * window as u64));
            tally.queued(0, n);
            tally.sent(2000);
        }
        if window == WINDOWS {
            tally.failed(1, &"<timeout> & \"more\"".into());
        }
        let elapsed_s = 10.0 * window as f64;
        run.windows.push(Window::new(elapsed_s, 10.0, &tally));
        run.resources.push(ResourceSample {
            elapsed_s,
            cpu_s: Some(elapsed_s * 1.5),
            rss_bytes: Some(64_000_000),
            ..ResourceSample::default()
        });
        total.add(&tally);
    }
    run.totals = Some(Window::new(10.0 * WINDOWS as f64, 10.0 * WINDOWS as f64, &total));
    run.set_errors(total.errors());
    run.origin = Some(Origin {
        config_files: vec!["seeds/one.config".into(), "other.config".into()],
        host: "desk: Linux 6.1 x86_64, 2 processors".into(),
        program: "ombak-bench 0.1.0".into(),
        server: Some("Ombak 0.1.0 (as Riak KV 3.2.3), bitcask".into()),
    });
    run.config = vec!["{riakc_pb_bucket, <<\"test\">>}.".into()];
    run.notes = vec!["search left out: no such feature".into()];
    run
}

/// Writes the files that basho_bench would have written for this run.
fn write_csv(dir: &Path, run: &Run) {
    fs::create_dir_all(dir).unwrap();
    let mut files = CsvFiles::create(dir, &run.operations).unwrap();
    run.windows.iter().for_each(|window| files.window(window).unwrap());
    files.finish(&run.errors).unwrap();
}

fn parsed(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).unwrap_or_else(|error| panic!("{error}\n{html}"))
}

/// The texts of all elements with this name.
fn texts(page: &Document<'_>, tag: &str) -> Vec<String> {
    let text =
        |node: roxmltree::Node<'_, '_>| node.descendants().filter_map(|n| n.text().filter(|_| n.is_text())).collect();
    page.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/1999/xhtml", tag))).map(text).collect()
}

/// The texts in all charts.
fn chart_texts<'a>(page: &'a Document<'_>) -> Vec<&'a str> {
    page.descendants().filter(|node| node.tag_name().name() == "text").filter_map(|node| node.text()).collect()
}

/// The number of pixels of a picture in each of these colours.
fn pixels(path: &Path, roles: &[ColorRole]) -> Vec<usize> {
    let picture = Pixmap::decode_png(&fs::read(path).unwrap()).unwrap();
    let count = |role: &ColorRole| {
        let color = role.light();
        picture.pixels().iter().filter(|pixel| [pixel.red(), pixel.green(), pixel.blue()] == color).count()
    };
    roles.iter().map(count).collect()
}

#[test]
fn a_report_is_a_page_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &run("tuesday", 1000)).unwrap();
    let html = fs::read_to_string(dir.path().join("report.html")).unwrap();
    let page = parsed(&html);

    let named = ["script", "link", "img", "iframe", "object"];
    let elsewhere = page.descendants().find(|node| {
        named.contains(&node.tag_name().name()) || node.attributes().any(|a| ["src", "href"].contains(&a.name()))
    });
    assert!(elsewhere.is_none() && !html.contains("url(") && !html.contains("@import"), "{elsewhere:?}");

    assert_eq!(texts(&page, "h1"), ["one + other"], "the names of the configuration files");
    assert!(texts(&page, "p").contains(&"tuesday".to_owned()));
    assert_eq!(texts(&page, "li"), ["search left out: no such feature"]);
    assert_eq!(texts(&page, "pre"), ["{riakc_pb_bucket, <<\"test\">>}."]);
    let cells = texts(&page, "td");
    for origin in [
        "seeds/one.config, other.config",
        "desk: Linux 6.1 x86_64, 2 processors",
        "ombak-bench 0.1.0",
        "Ombak 0.1.0 (as Riak KV 3.2.3), bitcask",
    ] {
        assert!(cells.iter().any(|cell| cell == origin), "{origin}: {cells:?}");
    }
    let get = ["get", "1,200", "10.0", "0", "1.00", "1.05", "1.05", "1.09", "1.10", "1.10", "1.10", "0.0980", "0.0990"];
    assert!(cells.windows(get.len()).any(|cells| cells == get), "{cells:?}");
    assert!(cells.contains(&"put_unique <timeout> & \"more\"".to_owned()), "{cells:?}");
    assert!(cells.iter().any(|cell| cell.contains("1.50 cores")), "{cells:?}");
}

#[test]
fn a_report_draws_everything_over_time_and_over_volume() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &run("tuesday", 1000)).unwrap();
    let html = fs::read_to_string(dir.path().join("report.html")).unwrap();
    let page = parsed(&html);
    let headings = texts(&page, "h2");
    for heading in [
        "Throughput",
        "99th percentile of latency",
        "Maximum latency",
        "Errors",
        "How late operations began",
        "What the server used",
    ] {
        assert_eq!(headings.iter().filter(|found| *found == heading).count(), 2, "{heading}: {headings:?}");
    }
    let labels = chart_texts(&page);
    for label in
        ["elapsed (s)", "values sent (MB)", "ok", "failed", "get", "put_unique", "median", "ops/s", "ms", "cores"]
    {
        assert!(labels.contains(&label), "{label}: {labels:?}");
    }
}

#[test]
fn charts_take_their_colours_from_the_page_which_has_a_dark_mode() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &run("tuesday", 1000)).unwrap();
    let html = fs::read_to_string(dir.path().join("report.html")).unwrap();
    let page = parsed(&html);
    let style = texts(&page, "style").concat();
    let (light, rest) = style.split_once("@media(prefers-color-scheme:dark)").unwrap();
    let (dark, rules) = rest.split_once('\n').unwrap();
    let shapes = || page.descendants().filter(|node| ["path", "circle", "text"].contains(&node.tag_name().name()));
    assert!(shapes().count() > 100, "{html}");
    for shape in shapes() {
        assert!(["fill", "stroke", "style"].iter().all(|name| shape.attribute(*name).is_none()), "{shape:?}");
        let class = shape.attribute("class").unwrap();
        let (_, color) = class.split_once('-').unwrap();
        let variable = format!("--{color}:#");
        assert!(light.contains(&variable) && dark.contains(&variable), "{class}: {style}");
        assert!(rules.contains(&format!(".{class}{{")), "{class}: {style}");
    }
}

#[test]
fn few_charts_are_drawn_for_wide_and_for_narrow_screens() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &run("tuesday", 1000)).unwrap();
    let html = fs::read_to_string(dir.path().join("report.html")).unwrap();
    let page = parsed(&html);
    let charts = |class: &str| {
        let figures = page.descendants().filter(|node| node.attribute("class") == Some(class));
        let charts = figures.filter_map(|figure| figure.first_element_child());
        charts.map(|chart| (chart.attribute("aria-label"), chart.attribute("viewBox"))).collect::<Vec<_>>()
    };
    let (broad, narrow) = (charts("broad"), charts("narrow"));
    assert!(!broad.is_empty() && broad.len() == narrow.len(), "{broad:?} {narrow:?}");
    for ((broad_label, broad_size), (narrow_label, narrow_size)) in broad.iter().zip(&narrow) {
        assert!(broad_label.is_some() && broad_label == narrow_label, "{broad_label:?} {narrow_label:?}");
        assert!(matches!(*broad_size, Some("0 0 600 270" | "0 0 1200 300")), "{broad_size:?}");
        assert_eq!(*narrow_size, Some("0 0 400 240"));
    }
    let style = texts(&page, "style").concat();
    assert!(style.contains("@media(max-width:44rem){.broad{display:none}.narrow{display:block}"), "{style}");
}

#[test]
fn pictures_have_lines_and_writing_in_them() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &run("tuesday", 1000)).unwrap();
    for name in ["summary.png", "summary_by_volume.png"] {
        let roles = [
            ColorRole::Paper,
            ColorRole::Text,
            ColorRole::Muted,
            ColorRole::Ok,
            ColorRole::Error,
            ColorRole::Line(0),
            ColorRole::Line(1),
            ColorRole::Line(2),
        ];
        let found = pixels(&dir.path().join(name), &roles);
        assert!(found[0] > 1_000_000, "{name}: paper {found:?}");
        assert!(found.iter().all(|count| *count > 500), "{name}: {found:?}");
    }
}

#[test]
fn a_run_that_did_nothing_has_a_report() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &Run::new("nothing", vec!["get".into()])).unwrap();
    let html = fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(chart_texts(&parsed(&html)).contains(&"nothing to draw"), "{html}");
    assert!(dir.path().join("summary.png").exists());
}

#[test]
fn runs_are_compared_with_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut dirs = Vec::new();
    for (name, least_us) in [("fast", 1000), ("slow", 2000)] {
        let results = dir.path().join(name);
        fs::create_dir(&results).unwrap();
        run(name, least_us).save(&results).unwrap();
        dirs.push(results);
    }
    let out = dir.path().join("out");
    let table = compare(&dirs, &out).unwrap();
    let row =
        |what: &str| table.lines().find(|line| line.starts_with(what)).unwrap_or_else(|| panic!("{what}: {table}"));
    let words = |what: &str| row(what).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words("  "), ["one", "+", "other", "fast", "one", "+", "other", "slow", "ratio"]);
    assert_eq!(words("ops/s"), ["ops/s", "20.0", "20.0", "x", "1.00"]);
    assert_eq!(words("failed"), ["failed", "1", "1"]);
    assert_eq!(words("get 99th ms"), ["get", "99th", "ms", "1.10", "2.10", "x", "1.91", "worse"]);
    assert!(row("put_unique 95th ms").ends_with("x 1.53 worse"), "{table}");
    assert!(!table.contains("Warning"), "{table}");

    let html = fs::read_to_string(out.join("compare.html")).unwrap();
    let page = parsed(&html);
    assert!(texts(&page, "td").contains(&"x 1.91 worse".to_owned()));
    assert_eq!(
        chart_texts(&page).iter().filter(|text| **text == "one + other slow").count(),
        2 + 2 * 2 * 2,
        "in each chart, twice"
    );
    let found = pixels(
        &out.join("compare.png"),
        &[ColorRole::Text, ColorRole::Line(0), ColorRole::Line(1), ColorRole::Line(2)],
    );
    assert!(found[..3].iter().all(|count| *count > 500) && found[3] == 0, "{found:?}");
}

#[test]
fn runs_of_other_lengths_and_protocols_are_compared_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let mut dirs = Vec::new();
    for (file, driver, length_s) in
        [("pb.config", "basho_bench_driver_riakc_pb", 90.0), ("http.config", "basho_bench_driver_http_raw", 5.0)]
    {
        let mut run = run(file, 1000);
        run.config.push(format!("driver: {driver}"));
        run.totals.as_mut().unwrap().elapsed_s = length_s;
        run.origin.as_mut().unwrap().config_files = vec![format!("seeds/{file}")];
        dirs.push(dir.path().join(file));
        fs::create_dir(&dirs[dirs.len() - 1]).unwrap();
        run.save(&dirs[dirs.len() - 1]).unwrap();
    }
    let table = compare(&dirs, &dir.path().join("out")).unwrap();
    assert!(table.contains("Warning: the runs differ in length: 90 s, 5.00 s.\n"), "{table}");
    let drivers = "basho_bench_driver_riakc_pb, basho_bench_driver_http_raw";
    assert!(table.contains(&format!("Warning: the runs differ in driver and protocol: {drivers}.\n")), "{table}");
    let head = table.lines().next().unwrap();
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>(),
        ["pb", "http", "ratio"],
        "the configurations name the runs"
    );
}

#[test]
fn directories_of_basho_bench_are_compared_by_their_windows() {
    let dir = tempfile::tempdir().unwrap();
    let (theirs, ours) = (dir.path().join("theirs"), dir.path().join("ours"));
    write_csv(&theirs, &run("theirs", 1000));
    fs::create_dir(&ours).unwrap();
    run("ours", 1000).save(&ours).unwrap();
    let table = compare(&[theirs.clone(), ours.clone()], dir.path()).unwrap();
    for what in ["ops/s", "get mean ms", "put-unique 99th ms", "put-unique max ms"] {
        let row = table.lines().find(|line| line.starts_with(what)).unwrap_or_else(|| panic!("{what}: {table}"));
        assert!(row.ends_with("x 1.00"), "{table}");
    }
    assert!(table.contains("means of the windows'"), "{table}");

    let run = super::basho::load(&theirs, "theirs").unwrap();
    assert_eq!(run.windows.len(), WINDOWS);
    assert_eq!(run.errors[0].reason, "{put_unique,'<timeout> & \"more\"'}");

    fs::write(theirs.join("get_latencies.csv"), "elapsed, window\n10.0, 10.0, 1, none\n").unwrap();
    let error = compare(&[theirs, ours], dir.path()).unwrap_err().to_string();
    assert!(error.contains("get_latencies.csv:2: '10.0, 10.0, 1, none' does not begin with 11 numbers"), "{error}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |dirs: &[PathBuf]| compare(dirs, dir.path()).unwrap_err().to_string();
    assert!(refused(&[dir.path().to_owned()]).contains("two directories"));
    let error = refused(&[dir.path().to_owned(), dir.path().to_owned()]);
    assert!(error.contains("neither run.json nor summary.csv"), "{error}");
}

#[test]
fn runs_that_share_little_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("a/run"), dir.path().join("b/run"));
    write_csv(&one, &run("", 1000));
    let mut other = run("", 1000);
    other.operations[0] = "delete".into();
    write_csv(&two, &other);
    let table = compare(&[one.clone(), two], dir.path()).unwrap();
    assert!(table.contains("Not in all runs, and so not compared: get, delete."), "{table}");
    assert!(table.contains(&one.display().to_string()), "runs called alike keep the way to them: {table}");
}
