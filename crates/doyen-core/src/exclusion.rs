//! The algorithms of mutual exclusion: at most one member at a time is in the critical section.
//!
//! A program on a member asks to enter ([`Event::Request`](crate::protocol::Event)), the member announces that it is
//! inside, and the program says when everything that it did there has stopped ([`Event::Exit`](crate::protocol::Event)).
//! [`member`] holds what all of these algorithms share; each file beside it is one algorithm, and its head is the table of
//! its rules.
//!
//! All of them are in textbook mode what their authors printed, with what that needs to work at all. They assume links
//! that lose and duplicate nothing, and none tolerates the crash of a member that matters to it: a failure detector cannot
//! tell a dead holder from a slow one, and a member that is let in by mistake breaks the promise. Exclusion that tolerates
//! crashes needs a leader with a term and a lease: that is [`lock_service`], above a quorum. [`token_recovery`] shows what a
//! coordinator can do if it is certain which members are dead.
//!
//! | algorithm | messages for each entry | waits for | needs |
//! |---|---|---|---|
//! | [`centralised`] | 3; none at the coordinator | the coordinator | – |
//! | [`voting`] | 2mk+m … 3mk−(k−1) in k attempts | m of n voters | – |
//! | [`lamport`] | 3(N−1) | all others | FIFO links |
//! | [`ricart_agrawala`] | 2(N−1) | all others | – |
//! | [`token_ring`] | 1 if all members want to enter, without bound if none does | the token | – |
//! | [`token_recovery`] | the same, and 3N to look for a lost token | the token | true failure reports |
//! | [`maekawa`] | 3(K−1) idle, 4(K−1) saturated | its K arbiters | FIFO links |
//! | [`raymond`] | 2d idle, 4(N−1)/N saturated | the token, along a tree | – |
//! | [`suzuki_kasami`] | N, or none with the token | the token | – |
//! | [`lock_service`] | 3, none at the leader; 2 more for each third of a lease | the leader | clocks within the drift |

pub mod centralised;
pub mod lamport;
pub mod lock_service;
pub mod maekawa;
pub mod member;
pub mod raymond;
pub mod ricart_agrawala;
pub mod suzuki_kasami;
pub mod token_recovery;
pub mod token_ring;
pub mod voting;
