//! The bytes of whole states, and of deltas.

use super::leaves::read_all;
use super::{Codec, Reader, Writer};
use crate::counter::Tally;
use crate::riak::{dense_registers, read_dense_registers};
use crate::{BadBytes, Clock, Counter, Delta, GSet, Hll, HllDelta, Map, MapDelta, Precision, Set, SetDelta, State};
use bytes::Bytes;
use ombak_types::Actor;
use ombak_types::props::DataType;

impl Codec for Counter {
    fn write(&self, out: &mut Writer) {
        out.len(self.actor_count());
        for (actor, tally) in self.tallies() {
            actor.write(out);
            tally.write(out);
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let mut counter = Self::new();
        for (actor, tally) in read_all::<(Actor, Tally), Vec<_>>(from)? {
            counter.insert(actor, tally);
        }
        Ok(counter)
    }
}

impl Codec for GSet {
    fn write(&self, out: &mut Writer) {
        super::leaves::write_all(self.members(), self.len(), out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        read_all::<Bytes, _>(from)
    }
}

impl Codec for Set {
    fn write(&self, out: &mut Writer) {
        self.clock.write(out);
        self.members.write(out);
        self.deferred.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let mut clock = Clock::read(from)?;
        let (members, seen) = from.with_clock()?;
        clock.merge(&seen);
        let mut set = Self { clock, members, deferred: Codec::read(from)? };
        set.members.drop_empty();
        set.apply_deferred();
        Ok(set)
    }
}

impl Codec for SetDelta {
    fn write(&self, out: &mut Writer) {
        self.before.write(out);
        self.after.write(out);
        self.members.write(out);
        self.removals.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let (before, mut after) = (Clock::read(from)?, Clock::read(from)?);
        let (members, seen) = from.with_clock()?;
        after.merge(&before);
        after.merge(&seen);
        Ok(Self { before, after, members, removals: Codec::read(from)? })
    }
}

impl Codec for Map {
    fn write(&self, out: &mut Writer) {
        self.clock.write(out);
        self.fields.write(out);
        self.deferred.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let mut clock = Clock::read(from)?;
        let (fields, seen) = from.with_clock()?;
        clock.merge(&seen);
        let mut map = Self { clock, fields, deferred: Codec::read(from)? };
        map.fields.drop_empty();
        map.apply_deferred();
        Ok(map)
    }
}

impl Codec for MapDelta {
    fn write(&self, out: &mut Writer) {
        self.before.write(out);
        self.after.write(out);
        self.fields.write(out);
        self.removals.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let (before, mut after) = (Clock::read(from)?, Clock::read(from)?);
        let (fields, seen) = from.with_clock()?;
        after.merge(&before);
        after.merge(&seen);
        Ok(Self { before, after, fields, removals: Codec::read(from)? })
    }
}

impl Codec for Precision {
    fn write(&self, out: &mut Writer) {
        out.byte(self.bits());
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        Self::new(from.byte()?.into()).ok_or(BadBytes::Unexpected("precision"))
    }
}

/// A register that has a value: how far it is behind the one before it, and the value.
fn write_registers(registers: impl Iterator<Item = (u32, u8)>, len: usize, out: &mut Writer) {
    out.len(len);
    let mut next = 0;
    for (index, value) in registers {
        out.number(u128::from(index - next));
        out.byte(value);
        next = index + 1;
    }
}

fn read_registers(precision: Precision, from: &mut Reader, mut take: impl FnMut(u32, u8)) -> Result<(), BadBytes> {
    let mut next = 0u128;
    for _ in 0..from.len()? {
        let index = next.saturating_add(from.number()?);
        let value = from.byte()?;
        if index >= precision.registers() as u128 || !(1..=Hll::REGISTER_MAX).contains(&value) {
            return Err(BadBytes::TooLarge);
        }
        take(index as u32, value);
        next = index + 1;
    }
    Ok(())
}

/// Whether the registers follow one by one, or six bits each.
const SPARSE: u8 = 0;
const DENSE: u8 = 1;

impl Codec for Hll {
    fn write(&self, out: &mut Writer) {
        self.precision().write(out);
        let set = || (0u32..).zip(self.registers().iter().copied()).filter(|(_, value)| *value > 0);
        let len = set().count();
        // A register takes two bytes alone, and three quarters of a byte with all others.
        if len > self.registers().len() * 3 / 8 {
            out.byte(DENSE);
            out.bytes(&dense_registers(self.registers()));
        } else {
            out.byte(SPARSE);
            write_registers(set(), len, out);
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let mut hll = Self::new(Precision::read(from)?);
        match from.byte()? {
            SPARSE => read_registers(hll.precision(), from, |index, value| hll.raise(index as usize, value))?,
            DENSE => read_dense_registers(&from.bytes()?, &mut hll)?,
            _ => return Err(BadBytes::Unexpected("registers")),
        }
        Ok(hll)
    }
}

impl Codec for HllDelta {
    fn write(&self, out: &mut Writer) {
        self.precision.write(out);
        write_registers(self.registers.iter().map(|(index, value)| (*index, *value)), self.registers.len(), out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let mut delta = Self { precision: Precision::read(from)?, registers: Default::default() };
        read_registers(delta.precision, from, |index, value| {
            delta.registers.insert(index, value);
        })?;
        Ok(delta)
    }
}

/// The numbers of the data types. They are stored, so they stay.
impl Codec for DataType {
    fn write(&self, out: &mut Writer) {
        out.byte(match self {
            Self::Counter => 1,
            Self::Set => 2,
            Self::Map => 3,
            Self::Gset => 4,
            Self::Hll => 5,
        });
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        match from.byte()? {
            1 => Ok(Self::Counter),
            2 => Ok(Self::Set),
            3 => Ok(Self::Map),
            4 => Ok(Self::Gset),
            5 => Ok(Self::Hll),
            _ => Err(BadBytes::UnknownType),
        }
    }
}

impl Codec for State {
    fn write(&self, out: &mut Writer) {
        self.kind().write(out);
        match self {
            Self::Counter(counter) => counter.write(out),
            Self::Set(set) => set.write(out),
            Self::Map(map) => map.write(out),
            Self::GSet(set) => set.write(out),
            Self::Hll(hll) => hll.write(out),
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        match DataType::read(from)? {
            DataType::Counter => Codec::read(from).map(Self::Counter),
            DataType::Set => Codec::read(from).map(Self::Set),
            DataType::Map => Codec::read(from).map(Self::Map),
            DataType::Gset => Codec::read(from).map(Self::GSet),
            DataType::Hll => Codec::read(from).map(Self::Hll),
        }
    }
}

impl Codec for Delta {
    fn write(&self, out: &mut Writer) {
        self.kind().write(out);
        match self {
            Self::Counter(delta) => delta.write(out),
            Self::Set(delta) => delta.write(out),
            Self::Map(delta) => delta.write(out),
            Self::GSet(delta) => delta.write(out),
            Self::Hll(delta) => delta.write(out),
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        match DataType::read(from)? {
            DataType::Counter => Codec::read(from).map(Self::Counter),
            DataType::Set => Codec::read(from).map(Self::Set),
            DataType::Map => Codec::read(from).map(Self::Map),
            DataType::Gset => Codec::read(from).map(Self::GSet),
            DataType::Hll => Codec::read(from).map(Self::Hll),
        }
    }
}
