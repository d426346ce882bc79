//! Crashes of ledgers. Ledgers are on the real file system, where no power can be cut. So this
//! module remembers their state before the last change. A crash restores that state, or a mixture
//! of it and the current one. Corruption changes anything.

use crate::common::Random;
use ombak_storage::fs::sim::FaultyFs;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The file that names the current state of a ledger. The library replaces it atomically.
const CURRENT: &str = "current";

type Image = BTreeMap<PathBuf, Vec<u8>>;
/// For each ledger, the inode of the file that names its state.
type States = BTreeMap<PathBuf, u64>;

/// The ledgers below a root.
pub struct Ledgers {
    root: PathBuf,
    /// Their files at each change.
    images: Vec<Image>,
    /// The last state.
    seen: States,
    /// Whether the last change came right before the power was cut.
    is_torn: bool,
    is_off: bool,
}

fn visit_files(dir: &Path, visit: &mut impl FnMut(PathBuf)) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => visit_files(&entry.path(), visit),
            false => visit(entry.path()),
        }
    }
}

fn read_files(root: &Path) -> Image {
    let mut image = Image::new();
    visit_files(root, &mut |path| {
        let content = fs::read(&path).unwrap();
        image.insert(path, content);
    });
    image
}

fn states(root: &Path) -> States {
    let mut states = States::new();
    // Ledgers are directly below the root, or one level deeper.
    let mut dirs = vec![(root.to_owned(), 0)];
    while let Some((dir, depth)) = dirs.pop() {
        if let Ok(meta) = fs::metadata(dir.join(CURRENT)) {
            states.insert(dir, meta.ino());
        } else if depth < 2
            && let Ok(entries) = fs::read_dir(&dir)
        {
            dirs.extend(entries.map(|entry| (entry.unwrap().path(), depth + 1)));
        }
    }
    states
}

impl Ledgers {
    /// Watches the ledgers of a store on this disk.
    pub fn watch(fs: &FaultyFs, root: &Path) -> Arc<Mutex<Self>> {
        let seen = states(root);
        let images = vec![read_files(root)];
        let ledgers = Self { root: root.to_owned(), images, seen, is_torn: false, is_off: false };
        let ledgers = Arc::new(Mutex::new(ledgers));
        let watched = ledgers.clone();
        fs.observe(move |is_off| watched.lock().unwrap().note(is_off));
        ledgers
    }

    /// Called before each call to the file system: records changes of ledgers since the last one.
    fn note(&mut self, is_off: bool) {
        if self.is_off {
            // Changes after the power cut are undone.
            return;
        }
        let now = states(&self.root);
        self.is_torn = now != self.seen;
        if self.is_torn {
            self.seen = now;
            self.images.push(read_files(&self.root));
        }
        self.is_off = is_off;
    }

    fn restore(&self, image: &Image) {
        let _ = fs::remove_dir_all(&self.root);
        for (path, content) in image {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    /// The machine stops: a change that was under way is partly undone.
    pub fn crash(&mut self, random: &mut Random) {
        self.note(true);
        let last = self.images.len() - 1;
        if !self.is_torn || last == 0 || random.below(3) == 0 {
            return self.restore(&self.images[last]);
        }
        let (before, after) = (&self.images[last - 1], &self.images[last]);
        // New files may be there in part while nothing names them. Old files can be gone only after
        // the change.
        self.restore(before);
        let is_new = |path: &Path| !before.contains_key(path) && !path.ends_with(CURRENT);
        for (path, content) in after.iter().filter(|(path, _)| is_new(path)) {
            let length = random.below(content.len() as u64 + 1) as usize;
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match random.below(3) {
                0 => {}
                1 => fs::write(path, &content[..length]).unwrap(),
                _ => fs::write(path, [&content[..length], &vec![0; content.len() - length]].concat()).unwrap(),
            }
        }
    }

    /// Corrupts or loses data of the ledgers, and returns a description.
    pub fn rot(&self, random: &mut Random) -> String {
        let files: Vec<PathBuf> = read_files(&self.root).into_keys().collect();
        let choice = if files.is_empty() { 8 } else { random.below(8) };
        if choice == 0 {
            let past = random.below(self.images.len() as u64) as usize;
            self.restore(&self.images[past]);
            return format!("ledgers as they were {} changes ago", self.images.len() - 1 - past);
        }
        if choice == 8 {
            return "no ledger to damage".to_owned();
        }
        let path = &files[random.below(files.len() as u64) as usize];
        let mut content = fs::read(path).unwrap();
        let at = random.below(content.len() as u64 + 1) as usize;
        let what = match choice {
            1 => {
                fs::remove_file(path).unwrap();
                "removed"
            }
            2 => {
                fs::write(path, &content[..at]).unwrap();
                "cut off"
            }
            3 => {
                content[at..].fill(0);
                fs::write(path, &content).unwrap();
                "zeroed behind"
            }
            4 => {
                fs::remove_dir_all(path.parent().unwrap()).unwrap();
                "removed with its directory"
            }
            _ if content.is_empty() => "empty",
            _ => {
                let at = at.min(content.len() - 1);
                content[at] ^= 1 << random.below(8);
                fs::write(path, &content).unwrap();
                "a bit flipped"
            }
        };
        format!("{}: {what} at {at}", path.strip_prefix(&self.root).unwrap().display())
    }
}
