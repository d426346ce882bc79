//! The machine that runs the load generator.

use std::thread::available_parallelism;

/// The machine's name, operating system, architecture and number of processors, in one line for
/// people.
pub fn host() -> String {
    let system = rustix::system::uname();
    let [name, kernel, release, machine] =
        [system.nodename(), system.sysname(), system.release(), system.machine()].map(|text| text.to_string_lossy());
    let processors = available_parallelism().map_or_else(|_| "?".to_owned(), |count| count.to_string());
    format!("{name}: {kernel} {release} {machine}, {processors} processors")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_and_processors() {
        let host = host();
        assert!(host.contains(": ") && host.ends_with(" processors") && !host.contains('?'), "{host}");
    }
}
