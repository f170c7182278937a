//! Domains.

use crate::status::{INVALID_DOMAIN, Result, fail};

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
}
