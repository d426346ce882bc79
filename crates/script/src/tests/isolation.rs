//! What functions cannot reach, and what they can leave behind.

use super::*;

#[test]
fn sessions_share_nothing() {
    let mut spoiler = session(
        "function() { leaked = 1; Riak.mapValues = null; Array.prototype.map = null; \
         Object.prototype.evil = 1; JSON.parse = function() { return 'forged'; }; Symbol.for('x').y; return [1]; }",
    );
    spoiler.map("null", "null", "null").unwrap();
    let seen = result_of(
        "function() { return [typeof leaked, typeof Riak.mapValues, typeof [].map, ({}).evil === undefined, \
         JSON.parse('1')]; }",
    );
    assert_eq!(seen, r#"["undefined","function","function",true,1]"#);
}

#[test]
fn overwritten_globals_do_not_change_what_crosses() {
    let source = "function(v) { JSON.parse = JSON.stringify = null; Object.prototype.toJSON = undefined; \
                  Array.prototype.push = null; Function.prototype.call = null; return [v]; }";
    let mut map = session(source);
    for _ in 0..2 {
        assert_eq!(map.map(r#"{"a":[1]}"#, "null", "null").unwrap(), r#"[{"a":[1]}]"#);
    }
}

#[test]
fn what_a_call_leaves_behind_ends_with_a_reset() {
    let source = "function(v) { if (typeof count === 'undefined') count = 0; return [++count]; }";
    let mut map = session(source);
    let mut next = || values_in(&map.map("null", "null", "null").unwrap())[0].as_u64().unwrap();
    assert_eq!((next(), next()), (1, 2));
    map.reset();
    assert_eq!(map.map("null", "null", "null").unwrap(), "[1]");
}

#[test]
fn a_limit_that_is_met_resets_the_session() {
    let source = "function(v) { if (typeof count === 'undefined') count = 0; ++count; \
                  if (v === 'hang') for (;;); \
                  if (v === 'fill') { all = []; for (;;) all.push('x'.repeat(1000)); } \
                  if (v === 'deep') { var f = function() { return f() + 1; }; f(); } \
                  return [count]; }";
    for (how, kind) in [("hang", ErrorKind::Time), ("fill", ErrorKind::Memory), ("deep", ErrorKind::Stack)] {
        let mut map = session(source);
        assert_eq!(map.map("null", "null", "null").unwrap(), "[1]");
        assert_eq!(map.map(&format!("\"{how}\""), "null", "null").unwrap_err().kind, kind);
        assert_eq!(map.map("null", "null", "null").unwrap(), "[1]", "after {how}");
    }
}

#[test]
fn there_is_no_way_out() {
    for name in [
        "require",
        "process",
        "std",
        "os",
        "print",
        "console",
        "load",
        "loadScript",
        "read",
        "fetch",
        "Atomics",
        "SharedArrayBuffer",
        "WeakRef",
        "FinalizationRegistry",
        "performance",
        "queueMicrotask",
        "setTimeout",
        "XMLHttpRequest",
        "WebAssembly",
        "scriptArgs",
        "navigator",
    ] {
        assert_eq!(result_of(&format!("function() {{ return [typeof {name}]; }}")), r#"["undefined"]"#, "{name}");
    }
    assert_eq!(kind_of("import.meta"), ErrorKind::Syntax);
    // A module that is asked for is never loaded: the promise stays unanswered.
    assert_eq!(
        result_of("function() { out = 'no'; import('os').then(function() { out = 'yes'; }); return [out]; }"),
        r#"["no"]"#
    );
}

#[test]
fn only_known_globals_exist() {
    let names = result_of("function() { return Object.getOwnPropertyNames(globalThis).sort(); }");
    let known = [
        "AggregateError",
        "Array",
        "ArrayBuffer",
        "AsyncDisposableStack",
        "BigInt",
        "BigInt64Array",
        "BigUint64Array",
        "Boolean",
        "DataView",
        "Date",
        "DisposableStack",
        "Error",
        "EvalError",
        "Float16Array",
        "Float32Array",
        "Float64Array",
        "Function",
        "Infinity",
        "Int16Array",
        "Int32Array",
        "Int8Array",
        "InternalError",
        "Iterator",
        "JSON",
        "Map",
        "Math",
        "NaN",
        "Number",
        "Object",
        "Promise",
        "Proxy",
        "RangeError",
        "ReferenceError",
        "Reflect",
        "RegExp",
        "Riak",
        "RiakHelper",
        "Set",
        "String",
        "SuppressedError",
        "Symbol",
        "SyntaxError",
        "TypeError",
        "URIError",
        "Uint16Array",
        "Uint32Array",
        "Uint8Array",
        "Uint8ClampedArray",
        "WeakMap",
        "WeakSet",
        "atob",
        "btoa",
        "decodeURI",
        "decodeURIComponent",
        "ejsLog",
        "encodeURI",
        "encodeURIComponent",
        "escape",
        "eval",
        "globalThis",
        "isFinite",
        "isNaN",
        "parseFloat",
        "parseInt",
        "undefined",
        "unescape",
    ];
    assert_eq!(names, serde_json::to_string(&known[..]).unwrap(), "a new global has to be looked at first");
}
