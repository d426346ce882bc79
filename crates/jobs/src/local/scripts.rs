//! Phases in JavaScript. A phase has a function of its own on each node, with a session on each
//! thread that calls it, from its first call to the end of the job.

use super::worker::Worker;
use crate::functions::script_error_text;
use crate::part::{PartError, PartRequest};
use ombak_functions::{Calls, Function, FunctionError, Lane, Owner};
use ombak_kv::{GetOptions, GetReply, GetRequest};
use ombak_mapreduce::{
    Failure, Input, PhaseFailure, ScriptSource, from_json, not_found_term, object_to_readable_json, to_json,
};
use ombak_script::{ErrorKind, Program, ScriptError};
use ombak_types::etf::Term;
use ombak_types::json::Json;
use ombak_types::{Error, Object};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Instant;

/// How many phases may have functions at the same time.
const PHASES_MAX: usize = 1024;

/// The phase of a job.
type PhaseOf = (u128, usize);

/// The functions of phases that run.
#[derive(Default)]
pub(super) struct OpenFunctions(Mutex<BTreeMap<PhaseOf, Open>>);

struct Open {
    function: Function,
    /// When the job ends.
    deadline: Instant,
}

impl OpenFunctions {
    fn get(&self, phase: PhaseOf) -> Option<Function> {
        self.0.lock().get(&phase).map(|open| open.function.clone())
    }

    /// Keeps a function, unless another part of the phase was quicker.
    fn keep(&self, phase: PhaseOf, function: Function, deadline: Instant, now: Instant) -> Result<Function, Error> {
        let mut open = self.0.lock();
        open.retain(|_, open| open.deadline > now);
        if open.len() >= PHASES_MAX {
            return Err(Error::Overload);
        }
        Ok(open.entry(phase).or_insert(Open { function, deadline }).function.clone())
    }

    /// Ends the sessions of a job.
    pub(super) fn forget(&self, job: u128) {
        self.0.lock().retain(|(of, _), _| *of != job);
    }
}

/// What a function makes of one key: of an object, or a value that stands for a missing one.
enum Argument {
    Object(String),
    Missing(Term),
}

/// The error of a map function, and the input that has it.
type FailedInput = (ScriptError, Input);

