//! A preloadable stand-in for the AMD GPU driver and packet processors, for tests.

mod aql;
mod blit;
mod clock;
mod dmabuf;
mod drm;
mod engine;
mod event;
mod guest;
mod interpose;
mod interpose_stat;
mod kfd;
mod memory;
mod model;
mod outbox;
mod path;
mod process;
mod sdma;
mod symbol;
mod sys;
mod sysfs;
mod target;
mod topology;
mod trace;
mod truth_log;
