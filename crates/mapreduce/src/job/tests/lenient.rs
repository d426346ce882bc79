//! Jobs that are no strict JSON, and large numbers in them.

use super::*;

/// The function that the official clients for Java, Go and Node.js send, with one backslash in the
/// JSON, and one over several lines, as people write it in a shell.
#[test]
fn jobs_of_clients_that_are_no_strict_json_are_read() {
    let source = r"function(v) {var m = v.values[0].data.toLowerCase().match(/\w*/g); var r = []; for(var i in m) {if(m[i] != '') {var o = {};o[m[i]] = 1;r.push(o);}}return r;}";
    let request = format!(r#"{{"inputs":"b","query":[{{"map":{{"language":"javascript","source":"{source}"}}}},]}}"#);
    let lines = "{\"inputs\":[[\"b\",\"k\"]],\"inputs\":5,\"query\":[{\"map\":{\"language\":\"javascript\",\
                 \"source\":\"function(v) {\n return [1];\n}\"}}],\"query\":5}";
    let source_of = |request: &str| match Job::from_json(request.as_bytes()).unwrap().phases.remove(0) {
        Phase::Map { function: Mapper::Script(ScriptSource::Source(source)), .. } => source,
        other => panic!("{other:?}"),
    };
    assert_eq!(source_of(&request), source);
    assert_eq!(source_of(lines), "function(v) {\n return [1];\n}", "of two members the first one counts");
    for bad in ["{\"inputs\":\"b\",\"query\":[]} x", "\u{feff}{}", "// c\n{}", "{\"inputs\":\"b\\"] {
        assert!(matches!(Job::from_json(bad.as_bytes()), Err(JobError::NotJson(_))), "{bad}");
    }
    assert_eq!(Job::from_json(b"{\"\xff\":1}").unwrap_err(), JobError::NotAnObject, "Riak's words for it");
}

#[test]
fn integers_of_any_size_keep_their_digits() {
    let big = "123456789012345678901234567890";
    let request = format!(
        r#"{{"inputs":[["b","k",{big}]],"query":[{{"reduce":{{"language":"erlang","module":"riak_kv_mapreduce",
            "function":"reduce_sum","arg":[-{big}]}}}}]}}"#
    );
    let job = Job::from_json(request.as_bytes()).unwrap();
    let Inputs::Keys(keys) = &job.inputs else { panic!("{job:?}") };
    assert_eq!(keys.iter().next().unwrap().key_data_term().to_string(), big);
    assert!(matches!(&job.phases[0], Phase::Reduce { arg, .. } if crate::to_json(arg).unwrap() == format!("[-{big}]")));
    let Inputs::Index(query) =
        Job::from_json(format!(r#"{{"inputs":{{"bucket":"b","index":"n_int","key":{big}}},"query":[]}}"#).as_bytes())
            .unwrap()
            .inputs
    else {
        panic!("index")
    };
    assert_eq!(query.low.to_text(), big);
}