impl Worker {
    /// The values of the first of these keys, and how many keys these are: at least one.
    pub(super) async fn map_in_script(
        &self,
        request: &PartRequest,
        (number, source, arg): (usize, &ScriptSource, &Term),
        inputs: Vec<Input>,
        objects: Vec<Option<Object>>,
    ) -> Result<(Vec<Term>, usize), PartError> {
        let function = self.function(request.job, number, source, Lane::Map, request.deadline).await?;
        let arg = json_of(number, arg)?;
        let texts =
            inputs.iter().map(|input| json_of(number, &input.key_data_term())).collect::<Result<Vec<_>, _>>()?;
        let arguments = arguments(number, &inputs, &objects).map_err(PartError::Failed)?;
        drop(objects);
        let until = self.node().runtime.now() + self.node().config.piece_time_max;
        let owner = owner(request.job);
        let work = move |calls: &mut Calls<'_>| mapped(calls, &inputs, &arguments, &texts, &arg, until);
        match function.run(&owner, request.deadline, work).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(failed)) => {
                let (error, input) = *failed;
                let failure = PhaseFailure::of_map(number, &script_error_text(&error), &input, true);
                Err(PartError::Failed(Failure::Phase(failure)))
            }
            Err(error) => Err(of_pool(number, &error)),
        }
    }

    /// Calls a reduce function.
    pub(super) async fn reduce_in_script(
        &self,
        (job, number): (u128, usize),
        (source, arg): (&ScriptSource, &Term),
        values: Vec<Term>,
        deadline: Instant,
    ) -> Result<Vec<Term>, PartError> {
        let function = self.function(job, number, source, Lane::Reduce, deadline).await?;
        let arg = json_of(number, arg)?;
        let list = list_of(number, &values).map_err(PartError::Failed)?;
        drop(values);
        let owner = owner(job);
        let work = move |calls: &mut Calls<'_>| calls.reduce(&list, &arg).and_then(|list| read(&list));
        match function.run(&owner, deadline, work).await {
            Ok(Ok(results)) => Ok(results),
            Ok(Err(error)) => Err(failed(number, &script_error_text(&error))),
            Err(error) => Err(of_pool(number, &error)),
        }
    }

    /// The function of a phase.
    async fn function(
        &self,
        job: u128,
        number: usize,
        source: &ScriptSource,
        lane: Lane,
        deadline: Instant,
    ) -> Result<Function, PartError> {
        let node = self.node();
        if let Some(open) = node.functions.get((job, number)) {
            return Ok(open);
        }
        let Some(functions) = &node.config.functions else {
            return Err(failed(number, "functions in JavaScript cannot run here"));
        };
        let program = match source {
            ScriptSource::Named(name) => functions.catalogue.named(name),
            ScriptSource::Source(source) => functions.catalogue.anonymous(source),
            ScriptSource::Stored { bucket, key } => {
                let stored = self.stored_source(number, &Input::new(bucket.clone(), key.clone())).await?;
                functions.catalogue.anonymous(&stored)
            }
        };
        let program: Program = program.map_err(|error| failed(number, &error.to_string()))?;
        let function = functions.pool.open(lane, program);
        Ok(node.functions.keep((job, number), function, deadline, node.runtime.now())?)
    }

    /// The source of a function that is the value of an object.
    async fn stored_source(&self, number: usize, place: &Input) -> Result<String, PartError> {
        let options = GetOptions::default();
        let request = GetRequest { bucket: place.bucket.clone(), key: place.key.clone(), options };
        let object = match self.get(request).await? {
            GetReply::Found(object) => object,
            GetReply::NotFound { .. } => {
                return Err(failed(number, "the object with the function's source is missing"));
            }
        };
        let value = object.siblings.first().map(|sibling| sibling.value.to_vec()).unwrap_or_default();
        String::from_utf8(value).map_err(|_| failed(number, "the function's source is not UTF-8"))
    }
}

fn failed(number: usize, error: &str) -> PartError {
    PartError::Failed(Failure::Phase(PhaseFailure::of_reduce(number, error)))
}

/// Calls a map function for the first of these inputs. Returns what it gave, and for how many of
/// them, or the error with the input that has it.
fn mapped(
    calls: &mut Calls<'_>,
    inputs: &[Input],
    arguments: &[Argument],
    key_data: &[String],
    arg: &str,
    until: Instant,
) -> Result<(Vec<Term>, usize), Box<FailedInput>> {
    let objects = arguments.iter().zip(key_data).filter_map(|(argument, key_data)| match argument {
        Argument::Object(object) => Some((object.as_str(), key_data.as_str())),
        Argument::Missing(_) => None,
    });
    let mut called = calls.map_each(&objects.collect::<Vec<_>>(), arg, until).into_iter();
    let (mut given, mut done) = (Vec::new(), 0);
    for (argument, input) in arguments.iter().zip(inputs) {
        match argument {
            Argument::Missing(value) => given.push(value.clone()),
            Argument::Object(_) => match called.next().map(|list| list.and_then(|list| read(&list))) {
                Some(Ok(values)) => given.extend(values),
                Some(Err(error)) => return Err(Box::new((error, input.clone()))),
                // Time was over before this object.
                None => break,
            },
        }
        done += 1;
    }
    Ok((given, done))
}

/// For whom functions run. All phases of a job share its place.
fn owner(job: u128) -> Owner {
    Owner::new(format!("job {job:032x}"))
}

