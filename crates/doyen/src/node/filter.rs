//! The setup of the socket: a large receive buffer, and a filter in the kernel for datagrams that are not doyen's.
//!
//! A flood costs less the earlier it is dropped, and in a full buffer real datagrams are lost with it. The filter looks at
//! the length and at the first two bytes, and lets one in [`SAMPLE`] of the others through, so that counters still show
//! that there are some. It does not look at version, cluster and key: an operator must learn that a member has another
//! one, and an attacker who sees the network knows them all.
//!
//! Both depend on the system, which may permit neither; a node runs without them.

use std::io;
use std::net::UdpSocket;

use libc::{
    BPF_ABS, BPF_H, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LEN, BPF_RET,
    BPF_W, SKF_AD_OFF, SKF_AD_RANDOM, sock_filter,
};
use rustix::net::sockopt;

use super::log::{LogLine, Logger};
use super::wire::{LIMIT, MAGIC, OVERHEAD};
use crate::sys;

/// In bytes: more than a thousand datagrams, which bridges a pause of the loop. No more: in a flood the buffer is full whatever
/// its size, and every datagram waits for all before it. With megabytes that would take longer than a heartbeat.
const RECEIVE_BUFFER: usize = 512 * 1024;

/// One in this many datagrams that are not doyen's is let through. A power of two.
const SAMPLE: u32 = 16;

/// The filter sees a datagram with its UDP header.
const UDP_HEADER: u32 = 8;

/// Sets up the socket of a node as well as the system permits.
pub(super) fn prepare(socket: &UdpSocket, log: &Logger) {
    let size = enlarge_buffer(socket).unwrap_or_default();
    let hint = match size < RECEIVE_BUFFER {
        true => format!(" of {} KiB requested; net.core.rmem_max limits it", RECEIVE_BUFFER / 1024),
        false => String::new(),
    };
    let text = format!("receive buffer: {} KiB{hint}", size / 1024);
    log.write(LogLine::info("receive-buffer", text));
    if let Err(error) = sys::attach_filter(socket, &program()) {
        let text = format!(
            "cannot filter datagrams in the kernel: {error}; a flood costs this node more time"
        );
        log.write(LogLine { reason: Some(error.to_string()), ..LogLine::info("no-filter", text) });
    }
}

/// Its size afterwards.
fn enlarge_buffer(socket: &UdpSocket) -> io::Result<usize> {
    // Beyond the limit of the system, if this process may; otherwise up to it.
    if sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER)?;
    }
    // The kernel doubles what is asked for, for its own bookkeeping.
    Ok(sockopt::socket_recv_buffer_size(socket)? / 2)
}

/// ```text
///   0  length < shortest                → 5
///   2  length > longest                 → 5
///   4  the first two bytes are doyen's  → 7
///   5  one in SAMPLE                    → 7
///   7  take it
///   8  drop it
/// ```
fn program() -> [sock_filter; 9] {
    let statement = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // Jumps count from the next instruction.
    let jump = |test: u32, k: u32, jt: u8, jf: u8| sock_filter {
        code: (BPF_JMP | test | BPF_K) as u16,
        jt,
        jf,
        k,
    };
    let random = (SKF_AD_OFF + SKF_AD_RANDOM) as u32;
    [
        statement(BPF_LD | BPF_W | BPF_LEN, 0),
        jump(BPF_JGE, UDP_HEADER + OVERHEAD as u32, 0, 3),
        jump(BPF_JGT, UDP_HEADER + LIMIT as u32, 2, 0),
        statement(BPF_LD | BPF_H | BPF_ABS, UDP_HEADER),
        jump(BPF_JEQ, u16::from_be_bytes(MAGIC).into(), 2, 0),
        statement(BPF_LD | BPF_W | BPF_ABS, random),
        jump(BPF_JSET, SAMPLE - 1, 1, 0),
        statement(BPF_RET | BPF_K, u32::MAX),
        statement(BPF_RET | BPF_K, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: usize = 200;

    #[test]
    fn the_buffer_is_as_large_as_the_system_permits() {
        let limit = std::fs::read_to_string("/proc/sys/net/core/rmem_max").ok();
        let limit = limit.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let size = enlarge_buffer(&UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        assert!(size >= RECEIVE_BUFFER.min(limit), "{size} bytes, and the limit is {limit}");
    }

    /// How many of 200 copies of a datagram arrive.
    fn arrive(datagram: &[u8]) -> usize {
        let [receiver, sender] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        sys::attach_filter(&receiver, &program()).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let mut arrived = 0;
        for _ in 0..SENT {
            sender.send_to(datagram, receiver.local_addr().unwrap()).unwrap();
            arrived += usize::from(receiver.recv(&mut [0; LIMIT + 1]).is_ok());
        }
        arrived
    }

    #[test]
    fn what_is_not_ours_is_dropped_but_for_a_few() {
        let begun_like_ours = |length: usize| {
            let mut datagram = vec![7; length];
            datagram[..2].copy_from_slice(&MAGIC);
            datagram
        };
        for length in [OVERHEAD, OVERHEAD + 1, 1_500, LIMIT] {
            assert_eq!(arrive(&begun_like_ours(length)), SENT, "{length} bytes");
        }
        for length in [2, OVERHEAD - 1, LIMIT + 1] {
            let few = arrive(&begun_like_ours(length));
            assert!(few < SENT / 3, "{few} of {length} bytes");
        }
        let few = arrive(&[7; 200]);
        assert!(0 < few && few < SENT / 3, "{few} that begin otherwise");
    }
}
