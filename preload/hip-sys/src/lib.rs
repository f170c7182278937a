//! The HIP and ROC-TX functions the collector uses, run-time loaded.
