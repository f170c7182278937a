//! Records and the ring: the contract between collector and viewer.
