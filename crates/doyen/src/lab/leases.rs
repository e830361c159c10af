//! The lease files of the members: read whenever they change.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::shared::Shared;

/// Follows the lease files in a thread of its own.
#[cfg(target_os = "linux")]
pub(crate) fn follow(shared: &Arc<Shared>, files: &[PathBuf]) -> io::Result<()> {
    use doyen::clock::Moment;
    use doyen::guardian::lease_file::LeaseReader;
    use rustix::fs::inotify;

    let watches = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    let mut readers = Vec::new();
    for (place, file) in files.iter().enumerate() {
        let watch = inotify::add_watch(&watches, file, inotify::WatchFlags::MODIFY)?;
        readers.push((watch, place, LeaseReader::open(file)?));
    }
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("doyen-leases".to_owned()).spawn(move || {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&watches, &mut buffer);
        loop {
            let changed = match events.next() {
                Ok(event) => event.wd(),
                Err(rustix::io::Errno::INTR) => continue,
                // Nothing is measured any more. The page still shows what the nodes publish.
                Err(_) => return,
            };
            let Some((_, place, reader)) = readers.iter().find(|(watch, ..)| *watch == changed)
            else {
                continue;
            };
            // One that is being written is read again when the writer is done.
            if let Ok(lease) = reader.read() {
                let at = Moment::now();
                shared.with(|monitor| monitor.lease(*place, at, lease));
            }
        }
    })?;
    Ok(())
}

/// Elsewhere there are no lease files.
#[cfg(not(target_os = "linux"))]
pub(crate) fn follow(_: &Arc<Shared>, _: &[PathBuf]) -> io::Result<()> {
    Ok(())
}
