//! Locks: one holder at a time in the whole cluster, granted by the elected leader.
//!
//! The rules are those of [`doyen_core::lock`], unchanged. Its grantor runs beside the HTTP server of every node (`api`), its
//! client in any program that can reach them, through [`Builder`] or `doyen lock`:
//!
//! ```no_run
//! # async fn work() -> Result<(), doyen::lock::LockError> {
//! use doyen::lock::Builder;
//!
//! let nodes = ["http://n1:7400", "http://n2:7400", "http://n3:7400"];
//! let guard = Builder::new("nightly-report", nodes)?.start()?.acquired().await?;
//! if guard.is_held() {
//!     println!("write with {}", guard.token());
//! }
//! guard.release().await;
//! # Ok(())
//! # }
//! ```
//!
//! A client asks the nodes that it knows, one after the other, until one of them answers as the leader. It calls again at
//! least every third of a lease, and shows what it holds or where it waits: so a new leader learns it.
//!
//! A lock is a lease, and ends by the clock: [`Guard::is_held`] compares at the call. What the lock protects should refuse old
//! [fencing tokens](crate::fence), because a program that is paused does not know that its lock is gone.

#[cfg(feature = "lock")]
mod client;
mod wire;

#[cfg(feature = "lock")]
pub use client::{Builder, Claim, ClaimState, Ending, Guard, Held, LockError};
pub use doyen_core::lock::{LEASE, LockName, Ticket};
pub use wire::{
    Acquire, HolderReport, Keep, LONGEST_OWNER, LockAnswer, LockList, LockReport, Place, Release,
    Released, WaiterReport, is_owner, parse_claim, show_claim, to_owner,
};

pub use crate::leadership::{fence_of, token_of};
