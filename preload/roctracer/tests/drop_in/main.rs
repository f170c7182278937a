//! The drop-in libraries as programs use them: C and C++ compiled against the headers, linked to the libraries.
//!
//! Needs a C compiler; without one each test says so and passes.

#![expect(clippy::unwrap_used, reason = "a test fails where something is missing")]

mod care;
mod headers;
mod install;
mod place;
mod rules;
mod symbols;
