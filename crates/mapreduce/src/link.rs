//! Link phases: which links of an object are followed.

use bytes::Bytes;
use ombak_types::Object;
use ombak_types::etf::Term;

/// What a link phase follows. `None` stands for any bucket, or any tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkMatch {
    /// The bucket of the target.
    pub bucket: Option<Bytes>,
    /// The tag of the link.
    pub tag: Option<Bytes>,
}

impl LinkMatch {
    /// The links of an object that match, as `[Bucket,Key,Tag]`. Links of all siblings count; a
    /// link that several of them have counts once. A missing object has no links.
    pub fn links_of(&self, object: Option<&Object>) -> Vec<Term> {
        let wanted = |pattern: &Option<Bytes>, text: &Bytes| pattern.as_ref().is_none_or(|wanted| wanted == text);
        let siblings = object.map(|object| object.siblings.as_slice()).unwrap_or_default();
        let mut found = Vec::new();
        for link in siblings.iter().flat_map(|sibling| &sibling.meta.links) {
            if wanted(&self.bucket, &link.bucket) && wanted(&self.tag, &link.tag) && !found.contains(&link) {
                found.push(link);
            }
        }
        let texts = |link: &ombak_types::Link| {
            Term::List(
                [&link.bucket, &link.key, &link.tag].into_iter().map(|text| Term::Binary(text.clone())).collect(),
            )
        };
        found.into_iter().map(texts).collect()
    }
}
