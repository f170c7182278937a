//! The operations of each domain.

use crate::domain::{Domain, HIP_OPS, HSA_EVENTS, HSA_OPS, ROCTX};
use crate::status::{INVALID_ARGUMENT, Result, fail};
use crate::{hip, hsa};
use std::ops::Range;

/// The manual's `HIP_API_ID_ANY`: all operations of HIP_API.
const ANY: u32 = u32::MAX;

impl Domain {
    /// Its operations. Those of KFD and external ids cannot be requested individually.
    pub(crate) fn operations(self) -> Range<u32> {
        match self {
            Self::HsaApi => 0..hsa::api::count(),
            Self::HsaOps => 0..HSA_OPS as u32,
            Self::HipOps => 0..HIP_OPS as u32,
            Self::HipApi => 1..hip::name::end(),
            Self::Kfd | Self::External => 0..0,
            Self::Roctx => 0..ROCTX as u32,
            Self::HsaEvent => 0..HSA_EVENTS as u32,
        }
    }

    /// The operations that `op` denotes.
    pub(crate) fn asked(self, op: u32) -> Result<Range<u32>> {
        let all = self.operations();
        match (self, op) {
            // A domain of the interface for which nothing is ever reported.
            (Self::Kfd, _) => Ok(0..0),
            (Self::HipApi, ANY) => Ok(all),
            _ if op < all.end => Ok(op..op + 1),
            _ => Err(fail(
                INVALID_ARGUMENT,
                format_args!("{op} is not an operation of domain {}", self as u32),
            )),
        }
    }
}
