//! The HIP functions that the collector wraps, and the types of the tracing interfaces it uses.
//!
//! Nothing here is linked: the real functions are found in the loaded run-time. [`api`] numbers the calls as callbacks
//! do, [`entry`] names the entries of dispatch tables, [`function`] is the table of exported functions of HIP 5.2 to
//! 10 (from the rows of `preload/hip-functions`), [`moves`] describes those that copy or fill memory,
//! [`communication`] those of RCCL that use communicators, [`tracer`] is the callback interface of 5.3.1 and later.

pub mod api;
pub mod communication;
pub mod entry;
pub mod function;
pub mod moves;
pub mod tracer;
