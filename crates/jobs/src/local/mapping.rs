//! Makes values of the objects of a piece.

use super::worker::Worker;
use crate::part::{PartError, PartRequest, PhaseOfPart};
use ombak_mapreduce::{Failure, Input, MapFunction, Mapped, Mapper, Phase, PhaseFailure};
use ombak_runtime::pause_if_due;
use ombak_types::Object;
use ombak_types::etf::Term;

impl Worker {
    /// The values of the first of these keys, and how many keys these are: at least one.
    pub(super) async fn map(
        &self,
        request: &PartRequest,
        mut inputs: Vec<Input>,
    ) -> Result<(Vec<Term>, usize), PartError> {
        let Some(PhaseOfPart { number, phase }) = request.map.clone() else {
            let count = inputs.len();
            return Ok((inputs.iter().map(Input::to_term).collect(), count));
        };
        let objects = self.read(&inputs, request.deadline).await?;
        let count = objects.len();
        inputs.truncate(count);
        let values = match phase {
            Phase::Link { links, .. } => objects.iter().flat_map(|object| links.links_of(object.as_ref())).collect(),
            Phase::Map { function: Mapper::Native(function), arg, .. } => {
                call(number, function, &arg, &inputs, &objects).map_err(PartError::Failed)?
            }
            Phase::Map { function: Mapper::Script(source), arg, .. } => {
                return self.map_in_script(request, (number, &source, &*arg), inputs, objects).await;
            }
            Phase::Reduce { .. } => Vec::new(),
        };
        Ok((values, count))
    }
}

/// Calls a built-in function for each object.
fn call(
    number: usize,
    function: MapFunction,
    arg: &Term,
    inputs: &[Input],
    objects: &[Option<Object>],
) -> Result<Vec<Term>, Failure> {
    let mut values = Vec::new();
    for (input, object) in inputs.iter().zip(objects) {
        pause_if_due();
        let called = function.call(Mapped { input, object: object.as_ref() }, arg);
        values.extend(
            called.map_err(|error| Failure::Phase(PhaseFailure::of_map(number, &error.0, input, object.is_some())))?,
        );
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::tests::pauses_in;
    use ombak_types::{Bucket, Sibling};

    #[test]
    fn mapping_pauses() {
        let inputs = vec![Input::new(Bucket::untyped("b"), "k".into()); 20_000];
        let work = move || {
            let objects = vec![Some(Object::new(Sibling::new("value"))); inputs.len()];
            call(0, MapFunction::ObjectValue, &Term::atom("none"), &inputs, &objects).unwrap();
        };
        assert!(pauses_in(work) > 1);
    }
}
