//! What a crash makes of ledgers. They are on the real file system, where no power can be cut: so
//! what they were before their last change is remembered, and a crash leaves that, or something
//! between that and what they are now. Rot leaves anything at all.

use crate::common::Random;
use ombak_storage::fs::sim::FaultyFs;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Names the present state of a ledger; the library replaces it as a whole.
const CURRENT: &str = "current";

type Image = BTreeMap<PathBuf, Vec<u8>>;
/// The identities of the files that name the states of all ledgers.
type States = BTreeMap<PathBuf, u64>;

/// The ledgers under a root.
pub struct Ledgers {
    root: PathBuf,
    /// What they were at each change.
    images: Vec<Image>,
    /// The last state.
    seen: States,
    /// The last change came right before the power went.
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
    // Ledgers lie under the root, or one deeper.
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
    /// The ledgers of a store on this disk.
    pub fn watch(fs: &FaultyFs, root: &Path) -> Arc<Mutex<Self>> {
        let seen = states(root);
        let images = vec![read_files(root)];
        let ledgers = Self { root: root.to_owned(), images, seen, is_torn: false, is_off: false };
        let ledgers = Arc::new(Mutex::new(ledgers));
        let watched = ledgers.clone();
        fs.observe(move |is_off| watched.lock().unwrap().note(is_off));
        ledgers
    }

    /// Before each call to the file system: what a ledger became since the last one.
    fn note(&mut self, is_off: bool) {
        if self.is_off {
            // What is still done after the power went is undone.
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

    /// The machine stops: a change that was under way is undone in part.
    pub fn crash(&mut self, random: &mut Random) {
        self.note(true);
        let last = self.images.len() - 1;
        if !self.is_torn || last == 0 || random.below(3) == 0 {
            return self.restore(&self.images[last]);
        }
        let (before, after) = (&self.images[last - 1], &self.images[last]);
        // New files are there in part as long as nothing names them; old ones may be gone only
        // after the change.
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

    /// The disk lies, or loses what it had: what was done.
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
