//! The network of a job: keys, the daemons of its nodes, the root that they report to.
#![forbid(unsafe_code)]

mod accept;
mod daemon;
mod dial;
mod dialled;
mod error;
mod folder;
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

pub use self::daemon::{Address, Config, Daemon, raise_descriptor_limit};
pub use self::dialled::Connection;
pub use self::error::{Error, Result};
pub use self::folder::{Folder, jobs, list};
pub use self::identity::{Identity, MAX_NAME, Name, Role};
pub use self::keys::{Authority, DEFAULT_LIMIT, Key, MAX_LIMIT};
pub use self::memory::{Member, Network};
pub use self::message::{MAX_ANSWER, MAX_INFO, MAX_QUESTION, MAX_REPORT, PART};
pub use self::node_folder::{Lead, Membership, NodeFolder};
pub use self::participant::{Duties, Participant, Plan, Standing, watch};
pub use self::ranks::{Rank, RankLink, Ranks};
pub use self::transport::{
    Alive, Answer, AnswerError, Clock, Event, Part, Question, Questions, Reason, Refusal, Reply, Subscription,
    Transport,
};
