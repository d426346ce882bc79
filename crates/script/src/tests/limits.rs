//! Functions that would take everything.

use super::*;

#[test]
fn endless_functions_end() {
    // Twenty looks at the clock. Opening the session takes none.
    let short = Limits { call_time_max: Duration::from_millis(20), ..limits() };
    for body in [
        "for (;;);",
        "while (true) { try { for (;;); } catch (e) {} finally { for (;;); } }",
        "try { for (;;); } finally { return [1]; }",
        "/(x+x+)+y/.test('x'.repeat(60));",
        "Array.prototype.indexOf.call({ length: 1e15 }, 1);",
        "new Array(4e9).forEach(function() {});",
        "return [{ toJSON: function() { for (;;); } }];",
        "throw { toString: function() { for (;;); }, toJSON: function() { for (;;); } };",
        "throw Object.defineProperty(new Error(), 'message', { get: function() { for (;;); } });",
        "for (;;) eval('1');",
        "'a'.repeat(2e6).indexOf('a'.repeat(1e6) + 'b');",
        "'a'.repeat(2e6).includes('a'.repeat(1e6) + 'b');",
        "Function.prototype.apply.call(function() { for (;;); }, null, []);",
        "new Proxy([], { get: function() { for (;;); } }).x;",
    ] {
        let error = error_within(short, &format!("function() {{ {body} }}"));
        assert_eq!(error.kind, ErrorKind::Time, "{body}");
    }
    assert_eq!(kind_of("(function() { for (;;); })()"), ErrorKind::Time, "while it is compiled");
}

/// A pool that stops sets the clock to its end.
#[test]
fn a_clock_at_its_end_ends_a_call_that_has_just_begun() {
    let now = Rc::new(Cell::new(Duration::ZERO));
    let shown = now.clone();
    let endless = Program::source("function() { for (;;); }").unwrap();
    let mut session = Session::open(endless, limits(), Rc::new(move || shown.get())).unwrap();
    now.set(Duration::MAX);
    assert_eq!(session.map("1", "null", "null").unwrap_err().kind, ErrorKind::Time);
}

#[test]
fn searches_that_would_take_minutes_are_refused() {
    for body in [
        "'a'.repeat(2e6).lastIndexOf('a'.repeat(1e6));",
        "'a'.repeat(2e6).split('a'.repeat(1e6) + 'b');",
        "'a'.repeat(2e6).split({ toString: function() { return 'a'.repeat(1e6) + 'b'; } });",
        "'a'.repeat(2e6).replace('a'.repeat(1e6) + 'b', '');",
        "'a'.repeat(2e6).replaceAll('a'.repeat(1e6) + 'b', '');",
    ] {
        let error = error_of(&format!("function() {{ {body} }}"));
        assert_eq!(error.message, "RangeError: the text to look for is too long", "{body}");
    }
}

#[test]
fn greedy_functions_end() {
    for body in [
        "var a = []; for (;;) a.push('x'.repeat(1000));",
        "var s = 'x'; for (;;) s += s;",
        "return ['x'.repeat(1e8)];",
        "new ArrayBuffer(1e9);",
        "new Array(1e7).fill(0);",
        "var a = []; for (;;) { try { for (;;) a.push({}); } catch (e) { throw e; } }",
        "JSON.stringify(new Array(4e6));",
    ] {
        assert_eq!(kind_of(&format!("function() {{ {body} }}")), ErrorKind::Memory, "{body}");
    }
    let large = format!("\"{}\"", "x".repeat(9 << 20));
    let mut map = session("function(v) { return [v.length]; }");
    assert_eq!(map.map(&large, "null", "null").unwrap_err().kind, ErrorKind::Memory);
    assert_eq!(map.map("\"x\"", "null", "null").unwrap(), "[1]");
}

#[test]
fn deep_functions_end() {
    for body in [
        "(function f() { return f() + 1; })();",
        "var a = []; for (var i = 0; i < 20000; i++) a = [a]; JSON.stringify(a);",
        "JSON.parse('['.repeat(100000));",
        "var f = function() { return new Proxy(f, { apply: f })(); }; f();",
        "[1].toString = function() { return String(this); }; (function g() { [2, 1].sort(g); })();",
    ] {
        assert_eq!(kind_of(&format!("function() {{ {body} }}")), ErrorKind::Stack, "{body}");
    }
}

/// As many calls within calls as fit into the stack of one session do not fit into a smaller one.
#[test]
fn the_stack_is_as_large_as_its_limit() {
    let source = "function() { (function f(n) { return n > 0 ? f(n - 1) + 1 : 0; })(1500); return []; }";
    let within = |stack_bytes_max| {
        let limits = Limits { stack_bytes_max, ..limits() };
        let mut session = Session::open(Program::source(source).unwrap(), limits, clock()).unwrap();
        session.map("null", "null", "null").map_err(|error| error.kind)
    };
    assert_eq!(within(1 << 20), Ok("[]".to_owned()));
    assert_eq!(within(64 << 10), Err(ErrorKind::Stack));
}

/// Running out of memory happens anywhere in the engine. None of these places may end the process.
#[test]
fn every_amount_of_memory_gives_a_result_or_an_error() {
    let sources = [
        "function(v) { var a = []; for (var i = 0; i < 300; i++) a.push({ i: i, s: 'x' + i }); return a; }",
        "function(v) { var m = new Map(); for (var i = 0; i < 200; i++) m.set(i, [i]); return [...m.values()]; }",
        "function(v) { return JSON.parse(JSON.stringify({ a: 'x'.repeat(5000).split('') })).a; }",
        "async function(v) { await 1; return [v]; }",
        "function(v) { class A { #p = 1; get x() { return this.#p; } } return [new A().x, eval('1+1'), /a(b)/g.exec('ab')]; }",
        "function* f(v) { yield* [1, 2]; }",
        "function(v) { return import('x'); }",
        "function(v) { try { throw new Error('x'); } catch (e) { return [e.stack]; } }",
    ];
    let mut kinds = std::collections::HashMap::<_, u32>::new();
    for source in sources {
        for memory_bytes_max in (100_000..900_000).step_by(15_919) {
            let limits = Limits { memory_bytes_max, ..limits() };
            let opened = Session::open(Program::source(source).unwrap(), limits, clock());
            let result = opened.and_then(|mut session| session.map("[1]", "null", "null"));
            *kinds.entry(result.err().map(|error| error.kind)).or_default() += 1;
        }
    }
    assert!(kinds[&Some(ErrorKind::Memory)] > 50, "{kinds:?}");
    assert!(kinds[&None] > 50, "{kinds:?}");
}

#[test]
fn each_call_has_its_own_time() {
    let mut slow = session("function(n) { for (var i = 0; i < n; i++) [].map(function() {}); return [n]; }");
    for _ in 0..20 {
        slow.map("100000", "null", "null").unwrap();
    }
    assert_eq!(slow.map("100000000", "null", "null").unwrap_err().kind, ErrorKind::Time);
}

/// The engine throws null when it has no memory left for an error.
#[test]
fn the_error_of_a_thrown_null_names_both_reasons() {
    let error = error_of("function() { throw null; }");
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Memory, "out of memory, or the function threw null"));
}
