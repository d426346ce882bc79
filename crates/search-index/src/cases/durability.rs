//! What is there after a crash, and after damage.

use super::harness::{HASH, TestIndex, ask, keys, open};
use crate::{Index, IndexChange, IndexError, WRITERS_BYTES_DEFAULT, WriterPool};
use ombak_search::schema::default_schema;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn all_keys(index: &Index) -> Vec<String> {
    keys(&ask(index, &[("q", "*:*"), ("sort", "_yz_rk asc"), ("rows", "1000")], [0], &|| false).unwrap())
}

#[test]
fn an_index_is_as_its_last_write_left_it() {
    let mut index = TestIndex::of(&[("a", r#"{"v_s":"x"}"#)]);
    index.get().write(vec![index.change(0, 1, "b", &[r#"{"v_s":"y"}"#])], "place 2 \u{e9}").unwrap();
    let (path, schema) = (index.path(), index.schema.clone());
    drop(index.index.take());
    let again = open(&path, &schema).unwrap();
    assert_eq!(again.place(), "place 2 \u{e9}");
    assert_eq!(all_keys(&again), ["a", "b"]);
    again.write(vec![IndexChange::Remove { key: b"a".to_vec() }], "3").unwrap();
    assert_eq!(all_keys(&again), ["b"]);
}

#[test]
fn copies_between_commits_have_the_documents_of_their_place() {
    let index = TestIndex::new();
    for step in 0..12_u32 {
        let put = index.change(0, 1, &format!("k{step:02}"), &[r#"{"v_s":"x"}"#]);
        index.get().write(vec![put], &step.to_string()).unwrap();
        if step % 3 == 0 {
            let image = index.dir.path().join(format!("image{step}"));
            copy(&index.path(), &image);
            let again = open(&image, &index.schema).unwrap();
            assert_eq!(again.place(), step.to_string());
            assert_eq!(all_keys(&again).len(), step as usize + 1);
        }
    }
}

/// The variable that makes a test of this program the writer that is killed.
const WRITER_DIR: &str = "OMBAK_SEARCH_INDEX_WRITER_DIR";

/// A write of the writer: step n has the keys from n to n + 2 and no other.
fn step(index: &TestIndex, number: u64) -> Vec<IndexChange> {
    let mut changes: Vec<IndexChange> = (number..number + 3)
        .map(|key| index.change(0, 1, &format!("k{key:06}"), &[r#"{"v_t":"some words"}"#]))
        .collect();
    if let Some(before) = number.checked_sub(1) {
        changes.push(IndexChange::Remove { key: format!("k{before:06}").into_bytes() });
    }
    changes
}

#[test]
fn writes_until_it_is_killed() {
    let Ok(dir) = std::env::var(WRITER_DIR) else { return };
    let mut index = TestIndex::new();
    index.index = Some(open(Path::new(&dir), &index.schema).unwrap());
    let from = index.get().place().parse::<u64>().map_or(0, |place| place + 1);
    for number in from.. {
        index.get().write(step(&index, number), &number.to_string()).unwrap();
        println!("written {number}");
    }
}

#[test]
fn a_killed_writer_leaves_its_last_commit_or_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let schema = Arc::new(default_schema().unwrap());
    for round in 0..4_usize {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cases::durability::writes_until_it_is_killed", "--nocapture"])
            .env(WRITER_DIR, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let written = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("written ")?.parse::<u64>().ok());
        // Each round ends at another moment of a write.
        let last = written.take(2 + round * 5).last().unwrap();
        for _ in 0..round * 20_000 {
            std::hint::spin_loop();
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let index = open(&path, &schema).unwrap();
        let place: u64 = index.place().parse().unwrap();
        assert!(place >= last, "{place} {last}");
        let expected: Vec<String> = (place..place + 3).map(|key| format!("k{key:06}")).collect();
        assert_eq!(all_keys(&index), expected);
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| !path.to_string_lossy().ends_with(".lock"));
    files.sort();
    files
}

/// An index with two segments, one with a removed document, whose writer is closed.
fn closed_index() -> TestIndex {
    let mut index = TestIndex::of(&[("a", r#"{"v_s":"x","v_t":"some words"}"#), ("b", r#"{"v_i":1}"#)]);
    index.put(&[("c", r#"{"v_s":"x","v_t":"other words"}"#)]);
    index.get().write(vec![IndexChange::Remove { key: b"a".to_vec() }], "place").unwrap();
    drop(index.index.take());
    index
}

/// Opens and searches; both can find damage, and neither may panic.
fn use_all(path: &Path, index: &TestIndex) -> Result<Vec<String>, IndexError> {
    let index = open(path, &index.schema)?;
    ask(&index, &[("q", "v_t:words OR v_s:x OR v_i:1")], [0], &|| false)?;
    Ok(all_keys(&index))
}

#[test]
fn missing_files_are_damage() {
    let index = closed_index();
    for (at, file) in files(&index.path()).iter().enumerate() {
        let image = index.dir.path().join(format!("image{at}"));
        copy(&index.path(), &image);
        let name = file.file_name().unwrap();
        fs::remove_file(image.join(name)).unwrap();
        match use_all(&image, &index) {
            Err(IndexError::Damaged(_)) => {}
            // The library's list of files to clean up.
            Ok(keys) => assert_eq!((name.to_str().unwrap(), keys), (".managed.json", vec!["b".into(), "c".into()])),
            other => panic!("{name:?}: {other:?}"),
        }
    }
}

#[test]
fn truncated_and_changed_files_are_damage() {
    let index = closed_index();
    let mut at = 0;
    for file in files(&index.path()) {
        let bytes = fs::read(&file).unwrap();
        let name = file.file_name().unwrap();
        let half = bytes[..bytes.len() / 2].to_vec();
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 0x55;
        for wrong in [Vec::new(), half, bytes[..bytes.len() - 1].to_vec(), changed] {
            at += 1;
            let image = index.dir.path().join(format!("image{at}"));
            copy(&index.path(), &image);
            fs::write(image.join(name), &wrong).unwrap();
            let result = use_all(&image, &index);
            let is_text = name.to_string_lossy().ends_with(".json");
            // A change in a text can mean something, and its last character is the end of a line.
            let is_told = matches!(result, Err(IndexError::Damaged(_) | IndexError::OtherSchema(_)));
            assert!(is_told || is_text, "{name:?} with {} of {} bytes: {result:?}", wrong.len(), bytes.len());
        }
    }
}

#[test]
fn another_schema_or_format_is_told() {
    let index = closed_index();
    let pool = || WriterPool::new(WRITERS_BYTES_DEFAULT);
    let other = Index::open(&index.path(), index.schema.clone(), HASH + 1, pool());
    assert!(matches!(other, Err(IndexError::OtherSchema(_))), "{other:?}");
    let file = index.path().join("index.ombak");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("index ", "index 9", 1)).unwrap();
    let other = open(&index.path(), &index.schema);
    assert!(matches!(other, Err(IndexError::OtherSchema(_))), "{other:?}");
}

#[test]
fn a_crash_while_an_index_is_made_leaves_a_new_one() {
    let index = closed_index();
    let image = index.dir.path().join("image");
    fs::create_dir(&image).unwrap();
    fs::copy(index.path().join("index.ombak"), image.join("index.ombak")).unwrap();
    let again = open(&image, &index.schema).unwrap();
    assert_eq!((again.place(), all_keys(&again)), (String::new(), vec![]));
}

/// Changes a byte of a file in its place: who has the file open sees it.
fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0xff], at).unwrap();
}

/// Large indexes are not read at their opening, and disks fail later too.
#[test]
fn damage_behind_the_opening_is_no_panic() {
    let mut index = TestIndex::new();
    let json = |n: usize| {
        format!(r#"{{"v_s":"string {n}","v_t":"some words w{n} and w{}","v_is":[{n},{}],"v_b":true}}"#, n / 2, n % 7)
    };
    let changes = (0..400).map(|n| index.change(0, 1, &format!("k{n}"), &[&json(n)])).collect();
    index.get().write(changes, "").unwrap();
    drop(index.index.take());
    let queries = [
        [("q", "v_t:some AND v_t:w1*"), ("sort", "v_s desc"), ("facet", "true"), ("facet.field", "v_s")],
        [
            ("q", "v_t:\"some words\"~2 OR v_is:[3 TO 50]"),
            ("sort", "score desc"),
            ("facet", "true"),
            ("facet.field", "v_is"),
        ],
    ];
    let segment_files: Vec<PathBuf> = files(&index.path())
        .into_iter()
        .filter(|path| !path.to_string_lossy().ends_with(".json") && !path.to_string_lossy().ends_with(".ombak"))
        .collect();
    let mut damaged = 0;
    for file in segment_files {
        let length = fs::metadata(&file).unwrap().len();
        for part in 0..12 {
            let open = open(&index.path(), &index.schema).unwrap();
            let at = length * part / 12;
            flip(&file, at);
            for query in &queries {
                match ask(&open, query, [0], &|| false) {
                    Ok(_) | Err(IndexError::Storage(_)) => {}
                    Err(IndexError::Damaged(_)) => damaged += 1,
                    Err(other) => panic!("{file:?}: {other}"),
                }
            }
            flip(&file, at);
        }
    }
    assert!(damaged > 5, "only {damaged} of the changes were seen");
}
