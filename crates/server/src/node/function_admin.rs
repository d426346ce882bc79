//! Compiles and tests functions for operators, on the threads of hooks.

use super::functions::NodeFunctions;
use ombak_api::admin::{AdminError, FunctionAdmin, FunctionRole, FunctionTest};
use ombak_functions::{Calls, FunctionError, Lane, LookupError, Owner};
use ombak_runtime::BoxFuture;
use ombak_script::{ErrorKind, Log, PreCommit, ScriptError};
use serde_json::{Value, json};
use std::time::Duration;

/// How long an operator waits for a thread and for the function.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// For whom functions are compiled and tested.
const OPERATOR: &str = "an operator";

/// What a map function gets for an input without key data.
const NO_KEY_DATA: &str = "\"undefined\"";

impl FunctionAdmin for NodeFunctions {
    fn compile(&self, source: String) -> BoxFuture<'static, Result<(), AdminError>> {
        let this = self.clone();
        Box::pin(async move {
            let program = this.catalogue.registered_source(&source).map_err(|why| refused(&why))?;
            let function = this.pool.open(Lane::PreCommit, program);
            // Opening a session compiles the program.
            match function.run(&Owner::new(OPERATOR), this.runtime.now() + WAIT_MAX, |_| ()).await {
                Ok(()) => Ok(()),
                Err(FunctionError::Script(why)) => Err(AdminError::BadRequest(with_line(&why))),
                Err(why) => Err(AdminError::Failed(why.to_string())),
            }
        })
    }

    fn test(&self, name: String, test: FunctionTest) -> BoxFuture<'static, Result<Value, AdminError>> {
        let this = self.clone();
        Box::pin(async move {
            let program = this.catalogue.named(&name).map_err(|why| refused(&why))?;
            let function = this.pool.open(Lane::PreCommit, program);
            let runtime = this.runtime.clone();
            let work = move |calls: &mut Calls<'_>| {
                let began = runtime.now();
                let result = call(calls, &test);
                (result, calls.take_log(), runtime.now().saturating_duration_since(began))
            };
            match function.run(&Owner::new(OPERATOR), this.runtime.now() + WAIT_MAX, work).await {
                Ok((result, log, took)) => Ok(answer(&name, result, log, took)),
                Err(FunctionError::Script(why)) if why.kind == ErrorKind::UnknownFunction => {
                    Err(AdminError::NoSuchFunction(name))
                }
                Err(FunctionError::Script(why)) => Ok(answer(&name, Err(why), Log::default(), Duration::ZERO)),
                Err(why) => Err(AdminError::Failed(why.to_string())),
            }
        })
    }
}

/// Calls the function as the test wants. The answer has `result`, and `outcome` for a pre-commit
/// hook.
fn call(calls: &mut Calls<'_>, test: &FunctionTest) -> Result<Value, ScriptError> {
    let (input, arg) = (test.input.to_string(), test.arg.to_string());
    Ok(match test.role {
        FunctionRole::Map => json!({ "result": value_of(&calls.map(&input, NO_KEY_DATA, &arg)?)? }),
        FunctionRole::Reduce => json!({ "result": value_of(&calls.reduce(&input, &arg)?)? }),
        FunctionRole::PreCommit => match calls.pre_commit(&input)? {
            PreCommit::Put(object) => json!({"outcome": "put", "result": object}),
            PreCommit::Fail(reason) => json!({"outcome": "fail", "result": reason}),
        },
        FunctionRole::PostCommit => {
            calls.post_commit(&input)?;
            json!({ "result": null })
        }
    })
}

/// The value of a result, which is a JSON text. What can fail is the number of its levels.
fn value_of(result: &str) -> Result<Value, ScriptError> {
    serde_json::from_str(result)
        .map_err(|why| ScriptError::new(ErrorKind::Result, format!("the result cannot be read: {why}")))
}

fn answer(name: &str, result: Result<Value, ScriptError>, log: Log, took: Duration) -> Value {
    let mut answer = match result {
        Ok(result) => result,
        Err(why) => json!({ "failure": {
            "kind": kind(why.kind),
            "message": why.message,
            "line": why.line,
            "source": why.source,
        } }),
    };
    answer["name"] = json!(name);
    answer["log"] = json!(log.lines);
    answer["log_lines_dropped"] = json!(log.dropped);
    answer["time_us"] = json!(took.as_micros() as u64);
    answer
}

const fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Syntax => "syntax",
        ErrorKind::UnknownFunction => "unknown_function",
        ErrorKind::Exception => "exception",
        ErrorKind::Time => "time",
        ErrorKind::Memory => "memory",
        ErrorKind::Stack => "stack",
        ErrorKind::Result => "result",
        ErrorKind::Argument => "argument",
    }
}

/// An error with its line and what is there, for people.
fn with_line(why: &ScriptError) -> String {
    match why.line {
        0 => why.to_string(),
        _ => format!("{why}: {}", why.source),
    }
}

fn refused(why: &LookupError) -> AdminError {
    AdminError::BadRequest(why.to_string())
}
