//! A backup of all stores of a partition, cut at one append.

use crate::backup::{StoreBackup, StoreCut};
use crate::error::StorageError;
use crate::seq::SeqSource;
use parking_lot::RwLock;
use std::path::Path;

pub(super) struct MultiBackup<'a> {
    pub(super) gate: &'a RwLock<()>,
    pub(super) seqs: &'a SeqSource,
    /// The backups of the stores that have files, with the stores' names.
    pub(super) stores: Vec<(&'a str, Box<dyn StoreBackup + 'a>)>,
    /// The names of the stores that have no files.
    pub(super) left_out: Vec<&'a str>,
    pub(super) seq: u64,
}

impl StoreBackup for MultiBackup<'_> {
    fn cut(&mut self) -> u64 {
        // While the gate is held, no write can fall between the cuts of two stores.
        let _cutting = self.gate.write();
        for (_, store) in &mut self.stores {
            store.cut();
        }
        self.seq = self.seqs.last();
        self.seq
    }

    fn roots(&self) -> Vec<&Path> {
        self.stores.iter().flat_map(|(_, store)| store.roots()).collect()
    }

    fn left_out(&self) -> Vec<&str> {
        self.left_out.clone()
    }

    fn finish(self: Box<Self>) -> Result<Vec<StoreCut>, StorageError> {
        let Self { stores, seq, .. } = *self;
        let mut cuts = Vec::with_capacity(stores.len());
        for (name, store) in stores {
            let named = |cut| StoreCut { name: Some(name.to_owned()), seq, ..cut };
            cuts.extend(store.finish()?.into_iter().map(named));
        }
        Ok(cuts)
    }
}
