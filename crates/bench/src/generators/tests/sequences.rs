//! Tests of generators that end, and of the point from which they continue.

use super::*;

#[test]
fn each_worker_goes_through_all_of_sequential_int() {
    let all_workers = generators("{sequential_int, 1000}", "{fixed_bin, 1}");
    let expected: Vec<_> = (0..1000).map(|n: u32| n.to_string()).collect();
    for worker in 1..=3 {
        let mut draw = all_workers.draw(place(worker, 3)).unwrap();
        assert_eq!(all(&mut draw), expected);
        assert_eq!(draw.key(), Err(Exhausted));
        assert_eq!(draw.pair(), Err(Exhausted));
    }
    assert!(all_workers.warnings()[0].contains("partitioned_sequential_int"));
}

#[test]
fn partitions_give_everything_once() {
    for (text, first, count) in
        [("{partitioned_sequential_int, 1003}", 0, 1003), ("{partitioned_sequential_int, -5, 7}", -5, 7)]
    {
        for concurrent in [1, 2, 3, 10, 100] {
            let workers = generators(text, "{fixed_bin, 1}");
            assert_eq!(workers.warnings(), [""; 0]);
            let mut draws = (1..=concurrent).map(|worker| workers.draw(place(worker, concurrent)).unwrap());
            let keys: Vec<_> = draws.by_ref().flat_map(|mut draw| all(&mut draw)).collect();
            let expected: Vec<_> = (first..first + count).map(|n: i32| n.to_string()).collect();
            assert_eq!(keys, expected, "{text} of {concurrent}");
        }
    }
}

#[test]
fn a_counter_inside_other_generators_ends_them() {
    let mut draw = keys_of("{concat_binary, <<\"u\">>, {to_binstr, \"~2..0w\", {sequential_int, 3}}}");
    assert_eq!(all(&mut draw), ["u00", "u01", "u02"]);
    assert_eq!(draw.key(), Err(Exhausted));
}

#[test]
fn a_run_goes_on_where_the_last_one_wrote_its_state() {
    let dir = tempfile::tempdir().unwrap();
    let settings = PoolSettings { state_dir: Some(dir.path().join("state")), ..small() };
    let draw = |text, worker| {
        let spec = (key_spec(text).unwrap(), value_spec("{fixed_bin, 1}").unwrap());
        Generators::new(&spec.0, &spec.1, &settings).unwrap().draw(place(worker, 2)).unwrap()
    };
    let mut first = draw("{partitioned_sequential_int, 10000, 4000}", 2);
    for n in 12_000..13_000 {
        assert_eq!(number(&mut first), n);
    }
    // Worker 2 saved 900, the last number whose remainder modulo 500 is 400.
    assert_eq!(number(&mut draw("{partitioned_sequential_int, 10000, 4000}", 2)), 12_900);
    assert_eq!(number(&mut draw("{partitioned_sequential_int, 10000, 4000}", 1)), 10_000);
    assert_eq!(number(&mut draw("{sequential_int, 901}", 2)), 900);
    assert_eq!(number(&mut draw("{sequential_int, 899}", 2)), 0);
}

#[test]
fn states_that_cannot_be_used_stop_the_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("1"), b"no term").unwrap();
    let spec = (key_spec("{sequential_int, 10}").unwrap(), value_spec("{fixed_bin, 1}").unwrap());
    let settings = PoolSettings { state_dir: Some(dir.path().to_owned()), ..small() };
    let all_workers = Generators::new(&spec.0, &spec.1, &settings).unwrap();
    let error = all_workers.draw(place(1, 1)).unwrap_err().to_string();
    assert!(error.starts_with("sequential_int_state_dir: "), "{error}");
    let settings = PoolSettings { state_dir: Some(dir.path().join("1/below")), ..small() };
    let error = Generators::new(&spec.0, &spec.1, &settings).unwrap_err().to_string();
    assert!(error.contains("must be a directory"), "{error}");
}

#[test]
fn workers_share_the_lines_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys");
    std::fs::write(&path, "a\nb\nc\nd\n").unwrap();
    let path = path.display();
    let workers = generators(&format!("{{file_line_bin, \"{path}\", stop}}"), "{fixed_bin, 1}");
    let (mut one, mut two) = (workers.draw(place(1, 2)).unwrap(), workers.draw(place(2, 2)).unwrap());
    assert_eq!(one.key(), Ok(b"a".as_slice()));
    assert_eq!(two.key(), Ok(b"b".as_slice()));
    assert_eq!(all(&mut one), ["c", "d"]);
    assert_eq!(two.key(), Err(Exhausted));
    for text in [format!("{{file_line_bin, \"{path}\"}}"), format!("{{file_line_bin, \"{path}\", repeat}}")] {
        let mut draw = keys_of(&text);
        for key in ["a", "b", "c", "d", "a"] {
            assert_eq!(draw.key(), Ok(key.as_bytes()), "{text}");
        }
    }
}
