//! `roctop mcp`: the questions of `roctop ask` for a language model, by the Model Context Protocol on standard input and output.
//!
//! The crate `rmcp` speaks the protocol. The transport is our own, because a line that is no message must be answered, and its
//! length bounded. Tools and their arguments are in `roctop_model::ask::tool`.

mod server;
mod sources;
mod transport;

pub use server::serve;
pub use sources::Sources;
