//! The implementation of MPI: found by its symbols, asked for sizes of types and for communicators.
//!
//! It is asked only after a call of the program has returned success, about handles that the call has used, by the
//! calling thread, and only between MPI's start and its end. Sizes are not kept: MPI answers as fast as a table.

#![expect(unsafe_code, reason = "calls functions of MPI by their addresses")]

use crate::elf::loaded::{each, first_definition};
use crate::guard::Errno;
use crate::{notices, real, thread};
use roctop_ring::record::mpi;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_int, c_void};

/// Form of handles, and values with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Handles are addresses of the library's own objects.
    OpenMpi,
    /// MPICH, Intel MPI, MVAPICH, Cray MPICH: handles are numbers of 32 bits.
    Mpich,
    /// The common binary interface of MPI 5: handles are words.
    Abi,
}

const FAMILIES: [Family; 3] = [Family::OpenMpi, Family::Mpich, Family::Abi];

impl Family {
    pub(super) const fn handle(self, word: u64) -> u64 {
        match self {
            Self::Mpich => word & 0xffff_ffff,
            Self::OpenMpi | Self::Abi => word,
        }
    }

    /// A rank in an argument, as it is recorded.
    pub(super) const fn rank(self, rank: i32) -> i32 {
        let [any, none, root] = match self {
            Self::OpenMpi => [-1, -2, -4],
            Self::Mpich => [-2, -1, -3],
            // Its drafts differ in what negative numbers mean.
            Self::Abi if rank < 0 => return mpi::UNKNOWN,
            Self::Abi => return rank,
        };
        if rank == any {
            mpi::ANY
        } else if rank == none {
            mpi::NO_RANK
        } else if rank == root {
            mpi::ROOT
        } else {
            rank
        }
    }

    pub(super) const fn tag(self, tag: i32) -> i32 {
        match self {
            Self::OpenMpi | Self::Mpich if tag == -1 => mpi::ANY,
            Self::Abi if tag < 0 => mpi::UNKNOWN,
            _ => tag,
        }
    }

    pub(super) const fn is_in_place(self, buffer: u64) -> bool {
        match self {
            Self::OpenMpi | Self::Abi => buffer == 1,
            Self::Mpich => buffer == u64::MAX,
        }
    }

    /// Number of an operator, as it is recorded.
    pub(super) fn operator(self, word: u64) -> u8 {
        let handle = self.handle(word);
        let position = match self {
            Self::OpenMpi => OPERATORS
                .iter()
                .position(|known| known.load(Ordering::Relaxed) == handle),
            Self::Mpich => (handle as usize).checked_sub(0x5800_0001),
            Self::Abi => ABI_OPERATORS.iter().position(|known| *known == handle),
        };
        let position = position.filter(|position| *position < ABI_OPERATORS.len());
        position.map_or(mpi::OWN_OPERATOR, |position| position as u8 + 1)
    }
}

/// In the order of `mpi::OPERATORS`.
const OPEN_MPI_OPERATORS: [&CStr; 14] = [
    c"ompi_mpi_op_max",
    c"ompi_mpi_op_min",
    c"ompi_mpi_op_sum",
    c"ompi_mpi_op_prod",
    c"ompi_mpi_op_land",
    c"ompi_mpi_op_band",
    c"ompi_mpi_op_lor",
    c"ompi_mpi_op_bor",
    c"ompi_mpi_op_lxor",
    c"ompi_mpi_op_bxor",
    c"ompi_mpi_op_minloc",
    c"ompi_mpi_op_maxloc",
    c"ompi_mpi_op_replace",
    c"ompi_mpi_op_no_op",
];
const ABI_OPERATORS: [u64; 14] = [
    0x23, 0x22, 0x21, 0x24, 0x30, 0x28, 0x31, 0x29, 0x32, 0x2a, 0x38, 0x39, 0x3c, 0x3d,
];

/// Addresses of Open MPI's operators.
static OPERATORS: [AtomicU64; 14] = [const { AtomicU64::new(0) }; 14];
/// `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
static PREDEFINED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Number of the family plus one; 0 unknown.
static FAMILY: AtomicU64 = AtomicU64::new(0);
/// What is asked of it: see `Question`.
static ANSWERS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];
const QUESTIONS: [&CStr; 6] = [
    c"PMPI_Type_size",
    c"PMPI_Comm_size",
    c"PMPI_Comm_rank",
    c"PMPI_Comm_test_inter",
    c"PMPI_Initialized",
    c"PMPI_Finalized",
];

/// A question, by its place in `QUESTIONS`.
#[derive(Clone, Copy)]
pub(super) enum Question {
    TypeSize,
    Size,
    Rank,
    IsInter,
    Initialized,
    Finalized,
}

/// Whether MPI runs: 0 not known to, 1 yes, 2 it has ended.
static RUNNING: AtomicU64 = AtomicU64::new(0);
/// 1 after the notice of an unknown family.
static SAID: AtomicU64 = AtomicU64::new(0);

