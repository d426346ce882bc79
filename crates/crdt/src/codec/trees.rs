//! The bytes of members and fields.

use super::leaves::{read_all, write_all};
use super::{Codec, Reader, Writer};
use crate::dot_map::{DotMap, Dots};
use crate::map::{Content, Entry, Fields, Removal, Target};
use crate::members::Members;
use crate::{BadBytes, Field, FieldType};
use bytes::Bytes;

impl Codec for Members {
    fn write(&self, out: &mut Writer) {
        out.len(self.len());
        for (name, dots) in self.iter() {
            name.write(out);
            dots.write(out);
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        read_all::<(Bytes, Dots), _>(from)
    }
}

impl Codec for FieldType {
    fn write(&self, out: &mut Writer) {
        out.byte(match self {
            Self::Counter => 1,
            Self::Register => 2,
            Self::Map => 3,
            Self::Flag => 4,
            Self::Set => 5,
        });
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let number = from.byte()?;
        let kind = usize::from(number).checked_sub(1).and_then(|at| Self::ALL.get(at));
        kind.copied().ok_or(BadBytes::UnknownType)
    }
}

impl Codec for Field {
    fn write(&self, out: &mut Writer) {
        self.kind.write(out);
        self.name.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let kind = FieldType::read(from)?;
        Ok(Self { kind, name: from.bytes()? })
    }
}

impl Codec for Fields {
    fn write(&self, out: &mut Writer) {
        out.len(self.len());
        for (field, entry) in self.iter() {
            field.write(out);
            entry.presence.write(out);
            write_content(&entry.content, out);
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        from.deeper(|from| {
            let mut fields = Self::default();
            for _ in 0..from.len()? {
                let (field, presence) = (Field::read(from)?, Dots::read(from)?);
                let content = read_content(field.kind, from)?;
                if !presence.is_empty() {
                    fields.insert(field, Entry { presence, content });
                }
            }
            Ok(fields)
        })
    }
}

/// The type of the content is the type of its field.
fn write_content(content: &Content, out: &mut Writer) {
    match content {
        Content::Counter(tallies) => tallies.write(out),
        Content::Register(values) => values.write(out),
        Content::Map(fields) => fields.write(out),
        Content::Flag(dots) => dots.write(out),
        Content::Set(members) => members.write(out),
    }
}

fn read_content(kind: FieldType, from: &mut Reader) -> Result<Content, BadBytes> {
    Ok(match kind {
        FieldType::Counter => Content::Counter(DotMap::read(from)?),
        FieldType::Register => Content::Register(DotMap::read(from)?),
        FieldType::Map => Content::Map(Fields::read(from)?),
        FieldType::Flag => Content::Flag(Dots::read(from)?),
        FieldType::Set => Content::Set(Members::read(from)?),
    })
}

impl Codec for Removal {
    fn write(&self, out: &mut Writer) {
        write_all(self.path.iter(), self.path.len(), out);
        match &self.target {
            Target::Field => out.byte(1),
            Target::Flag => out.byte(2),
            Target::Member(member) => {
                out.byte(3);
                member.write(out);
            }
        }
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        let path = read_all(from)?;
        let target = match from.byte()? {
            1 => Target::Field,
            2 => Target::Flag,
            3 => Target::Member(from.bytes()?),
            _ => return Err(BadBytes::Unexpected("removal")),
        };
        Ok(Self { path, target })
    }
}
