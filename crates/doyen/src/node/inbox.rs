//! A channel whose receiver is taken once: by the part of the program that serves it, which a handle leads to.

use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use crate::mutex::lock;

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
        lock(&self.0).take()
    }
}

/// A channel in which this many values may wait.
pub(super) fn channel<T>(waiting: usize) -> (mpsc::Sender<T>, Inbox<T>) {
    let (sender, receiver) = mpsc::channel(waiting);
    (sender, Inbox(Arc::new(Mutex::new(Some(receiver)))))
}
