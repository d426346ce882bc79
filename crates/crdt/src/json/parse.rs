//! Requests in JSON.

use super::{BadJson, type_name};
use crate::{Field, FieldOp, FieldType, MapOp, Request, SetOp};
use bytes::Bytes;
use ombak_types::json::{Json, member};
use ombak_types::props::DataType;

pub(super) fn request(kind: DataType, json: &Json, time_us: u64) -> Result<Request, BadJson> {
    match kind {
        DataType::Counter => amount(json).map(Request::Counter),
        DataType::Set => set_ops(json).map(Request::Set),
        DataType::Map => map_ops(json, time_us).map(Request::Map),
        DataType::Gset => adds("gset", json).map(Request::GSet),
        DataType::Hll => adds("hll", json).map(Request::Hll),
    }
}

/// The maximum length of an operation in an error, in characters.
const SHOWN_CHARS_MAX: usize = 16 << 10;

fn bad(kind: &'static str, json: &Json) -> BadJson {
    BadJson::Operation { kind, json: json.beginning(SHOWN_CHARS_MAX) }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// `5`, `-3`, `"increment"`, `"decrement"`, `{"increment":n}` or `{"decrement":n}`.
fn amount(json: &Json) -> Result<i64, BadJson> {
    let amount = match json {
        Json::Int(n) => Some(*n),
        Json::Text(word) if word == "increment" => Some(1),
        Json::Text(word) if word == "decrement" => Some(-1),
        Json::Object(members) => match members.as_slice() {
            [(name, by)] if name == "increment" => by.as_i64(),
            [(name, by)] if name == "decrement" => by.as_i64().and_then(i64::checked_neg),
            _ => None,
        },
        _ => None,
    };
    amount.ok_or_else(|| bad("counter", json))
}

/// Operations on a set, in the order of the object's members.
fn set_ops(json: &Json) -> Result<Vec<SetOp>, BadJson> {
    let mut ops = Vec::new();
    each_member_op(json, &mut |is_add, member| {
        ops.push(if is_add { SetOp::Add(member) } else { SetOp::Remove(member) });
        true
    })
    .ok_or_else(|| bad("set", json))?;
    Ok(ops)
}

/// Members to add to what only grows.
fn adds(kind: &'static str, json: &Json) -> Result<Vec<Bytes>, BadJson> {
    let mut members = Vec::new();
    each_member_op(json, &mut |is_add, member| {
        members.push(member);
        is_add
    })
    .ok_or_else(|| bad(kind, json))?;
    Ok(members)
}

/// Visits `{"add":x,"remove":x,"add_all":[…],"remove_all":[…],"update":{…}|[{…},…]}`. `None` if it
/// is anything else, or the visitor refuses an operation.
fn each_member_op(json: &Json, visit: &mut impl FnMut(bool, Bytes) -> bool) -> Option<()> {
    for (name, value) in json.as_object()? {
        match (name.as_str(), value) {
            ("update", Json::List(inner)) => inner.iter().try_for_each(|ops| each_member_op(ops, visit))?,
            ("update", inner) => each_member_op(inner, visit)?,
            ("add" | "remove", Json::Text(member)) => visit(name == "add", bytes(member)).then_some(())?,
            ("add_all" | "remove_all", Json::List(members)) => {
                for member in members {
                    visit(name == "add_all", bytes(member.as_str()?)).then_some(())?;
                }
            }
            _ => return None,
        }
    }
    Some(())
}

/// `{"update":{"FIELD_TYPE":…},"remove":"FIELD_TYPE" or […]}`. Removals come first.
fn map_ops(json: &Json, time_us: u64) -> Result<Vec<MapOp>, BadJson> {
    let members = json.as_object().ok_or_else(|| bad("map", json))?;
    if let Some(unknown) =
        members.iter().map(|(name, _)| name.as_str()).find(|name| !matches!(*name, "update" | "remove"))
    {
        return Err(bad("map", &Json::from(unknown)));
    }
    let mut ops = Vec::new();
    match member(members, "remove") {
        None => {}
        Some(Json::List(names)) => {
            for name in names {
                ops.push(MapOp::Remove(field(name.as_str().ok_or_else(|| bad("map", json))?)?));
            }
        }
        Some(Json::Text(name)) => ops.push(MapOp::Remove(field(name)?)),
        Some(_) => return Err(bad("map", json)),
    }
    if let Some(updates) = member(members, "update") {
        for (name, op) in updates.as_object().ok_or_else(|| bad("map", json))? {
            let field = field(name)?;
            let op = field_op(field.kind, op, time_us)?;
            ops.push(MapOp::Update(field, op));
        }
    }
    Ok(ops)
}

fn field_op(kind: FieldType, json: &Json, time_us: u64) -> Result<FieldOp, BadJson> {
    match kind {
        FieldType::Counter => amount(json).map(FieldOp::Counter),
        FieldType::Register => {
            let assigned = match json {
                Json::Object(members) => match members.as_slice() {
                    [(name, value)] if name == "assign" => value.as_str(),
                    _ => None,
                },
                value => value.as_str(),
            };
            let value = bytes(assigned.ok_or_else(|| bad("register", json))?);
            Ok(FieldOp::Register { value, time_us })
        }
        FieldType::Map => map_ops(json, time_us).map(FieldOp::Map),
        FieldType::Flag => match json.as_str() {
            Some("enable") => Ok(FieldOp::Flag(true)),
            Some("disable") => Ok(FieldOp::Flag(false)),
            _ => Err(bad("flag", json)),
        },
        FieldType::Set => set_ops(json).map(FieldOp::Set),
    }
}

/// `NAME_TYPE`. The name may have underscores too, and may be empty.
fn field(text: &str) -> Result<Field, BadJson> {
    let kind = |end: &str| FieldType::ALL.into_iter().find(|kind| type_name(*kind) == end);
    let parts = text.rsplit_once('_').and_then(|(name, end)| Some((name, kind(end)?)));
    let (name, kind) = parts.ok_or_else(|| BadJson::FieldName(text.to_owned()))?;
    Ok(Field { name: bytes(name), kind })
}
