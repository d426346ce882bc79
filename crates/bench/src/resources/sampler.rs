//! Takes samples of a process and its data directory.

use std::io;
use std::path::PathBuf;

use super::{ResourceSample, disk, process};

/// Takes samples of a process and its data directory.
#[derive(Debug)]
pub struct Sampler {
    pid: Option<u32>,
    data_dir: Option<PathBuf>,
    /// The numbers that were not available. Each causes one warning.
    warned: Vec<&'static str>,
    warnings: Vec<String>,
}

impl Sampler {
    /// Creates a sampler of a process and a data directory. Either may be missing.
    pub fn new(pid: Option<u32>, data_dir: Option<PathBuf>) -> Self {
        Self { pid, data_dir, warned: Vec::new(), warnings: Vec::new() }
    }

    /// Whether there is nothing to sample.
    pub fn is_idle(&self) -> bool {
        self.pid.is_none() && self.data_dir.is_none()
    }

    /// Takes a sample, `elapsed_s` seconds after the start of the run. This walks the data
    /// directory, so it must not be called on a thread that may not block.
    pub fn sample(&mut self, elapsed_s: f64) -> ResourceSample {
        let mut sample = ResourceSample { elapsed_s, ..ResourceSample::default() };
        if let Some(pid) = self.pid {
            sample.cpu_s = self.known("processor time", process::cpu_s(pid));
            sample.rss_bytes = self.known("memory", process::rss_bytes(pid));
            let disk = self.known("bytes read and written", process::disk_bytes(pid));
            sample.read_bytes = disk.map(|disk| disk.read);
            sample.written_bytes = disk.map(|disk| disk.written);
        }
        if let Some(dir) = self.data_dir.take() {
            sample.disk_bytes = self.known("disk space", disk::used_bytes(&dir));
            self.data_dir = Some(dir);
        }
        sample
    }

    /// The new warnings about numbers that were not available, one per line. Each is returned once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn known<T>(&mut self, what: &'static str, answer: io::Result<T>) -> Option<T> {
        if let Err(error) = &answer
            && !self.warned.contains(&what)
        {
            self.warned.push(what);
            self.warnings.push(format!("resources: no {what}: {error}"));
        }
        answer.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn this_process_and_a_directory_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let mut sampler = Sampler::new(Some(std::process::id()), Some(dir.path().to_owned()));
        let before = sampler.sample(0.0);
        fs::create_dir(dir.path().join("part")).unwrap();
        fs::write(dir.path().join("part/file"), vec![1; 100_000]).unwrap();
        let after = sampler.sample(1.0);

        assert_eq!(after.elapsed_s, 1.0);
        assert!(after.cpu_s.unwrap() >= before.cpu_s.unwrap());
        assert!(after.rss_bytes.unwrap() > 100_000);
        assert!(after.disk_bytes.unwrap() >= before.disk_bytes.unwrap() + 100_000, "{before:?} {after:?}");
        assert!(after.disk_bytes.unwrap() < before.disk_bytes.unwrap() + 200_000, "{before:?} {after:?}");
    }

    #[test]
    fn what_is_not_there_is_said_once() {
        // This is above the highest process id of Linux.
        let mut sampler = Sampler::new(Some(u32::MAX), Some(PathBuf::from("/nowhere/at/all")));
        assert_eq!(sampler.sample(2.5), ResourceSample { elapsed_s: 2.5, ..ResourceSample::default() });
        let warnings = sampler.take_warnings();
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(
            warnings.iter().any(|line| line.contains("disk space") && line.contains("/nowhere/at/all")),
            "{warnings:?}"
        );
        sampler.sample(3.0);
        assert_eq!(sampler.take_warnings(), Vec::<String>::new());
    }

    #[test]
    fn nothing_to_look_at_is_no_error() {
        let mut sampler = Sampler::new(None, None);
        assert!(sampler.is_idle());
        assert_eq!(sampler.sample(1.0), ResourceSample { elapsed_s: 1.0, ..ResourceSample::default() });
        assert_eq!(sampler.take_warnings(), Vec::<String>::new());
    }
}
