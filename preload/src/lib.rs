//! The collector: loaded into the traced program, writes records to the ring.
