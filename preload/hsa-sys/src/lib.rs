//! HSA types and function tables, run-time loaded, ABI asserted.
