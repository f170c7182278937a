//! The first word of a slot: kind, flags, size, domain and ordinal of its record.

/// Header word of a slot: kind (8 bits), flags (8), slots of the record or index of the continuation (8), domain (8),
/// ordinal of the record in its ring, modulo 2^32 (32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub u64);

impl Head {
    /// Header of a record's first slot; the ring's writer adds the ordinal.
    pub const fn new(kind: u8, flags: u8, slots: u8, domain: u8) -> Self {
        Self(kind as u64 | (flags as u64) << 8 | (slots as u64) << 16 | (domain as u64) << 24)
    }
    /// The same header with a record ordinal.
    #[must_use]
    pub const fn with_ordinal(self, ordinal: u64) -> Self {
        Self(self.0 & 0xffff_ffff | ordinal << 32)
    }
    /// Kind number; see the constants `KIND` of the records.
    pub const fn kind(self) -> u8 {
        self.0 as u8
    }
    /// Flag bits, see [`flag`].
    pub const fn flags(self) -> u8 {
        (self.0 >> 8) as u8
    }
    /// Slots of the whole record, or the index of a continuation slot.
    pub const fn slots(self) -> u8 {
        (self.0 >> 16) as u8
    }
    /// Domain number, see [`Domain`].
    pub const fn domain(self) -> Domain {
        Domain((self.0 >> 24) as u8)
    }
    /// Ordinal of the record in its ring, modulo 2^32.
    pub const fn ordinal(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Flag bits of a record's header.
pub mod flag {
    /// The time span is zero or reversed; the values are unchanged.
    pub const SUSPECT_TIME: u8 = 1;
    // Bit 2 was never written; numbers are not reused.
    /// The work belongs to the run-time itself (blit kernels, code uploads).
    pub const INTERNAL: u8 = 4;
    /// The span had not ended when the record was written.
    pub const OPEN: u8 = 8;
    /// This work has no GPU time; `begin` and `end` are zero.
    pub const UNTIMED: u8 = 16;
    /// A dispatch's field `name` holds the site of its launch.
    pub const SITE: u8 = 32;
}

/// Origin of a call or marker. An open set: unknown numbers are shown as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Domain(pub u8);

impl Domain {
    /// Not a call.
    pub const NONE: Self = Self(0);
    /// HIP run-time API.
    pub const HIP: Self = Self(1);
    /// HIP compiler API (`__hipRegisterFatBinary` and the like).
    pub const HIP_COMPILER: Self = Self(2);
    /// HSA core API.
    pub const HSA_CORE: Self = Self(3);
    /// HSA AMD extension API.
    pub const HSA_AMD: Self = Self(4);
    /// HSA image extension API.
    pub const HSA_IMAGE: Self = Self(5);
    /// HSA finalizer extension API.
    pub const HSA_FINALIZER: Self = Self(6);
    /// ROC-TX.
    pub const MARKER: Self = Self(7);
    /// RCCL.
    pub const RCCL: Self = Self(8);
    /// rocDecode.
    pub const ROCDECODE: Self = Self(9);
    /// rocJPEG.
    pub const ROCJPEG: Self = Self(10);
    /// MPI.
    pub const MPI: Self = Self(11);

    /// Name of the domain, or `None` if the number is unknown.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "hip",
            2 => "hip_compiler",
            3 => "hsa_core",
            4 => "hsa_amd",
            5 => "hsa_image",
            6 => "hsa_finalizer",
            7 => "marker",
            8 => "rccl",
            9 => "rocdecode",
            10 => "rocjpeg",
            11 => "mpi",
            _ => return None,
        })
    }
}
