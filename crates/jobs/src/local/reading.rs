//! Reads the objects of a piece: from the store of this node where it has them, and otherwise from
//! the other replicas.

use super::worker::Worker;
use crate::part::PartError;
use ombak_kv::{GetOptions, GetReply, GetRequest, Kv};
use ombak_mapreduce::Input;
use ombak_runtime::pause_if_due;
use ombak_types::{Error, Object, Quorum};
use std::time::{Duration, Instant};

/// How many bytes of values are read at once, the last object excepted.
const BYTES_MAX: u64 = 1 << 20;

/// What the store of this node says about one key.
enum Here {
    Known(Option<Object>),
    AskOthers,
}

impl Worker {
    /// Reads the objects of these keys, at least that of the first. Those that are too many for the
    /// memory are left out at the end.
    pub(super) async fn read(&self, inputs: &[Input], deadline: Instant) -> Result<Vec<Option<Object>>, PartError> {
        let here = read_here(&self.node().kv, inputs)?;
        let mut objects = Vec::with_capacity(here.len());
        for (found, input) in here.into_iter().zip(inputs) {
            objects.push(match found {
                Here::Known(object) => object,
                Here::AskOthers => self.read_elsewhere(input, deadline).await?,
            });
        }
        Ok(objects)
    }

    /// Reads a key from the replicas that have it.
    async fn read_elsewhere(&self, input: &Input, deadline: Instant) -> Result<Option<Object>, PartError> {
        let left = deadline.saturating_duration_since(self.node().runtime.now());
        let options = GetOptions {
            r: Some(Quorum::One),
            notfound_ok: Some(false),
            timeout: Some(left.max(Duration::from_millis(1))),
            ..GetOptions::default()
        };
        let request = GetRequest { bucket: input.bucket.clone(), key: input.key.clone(), options };
        match self.get(request).await {
            Ok(GetReply::Found(object)) => Ok(Some(object)),
            Ok(GetReply::NotFound { .. }) => Ok(None),
            Err(error) if says_nothing_of_the_key(&error) => Err(PartError::Lost(error)),
            Err(_) => Ok(None),
        }
    }
}

/// Whether another attempt may find the object.
const fn says_nothing_of_the_key(error: &Error) -> bool {
    !matches!(error, Error::NotFound | Error::NoType(_) | Error::ZeroLength(_) | Error::KeyTooLarge)
}

fn read_here(kv: &Kv, inputs: &[Input]) -> Result<Vec<Here>, PartError> {
    let (mut found, mut bytes) = (Vec::with_capacity(inputs.len()), 0);
    for input in inputs {
        if bytes >= BYTES_MAX {
            break;
        }
        pause_if_due();
        found.push(match kv.read_here(&input.bucket, &input.key) {
            Ok(Some(GetReply::Found(object))) => {
                bytes += object.value_bytes();
                Here::Known(Some(object))
            }
            Ok(Some(GetReply::NotFound { .. })) => Here::Known(None),
            Ok(None) => Here::AskOthers,
            Err(error) if says_nothing_of_the_key(&error) => return Err(PartError::Lost(error)),
            Err(_) => Here::Known(None),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobsConfig;
    use crate::local::tests::{Node, inputs, pauses_in};

    #[tokio::test]
    async fn reading_pauses() {
        let node = Node::open(JobsConfig::default());
        node.fill(1).await;
        let (kv, key) = (node.kv.clone(), inputs(0..1).remove(0));
        let pauses = pauses_in(move || drop(read_here(&kv, &vec![key; 50_000])));
        assert!(pauses > 1, "{pauses}");
    }
}
