//! Pages and pictures of runs that were made up.
