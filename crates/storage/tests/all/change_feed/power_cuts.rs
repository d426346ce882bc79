//! The power goes at each call of the file system. A consumer that kept its cursor never has a
//! version that the store has not, and after it has caught up it has what a fold finds.

use super::consumer::{Consumer, fold};
use super::*;

/// A history with merges and removals while a consumer follows. Ends early when the power is off.
fn history(store: &dyn Backend, consumer: &mut Consumer) -> Result<(), StorageError> {
    store.retain_removals(Some(0))?;
    for round in 0..4u8 {
        for n in 0..8u8 {
            put(store, format!("key {n}").as_bytes(), &[round; 300])?;
        }
        // The consumer applies a walk as a whole, and only then it is durable.
        let mut next = consumer.clone();
        if follow(store, &mut next)? {
            *consumer = next;
        }
        store.retain_removals(Some(consumer.cursor.as_ref().map_or(0, |cursor| cursor.seq)))?;
        for n in 0..6u8 {
            store.delete(format!("key {n}").as_bytes())?;
        }
        let mut backup = store.begin_backup()?.expect("it has files");
        backup.cut();
        backup.finish()?;
        for _ in 0..6 {
            store.maintain(NOW_SECS)?;
        }
    }
    Ok(())
}

/// Catches up; false if the cursor is lost. It begins anew at once.
fn follow(store: &dyn Backend, consumer: &mut Consumer) -> Result<bool, StorageError> {
    let Some(from) = consumer.cursor.clone() else {
        store.sync(store.last_seq())?;
        consumer.cursor = Some(store.feed_cursor());
        consumer.known = fold(store);
        return Ok(true);
    };
    let query = ChangesQuery { from: &from, detail: Detail::Keys, reach: Reach::Durable, with_removals: true };
    let ChangesSince::Found(mut walk) = store.changes_since(&query)? else { return Ok(false) };
    loop {
        match walk.next(10, u64::MAX)? {
            FeedStep::Some(changes) => {
                for change in changes {
                    match change.state {
                        KeyState::Stored(entry) => {
                            consumer.known.insert(entry.key.to_vec(), (entry.digest, entry.seq));
                        }
                        KeyState::Removed { key, .. } => {
                            consumer.known.remove(&key[..]);
                        }
                    }
                }
            }
            FeedStep::End => break,
            FeedStep::Lost(_) => return Ok(false),
        }
    }
    consumer.cursor = Some(walk.cursor());
    Ok(true)
}

#[test]
fn a_consumer_survives_a_loss_of_power_at_each_call() {
    let calls = {
        let (fs, dir) = (FaultyFs::new(1), Path::new("/feed"));
        let store = open(Kind::Bitcask, &fs, dir);
        let before = fs.calls();
        history(&*store, &mut Consumer::default()).unwrap();
        assert!(store.status().merges > 0);
        fs.calls() - before
    };
    assert!(calls > 100);
    let mut kept = 0;
    for (at, loss) in (1..=calls).flat_map(|at| [Loss::Everything, Loss::Some].map(|loss| (at, loss))) {
        let (fs, dir) = (FaultyFs::new(at), Path::new("/feed"));
        let store = open(Kind::Bitcask, &fs, dir);
        let mut consumer = Consumer::default();
        fs.cut_power_at(at);
        drop(history(&*store, &mut consumer));
        assert!(fs.is_off(), "call {at}");
        drop(store);
        let store = open(Kind::Bitcask, &fs.restart(loss), dir);
        let had_cursor = consumer.cursor.is_some();
        let lost = consumer.catch_up(&*store, 10);
        assert_eq!(consumer.known, fold(&*store), "call {at}, {loss:?}, {lost:?}");
        kept += u32::from(had_cursor && lost.is_none());
        assert!(lost != Some(CursorLost::LostTail), "call {at}, {loss:?}: only durable changes were handed out");
    }
    assert!(kept > 50, "most consumers go on: {kept}");
}
