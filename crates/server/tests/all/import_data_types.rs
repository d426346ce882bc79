//! Values of data types as Riak stores them, imported and then read and updated through the
//! interface for data types. All bytes of objects and values are written here by hand, from the
//! formats in docs/riak/backends.md §7 and docs/riak/semantics.md §7, so that an error that writer
//! and reader of the program share does not hide.

use crate::support::{Home, Node, ask, run};
use ombak_riak_files::bitcask::key::encode_v1;
use ombak_riak_files::bitcask::writer::FileWriter;
use ombak_types::Bucket;
use serde_json::{Value, json};

/// Terms in Erlang's external format, without the leading 131.
mod etf {
    pub fn atom(name: &str) -> Vec<u8> {
        [&[100][..], &(name.len() as u16).to_be_bytes(), name.as_bytes()].concat()
    }

    pub fn binary(bytes: impl AsRef<[u8]>) -> Vec<u8> {
        let bytes = bytes.as_ref();
        [&[109][..], &(bytes.len() as u32).to_be_bytes(), bytes].concat()
    }

    pub fn int(number: u64) -> Vec<u8> {
        match number {
            0..=255 => vec![97, number as u8],
            256..=0x7fff_ffff => [&[98][..], &(number as u32).to_be_bytes()].concat(),
            // The digits of a large number come in the other order.
            _ => [&[110, 8, 0][..], &number.to_le_bytes()].concat(),
        }
    }

    pub fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
        [&[104, items.len() as u8][..], &items.concat()].concat()
    }

    pub fn list(items: &[Vec<u8>]) -> Vec<u8> {
        match items {
            [] => vec![106],
            _ => [&[108][..], &(items.len() as u32).to_be_bytes(), &items.concat(), &[106]].concat(),
        }
    }

    /// `[Head|Tail]`, where the tail is a tuple.
    fn cons(head: &[u8], tail: &[u8]) -> Vec<u8> {
        [&[108, 0, 0, 0, 1][..], head, tail].concat()
    }

    /// Erlang's record `dict` with tuples as its values. In which of the sixteen slots a key lies
    /// follows from its hash in Erlang; a reader walks through all.
    pub fn dict(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        dict_of(&pairs.iter().map(|(key, value)| cons(key, value)).collect::<Vec<_>>())
    }

    /// The same with lists as its values: `[Key|Items]` is one longer list.
    pub fn dict_of_lists(pairs: &[(Vec<u8>, Vec<Vec<u8>>)]) -> Vec<u8> {
        dict_of(&pairs.iter().map(|(key, items)| list(&[&[key.clone()][..], items].concat())).collect::<Vec<_>>())
    }

    fn dict_of(entries: &[Vec<u8>]) -> Vec<u8> {
        let slots: Vec<Vec<u8>> =
            (0..16).map(|slot| list(&entries.get(slot).cloned().into_iter().collect::<Vec<_>>())).collect();
        let empty = tuple(&vec![list(&[]); 16]);
        let numbers = [entries.len() as u64, 16, 16, 8, 80, 48].map(int);
        tuple(&[&[atom("dict")][..], &numbers, &[empty, tuple(&[tuple(&slots)])]].concat())
    }

    /// A whole term.
    pub fn plain(term: &[u8]) -> Vec<u8> {
        [&[131][..], term].concat()
    }

    /// A whole term as Riak writes most values of data types: 131, 80, the length, and a stream of
    /// zlib. This stream has one block, which is stored as it is.
    pub fn compressed(term: &[u8]) -> Vec<u8> {
        let length = term.len() as u16;
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in term {
            a = (a + u32::from(*byte)) % 65521;
            b = (b + a) % 65521;
        }
        let block = [&[1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), term].concat();
        let checksum = ((b << 16) | a).to_be_bytes();
        [&[131, 80][..], &(term.len() as u32).to_be_bytes(), &[0x78, 0x01], &block, &checksum].concat()
    }
}

use etf::{atom, binary, compressed, dict, dict_of_lists, int, list, plain, tuple};

/// The id of a vnode: eight bytes and its epoch.
const ACTOR: [u8; 12] = *b"\x23\x09\xfe\xf9\xbf\x71\xc6\x85\0\0\0\x01";

