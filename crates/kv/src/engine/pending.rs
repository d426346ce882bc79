//! The questions of one run that wait for their answers.
//!
//! Hot path: a run asks a few replicas. To look at each of them in turn costs less than to keep a
//! queue of those that were woken, and needs no memory of its own.

use ombak_runtime::BoxFuture;
use smallvec::SmallVec;
use std::task::{Context, Poll};

/// Questions without an answer, each with what tells the run which one it is.
pub(super) struct Pending<K, T> {
    asked: SmallVec<[(K, BoxFuture<'static, T>); 2]>,
}

impl<K: Copy, T> Pending<K, T> {
    pub(super) fn new() -> Self {
        Self { asked: SmallVec::new() }
    }

    pub(super) fn push(&mut self, key: K, answer: BoxFuture<'static, T>) {
        self.asked.push((key, answer));
    }

    /// Forgets all questions.
    pub(super) fn clear(&mut self) {
        self.asked.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Takes an answer. Each question is sent by the first call that looks at it. Without a
    /// question no answer ever comes.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<(K, T)> {
        for (at, (key, answer)) in self.asked.iter_mut().enumerate() {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                let key = *key;
                drop(self.asked.remove(at));
                return Poll::Ready((key, answer));
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::sync::oneshot;

    #[test]
    fn each_answer_is_taken_once_with_its_key() {
        let mut pending = Pending::new();
        let mut senders = Vec::new();
        for key in 0..5 {
            let (sender, receiver) = oneshot::channel::<char>();
            pending.push(key, Box::pin(receiver));
            senders.push(Some(sender));
        }
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(pending.poll_next(&mut cx), Poll::Pending);
        for (key, answer) in [(3, 'd'), (0, 'a'), (4, 'e')] {
            senders[key].take().unwrap().send(answer).unwrap();
            assert_eq!(pending.poll_next(&mut cx), Poll::Ready((key, Ok(answer))));
            assert_eq!(pending.poll_next(&mut cx), Poll::Pending);
        }
        assert_eq!(pending.len(), 2);
        senders[1].take().unwrap().send('b').unwrap();
        senders[2].take().unwrap().send('c').unwrap();
        assert_eq!(pending.poll_next(&mut cx), Poll::Ready((1, Ok('b'))));
        assert_eq!(pending.poll_next(&mut cx), Poll::Ready((2, Ok('c'))));
        assert!(pending.is_empty());
    }
}
