//! A channel whose receiver is taken once: by the part of the program that serves it, which a handle leads to.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

/// The receiver, for the first that takes it.
#[derive(Debug)]
pub(super) struct Inbox<T>(Arc<Mutex<Option<mpsc::Receiver<T>>>>);

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Inbox<T> {
    pub(super) fn take(&self) -> Option<mpsc::Receiver<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A channel in which so many may wait.
pub(super) fn channel<T>(waiting: usize) -> (mpsc::Sender<T>, Inbox<T>) {
    let (sender, receiver) = mpsc::channel(waiting);
    (sender, Inbox(Arc::new(Mutex::new(Some(receiver)))))
}