fn dot(count: u64) -> Vec<u8> {
    tuple(&[binary(ACTOR), int(count)])
}

fn clock(count: u64) -> Vec<u8> {
    list(&[dot(count)])
}

/// A stored object of version 1 with one value.
fn object(value: &[u8], content_type: &str) -> Vec<u8> {
    let sized = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let tagged = |tag: u8, bytes: &[u8]| sized(&[&[tag], bytes].concat());
    let gregorian_secs = 62_167_219_200 + 1_700_000_000;
    let vclock = list(&[tuple(&[binary(ACTOR), tuple(&[int(7), int(gregorian_secs)])])]);
    // A list of bytes has a form of its own.
    let text = [&[107][..], &(content_type.len() as u16).to_be_bytes(), content_type.as_bytes()].concat();
    let vtag = b"15LOIB06GZjUysvwZmPNf0";
    let meta = [
        &1700_u32.to_be_bytes()[..],
        &0_u32.to_be_bytes(),
        &570_150_u32.to_be_bytes(),
        &[vtag.len() as u8],
        vtag,
        &[0],
        &tagged(1, b"index"),
        &tagged(0, &plain(&list(&[]))),
        &tagged(1, b"content-type"),
        &tagged(0, &plain(&text)),
    ];
    let count = 1_u32.to_be_bytes();
    [&[53, 1][..], &sized(&plain(&vclock)), &count, &tagged(1, value), &sized(&meta.concat())].concat()
}

/// A value of a bucket type with a data type.
fn value(name: &str, tag: u8, version: u8, term: &[u8]) -> Vec<u8> {
    [&[69, 2][..], &(name.len() as u32).to_be_bytes(), name.as_bytes(), &[tag, version], term].concat()
}

fn typed_counter() -> Vec<u8> {
    value("riak_dt_pncounter", 71, 2, &plain(&list(&[tuple(&[binary(ACTOR), int(15), int(2)])])))
}

fn legacy_counter() -> Vec<u8> {
    let half = |count: u64| {
        let term = [&[70, 1][..], &plain(&clock(count))].concat();
        [&(term.len() as u32).to_be_bytes()[..], &term].concat()
    };
    [&[69, 1, 71, 1][..], &half(15), &half(2)].concat()
}

fn set_term() -> Vec<u8> {
    let members = [(binary("apple"), vec![dot(1)]), (binary("pear"), vec![dot(2)])];
    tuple(&[clock(2), dict_of_lists(&members), dict_of_lists(&[])])
}

fn empty_set() -> Vec<u8> {
    tuple(&[list(&[]), dict_of_lists(&[]), dict_of_lists(&[])])
}

fn set() -> Vec<u8> {
    value("riak_dt_orswot", 75, 2, &compressed(&set_term()))
}

fn gset() -> Vec<u8> {
    value("riak_dt_gset", 82, 2, &compressed(&list(&[binary("a"), binary("b")])))
}

/// A map with a field of each type. All of its events are of one vnode.
fn map() -> Vec<u8> {
    let field = |name: &str, module: &str, (count, content): (u64, Vec<u8>), tombstone: Vec<u8>| {
        let contents = list(&[tuple(&[dot(count), content])]);
        (tuple(&[binary(name), atom(module)]), tuple(&[contents, tombstone]))
    };
    let nil = || list(&[]);
    let counter = tuple(&[clock(3), list(&[tuple(&[binary(ACTOR), tuple(&[int(3), int(9), int(4)])])])]);
    let register = |value: &str| tuple(&[binary(value), int(1_700_000_000_000_000)]);
    let flag = tuple(&[clock(5), list(&[dot(5)]), nil()]);
    let city = field("city", "riak_dt_lwwreg", (6, register("Bergen")), tuple(&[binary(""), int(0)]));
    let address = tuple(&[clock(6), dict(&[city]), dict(&[])]);
    let fields = [
        field("visits", "riak_dt_emcntr", (3, counter), tuple(&[nil(), nil()])),
        field("fruits", "riak_dt_orswot", (2, set_term()), empty_set()),
        field("name", "riak_dt_lwwreg", (4, register("Ann")), tuple(&[binary(""), int(0)])),
        field("member", "riak_dt_od_flag", (5, flag), tuple(&[nil(), nil(), nil()])),
        field("address", "riak_dt_map", (6, address), tuple(&[nil(), dict(&[]), dict(&[])])),
    ];
    value("riak_dt_map", 77, 2, &compressed(&tuple(&[clock(6), dict(&fields), dict_of_lists(&[])])))
}

