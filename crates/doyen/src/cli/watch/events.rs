//! Server-sent events, taken out of a stream of lines.

use std::io::{self, BufRead, Read};

/// No line is longer, in bytes. A longer one is not one of a node's.
const LONGEST_LINE: u64 = 4 * 1024 * 1024;

/// An event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) data: String,
}

/// The events of a stream, to its end.
#[derive(Debug)]
pub(super) struct Events<R>(R);

impl<R: BufRead> Events<R> {
    pub(super) fn new(stream: R) -> Self {
        Self(stream)
    }

    /// The next line without its end; none at the end of the stream.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let length = self.0.by_ref().take(LONGEST_LINE).read_line(&mut line)?;
        if length as u64 == LONGEST_LINE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        line.truncate(line.trim_end_matches(['\r', '\n']).len());
        Ok((length > 0).then_some(line))
    }

    fn read(&mut self) -> io::Result<Option<Event>> {
        let mut event = Event::default();
        while let Some(line) = self.line()? {
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                // The end of an event; without data it was none, but a comment or a hint.
                "" if line.is_empty() => {
                    if !event.data.is_empty() {
                        return Ok(Some(event));
                    }
                    event = Event::default();
                }
                "event" => value.clone_into(&mut event.name),
                "id" => value.clone_into(&mut event.id),
                "data" => event.data.push_str(value),
                _ => {}
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for Events<R> {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_hints_and_half_an_event_are_no_events() {
        let stream = "retry: 1000\n\n: keep\n\nevent: change\r\nid: 1.4.6\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n\
                      id:7\ndata:x\n\nevent: change\ndata: cut o";
        let events: Result<Vec<Event>, _> = Events::new(stream.as_bytes()).collect();
        let event = |name: &str, id: &str, data: &str| Event {
            name: name.to_owned(),
            id: id.to_owned(),
            data: data.to_owned(),
        };
        let expected = [event("change", "1.4.6", "{\"a\":1}"), event("", "7", "x")];
        assert_eq!(events.expect("text"), expected);
    }
}
