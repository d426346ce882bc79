//! The index of a node for one search index: documents on disk, and the queries over them.