/// A HyperLogLog with these registers, while it is small.
fn hll_in_a_buffer(registers: &[(u64, u8)]) -> Vec<u8> {
    let pairs: Vec<_> = registers.iter().map(|(at, rank)| tuple(&[int(*at), int(u64::from(*rank))])).collect();
    let buffer = tuple(&[atom("buffer"), list(&pairs), int(registers.len() as u64), int(14), int(1536)]);
    hll(&buffer)
}

/// The same when it has grown: six bits for each of 16,384 registers.
fn hll_in_a_block(registers: &[(usize, u8)]) -> Vec<u8> {
    let mut bits = vec![false; 6 << 14];
    for (at, rank) in registers {
        (0..6).for_each(|bit| bits[6 * at + bit] = rank & (32 >> bit) != 0);
    }
    let block: Vec<u8> =
        bits.chunks(8).map(|bits| bits.iter().fold(0, |byte, bit| 2 * byte + u8::from(*bit))).collect();
    hll(&tuple(&[atom("dense"), binary(block), list(&[]), int(0), int(256)]))
}

fn hll(registers: &[u8]) -> Vec<u8> {
    let registers = tuple(&[atom("hyper_binary"), registers.to_vec()]);
    value("riak_kv_hll", 86, 1, &compressed(&tuple(&[atom("hyper"), int(14), registers])))
}

/// A context as Riak 3 gives it to clients of HTTP: the clock of the value in base64.
fn context(count: u64) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in plain(&clock(count)).chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        (0..=three.len()).for_each(|at| text.push(DIGITS[(bits >> (18 - 6 * at)) as usize & 63] as char));
        (three.len()..3).for_each(|_| text.push('='));
    }
    text
}

/// A node that has imported one value of each data type.
fn imported() -> (Home, Node) {
    let home = Home::new("");
    let five: [(usize, u8); 5] = [(0, 1), (1, 63), (77, 2), (8191, 5), (16383, 1)];
    let values = [
        ("counters", "c", typed_counter(), "application/riak_counter"),
        ("sets", "s", set(), "application/riak_set"),
        ("gsets", "g", gset(), "application/riak_gset"),
        ("maps", "m", map(), "application/riak_map"),
        ("hlls", "small", hll_in_a_buffer(&five.map(|(at, rank)| (at as u64, rank))), "application/riak_hll"),
        ("hlls", "large", hll_in_a_block(&five), "application/riak_hll"),
        ("default", "old", legacy_counter(), "application/riak_counter"),
    ];
    let mut file = FileWriter::new(1);
    for (bucket_type, key, value, content_type) in values {
        file.put(
            1_700_000_000,
            &encode_v1(&Bucket::typed(bucket_type, "b"), key.as_bytes()),
            &object(&value, content_type),
        );
    }
    file.save(&home.path().join("riak/0")).expect("write");
    let of = |datatype: &str| json!({ "props": { "datatype": datatype } });
    let types = json!({"counters": of("counter"), "sets": of("set"), "gsets": of("gset"), "maps": of("map"), "hlls": of("hll")});
    std::fs::write(home.path().join("types.json"), types.to_string()).expect("write");
    let report = run(home.path(), &["import", "bitcask", "riak", "--types", "types.json", "--json"]).ok();
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["complete"], &report["keys_new"]), (&json!(true), &json!(7)), "{report}");
    let node = home.start();
    (home, node)
}

fn body_of(answer: &str) -> &str {
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    answer.split_once("\r\n\r\n").expect("a body").1
}

