//! The processes of functions in tests.

/// Makes a test program one that runs functions, too: defines `program()`, which gives the
/// [`WorkerProgram`](crate::WorkerProgram) for a pool. It is this test program, executed to run
/// only a test that serves. Use it once in a module.
#[macro_export]
macro_rules! function_worker_of_tests {
    () => {
        #[test]
        fn function_worker() {
            if $crate::WorkerProgram::is_this_process() {
                $crate::serve();
            }
        }

        fn program() -> $crate::WorkerProgram {
            // The names of tests do not begin with that of their crate.
            let test = concat!(module_path!(), "::function_worker");
            let (_, test) = test.split_once("::").unwrap();
            $crate::WorkerProgram::this(&["--exact", test]).unwrap()
        }
    };
}
