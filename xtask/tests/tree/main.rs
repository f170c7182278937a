//! Checks of the tree itself, which start no program: rooms and packages are those of ARCHITECTURE.md, names and texts follow
//! CONTRIBUTING.md.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod architecture;
mod paths;
mod words;

use std::path::Path;

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
