//! Properties that hold for every draw.

use super::*;
use proptest::prelude::*;

/// One generator of each kind that never ends.
const ENDLESS: [&str; 19] = [
    "{uniform_int, 1000}",
    "{uniform_int, 5, 10}",
    "{eightytwenty_int, 1000}",
    "{pareto_int, 1000}",
    "{truncated_pareto_int, 1000}",
    "uuid_v4",
    "{int_to_bin, {uniform_int, 1000}}",
    "{int_to_bin_littleendian, {uniform_int, 1000}}",
    "{{int_to_bin_bigendian, 128}, {uniform_int, 1000}}",
    "{int_to_str, {uniform_int, 1000}}",
    "{str_to_bin, {int_to_str, {uniform_int, 1000}}}",
    "{to_binstr, \"user~10..0w\", {uniform_int, 1000}}",
    "{to_str, \"~12s\", {base64, uuid_v4}}",
    "{base64, {int_to_bin_bigendian, {uniform_int, 1000}}}",
    "{{crypto_hash, sha256}, uuid_v4}",
    "{concat_binary, <<\"user\">>, {concat_binary, uuid_v4, uuid_v4}}",
    "{valgen, {uniform_bin, 10, 20}}",
    "{valgen, {uniform_int, 10, 1000}}",
    "{bin_to_str, {valgen, {fixed_char, 10}}}",
];

const VALUES: [&str; 6] = [
    "{fixed_bin, 100}",
    "{fixed_bin, 100, 7}",
    "{fixed_char, 100}",
    "{exponential_bin, 10, 50}",
    "{uniform_bin, 10, 100}",
    "{uniform_int, 1000}",
];

fn drawn(keys: &str, values: &str, place: Place) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut draw = generators(keys, values).draw(place).unwrap();
    let next = |_| draw.pair().map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap();
    (0..20).map(next).collect()
}

#[test]
fn a_seed_repeats_its_keys_and_values_and_workers_differ() {
    for (keys, values) in ENDLESS.into_iter().zip(VALUES.into_iter().cycle()) {
        let first = drawn(keys, values, place(1, 2));
        assert_eq!(first, drawn(keys, values, place(1, 2)), "{keys} {values}");
        assert_ne!(first, drawn(keys, values, place(2, 2)), "{keys} {values}");
        let other = Place { seed: [1, 2, 3], ..place(1, 2) };
        assert_ne!(first, drawn(keys, values, other), "{keys} {values}");
    }
}

/// The buffers have grown once the longest key was drawn. After that, they are not reallocated.
#[test]
fn drawing_reuses_its_buffers() {
    for (keys, values) in ENDLESS.into_iter().zip(VALUES.into_iter().cycle()) {
        let mut draw = generators(keys, values).draw(place(1, 1)).unwrap();
        let values_may_move = !matches!(values, "{fixed_char, 100}" | "{fixed_bin, 100, 7}" | "{uniform_int, 1000}");
        let at = |draw: &mut Draw| {
            let (key, value) = draw.pair().unwrap();
            let value = if values_may_move { std::ptr::null() } else { value.as_ptr() };
            (key.as_ptr(), value, draw.bytes(100).as_ptr())
        };
        let first = at(&mut draw);
        for _ in 0..1000 {
            assert_eq!(at(&mut draw), first, "{keys} {values}");
        }
    }
}

#[test]
fn values_are_slices_of_one_pool_that_workers_share() {
    let all = generators("{uniform_int, 10}", "{fixed_bin, 100}");
    let (mut lowest, mut highest) = (usize::MAX, 0);
    for worker in 1..=4 {
        let mut draw = all.draw(place(worker, 4)).unwrap();
        for _ in 0..1000 {
            let at = draw.value().as_ptr() as usize;
            (lowest, highest) = (lowest.min(at), highest.max(at + 100));
        }
    }
    assert!(highest - lowest <= small().source_bytes, "{}", highest - lowest);
}

#[test]
fn generators_go_to_other_threads() {
    fn sent<T: Send + Sync + Clone>(_: &T) {}
    fn moved<T: Send>(_: &T) {}
    let all = generators("uuid_v4", "{fixed_bin, 1}");
    sent(&all);
    moved(&all.draw(place(1, 1)).unwrap());
}

