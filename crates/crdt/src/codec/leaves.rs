//! The bytes of clocks, dots and what is under dots.

use super::{Codec, Reader, Writer};
use crate::counter::Tally;
use crate::deferred::Deferred;
use crate::dot_map::DotMap;
use crate::map::Assignment;
use crate::{BadBytes, Clock, Dot};
use bytes::Bytes;
use ombak_types::Actor;

/// Reads as many values as a length says.
pub(super) fn read_all<T: Codec, C: FromIterator<T>>(from: &mut Reader) -> Result<C, BadBytes> {
    let len = from.len()?;
    (0..len).map(|_| T::read(from)).collect()
}

/// Writes a length, and the values.
pub(super) fn write_all<'a, T: Codec + 'a>(values: impl Iterator<Item = &'a T>, len: usize, out: &mut Writer) {
    out.len(len);
    values.for_each(|value| value.write(out));
}

impl Codec for () {
    fn write(&self, _: &mut Writer) {}

    fn read(_: &mut Reader) -> Result<Self, BadBytes> {
        Ok(())
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        Ok((A::read(from)?, B::read(from)?))
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn write(&self, out: &mut Writer) {
        write_all(self.iter(), self.len(), out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        read_all(from)
    }
}

impl Codec for Bytes {
    fn write(&self, out: &mut Writer) {
        out.bytes(self);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        from.bytes()
    }
}

impl Codec for Actor {
    fn write(&self, out: &mut Writer) {
        out.actor(self);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        from.lone_actor()
    }
}

impl Codec for Dot {
    fn write(&self, out: &mut Writer) {
        out.actor(&self.actor);
        out.number(self.count.into());
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        from.dot()
    }
}

impl Codec for Clock {
    fn write(&self, out: &mut Writer) {
        write_all(self.iter(), self.len(), out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let dots: Vec<Dot> = read_all(from)?;
        Ok(dots.iter().collect())
    }
}

impl<V: Codec + Clone + Ord> Codec for DotMap<V> {
    fn write(&self, out: &mut Writer) {
        out.len(self.len());
        for (dot, value) in self.iter() {
            dot.write(out);
            value.write(out);
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        // Most members have one dot.
        match from.len()? {
            1 => Ok(Self::of(Dot::read(from)?, V::read(from)?)),
            len => (0..len).map(|_| <(Dot, V)>::read(from)).collect(),
        }
    }
}

impl Codec for Tally {
    fn write(&self, out: &mut Writer) {
        out.number(self.added);
        out.number(self.subtracted);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        Ok(Self { added: from.number()?, subtracted: from.number()? })
    }
}

impl Codec for Assignment {
    fn write(&self, out: &mut Writer) {
        out.number(self.time_us.into());
        self.value.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        Ok(Self { time_us: from.small()?, value: from.bytes()? })
    }
}

impl<T: Codec + Ord + Clone> Codec for Deferred<T> {
    fn write(&self, out: &mut Writer) {
        out.len(self.len());
        for (context, targets) in self.iter() {
            context.write(out);
            write_all(targets.iter(), targets.len(), out);
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let mut deferred = Self::default();
        for _ in 0..from.len()? {
            let context = Clock::read(from)?;
            for target in read_all::<T, Vec<T>>(from)? {
                deferred.insert(&context, target);
            }
        }
        Ok(deferred)
    }
}
