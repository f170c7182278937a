//! The network of a job: keys, the daemons of its nodes, the root that they report to.
//!
//! [`Participant`] is what each rank's roctop starts, [`watch`] what a screen does, [`Transport`] what both see of the job.
//! [`Daemon`] is a process of the network with anything to report, listen and watch.
//!
//! **Who is kept out.** Other users; the processes of one user trust each other. Each job has a certificate authority in a folder
//! that the user alone can read; what is open to others is not used. Both ends of a connection show a key of the job (TLS 1.3)
//! before a byte is read as a message. A key names its node, and nobody reports for another with it, except a relay. Keys
//! expire with the job, and go when it ends. A root listens at one address that is named. Connections without a key cost a
//! handshake at most, with limits of time and number, and are reported with the reason and their address.
//!
//! **What is bounded.** Messages, names, nodes, questions under way, and all that waits for someone who does not read. A process
//! that stops delays nobody: reports to it are left out and counted.
#![forbid(unsafe_code)]

mod accept;
mod daemon;
mod dial;
mod dialled;
mod error;
mod folder;
#[doc(hidden)]
pub mod foreign_bytes;
mod identity;
mod keys;
pub mod launcher;
mod link;
mod memory;
mod message;
mod node_folder;
mod participant;
mod pulse;
mod ranks;
mod serve;
mod service;
mod tls;
mod transport;
mod tree;
mod wait;

pub use self::daemon::{Address, Config, Daemon, Listen, Renew, raise_descriptor_limit};
pub use self::dial::one_node;
pub use self::dialled::Connection;
pub use self::error::{Error, Result};
pub use self::folder::{Folder, jobs, list};
pub use self::identity::{Identity, MAX_NAME, Name, Role};
pub use self::keys::{Authority, DEFAULT_LIMIT, Key, MAX_LIMIT};
pub use self::memory::Member;
pub use self::message::{MAX_ANSWER, MAX_INFO, MAX_QUESTION, MAX_REPORT, PART};
pub use self::node_folder::{Lead, Membership, NodeFolder};
pub use self::participant::{Duties, Participant, Plan, Standing, viewer_key, watch, watch_with_key};
pub use self::ranks::{Rank, RankLink, Ranks};
pub use self::transport::{
    Alive, Answer, AnswerError, Clock, Event, Part, Question, Questions, Reason, Refusal, Reply, Subscription,
    Transport,
};
