//! Programs that know their calls, against the paths and names that come from copies of their stacks.

mod crafted;
mod hostile;
mod paths;
mod program;