fn read(node: &Node, bucket_type: &str, key: &str) -> Value {
    let answer = ask(node, "GET", &format!("/types/{bucket_type}/buckets/b/datatypes/{key}"), "", "");
    serde_json::from_str(body_of(&answer)).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

fn update(node: &Node, bucket_type: &str, key: &str, operation: &Value) {
    let path = format!("/types/{bucket_type}/buckets/b/datatypes/{key}");
    body_of(&ask(node, "POST", &path, "Content-Type: application/json\r\n", &operation.to_string()));
}

#[test]
fn counters_go_on_from_what_riak_counted() {
    let (_home, node) = imported();
    assert_eq!(read(&node, "counters", "c")["value"], 13);
    update(&node, "counters", "c", &json!({"decrement": 3}));
    update(&node, "counters", "c", &json!(1));
    assert_eq!(read(&node, "counters", "c")["value"], 11);
    let old = |method: &str, body: &str| ask(&node, method, "/buckets/b/counters/old", "", body);
    // Riak kept such counters in buckets with siblings only.
    let props = r#"{"props":{"allow_mult":true}}"#;
    body_of(&ask(&node, "PUT", "/buckets/b/props", "Content-Type: application/json\r\n", props));
    assert_eq!(body_of(&old("GET", "")), "13");
    body_of(&old("POST", "4"));
    assert_eq!(body_of(&old("GET", "")), "17");
    node.stop();
}

#[test]
fn members_of_sets_are_there_and_a_context_of_riak_removes_what_it_has_seen() {
    let (_home, node) = imported();
    let found = read(&node, "sets", "s");
    assert_eq!((&found["value"], &found["context"]), (&json!(["apple", "pear"]), &json!(context(2))));
    // A client that read the set before pear was added.
    update(&node, "sets", "s", &json!({"remove": "pear", "context": context(1)}));
    assert_eq!(read(&node, "sets", "s")["value"], json!(["apple", "pear"]));
    update(&node, "sets", "s", &json!({"remove": "pear", "add": "fig", "context": context(2)}));
    assert_eq!(read(&node, "sets", "s")["value"], json!(["apple", "fig"]));
    update(&node, "sets", "s", &json!({"remove": "apple"}));
    assert_eq!(read(&node, "sets", "s")["value"], json!(["fig"]));

    assert_eq!(read(&node, "gsets", "g")["value"], json!(["a", "b"]));
    update(&node, "gsets", "g", &json!({"add": "c"}));
    assert_eq!(read(&node, "gsets", "g")["value"], json!(["a", "b", "c"]));
    node.stop();
}

#[test]
fn maps_have_all_their_fields_and_change_field_by_field() {
    let (_home, node) = imported();
    let found = read(&node, "maps", "m");
    let value = json!({
        "visits_counter": 5, "fruits_set": ["apple", "pear"], "name_register": "Ann", "member_flag": true,
        "address_map": {"city_register": "Bergen"},
    });
    assert_eq!((&found["value"], &found["context"]), (&value, &json!(context(6))));
    let changes = json!({
        "visits_counter": 2, "fruits_set": {"remove": "apple"}, "name_register": "Bea", "member_flag": "disable",
        "address_map": {"update": {"street_register": "Bryggen"}},
    });
    update(&node, "maps", "m", &json!({"update": changes, "context": context(6)}));
    let value = json!({
        "visits_counter": 7, "fruits_set": ["pear"], "name_register": "Bea", "member_flag": false,
        "address_map": {"city_register": "Bergen", "street_register": "Bryggen"},
    });
    assert_eq!(read(&node, "maps", "m")["value"], value);
    // A client that read the map before the address was there, and one that has seen it.
    update(&node, "maps", "m", &json!({"remove": ["name_register"], "context": context(3)}));
    assert_eq!(read(&node, "maps", "m")["value"]["name_register"], "Bea");
    // The set was changed after it: what the client has seen of it goes, and the field stays.
    update(&node, "maps", "m", &json!({"remove": ["fruits_set"], "context": context(6)}));
    let now = read(&node, "maps", "m");
    assert_eq!(now["value"]["fruits_set"], json!([]));
    update(&node, "maps", "m", &json!({"remove": ["fruits_set"], "context": now["context"]}));
    assert_eq!(read(&node, "maps", "m")["value"].get("fruits_set"), None);
    node.stop();
}

#[test]
fn hyperloglogs_are_read_in_both_forms_and_count_on() {
    let (_home, node) = imported();
    for key in ["small", "large"] {
        assert_eq!(read(&node, "hlls", key)["value"], 5, "{key}");
        update(&node, "hlls", key, &json!({"add_all": ["ann", "bob", "cyd"]}));
        assert_eq!(read(&node, "hlls", key)["value"], 8, "{key}");
    }
    node.stop();
}
