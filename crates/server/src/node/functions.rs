//! The functions in JavaScript of a node: their threads, and where they are found.

use crate::config::FunctionSettings;
use ombak_functions::{
    Catalogue, FunctionPool, PoolConfig, Registered, RegisteredFunctions, WorkerProgram, check_program,
};
use ombak_hooks::NodeHooks;
use ombak_jobs::JobFunctions;
use ombak_kv::Kv;
use ombak_kv::buckets::FunctionsNamespace;
use ombak_kv::hooks::CommitHooks;
use ombak_runtime::Runtime;
use ombak_script::{Limits, Program, SOURCE_BYTES_MAX};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The argument with which a node executes its program as a process for functions.
pub const WORKER_ARGUMENT: &str = "function-worker";

/// How many bytes all libraries may have together. Each session compiles them.
const LIBRARIES_BYTES_MAX: usize = 4 << 20;

/// A function that does nothing, to see whether a library can be loaded.
const NOTHING: &str = "function() {}";

/// The threads for functions, and where functions are found.
#[derive(Clone)]
pub struct NodeFunctions {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) pool: FunctionPool,
    pub(super) catalogue: Catalogue,
    namespace: Arc<FunctionsNamespace>,
}

impl NodeFunctions {
    /// Reads the libraries of a node. It starts no threads that stay. The error is one line for the
    /// operator.
    pub fn open(settings: &FunctionSettings, runtime: Arc<dyn Runtime>) -> Result<Self, String> {
        let program = WorkerProgram::this(&[WORKER_ARGUMENT])
            .map_err(|why| format!("the program cannot find itself to run functions: {why}"))?;
        let libraries = match &settings.source_dir {
            Some(dir) => read_libraries(dir, settings.limits(), &program)?,
            None => Vec::new(),
        };
        let config = PoolConfig {
            map_threads: settings.map_threads,
            reduce_threads: settings.reduce_threads,
            hook_threads: settings.hook_threads,
            limits: settings.limits(),
            ..PoolConfig::default()
        };
        let namespace = Arc::<FunctionsNamespace>::default();
        let registered = Arc::new(OfOperators(namespace.clone()));
        let catalogue = Catalogue::new(registered, libraries, settings.allows_anonymous);
        Ok(Self { pool: FunctionPool::new(runtime.clone(), config, program), catalogue, runtime, namespace })
    }

    /// The commit hooks of the node.
    pub fn hooks(&self) -> Arc<dyn CommitHooks> {
        Arc::new(NodeHooks::new(self.runtime.clone(), self.pool.clone(), self.catalogue.clone()))
    }

    /// The namespace of the metadata that has the functions of operators.
    pub fn namespace(&self) -> Arc<FunctionsNamespace> {
        self.namespace.clone()
    }

    /// The functions of MapReduce jobs.
    pub fn of_jobs(&self) -> JobFunctions {
        JobFunctions { pool: self.pool.clone(), catalogue: self.catalogue.clone() }
    }

    /// Shows what is counted about the threads in the statistics of the node.
    pub fn show_figures(&self, kv: &Kv) {
        kv.stats().attach(self.pool.feature());
    }

    /// Ends the functions that run.
    pub fn stop(&self) {
        self.pool.stop();
    }
}

/// The functions in the metadata.
struct OfOperators(Arc<FunctionsNamespace>);

impl RegisteredFunctions for OfOperators {
    fn registered(&self, name: &str) -> Option<Registered> {
        self.0.get(name).map(|function| Registered { source: function.source, version: function.digest })
    }
}

/// Reads the files `*.js` of a directory, in the order of their names, and checks that they can be
/// loaded one after the other.
fn read_libraries(dir: &Path, limits: Limits, worker: &WorkerProgram) -> Result<Vec<Arc<str>>, String> {
    let fails = |path: &Path, why: &dyn std::fmt::Display| {
        format!("javascript.source_dir: {} cannot be read: {why}", path.display())
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(|why| fails(dir, &why))? {
        let path = entry.map_err(|why| fails(dir, &why))?.path();
        if path.extension().is_some_and(|extension| extension == "js") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut libraries = Vec::new();
    let mut bytes = 0;
    for path in paths {
        let length = fs::metadata(&path).map_err(|why| fails(&path, &why))?.len();
        if length > SOURCE_BYTES_MAX as u64 {
            return Err(fails(&path, &format!("it is longer than {SOURCE_BYTES_MAX} bytes")));
        }
        let source = fs::read_to_string(&path).map_err(|why| fails(&path, &why))?;
        bytes += source.len();
        if bytes > LIBRARIES_BYTES_MAX {
            return Err(fails(&path, &format!("the files together are longer than {LIBRARIES_BYTES_MAX} bytes")));
        }
        libraries.push((path, Arc::from(source)));
    }
    check(libraries, limits, worker)
}

/// Loads each library behind those before it.
fn check(libraries: Vec<(PathBuf, Arc<str>)>, limits: Limits, worker: &WorkerProgram) -> Result<Vec<Arc<str>>, String> {
    let mut program = Program::source(NOTHING).map_err(|why| why.to_string())?;
    for (path, source) in &libraries {
        let fails = |why: &dyn std::fmt::Display| format!("javascript.source_dir: {}: {why}", path.display());
        program = program.with_library(source.clone()).map_err(|why| fails(&why))?;
        check_program(worker, &program, &limits).map_err(|why| fails(&why))?;
    }
    Ok(libraries.into_iter().map(|(_, source)| source).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    ombak_functions::function_worker_of_tests!();

    fn libraries(files: &[(&str, &str)]) -> Result<Vec<Arc<str>>, String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        read_libraries(dir.path(), Limits::default(), &program())
            .map_err(|why| why.replace(&dir.path().display().to_string(), "DIR"))
    }

    #[test]
    fn libraries_are_loaded_in_the_order_of_their_names() {
        let (one, two) = ("var one = 1;", "var two = one + 1;");
        assert_eq!(libraries(&[("b.js", two), ("a.js", one), ("c.txt", "no")]), Ok(vec![one.into(), two.into()]));
        let why = libraries(&[("a.js", two), ("b.js", one)]).unwrap_err();
        assert!(why.starts_with("javascript.source_dir: DIR/a.js: ReferenceError: one is not defined"), "{why}");
    }

    #[test]
    fn a_library_that_cannot_be_loaded_is_named_with_the_line() {
        let why = libraries(&[("a.js", "var one = 1;\nvar two = ;")]).unwrap_err();
        assert!(why.starts_with("javascript.source_dir: DIR/a.js: SyntaxError"), "{why}");
        assert!(why.ends_with("(line 2)"), "{why}");
        let long = " ".repeat(SOURCE_BYTES_MAX + 1);
        assert!(libraries(&[("a.js", &long)]).unwrap_err().contains("longer than 1048576 bytes"));
        assert!(read_libraries(Path::new("/does/not/exist"), Limits::default(), &program()).is_err());
    }
}