/// Looks for MPI among the loaded libraries; false if there is none. While `imports` looks at tables.
pub(super) fn find() -> bool {
    let (mut is_there, mut libraries, mut is_abi) = (false, 0, false);
    let mut answers = [0; QUESTIONS.len()];
    each(|object, info| {
        is_there |= object.find(c"MPI_Init").is_some();
        if object.find(QUESTIONS[0]).is_some() {
            libraries += 1;
            // SAFETY: the loader's names are terminated.
            let path = (!info.dlpi_name.is_null()).then(|| unsafe { CStr::from_ptr(info.dlpi_name) });
            is_abi = path.is_some_and(|path| real::file_of(path).starts_with(b"libmpi_abi"));
            for (answer, question) in answers.iter_mut().zip(QUESTIONS) {
                *answer = object.find(question).map_or(0, |address| address as u64);
            }
        }
        true
    });
    if !is_there {
        return false;
    }
    let is_askable = libraries == 1 && answers.iter().all(|answer| *answer != 0);
    let family = if !is_askable {
        None
    } else if is_abi {
        Some(Family::Abi)
    } else if first_definition(c"ompi_mpi_comm_world").is_some() {
        Some(Family::OpenMpi)
    } else if first_definition(c"MPIR_Dup_fn").is_some() {
        Some(Family::Mpich)
    } else {
        first_definition(c"MPI_Abi_get_version").map(|_| Family::Abi)
    };
    learn(family, answers);
    true
}

fn learn(family: Option<Family>, answers: [u64; QUESTIONS.len()]) {
    let Some(family) = family else {
        FAMILY.store(0, Ordering::Release);
        if SAID.swap(1, Ordering::Relaxed) == 0 {
            notices::post(0, "unknown MPI: its calls are recorded without bytes and communicators");
        }
        return;
    };
    // As the loader binds them: a program may have its own copy of the library's objects.
    let address = |name| first_definition(name).unwrap_or(0);
    let predefined = match family {
        Family::OpenMpi => [c"ompi_mpi_comm_world", c"ompi_mpi_comm_self"].map(address),
        Family::Mpich => [0x4400_0000, 0x4400_0001],
        Family::Abi => [0x101, 0x102],
    };
    if family == Family::OpenMpi {
        for (place, name) in OPERATORS.iter().zip(OPEN_MPI_OPERATORS) {
            place.store(address(name), Ordering::Relaxed);
        }
    }
    for (place, value) in PREDEFINED.iter().zip(predefined).chain(ANSWERS.iter().zip(answers)) {
        place.store(value, Ordering::Relaxed);
    }
    FAMILY.store(family as u64 + 1, Ordering::Release);
}

/// The family; `None` if it is unknown.
#[inline]
pub(super) fn family() -> Option<Family> {
    let number = (FAMILY.load(Ordering::Acquire) as usize).checked_sub(1)?;
    FAMILIES.get(number).copied()
}

/// Position of a handle among world and self.
pub(super) fn predefined(handle: u64) -> Option<usize> {
    PREDEFINED
        .iter()
        .position(|known| known.load(Ordering::Relaxed) == handle)
}

fn answer(question: Question) -> Option<*const c_void> {
    let address = ANSWERS.get(question as usize)?.load(Ordering::Relaxed);
    (address != 0).then_some(address as usize as *const c_void)
}

/// Asks about a handle that a successful call has used.
pub(super) fn ask(question: Question, handle: u64) -> Option<u32> {
    type Ask = unsafe extern "C" fn(u64, *mut c_int) -> c_int;
    // SAFETY: the library's function of this name takes a handle and the place of a number. A handle of 32 bits is in
    // the lower half of the word.
    let ask: Ask = unsafe { std::mem::transmute(answer(question)?) };
    let mut number: c_int = -1;
    // SAFETY: as above; MPI runs, and the handle is valid, since a call with it succeeded.
    let result = thread::aside(|| unsafe { ask(handle, &raw mut number) });
    (result == 0).then(|| u32::try_from(number).ok()).flatten()
}

/// Whether MPI runs: it may be asked.
#[inline]
pub(super) fn is_running() -> bool {
    match RUNNING.load(Ordering::Acquire) {
        0 => has_begun(),
        state => state == 1,
    }
}

#[cold]
fn has_begun() -> bool {
    let _errno = Errno::keep();
    let flag = |question| {
        type Ask = unsafe extern "C" fn(*mut c_int) -> c_int;
        // SAFETY: the library's function of this name takes the place of a flag.
        let ask: Ask = unsafe { std::mem::transmute(answer(question)?) };
        let mut flag: c_int = 0;
        // SAFETY: as above; both may be called at any time.
        (unsafe { ask(&raw mut flag) } == 0).then_some(flag != 0)
    };
    let is_running = flag(Question::Initialized) == Some(true) && flag(Question::Finalized) == Some(false);
    if is_running {
        let _ = RUNNING.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed);
    }
    is_running && RUNNING.load(Ordering::Acquire) == 1
}

/// MPI ends: it is not asked any more.
pub(super) fn ends() {
    RUNNING.store(2, Ordering::Release);
}
