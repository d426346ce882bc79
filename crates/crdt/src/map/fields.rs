//! The fields of a map with what they hold: a tree whose leaves are dots.

use super::content::Content;
use super::removal::{Removal, Target};
use crate::dot_map::Dots;
use crate::field::Field;
use crate::{Clock, Dot};
use std::collections::BTreeMap;

/// A field that is in a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The requests because of which the field is there. A request replaces those that it has seen.
    pub(crate) presence: Dots,
    pub(crate) content: Content,
}

/// Fields in the order in which values show them. The map at the top and all maps in it share one
/// clock.
///
/// No field is without presence, neither in a state nor in a delta.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    by_field: BTreeMap<Field, Entry>,
}

impl Entry {
    pub(crate) fn new(field: &Field) -> Self {
        Self { presence: Dots::default(), content: Content::new(field.kind) }
    }

    fn subtract(&mut self, context: &Clock) {
        self.presence.subtract(context);
        self.content.subtract(context);
    }

    fn join(&mut self, clock: &Clock, other: &Self, other_clock: &Clock, is_delta: bool) {
        self.presence = self.presence.join(clock, &other.presence, other_clock);
        self.content.join(clock, &other.content, other_clock, is_delta);
    }
}

impl Fields {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Field, &Entry)> {
        self.by_field.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_field.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_field.is_empty()
    }

    pub(crate) fn get(&self, field: &Field) -> Option<&Entry> {
        self.by_field.get(field)
    }

    pub(crate) fn insert(&mut self, field: Field, entry: Entry) {
        self.by_field.insert(field, entry);
    }

    pub(crate) fn entry(&mut self, field: &Field) -> &mut Entry {
        self.by_field.entry(field.clone()).or_insert_with(|| Entry::new(field))
    }

    pub(crate) fn forget(&mut self, field: &Field) {
        self.by_field.remove(field);
    }

    /// Merges another copy; with `is_delta`, one that names only some of the fields.
    pub(crate) fn join(&mut self, clock: &Clock, other: &Self, other_clock: &Clock, is_delta: bool) {
        if !is_delta {
            self.by_field.retain(|field, entry| {
                if !other.by_field.contains_key(field) {
                    entry.subtract(other_clock);
                }
                !entry.presence.is_empty()
            });
        }
        for (field, theirs) in &other.by_field {
            let ours = self.entry(field);
            ours.join(clock, theirs, other_clock, is_delta);
            if ours.presence.is_empty() {
                self.by_field.remove(field);
            }
        }
    }

    /// Removes what a context has seen.
    pub(crate) fn subtract(&mut self, context: &Clock) {
        self.by_field.retain(|_, entry| {
            entry.subtract(context);
            !entry.presence.is_empty()
        });
    }

    /// Removes at a place what a context has seen. Nothing happens if the place does not exist.
    pub(crate) fn remove(&mut self, removal: &Removal, context: &Clock) {
        let Some((last, above)) = removal.path.split_last() else { return };
        let mut fields = self;
        for field in above {
            match fields.by_field.get_mut(field) {
                Some(Entry { content: Content::Map(inner), .. }) => fields = inner,
                _ => return,
            }
        }
        let Some(entry) = fields.by_field.get_mut(last) else { return };
        match (&removal.target, &mut entry.content) {
            (Target::Field, _) => {
                entry.subtract(context);
                if entry.presence.is_empty() {
                    fields.by_field.remove(last);
                }
            }
            (Target::Member(member), Content::Set(members)) => members.remove(member, context),
            (Target::Flag, Content::Flag(dots)) => dots.subtract(context),
            _ => {}
        }
    }

    /// Drops the members without dots, of which only a delta tells.
    pub(crate) fn drop_empty(&mut self) {
        for entry in self.by_field.values_mut() {
            match &mut entry.content {
                Content::Map(fields) => fields.drop_empty(),
                Content::Set(members) => members.drop_empty(),
                Content::Counter(_) | Content::Register(_) | Content::Flag(_) => {}
            }
        }
    }

    /// Adds all dots to a list.
    pub(crate) fn list_dots<'a>(&'a self, dots: &mut Vec<&'a Dot>) {
        for entry in self.by_field.values() {
            dots.extend(entry.presence.dots());
            entry.content.list_dots(dots);
        }
    }
}
