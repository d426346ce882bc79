//! The messages of data types as requests for the engine, and values as messages
//! (docs/riak/pb-api.md §11).

use super::message;
use super::refusal::Refusal;
use bytes::Bytes;
use ombak_crdt::{Change, Clock, Field, FieldOp, FieldType, FieldValue, MapOp, Request, SetOp, State, Value};
use ombak_kv::{GetOptions, PutOptions};
use ombak_proto::messages::dt_fetch_resp::DataType as KindCode;
use ombak_proto::messages::map_field::MapFieldType;
use ombak_proto::messages::map_update::FlagOp;
use ombak_proto::messages::{
    DtFetchReq, DtFetchResp, DtOp, DtUpdateReq, DtUpdateResp, DtValue, MapEntry, MapField, MapOp as MapOpMessage,
    MapUpdate, SetOp as SetOpMessage,
};
use ombak_types::Quorum;
use ombak_types::props::DataType;
use ombak_types::time::UnixMicros;

/// The options of a fetch. Its time limit has no effect, as in Riak.
pub(super) fn get_options(req: &DtFetchReq) -> GetOptions {
    GetOptions {
        r: quorum(req.r),
        pr: quorum(req.pr),
        node_confirms: quorum(req.node_confirms),
        basic_quorum: req.basic_quorum,
        notfound_ok: req.notfound_ok,
        n_val: req.n_val,
        sloppy_quorum: req.sloppy_quorum.unwrap_or(true),
        ..GetOptions::default()
    }
}

/// The options of an update.
pub(super) fn put_options(req: &DtUpdateReq) -> PutOptions {
    PutOptions {
        w: quorum(req.w),
        dw: quorum(req.dw),
        pw: quorum(req.pw),
        node_confirms: quorum(req.node_confirms),
        n_val: req.n_val,
        sloppy_quorum: req.sloppy_quorum.unwrap_or(true),
        timeout: message::timeout(req.timeout),
        return_body: req.return_body.unwrap_or(false),
        ..PutOptions::default()
    }
}

pub(super) fn quorum(n: Option<u32>) -> Option<Quorum> {
    n.map(Quorum::from_wire)
}

/// The change that an update asks for, in a bucket of a data type. `now` is the time of assignments
/// to registers.
pub(super) fn change(
    op: DtOp,
    context: Option<Bytes>,
    bucket_kind: DataType,
    now: UnixMicros,
) -> Result<Change, Refusal> {
    let request = request(op, now)?;
    let kind = request.as_ref().map_or("undefined", |request| request.kind().name());
    let Some(request) = request.filter(|request| request.kind() == bucket_kind) else {
        let bucket_kind = bucket_kind.name();
        return Err(Refusal::new(format!("Operation type is `{kind}` but  bucket type is `{bucket_kind}`.")));
    };
    let context = context.filter(|bytes| !bytes.is_empty()).map(|bytes| Clock::from_context(&bytes)).transpose();
    let context = context.map_err(|why| Refusal::new(format!("The context does not decode: {why}")))?;
    Ok(Change::Request { request, context })
}

fn request(op: DtOp, now: UnixMicros) -> Result<Option<Request>, Refusal> {
    let DtOp { counter_op, set_op, map_op, hll_op, gset_op } = op;
    Ok(if let Some(op) = counter_op {
        Some(Request::Counter(op.increment.unwrap_or(1)))
    } else if let Some(op) = set_op {
        Some(Request::Set(set_ops(op)))
    } else if let Some(op) = map_op {
        Some(Request::Map(map_ops(op, now)?))
    } else if let Some(op) = hll_op {
        Some(Request::Hll(op.adds))
    } else {
        gset_op.map(|op| Request::GSet(op.adds))
    })
}

/// Members are added before others are removed.
fn set_ops(op: SetOpMessage) -> Vec<SetOp> {
    op.adds.into_iter().map(SetOp::Add).chain(op.removes.into_iter().map(SetOp::Remove)).collect()
}

/// Fields are removed before others are updated.
fn map_ops(op: MapOpMessage, now: UnixMicros) -> Result<Vec<MapOp>, Refusal> {
    let removes = op.removes.into_iter().map(|field| Ok(MapOp::Remove(field_of(field))));
    let updates = op.updates.into_iter().map(|update| map_update(update, now));
    removes.chain(updates).collect()
}

