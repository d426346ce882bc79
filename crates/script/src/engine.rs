//! One engine with one realm: what a session consists of until a limit spoils it.

use crate::failure::{Step, failure};
use crate::log::Log;
use crate::program::{Function as Source, Program};
use crate::{Clock, ErrorKind, Limits, ScriptError};
use rquickjs::context::EvalOptions;
use rquickjs::function::{Args, Rest};
use rquickjs::{Coerced, Context, Ctx, Function, Persistent, Runtime, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// The name of the program's function in the engine's stack traces.
pub(crate) const FUNCTION_FILE: &str = "function";

const GUARDS: &str = include_str!("guards.js");
const BUILTINS: &str = include_str!("builtins.js");

/// An engine that has compiled a program. The fields are dropped in their order: values before the
/// engine that they live in.
pub(crate) struct Engine {
    function: Persistent<Function<'static>>,
    context: Context,
    watch: Rc<Watch>,
}

/// What ends a call that takes too long.
pub(crate) struct Watch {
    clock: Clock,
    ends_at: Cell<Duration>,
    was_ended: Cell<bool>,
}

impl Watch {
    /// Begins a call.
    fn begin(&self, time_max: Duration) {
        self.ends_at.set((self.clock)().saturating_add(time_max));
        self.was_ended.set(false);
    }

    /// Whether the call has to end. The engine asks this after some thousand calls and jumps back.
    /// A clock that has reached its end ends every call.
    fn is_over(&self) -> bool {
        let now = (self.clock)();
        let is_over = now > self.ends_at.get() || now == Duration::MAX;
        self.was_ended.set(self.was_ended.get() || is_over);
        is_over
    }

    /// Whether the call was ended.
    pub(crate) fn was_ended(&self) -> bool {
        self.was_ended.get()
    }
}

impl Engine {
    /// Creates an engine and compiles a program, within the limits of one call.
    pub(crate) fn new(
        program: &Program,
        limits: &Limits,
        clock: &Clock,
        log: &Rc<RefCell<Log>>,
    ) -> Result<Self, ScriptError> {
        let watch =
            Rc::new(Watch { clock: Rc::clone(clock), ends_at: Cell::new(Duration::MAX), was_ended: Cell::new(false) });
        let runtime = Runtime::new().map_err(|_| out_of_memory())?;
        runtime.set_memory_limit(limits.memory_bytes_max);
        runtime.set_max_stack_size(limits.stack_bytes_max);
        let asked = Rc::clone(&watch);
        runtime.set_interrupt_handler(Some(Box::new(move || asked.is_over())));
        let context = Context::full(&runtime).map_err(|_| out_of_memory())?;
        watch.begin(limits.call_time_max);
        let function = context.with(|ctx| {
            run_script(&ctx, GUARDS, "guards", &watch)?;
            run_script(&ctx, BUILTINS, "builtins", &watch)?;
            add_log(&ctx, log).map_err(|error| failure(&ctx, &error, &watch, Step::Load, ""))?;
            for library in &program.libraries {
                run_script(&ctx, library, FUNCTION_FILE, &watch)?;
            }
            let function = match &program.function {
                Source::Named(name) => named(&ctx, name, &watch)?,
                Source::Source(source) => compiled(&ctx, source, &watch)?,
            };
            Ok(Persistent::save(&ctx, function))
        })?;
        Ok(Self { function, context, watch })
    }

    /// Calls the function with arguments that are JSON texts. Returns the result as a JSON text;
    /// `None` for a result that JSON cannot express, such as `undefined`.
    pub(crate) fn call(
        &self,
        arguments: &[&str],
        source: &str,
        limits: &Limits,
    ) -> Result<Option<String>, ScriptError> {
        self.watch.begin(limits.call_time_max);
        self.context.with(|ctx| {
            let fails = |error| failure(&ctx, &error, &self.watch, Step::Call, source);
            let function = self.function.clone().restore(&ctx).map_err(fails)?;
            let mut values = Args::new(ctx.clone(), arguments.len());
            for argument in arguments {
                let value = ctx.json_parse(*argument).map_err(|error| bad_argument(fails(error)))?;
                values.push_arg(value).map_err(fails)?;
            }
            let result: Value = function.call_arg(values).map_err(fails)?;
            let text = ctx.json_stringify(result).map_err(fails)?;
            text.map(|text| text.to_string()).transpose().map_err(fails)
        })
    }
}

/// An error in a value that the caller passed in, unless a limit was met.
fn bad_argument(error: ScriptError) -> ScriptError {
    match error.kind {
        ErrorKind::Syntax | ErrorKind::Exception => {
            ScriptError::new(ErrorKind::Argument, format!("an argument is not JSON: {}", error.message))
        }
        _ => error,
    }
}

fn out_of_memory() -> ScriptError {
    ScriptError::new(ErrorKind::Memory, "out of memory")
}

fn options(file: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    // Riak's functions were written for the language without `use strict`.
    options.strict = false;
    options.filename = Some(file.to_owned());
    options
}

fn run_script(ctx: &Ctx<'_>, source: &str, file: &str, watch: &Watch) -> Result<(), ScriptError> {
    let result: rquickjs::Result<Value> = ctx.eval_with_options(source, options(file));
    result.map(drop).map_err(|error| failure(ctx, &error, watch, Step::Load, source))
}

/// The function that an expression gives.
fn compiled<'js>(ctx: &Ctx<'js>, source: &str, watch: &Watch) -> Result<Function<'js>, ScriptError> {
    // A line break ends a comment in the last line.
    let value: Value = ctx
        .eval_with_options(format!("({source}\n)"), options(FUNCTION_FILE))
        .map_err(|error| failure(ctx, &error, watch, Step::Load, source))?;
    value.into_function().ok_or_else(|| ScriptError::new(ErrorKind::Syntax, "the source is not a function"))
}

/// The function with this name: a global variable, or a member of one.
fn named<'js>(ctx: &Ctx<'js>, name: &str, watch: &Watch) -> Result<Function<'js>, ScriptError> {
    let unknown = || ScriptError::new(ErrorKind::UnknownFunction, format!("there is no function `{name}`"));
    // The name has been checked (`Program::named`). A constant of a library is no member of the
    // global object, so the name is evaluated.
    let first = name.split('.').next().unwrap_or_default();
    let known: bool =
        ctx.eval_with_options(format!("typeof {first} !== 'undefined'"), options("name")).map_err(|_| unknown())?;
    if !known {
        return Err(unknown());
    }
    let value: Value = ctx.eval_with_options(name, options("name")).map_err(|error| {
        let error = failure(ctx, &error, watch, Step::Load, "");
        if error.kind.spoils_the_engine() { error } else { unknown() }
    })?;
    value.into_function().ok_or_else(unknown)
}

/// Defines `ejsLog`.
fn add_log(ctx: &Ctx<'_>, log: &Rc<RefCell<Log>>) -> rquickjs::Result<()> {
    let log = Rc::clone(log);
    let write = Function::new(ctx.clone(), move |texts: Rest<Coerced<String>>| {
        let [file, line] = texts.0.as_slice() else { return false };
        log.borrow_mut().push(&file.0, &line.0);
        true
    })?;
    ctx.globals().set("ejsLog", write)
}
