//! Server-sent events, as a client reads them.

use std::io::{self, BufRead, Read as _};

/// In bytes. No node sends a longer line.
const LONGEST_LINE: u64 = 4 * 1024 * 1024;

/// A server-sent event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

/// The next event; `None` at the end of the stream.
pub(crate) fn read_event(stream: &mut impl BufRead) -> io::Result<Option<Event>> {
    let mut event = Event::default();
    loop {
        let mut line = String::new();
        match stream.by_ref().take(LONGEST_LINE).read_line(&mut line)? as u64 {
            0 => return Ok(None),
            LONGEST_LINE => return Err(io::ErrorKind::InvalidData.into()),
            _ => {}
        }
        let line = line.trim_end_matches(['\r', '\n']);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            // The end of an event; one without data was a comment or a hint.
            "" if line.is_empty() && event.data.is_empty() => event = Event::default(),
            "" if line.is_empty() => return Ok(Some(event)),
            "event" => value.clone_into(&mut event.name),
            "id" => value.clone_into(&mut event.id),
            "data" => event.data.push_str(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_hints_and_incomplete_events_are_skipped() {
        let mut stream = "retry: 1000\n\n: keep\n\nevent: change\r\nid: 1.4.6\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n\
                          id:7\ndata:x\n\nevent: change\ndata: cut o"
            .as_bytes();
        let mut next = || read_event(&mut stream).expect("text");
        let event = |name: &str, id: &str, data: &str| {
            Some(Event { name: name.to_owned(), id: id.to_owned(), data: data.to_owned() })
        };
        assert_eq!(next(), event("change", "1.4.6", "{\"a\":1}"));
        assert_eq!(next(), event("", "7", "x"));
        assert_eq!(next(), None);
    }
}
