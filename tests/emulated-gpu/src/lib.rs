//! A preloadable stand-in for the AMD GPU driver and packet processors, for tests.
