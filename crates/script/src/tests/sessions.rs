//! What sessions take and give.

use super::*;
use crate::{LINE_BYTES_MAX, LINES_MAX, PreCommit, SOURCE_BYTES_MAX};
use serde_json::json;

#[test]
fn a_map_function_gets_object_key_data_and_argument() {
    let mut map = session("function(object, keyData, arg) { return [object.key, keyData, arg.n + 1]; }");
    let values = map.map(r#"{"key":"k"}"#, r#""kd""#, r#"{"n":1}"#).unwrap();
    assert_eq!(values, r#"["k","kd",2]"#);
}

#[test]
fn sources_may_be_written_in_several_ways() {
    for source in [
        "function() { return [1]; }",
        "function named() { return [1]; };",
        "() => [1]",
        "function() { return [1]; } // done",
        "\n  function() {\n return [1];\n }  ;\n",
        "(function() { return [1]; })",
        "Riak.reduceSlice && function() { return [1]; }",
    ] {
        assert_eq!(result_of(source), "[1]", "{source}");
    }
    // Riak's users wrote without `var`.
    assert_eq!(result_of("function() { for (i = 0; i < 3; i++); return [i]; }"), "[3]");
}

#[test]
fn errors_have_kind_line_and_source() {
    let error = error_of("function(o) {\n  var x = 1;\n  return [zork.a];\n}");
    assert_eq!(error.kind, ErrorKind::Exception);
    assert_eq!(
        error.to_json(),
        json!({"lineno": 3, "message": "ReferenceError: zork is not defined", "source": "return [zork.a];"})
    );
    assert_eq!(error.to_string(), "ReferenceError: zork is not defined (line 3)");
    let error = error_of("function(o) {\n  return [1\n}");
    assert_eq!((error.kind, error.line), (ErrorKind::Syntax, 3), "{error}");
    assert_eq!(kind_of("5"), ErrorKind::Syntax);
    assert_eq!(kind_of(""), ErrorKind::Syntax);
    assert_eq!(kind_of("function(){ return [1]; }\0"), ErrorKind::Syntax);
    let error = error_of("function() { throw { code: 7 }; }");
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Exception, r#"uncaught exception: {"code":7}"#));
    assert_eq!(error_of("function() { throw 'no'; }").message, "uncaught exception: no");
    assert_eq!(error_of("function() { throw undefined; }").message, "uncaught exception: undefined");
    assert_eq!(kind_of("function() { JSON.parse('{'); }"), ErrorKind::Exception);
    assert!(error_of("function() { throw new Error('x'.repeat(100000)); }").message.len() < 600);
    let error = error_of("function() { var e = new Error('a'); e.stack = 'function:9:1'; throw e; }");
    assert_eq!(error.source, "unknown", "a forged line does not exist");
}

#[test]
fn results_that_are_no_lists_are_errors() {
    for source in [
        "function() {}",
        "function() { return 5; }",
        "function() { return {}; }",
        "function() { return 'x'; }",
        "async function() { return [1]; }",
        "function() { return Symbol('x'); }",
    ] {
        assert_eq!(kind_of(source), ErrorKind::Result, "{source}");
    }
    assert_eq!(kind_of("function() { return [1n]; }"), ErrorKind::Exception);
    assert_eq!(kind_of("function() { var a = []; a.push(a); return a; }"), ErrorKind::Exception);
    assert_eq!(session("function() { return [1]; }").map("{", "1", "1").unwrap_err().kind, ErrorKind::Argument);
}

#[test]
fn pre_commit_hooks_answer_in_three_ways() {
    let answer = |body: &str| session(&format!("function(o) {{ {body} }}")).pre_commit(r#"{"key":"k"}"#);
    assert_eq!(answer("o.x = 1; return o;").unwrap(), PreCommit::Put(json!({"key": "k", "x": 1})));
    assert_eq!(answer("return 'fail';").unwrap(), PreCommit::Fail(None));
    assert_eq!(answer("return {fail: 'too big'};").unwrap(), PreCommit::Fail(Some(json!("too big"))));
    assert_eq!(answer("return {fail: {code: 1}};").unwrap(), PreCommit::Fail(Some(json!({"code": 1}))));
    for bad in ["", "return null;", "return 'ok';", "return true;", "return [o];", "return {fail: 1, key: 2};"] {
        assert_eq!(answer(bad).unwrap_err().kind, ErrorKind::Result, "{bad}");
    }
    assert_eq!(answer("throw new Error('x');").unwrap_err().kind, ErrorKind::Exception);
}

#[test]
fn post_commit_hooks_answer_anything() {
    session("function(o) { return o.key; }").call(&["{}"]).unwrap();
    assert_eq!(session("function(o) { o.a.b; }").call(&["{}"]).unwrap_err().kind, ErrorKind::Exception);
}

#[test]
fn libraries_define_functions() {
    let program = Program::named("App.twice").unwrap();
    let program = program.with_library("var two = 2; const three = 3;").unwrap();
    let program = program.with_library("var App = { twice: function(v) { return [v * two]; } };").unwrap();
    let mut twice = Session::open(program.clone(), limits(), clock()).unwrap();
    assert_eq!(twice.map("21", "null", "null").unwrap(), "[42]");
    let broken = program.with_library("var a = ;").unwrap();
    assert_eq!(Session::open(broken, limits(), clock()).err().unwrap().kind, ErrorKind::Syntax);
}

#[test]
fn messages_are_kept_up_to_a_bound() {
    let mut chatty = session("function(n) { for (var i = 0; i < n; i++) ejsLog('/tmp/x', i); return [ejsLog()]; }");
    assert_eq!(chatty.map("2", "null", "null").unwrap(), "[false]");
    assert_eq!(chatty.take_log().lines, ["/tmp/x: 0", "/tmp/x: 1"]);
    chatty.map("100", "null", "null").unwrap();
    let log = chatty.take_log();
    assert_eq!((log.lines.len(), log.dropped), (LINES_MAX, 100 - LINES_MAX as u64));
    assert_eq!(chatty.take_log().lines.len(), 0);
}

#[test]
fn sources_are_bounded() {
    let long = " ".repeat(SOURCE_BYTES_MAX + 1);
    assert_eq!(Program::source(&long).unwrap_err().kind, ErrorKind::Syntax);
    assert!(Program::named("f").unwrap().with_library(long.as_str()).is_err());
}

#[test]
fn long_messages_names_and_lines_are_cut() {
    let mut chatty = session("function(n) { ejsLog('f', '\u{e9}'.repeat(n)); return []; }");
    chatty.map("1000", "null", "null").unwrap();
    let line = chatty.take_log().lines.remove(0).unwrap();
    assert!(line.len() <= LINE_BYTES_MAX && line.starts_with("f: \u{e9}"), "{} bytes", line.len());
    let error = error_of(&format!("function() {{ var text = '{}'; return zork; }}", "x".repeat(2000)));
    assert!(error.source.starts_with("function() { var text") && error.source.len() < 600, "{error:?}");
    assert!(Program::named(&"n".repeat(255)).is_ok());
    assert_eq!(Program::named(&"n".repeat(256)).unwrap_err().kind, ErrorKind::UnknownFunction);
}

/// The members of an error are code of the function, which may throw in its turn.
#[test]
fn an_error_whose_members_throw_is_told_once() {
    let mut map = session(
        "function(v) { var e = new Error('first'); \
         if (v === 1) Object.defineProperty(e, 'stack', { get: function() { throw new Error('second'); } }); \
         if (v === 1) throw e; \
         if (v === 2) throw { toJSON: function() { throw new Error('third'); } }; \
         return [JSON.parse('[4]')[0]]; }",
    );
    assert_eq!(map.map("1", "null", "null").unwrap_err().message, "Error: first");
    assert_eq!(map.map("3", "null", "null").unwrap(), "[4]");
    assert_eq!(map.map("2", "null", "null").unwrap_err().message, "uncaught exception: a value");
    assert_eq!(map.map("3", "null", "null").unwrap(), "[4]");
}

#[test]
fn a_library_that_does_not_end_ends_with_the_time_of_a_call() {
    let program = Program::named("f").unwrap().with_library("for (;;);").unwrap();
    assert_eq!(Session::open(program, limits(), clock()).err().unwrap().kind, ErrorKind::Time);
    let program = Program::named("Riak.mapValues.x").unwrap();
    let program = program.with_library("Object.defineProperty(Riak, 'mapValues', { get: function() { for (;;); } });");
    assert_eq!(Session::open(program.unwrap(), limits(), clock()).err().unwrap().kind, ErrorKind::Time);
}
