//! Questions to a running roctop: a Unix socket in the session's directory, and who asks there.
//!
//! The socket has mode 0600 in a directory of mode 0700, and both ends check the user of the other. A request is one line of
//! bounded length, an answer is one line. One thread answers; it takes the store's lock for a snapshot and for nothing else.

pub mod client;
pub mod protocol;
pub mod server;
