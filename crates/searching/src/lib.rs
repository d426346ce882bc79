//! Search on a node: it follows the stores with its indexes, and answers queries over all nodes.
