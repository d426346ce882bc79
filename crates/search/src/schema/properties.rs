//! What a field does with values.

/// What a field does with values. A field has the properties of its type, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Values can be searched and sorted by.
    pub is_indexed: bool,
    /// Values are in answers.
    pub is_stored: bool,
    /// A document can have several values.
    pub is_multi_valued: bool,
    /// A document without a value is refused.
    pub is_required: bool,
    /// Documents without a value come first, in whichever order.
    pub sorts_missing_first: bool,
    /// Documents without a value come last, in whichever order.
    pub sorts_missing_last: bool,
}

impl Properties {
    /// The defaults of version 1.5 of Solr's schemas.
    pub const DEFAULT: Self = Self {
        is_indexed: true,
        is_stored: true,
        is_multi_valued: false,
        is_required: false,
        sorts_missing_first: false,
        sorts_missing_last: false,
    };

    /// Sets what an attribute says. Solr takes every value but `true` for false. Whether the
    /// attribute is one of a field, even if it has no effect.
    pub(super) fn set(&mut self, name: &str, value: &str) -> bool {
        let property = match name {
            "indexed" => &mut self.is_indexed,
            "stored" => &mut self.is_stored,
            "multiValued" => &mut self.is_multi_valued,
            "required" => &mut self.is_required,
            "sortMissingFirst" => &mut self.sorts_missing_first,
            "sortMissingLast" => &mut self.sorts_missing_last,
            // How an index is laid out is not the schema's to say here.
            "docValues"
            | "omitNorms"
            | "omitTermFreqAndPositions"
            | "omitPositions"
            | "termVectors"
            | "termPositions"
            | "termOffsets"
            | "termPayloads"
            | "storeOffsetsWithPositions"
            | "compressed"
            | "tokenized"
            | "binary" => return true,
            _ => return false,
        };
        *property = value.eq_ignore_ascii_case("true");
        true
    }
}