#[test]
fn keys_are_what_their_terms_say() {
    for (text, key) in [
        ("<<\"constant\">>", b"constant".as_slice()),
        ("\"constant\"", b"constant"),
        ("[107, 101, 121]", b"key"),
        ("{uniform_int, 1}", b"1"),
        ("{uniform_int, 42, 1}", b"42"),
        ("{int_to_bin, {uniform_int, 258, 1}}", &[0, 0, 1, 2]),
        ("{int_to_bin_bigendian, {uniform_int, 258, 1}}", &[0, 0, 1, 2]),
        ("{int_to_bin_littleendian, {uniform_int, 258, 1}}", &[2, 1, 0, 0]),
        ("{{int_to_bin_bigendian, 64}, {uniform_int, 258, 1}}", &[0, 0, 0, 0, 0, 0, 1, 2]),
        ("{{int_to_bin_littleendian, 16}, {uniform_int, 258, 1}}", &[2, 1]),
        ("{{int_to_bin_bigendian, 8}, {uniform_int, 258, 1}}", &[2]),
        ("{int_to_str, {uniform_int, 42, 1}}", b"42"),
        ("{str_to_bin, {int_to_str, {uniform_int, 42, 1}}}", b"42"),
        ("{to_binstr, \"~10..0w\", {uniform_int, 42, 1}}", b"0000000042"),
        ("{to_binstr, <<\"u~p\">>, {uniform_int, 42, 1}}", b"u42"),
        ("{to_str, \"[~6s]\", {int_to_str, {uniform_int, 42, 1}}}", b"[    42]"),
        ("{to_str, \"~w\", <<\"hi\">>}", b"<<104,105>>"),
        ("{to_str, \"~w\", \"hi\"}", b"[104,105]"),
        ("{base64, <<\"hello\">>}", b"aGVsbG8="),
        ("{base64, \"hello\"}", b"aGVsbG8="),
        ("{base64, {{crypto_hash, md5}, <<\"\">>}}", b"1B2M2Y8AsgTpgAmY7PhCfg=="),
        ("{concat_binary, <<\"a\">>, {concat_binary, {base64, <<\"hello\">>}, <<\"z\">>}}", b"aaGVsbG8=z"),
        ("{valgen, {fixed_bin, 3, 120}}", b"xxx"),
        ("{int_to_str, {valgen, {uniform_int, 41, 42}}}", b"42"),
    ] {
        let mut draw = keys_of(text);
        for _ in 0..2 {
            assert_eq!(draw.key(), Ok(key), "{text}");
        }
    }
}

#[test]
fn values_are_what_their_terms_say() {
    assert_eq!(values_of("{fixed_bin, 3, 255}").value(), [255; 3]);
    assert_eq!(values_of("{fixed_bin, 0}").value(), b"");
    assert_eq!(values_of("{fixed_bin, 8000}").value().len(), 8000);
    assert_eq!(values_of("{uniform_int, 41, 42}").value(), b"42");
    let mut draw = values_of("{fixed_char, 1000}");
    assert!(draw.value().iter().all(|byte| (32..=126).contains(byte)));
    let first = draw.value().to_vec();
    assert_ne!(draw.value(), first);
}

#[test]
fn a_blob_file_stands_in_for_pools_and_small_pools_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("blob");
    std::fs::write(&path, b"0123456789").unwrap();
    let settings = PoolSettings { blob_file: Some(path.clone()), ..small() };
    let keys = key_spec("{uniform_int, 10}").unwrap();
    for values in ["{fixed_bin, 3}", "{semi_compressible, 3, 1, 1, 0.5}"] {
        let all = Generators::new(&keys, &value_spec(values).unwrap(), &settings).unwrap();
        let value = all.draw(place(1, 1)).unwrap().value().to_vec();
        assert!(b"0123456789".windows(value.len()).any(|part| part == value), "{values}: {value:?}");
        assert!(all.warnings().is_empty());
    }
    let all = Generators::new(&keys, &value_spec("{fixed_bin, 11}").unwrap(), &settings).unwrap();
    assert_eq!(all.draw(place(1, 1)).unwrap().value(), b"0123456789");
    let warnings = all.warnings();
    assert!(warnings[0].contains("11 bytes") && warnings[0].contains("10 bytes"), "{warnings:?}");
    std::fs::write(&path, b"").unwrap();
    let error = Generators::new(&keys, &value_spec("{fixed_bin, 3}").unwrap(), &settings).unwrap_err().to_string();
    assert!(error.starts_with("value_generator_blob_file: ") && error.contains("empty"), "{error}");
}

