//! Files, charts and comparisons (spec/basho-bench.md §6, §7).
