//! Clocks that go back: registers of a map are assigned through nodes whose clocks jump.
//!
//! This part begins when a run has settled, so no fault hides what a clock does. Each assignment
//! reaches all replicas before the next one begins, so each must show, whatever the clocks say. Its
//! random numbers come from a stream of its own, so that the rest of a seed stays what it is.

use super::key::TypedKind;
use super::{READ_TRIES_MAX, TypedRun};
use crate::faults::JUMP_US;
use crate::random::Random;
use crate::world::{HostId, OUTSIDE};
use bytes::Bytes;
use ombak_crdt::{Change, Field, FieldOp, FieldType, FieldValue, MapOp, Request, State, Value};
use ombak_datatypes::{state_of, typed_put};
use ombak_kv::{GetOptions, GetReply, GetRequest, Kv, PutOptions};
use ombak_runtime::{BoxFuture, RuntimeExt};
use ombak_types::{Bucket, Error, Quorum};
use std::time::Duration;

/// What makes the numbers of this part different from those of the rest of a seed.
const STREAM: u64 = 0xC10C_7B4C_0000_0001;
const ROUNDS: usize = 6;
/// The time between two assignments, in milliseconds, at most.
const PAUSE_MS_MAX: u64 = 50;

fn key() -> (Bucket, Bytes) {
    (TypedKind::Map.bucket(), Bytes::from_static(b"registers"))
}

/// Assigns a value to a register of the map, and to one of a map within it.
fn assign(value: &Bytes, time_us: u64) -> Request {
    let register =
        || MapOp::Update(Field::new("r", FieldType::Register), FieldOp::Register { value: value.clone(), time_us });
    let inner = MapOp::Update(Field::new("m", FieldType::Map), FieldOp::Map(vec![register()]));
    Request::Map(vec![register(), inner])
}

/// The values of all registers.
fn registers(fields: &[(Field, FieldValue)]) -> Vec<Bytes> {
    let of_field = |(_, value): &(Field, FieldValue)| match value {
        FieldValue::Register(value) => vec![value.clone()],
        FieldValue::Map(fields) => registers(fields),
        FieldValue::Counter(_) | FieldValue::Flag(_) | FieldValue::Set(_) => Vec::new(),
    };
    fields.iter().flat_map(of_field).collect()
}

/// Lets clocks jump between assignments, and checks that each assignment shows.
pub(super) async fn check(run: &TypedRun, seed: u64) -> Result<(), String> {
    let world = &run.clients.world;
    let (runtime, hosts) = (world.runtime(OUTSIDE), run.clients.cluster.lock().hosts());
    let mut random = Random::new(seed ^ STREAM);
    let mut result = Ok(());
    for round in 0..ROUNDS {
        for host in &hosts {
            world.set_clock_ahead_us(*host, random.within(0..JUMP_US as u64 * 2) as i64 - JUMP_US);
        }
        runtime.sleep(Duration::from_millis(random.within(0..PAUSE_MS_MAX))).await;
        let value = Bytes::from(format!("{round}{}", run.padding));
        let (through, from) = (*random.pick(&hosts), *random.pick(&hosts));
        result = assign_and_read(run, through, from, &value).await;
        if result.is_err() {
            break;
        }
    }
    hosts.iter().for_each(|host| world.set_clock_ahead_us(*host, 0));
    result
}

async fn assign_and_read(run: &TypedRun, through: HostId, from: HostId, value: &Bytes) -> Result<(), String> {
    let mut tries = 1;
    while let Err(error) = put(run, through, value).await {
        if tries == READ_TRIES_MAX {
            return Err(format!("a register could not be assigned: {error}"));
        }
        tries += 1;
    }
    let mut tries = 1;
    let found = loop {
        match read(run, from).await {
            Err(Error::Timeout) if tries < READ_TRIES_MAX => tries += 1,
            found => break found.map_err(|error| format!("registers cannot be read: {error}"))?,
        }
    };
    let shown = match found.as_ref().map(State::value) {
        Some(Value::Map(fields)) => registers(&fields),
        _ => Vec::new(),
    };
    match shown.iter().all(|shown| shown == value) && shown.len() == 2 {
        true => Ok(()),
        false => Err(format!("registers show {shown:?}, and {value:?} was assigned and acknowledged last")),
    }
}

/// Assigns a value, with the time of the node that takes the request, as the interfaces do.
async fn put(run: &TypedRun, through: HostId, value: &Bytes) -> Result<(), Error> {
    let value = value.clone();
    let put = |kv: Kv| -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            let change = Change::Request { request: assign(&value, kv.wall_clock().0), context: None };
            let all = Some(Quorum::All);
            let (bucket, key) = key();
            let put = typed_put(bucket, Some(key), &change, PutOptions { w: all, pw: all, ..PutOptions::default() });
            kv.put(put).await.map(drop)
        })
    };
    run.clients.call(through, put).await.unwrap_or(Err(Error::Timeout))
}

async fn read(run: &TypedRun, from: HostId) -> Result<Option<State>, Error> {
    let get = |kv: Kv| -> BoxFuture<'static, Result<Option<State>, Error>> {
        Box::pin(async move {
            let (bucket, key) = key();
            let props = kv.buckets().props(&bucket)?;
            let options = GetOptions { r: Some(Quorum::All), as_stored: true, ..GetOptions::default() };
            match kv.get(GetRequest { bucket, key, options }).await? {
                GetReply::Found(object) => state_of(&props, &object).map(Some),
                GetReply::NotFound { .. } => Ok(None),
            }
        })
    };
    run.clients.call(from, get).await.unwrap_or(Err(Error::Timeout))
}