#[test]
fn spaces_and_descriptions_tell_what_comes() {
    for (text, space, words) in [
        ("{uniform_int, 100000}", Some(100_000), "integers from 1 to 100,000, uniformly distributed"),
        ("{uniform_int, 7, 10}", Some(10), "integers from 7 to 16, uniformly distributed"),
        (
            "{eightytwenty_int, 60000000}",
            Some(60_000_000),
            "integers from 1 to 60,000,000, four of five draws from the lowest fifth",
        ),
        (
            "{truncated_pareto_int, 1000}",
            Some(1001),
            "Pareto distributed integers from 0, about four of five below 200, what is above 1,000 as 1,000",
        ),
        ("{pareto_int, 1000}", None, "Pareto distributed integers from 0, about four of five below 200, without end"),
        (
            "{int_to_bin_bigendian, {partitioned_sequential_int, 1000}}",
            Some(1000),
            "the integers from 0 to 999 in order, split among the workers, then the end, as 32 bits big endian",
        ),
        (
            "{{int_to_bin_littleendian, 8}, {uniform_int, 1000}}",
            Some(256),
            "integers from 1 to 1,000, uniformly distributed, as 8 bits little endian",
        ),
        (
            "{{int_to_bin_bigendian, 1024}, {pareto_int, 1000}}",
            None,
            "Pareto distributed integers from 0, about four of five below 200, without end, as 1024 bits big endian",
        ),
        (
            "{concat_binary, <<\"user\">>, {to_binstr, \"~10..0w\", {uniform_int, 10}}}",
            Some(10),
            "always \"user\", followed by integers from 1 to 10, uniformly distributed, printed as \"~10..0w\"",
        ),
        (
            "{base64, {{crypto_hash, sha}, {str_to_bin, {int_to_str, {uniform_int, 10}}}}}",
            Some(10),
            "integers from 1 to 10, uniformly distributed, as decimal text, hashed with sha, in base64",
        ),
        ("uuid_v4", None, "random UUIDs of 16 bytes"),
    ] {
        let spec = key_spec(text).unwrap();
        assert_eq!((spec.space(), spec.describe().as_str()), (space, words), "{text}");
        assert_eq!(*spec.term(), Term::parse(text).unwrap());
    }
    for (text, mean, words) in [
        ("{fixed_bin, 1}", Some(1.0), "1 byte, random bytes"),
        ("{fixed_bin, 8000, 0}", Some(8000.0), "8,000 bytes, each of them 0"),
        ("{fixed_char, 50}", Some(50.0), "50 bytes, random printable characters"),
        ("{uniform_bin, 1000, 2000}", Some(1500.5), "1,001 to 2,000 bytes, uniformly distributed, random bytes"),
        ("{uniform_int, 10}", None, "integers from 1 to 10, uniformly distributed"),
    ] {
        let spec = value_spec(text).unwrap();
        assert_eq!((spec.mean_bytes(), spec.describe().as_str()), (mean, words), "{text}");
        assert_eq!(*spec.term(), Term::parse(text).unwrap());
    }
    assert_eq!(
        value_spec("{semi_compressible, 8000, 8000, 10, 0.1}").unwrap().describe(),
        "8,000 bytes and more, exponentially distributed with a mean of 8000 on top, 10 times that in 10 % of cases, \
         bytes that zlib shrinks by about a third"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn integers_stay_in_their_ranges(max in 5_i64..i64::MAX / 2, start in -1000_i64..1000, worker in 1_usize..100) {
        let ranges = [
            (format!("{{uniform_int, {max}}}"), 1, max),
            (format!("{{uniform_int, {start}, {max}}}"), start, start + max - 1),
            (format!("{{eightytwenty_int, {max}}}"), 1, max),
            (format!("{{truncated_pareto_int, {max}}}"), 0, max),
            (format!("{{pareto_int, {max}}}"), 0, i64::MAX),
            (format!("{{valgen, {{uniform_int, {start}, {}}}}}", start + max), start + 1, start + max),
        ];
        for (text, least, most) in ranges {
            let mut draw = generators(&text, "{fixed_bin, 1}").draw(place(worker, 100)).unwrap();
            for _ in 0..100 {
                let n = number(&mut draw);
                prop_assert!((least..=most).contains(&n), "{} of {}", n, text);
            }
        }
    }

    #[test]
    fn sizes_stay_in_their_ranges(min in 0_usize..1000, more in 1_usize..1000, mean in 1_u32..1000) {
        let max = min + more;
        let mut uniform = values_of(&format!("{{uniform_bin, {min}, {max}}}"));
        let mut exponential = values_of(&format!("{{exponential_bin, {min}, {mean}}}"));
        for _ in 0..100 {
            prop_assert!((min + 1..=max).contains(&uniform.value().len()));
            prop_assert!(exponential.value().len() >= min);
        }
    }
}
