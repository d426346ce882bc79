//! The bytes of what clients ask for.

use super::{Codec, Reader, Writer};
use crate::{BadBytes, Change, Clock, Field, FieldOp, FieldType, MapOp, Request, SetOp, State};
use bytes::Bytes;
use ombak_types::props::DataType;

/// An amount of either sign. Small amounts take few bytes.
struct Amount(i64);

impl Codec for Amount {
    fn write(&self, out: &mut Writer) {
        let folded = (self.0 << 1) ^ (self.0 >> 63);
        out.number(u128::from(folded as u64));
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let folded = from.small()?;
        Ok(Self((folded >> 1) as i64 ^ -((folded & 1) as i64)))
    }
}

impl Codec for SetOp {
    fn write(&self, out: &mut Writer) {
        let (number, member) = match self {
            Self::Add(member) => (1, member),
            Self::Remove(member) => (2, member),
        };
        out.byte(number);
        member.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        match from.byte()? {
            1 => from.bytes().map(Self::Add),
            2 => from.bytes().map(Self::Remove),
            _ => Err(BadBytes::Unexpected("operation on a set")),
        }
    }
}

impl Codec for MapOp {
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Remove(field) => {
                out.byte(1);
                field.write(out);
            }
            Self::Update(field, op) => {
                out.byte(2);
                // The operation says its type, too: they may differ, and are refused then.
                field.write(out);
                write_field_op(op, out);
            }
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        match from.byte()? {
            1 => Field::read(from).map(Self::Remove),
            2 => Ok(Self::Update(Field::read(from)?, read_field_op(from)?)),
            _ => Err(BadBytes::Unexpected("operation on a map")),
        }
    }
}

fn write_field_op(op: &FieldOp, out: &mut Writer) {
    let kind = match op {
        FieldOp::Counter(_) => FieldType::Counter,
        FieldOp::Register { .. } => FieldType::Register,
        FieldOp::Map(_) => FieldType::Map,
        FieldOp::Flag(_) => FieldType::Flag,
        FieldOp::Set(_) => FieldType::Set,
    };
    kind.write(out);
    match op {
        FieldOp::Counter(amount) => Amount(*amount).write(out),
        FieldOp::Register { value, time_us } => {
            value.write(out);
            out.number((*time_us).into());
        }
        FieldOp::Map(ops) => ops.write(out),
        FieldOp::Flag(is_enabled) => out.byte(u8::from(*is_enabled)),
        FieldOp::Set(ops) => ops.write(out),
    }
}

fn read_field_op(from: &mut Reader) -> Result<FieldOp, BadBytes> {
    Ok(match FieldType::read(from)? {
        FieldType::Counter => FieldOp::Counter(Amount::read(from)?.0),
        FieldType::Register => FieldOp::Register { value: from.bytes()?, time_us: from.small()? },
        FieldType::Map => FieldOp::Map(from.deeper(Codec::read)?),
        FieldType::Flag => match from.byte()? {
            0 => FieldOp::Flag(false),
            1 => FieldOp::Flag(true),
            _ => return Err(BadBytes::Unexpected("operation on a flag")),
        },
        FieldType::Set => FieldOp::Set(Codec::read(from)?),
    })
}

impl Codec for Request {
    fn write(&self, out: &mut Writer) {
        self.kind().write(out);
        match self {
            Self::Counter(amount) => Amount(*amount).write(out),
            Self::Set(ops) => ops.write(out),
            Self::Map(ops) => ops.write(out),
            Self::GSet(members) | Self::Hll(members) => members.write(out),
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        Ok(match DataType::read(from)? {
            DataType::Counter => Self::Counter(Amount::read(from)?.0),
            DataType::Set => Self::Set(Codec::read(from)?),
            DataType::Map => Self::Map(Codec::read(from)?),
            DataType::Gset => Self::GSet(Vec::<Bytes>::read(from)?),
            DataType::Hll => Self::Hll(Vec::<Bytes>::read(from)?),
        })
    }
}

impl Codec for Change {
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Request { request, context } => {
                out.byte(1);
                request.write(out);
                out.byte(u8::from(context.is_some()));
                if let Some(context) = context {
                    context.write(out);
                }
            }
            Self::Merge(state) => {
                out.byte(2);
                state.write(out);
            }
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        match from.byte()? {
            1 => {
                let request = Request::read(from)?;
                let context = match from.byte()? {
                    0 => None,
                    1 => Some(Clock::read(from)?),
                    _ => return Err(BadBytes::Unexpected("context")),
                };
                Ok(Self::Request { request, context })
            }
            2 => State::read(from).map(Self::Merge),
            _ => Err(BadBytes::Unexpected("change")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nested(depth: usize) -> Change {
        let field = || Field { name: Bytes::from_static(b"m"), kind: FieldType::Map };
        let ops = (0..depth).fold(Vec::new(), |ops, _| vec![MapOp::Update(field(), FieldOp::Map(ops))]);
        Change::Request { request: Request::Map(ops), context: None }
    }

    #[test]
    fn maps_in_requests_nest_as_deep_as_states_do() {
        let deep = nested(crate::MAP_DEPTH_MAX);
        assert_eq!(Change::from_bytes(&deep.to_bytes()), Ok(deep));
        assert_eq!(Change::from_bytes(&nested(crate::MAP_DEPTH_MAX + 1).to_bytes()), Err(BadBytes::TooDeep));
    }

    #[test]
    fn amounts_of_either_sign_are_read_back() {
        for amount in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            let change = Change::Request { request: Request::Counter(amount), context: Some(Clock::default()) };
            assert_eq!(Change::from_bytes(&change.to_bytes()), Ok(change));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_change_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let bytes = Bytes::from([&[1], &bytes[..]].concat());
            if let Ok(change) = Change::from_bytes(&bytes) {
                prop_assert_eq!(Change::from_bytes(&change.to_bytes()), Ok(change));
            }
        }
    }
}