/// What a failure of the threads means for a piece: another attempt may find a thread.
fn of_pool(number: usize, error: &FunctionError) -> PartError {
    match error {
        FunctionError::Script(error) => failed(number, &script_error_text(error)),
        FunctionError::Late => PartError::Failed(Failure::Timeout),
        FunctionError::Displaced | FunctionError::Died(_) => failed(number, &error.to_string()),
        FunctionError::Stopped => PartError::Lost(Error::Stopping),
        FunctionError::Busy | FunctionError::NoThread(_) | FunctionError::Broken => PartError::Lost(Error::Overload),
    }
}

fn json_of(number: usize, term: &Term) -> Result<String, PartError> {
    to_json(term).map_err(|error| failed(number, &error.to_string()))
}

/// The values of a list that a function gives. Integers keep their digits, however many.
fn read(list: &str) -> Result<Vec<Term>, ScriptError> {
    let unreadable = |why: &str| ScriptError::new(ErrorKind::Result, format!("the result cannot be read: {why}"));
    // The engine writes JSON; what can fail is the nesting.
    match Json::read(list.as_bytes()) {
        Ok(Json::List(values)) => Ok(values.iter().map(from_json).collect()),
        Ok(_) => Err(unreadable("it is no list")),
        Err(bad) => Err(unreadable(&bad.to_string())),
    }
}

/// The objects as functions get them.
fn arguments(number: usize, inputs: &[Input], objects: &[Option<Object>]) -> Result<Vec<Argument>, Failure> {
    let argument = |(input, object): (&Input, &Option<Object>)| match object {
        None => Ok(Argument::Missing(not_found_term(input))),
        Some(object) => object_to_readable_json(input, object)
            .map(Argument::Object)
            .map_err(|error| Failure::Phase(PhaseFailure::of_map(number, &error.to_string(), input, true))),
    };
    inputs.iter().zip(objects).map(argument).collect()
}

/// The list that a reduce function gets. Inputs are lists of texts in it.
fn list_of(number: usize, values: &[Term]) -> Result<String, Failure> {
    let mut list = String::from("[");
    for value in values {
        if list.len() > 1 {
            list.push(',');
        }
        let input = if matches!(value, Term::Tuple(_)) { Input::from_term(value) } else { None };
        let text = input.map_or_else(|| to_json(value), |input| to_json(&input.to_json_term()));
        list += &text.map_err(|error| Failure::Phase(PhaseFailure::of_reduce(number, &error.to_string())))?;
    }
    list.push(']');
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_functions::{FunctionPool, PoolConfig, WorkerProgram};
    use ombak_runtime::TokioRuntime;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn the_functions_of_a_bounded_number_of_phases_are_open_until_their_jobs_end() {
        let pool = FunctionPool::new(Arc::new(TokioRuntime), PoolConfig::default(), WorkerProgram::this(&[]).unwrap());
        let function = || pool.open(Lane::Map, Program::named("Riak.mapValues").unwrap());
        let (open, now) = (OpenFunctions::default(), Instant::now());
        let (soon, later) = (now + Duration::from_secs(1), now + Duration::from_secs(2));
        for job in 0..PHASES_MAX as u128 {
            let deadline = if job == 0 { soon } else { later };
            open.keep((job, 0), function(), deadline, now).unwrap();
        }
        let one_more = |now| open.keep((5000, 0), function(), later, now).map(drop);
        assert_eq!(one_more(now), Err(Error::Overload));
        assert_eq!(one_more(soon), Ok(()), "a job whose time is over makes room");
        assert_eq!(open.keep((6000, 0), function(), later, soon).map(drop), Err(Error::Overload));
        open.forget(1);
        assert!(open.get((1, 0)).is_none());
        assert_eq!(open.keep((6000, 0), function(), later, soon).map(drop), Ok(()), "a job that ended made room");
    }

    #[test]
    fn a_result_with_too_many_levels_is_an_error_of_the_function() {
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(read(&nested(100)).map(|values| values.len()), Ok(1));
        assert_eq!(read(&nested(200)).map_err(|error| error.kind), Err(ErrorKind::Result));
    }
}
