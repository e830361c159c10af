//! Answers of members: several members are asked at once, and those that take long are named.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use doyen_sim::parallel;

use super::progress::Progress;

/// How many members are asked at once: fewer than the admin socket has connections.
const AT_ONCE: usize = 8;

/// An answer that comes sooner needs no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks every member something, several of them at once. Answers are in the order of the members.
pub(crate) fn in_parallel<T: Send>(
    members: &[String],
    ask: impl Fn(&String) -> T + Sync,
) -> Vec<T> {
    let awaited = Awaited::new(members);
    let ask = |member: &String| {
        let answer = ask(member);
        awaited.answered(member);
        answer
    };
    parallel::map(AT_ONCE, members, ask)
}

/// Asks one member, or the node itself, which may ask another one.
pub(crate) fn ask_one<T>(member: Option<&str>, ask: impl FnOnce() -> T) -> T {
    let _awaited = Awaited::new(&[member.unwrap_or("an answer").to_owned()]);
    ask()
}

/// Members that are asked: if it takes longer than a second, a spinner names those that have not answered.
#[derive(Debug)]
struct Awaited {
    answered: Option<Sender<String>>,
    shown: Option<JoinHandle<()>>,
}

impl Awaited {
    fn new(names: &[String]) -> Self {
        let (answered, answers) = mpsc::channel();
        let names = names.to_vec();
        let shown = thread::Builder::new().spawn(move || {
            let mut progress: Option<Progress> = None;
            name_late(names, &answers, PATIENCE, |late| match &progress {
                Some(progress) => progress.set_message(late.join(", ")),
                None => {
                    let late = late.join(", ");
                    progress = Some(Progress::spinner_after(PATIENCE, "waiting for", late));
                }
            });
        });
        // Without a thread nothing is shown.
        Self { answered: Some(answered), shown: shown.ok() }
    }

    fn answered(&self, name: &str) {
        if let Some(answered) = &self.answered {
            // The thread that shows it ends later.
            let _ = answered.send(name.to_owned());
        }
    }
}

impl Drop for Awaited {
    /// What is printed next finds an empty line.
    fn drop(&mut self) {
        self.answered = None;
        if let Some(shown) = self.shown.take() {
            let _ = shown.join();
        }
    }
}

/// Shows which of `names` have not answered, from the end of `patience` until there are no more answers.
fn name_late(
    mut names: Vec<String>,
    answers: &Receiver<String>,
    patience: Duration,
    mut show: impl FnMut(&[String]),
) {
    let begun = Instant::now();
    let mut is_late = false;
    loop {
        let next = match is_late {
            true => answers.recv().map_err(RecvTimeoutError::from),
            false => answers.recv_timeout(patience.saturating_sub(begun.elapsed())),
        };
        match next {
            Ok(name) => names.retain(|it| *it != name),
            Err(RecvTimeoutError::Timeout) => is_late = true,
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if is_late && !names.is_empty() {
            show(&names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_late_are_named_until_they_answer() {
        let names = || ["n1", "n2", "n3"].map(str::to_owned).to_vec();
        let (answered, answers) = mpsc::channel();
        let (show, shown) = mpsc::channel();
        answered.send("n2".to_owned()).expect("it listens");
        let waits = thread::spawn(move || {
            let patience = Duration::from_millis(100);
            name_late(names(), &answers, patience, |late| drop(show.send(late.join(", "))));
        });
        let next = || shown.recv_timeout(Duration::from_secs(30)).expect("it is shown");
        assert_eq!(next(), "n1, n3");
        answered.send("n1".to_owned()).expect("it listens");
        assert_eq!(next(), "n3");
        drop(answered);
        waits.join().expect("it ends");

        let (answered, answers) = mpsc::channel();
        drop(answered);
        let patience = Duration::from_secs(60);
        name_late(names(), &answers, patience, |late| panic!("shown too soon: {late:?}"));
    }
}
