//! Domains, and the operations of each.

use crate::status::{INVALID_ARGUMENT, INVALID_DOMAIN, Result, fail};
use crate::{hip, hsa};
use std::ops::Range;

/// `activity_domain_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Domain {
    HsaApi = 0,
    HsaOps = 1,
    HipOps = 2,
    HipApi = 3,
    Kfd = 4,
    External = 5,
    Roctx = 6,
    HsaEvent = 7,
}

/// All domains, in numeric order.
pub(crate) const ALL: [Domain; 8] = [
    Domain::HsaApi,
    Domain::HsaOps,
    Domain::HipOps,
    Domain::HipApi,
    Domain::Kfd,
    Domain::External,
    Domain::Roctx,
    Domain::HsaEvent,
];

/// The manual's `HIP_API_ID_ANY`: all operations of HIP_API.
const ANY: u32 = u32::MAX;

/// Number of operations: `hip_op_id_t`, `hsa_op_id_t`, `hsa_evt_id_t`, `roctx_api_id_t`.
pub(crate) const HIP_OPS: usize = 3;
pub(crate) const HSA_OPS: usize = 4;
pub(crate) const HSA_EVENTS: usize = 6;
pub(crate) const ROCTX: usize = 5;

impl Domain {
    /// The domain with this number.
    pub(crate) fn new(number: u32) -> Result<Self> {
        ALL.get(number as usize)
            .copied()
            .ok_or_else(|| fail(INVALID_DOMAIN, format_args!("{number} is not a domain")))
    }

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