fn map_update(update: MapUpdate, now: UnixMicros) -> Result<MapOp, Refusal> {
    let MapUpdate { field, counter_op, set_op, register_op, flag_op, map_op } = update;
    let op = if let Some(op) = counter_op {
        FieldOp::Counter(op.increment.unwrap_or(1))
    } else if let Some(op) = set_op {
        FieldOp::Set(set_ops(op))
    } else if let Some(value) = register_op {
        FieldOp::Register { value, time_us: now.0 }
    } else if let Some(op) = flag_op {
        FieldOp::Flag(op == FlagOp::Enable as i32)
    } else if let Some(op) = map_op {
        FieldOp::Map(map_ops(op, now)?)
    } else {
        return Err(Refusal::new("An update of a map's field has no operation"));
    };
    Ok(MapOp::Update(field_of(field), op))
}

fn field_of(field: MapField) -> Field {
    let kind = match MapFieldType::try_from(field.r#type) {
        Ok(MapFieldType::Set) => FieldType::Set,
        Ok(MapFieldType::Register) => FieldType::Register,
        Ok(MapFieldType::Flag) => FieldType::Flag,
        Ok(MapFieldType::Map) => FieldType::Map,
        // The decoder takes an unknown number for the first type.
        Ok(MapFieldType::Counter) | Err(_) => FieldType::Counter,
    };
    Field { name: field.name, kind }
}

/// The answer to a fetch. Without a state there is no value.
pub(super) fn fetched(kind: DataType, state: Option<&State>, with_context: bool) -> DtFetchResp {
    let code = match kind {
        DataType::Counter => KindCode::Counter,
        DataType::Set => KindCode::Set,
        DataType::Map => KindCode::Map,
        DataType::Hll => KindCode::Hll,
        DataType::Gset => KindCode::Gset,
    };
    DtFetchResp {
        context: state.filter(|_| with_context).and_then(context),
        r#type: code as i32,
        value: state.map(|state| value(state.value())),
    }
}

/// The answer to an update. It has the value if the client asked for it.
pub(super) fn updated(key: Option<Bytes>, state: Option<&State>, with_context: bool) -> DtUpdateResp {
    let value = state.map(|state| value(state.value())).unwrap_or_default();
    DtUpdateResp {
        key,
        context: state.filter(|_| with_context).and_then(context),
        counter_value: value.counter_value,
        set_value: value.set_value,
        map_value: value.map_value,
        hll_value: value.hll_value,
        gset_value: value.gset_value,
    }
}

fn context(state: &State) -> Option<Bytes> {
    state.context().filter(|clock| !clock.is_empty()).map(Clock::to_context)
}

fn value(value: Value) -> DtValue {
    let empty = DtValue::default();
    match value {
        Value::Counter(sum) => DtValue { counter_value: Some(bounded(sum)), ..empty },
        Value::Set(set_value) => DtValue { set_value, ..empty },
        Value::GSet(gset_value) => DtValue { gset_value, ..empty },
        Value::Map(fields) => DtValue { map_value: entries(fields), ..empty },
        Value::Hll(count) => DtValue { hll_value: Some(count), ..empty },
    }
}

/// The message has no larger numbers.
pub(super) fn bounded(sum: i128) -> i64 {
    i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX })
}

fn entries(fields: Vec<(Field, FieldValue)>) -> Vec<MapEntry> {
    fields.into_iter().map(|(field, value)| entry(field, value)).collect()
}

fn entry(field: Field, value: FieldValue) -> MapEntry {
    let code = match field.kind {
        FieldType::Counter => MapFieldType::Counter,
        FieldType::Register => MapFieldType::Register,
        FieldType::Map => MapFieldType::Map,
        FieldType::Flag => MapFieldType::Flag,
        FieldType::Set => MapFieldType::Set,
    };
    let field = MapField { name: field.name, r#type: code as i32 };
    let empty = MapEntry { field, ..MapEntry::default() };
    match value {
        FieldValue::Counter(sum) => MapEntry { counter_value: Some(bounded(sum)), ..empty },
        FieldValue::Register(value) => MapEntry { register_value: Some(value), ..empty },
        FieldValue::Map(fields) => MapEntry { map_value: entries(fields), ..empty },
        FieldValue::Flag(is_enabled) => MapEntry { flag_value: Some(is_enabled), ..empty },
        FieldValue::Set(set_value) => MapEntry { set_value, ..empty },
    }
}
