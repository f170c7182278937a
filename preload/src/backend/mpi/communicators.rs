//! Communicators by handle: number, size and rank, learned at the first successful call with one. What is known ends
//! where the handle does.
//!
//! Some have an identity, which is the same on all of their ranks: the world of a job, and what all ranks of such a
//! communicator make of it in the same order. Their collectives are numbered, so that the viewer can match them. The
//! numbers are counted here and not by the viewer, because records may be lost, and while recording is off there are none.

use super::family::{Family, Question, ask, predefined};
use super::functions::Makes;
use crate::guard::Errno;
use crate::{clock, process};
use roctop_ring::record::mpi::{OF_MPI, SELF, WORLD};
use roctop_ring::record::{self, Domain, MpiCall, communicator};
use roctop_ring::sync::{AtomicU64, Ordering};

/// Maximum number of communicators in use at the same time that have numbers.
const PLACES: usize = 1024;
/// Places that a search looks at.
const PROBES: usize = 16;
/// A place whose communicator was freed: a search goes on behind it, and another communicator may take it.
const GONE: u64 = u64::MAX;
/// A place that is being filled.
const CLAIMED: u64 = GONE - 1;
/// Number of made communicators from which on others have made more or fewer, for all that is known.
const UNCOUNTED: u64 = 1 << 63;

/// A communicator in use.
pub(super) struct Place {
    handle: AtomicU64,
    /// Number, size and rank as in a record; 0 if MPI was not asked.
    about: AtomicU64,
    is_inter: AtomicU64,
    /// The same on all ranks; 0 unknown.
    identity: AtomicU64,
    /// Collectives called.
    collectives: AtomicU64,
    /// Communicators made of it.
    children: AtomicU64,
}

static PLACE: [Place; PLACES] = [const {
    Place {
        handle: AtomicU64::new(0),
        about: AtomicU64::new(0),
        is_inter: AtomicU64::new(0),
        identity: AtomicU64::new(0),
        collectives: AtomicU64::new(0),
        children: AtomicU64::new(0),
    }
}; PLACES];

/// Number of the last communicator.
static LAST: AtomicU64 = AtomicU64::new(SELF as u64);
/// Identity of the world.
static WORLD_IDENTITY: AtomicU64 = AtomicU64::new(0);
/// 1 if another job's world may have the same identity.
static IS_AMBIGUOUS: AtomicU64 = AtomicU64::new(0);

/// What is known of a communicator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Communicator {
    /// Number, size and rank as in a record.
    pub(super) word: u64,
    /// Whether it joins two groups.
    pub(super) is_inter: bool,
}

/// A collective of a communicator with an identity.
#[derive(Clone, Copy)]
pub(super) struct Numbered {
    place: &'static Place,
    /// Number in the communicator, from 1.
    pub(super) sequence: u32,
}

impl Numbered {
    /// The communicator's number, if its collectives can be matched and the viewer knows it.
    #[inline]
    pub(super) fn communicator(&self) -> Option<u32> {
        let about = MpiCall::default().with_communicator(self.place.about.load(Ordering::Acquire));
        let is_inter = self.place.is_inter.load(Ordering::Relaxed) != 0;
        (about.communicator != 0 && about.size > 1 && !is_inter).then_some(OF_MPI | u32::from(about.communicator))
    }

    /// The call failed: the next one has its number.
    #[cold]
    pub(super) fn withdraw(&self) {
        self.place.collectives.fetch_sub(1, Ordering::Relaxed);
    }
}

const fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 29
}

fn probes(handle: u64) -> impl Iterator<Item = &'static Place> {
    let start = (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (0..PROBES).filter_map(move |step| PLACE.get(start.wrapping_add(step) % PLACES))
}

fn find(handle: u64) -> Option<&'static Place> {
    for place in probes(handle) {
        match place.handle.load(Ordering::Acquire) {
            0 => return None,
            known if known == handle => return Some(place),
            _ => {}
        }
    }
    None
}

/// Gives a handle a place.
#[cold]
fn claim(handle: u64, identity: u64) -> Option<&'static Place> {
    for place in probes(handle) {
        let seen = place.handle.load(Ordering::Acquire);
        let is_free = seen == 0 || seen == GONE;
        let claim = || {
            let claim = place
                .handle
                .compare_exchange(seen, CLAIMED, Ordering::AcqRel, Ordering::Relaxed);
            claim.is_ok()
        };
        if is_free && claim() {
            for value in [&place.about, &place.is_inter, &place.collectives, &place.children] {
                value.store(0, Ordering::Relaxed);
            }
            place.identity.store(identity, Ordering::Relaxed);
            place.handle.store(handle, Ordering::Release);
            return Some(place);
        }
    }
    None
}

const fn is_handle(handle: u64) -> bool {
    !matches!(handle, 0 | GONE | CLAIMED)
}

/// The communicator of a handle that a successful call has used.
#[inline]
pub(super) fn of(family: Family, word: u64) -> Option<Communicator> {
    let handle = family.handle(word);
    if !is_handle(handle) {
        return None;
    }
    match find(handle) {
        Some(place) if place.about.load(Ordering::Acquire) != 0 => Some(Communicator {
            word: place.about.load(Ordering::Relaxed),
            is_inter: place.is_inter.load(Ordering::Relaxed) != 0,
        }),
        known => learn(handle, known),
    }
}

#[cold]
fn learn(handle: u64, known: Option<&'static Place>) -> Option<Communicator> {
    let _errno = Errno::keep();
    let size = ask(Question::Size, handle)?;
    let rank = ask(Question::Rank, handle)?;
    let is_inter = ask(Question::IsInter, handle)? != 0;
    // Without a place there is no number: the next call would get another one.
    let Some(place) = known.or_else(|| claim(handle, world_identity(handle).unwrap_or(0))) else {
        let word = MpiCall::communicator_word(0, size, rank);
        return Some(Communicator { word, is_inter });
    };
    let number = match predefined(handle).and_then(|at| [WORLD, SELF].get(at).copied()) {
        Some(number) => number,
        None => u16::try_from(LAST.fetch_add(1, Ordering::Relaxed) + 1).unwrap_or(0),
    };
    let word = MpiCall::communicator_word(number, size, rank);
    place.is_inter.store(u64::from(is_inter), Ordering::Relaxed);
    // Threads may learn it at the same time: one of them writes the fact.
    if let Err(known) = place
        .about
        .compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire)
    {
        return Some(Communicator { word: known, is_inter });
    }
    let identity = place.identity.load(Ordering::Relaxed);
    if identity != 0 && number != 0 && size > 1 && !is_inter {
        let fact = record::Communicator {
            identity,
            handle,
            rank,
            size,
            number: OF_MPI | u32::from(number),
            time: clock::now(),
            state: communicator::CREATED,
            is_ambiguous: IS_AMBIGUOUS.load(Ordering::Relaxed) as u16,
            ..record::Communicator::default()
        };
        if let Some(process) = process::get() {
            process.minor_fact(record::Communicator::head(0, Domain::MPI), &fact.payload());
        }
    }
    Some(Communicator { word, is_inter })
}

/// The handle is about to be freed.
pub(super) fn forget(handle: u64) {
    while let Some(place) = find(handle) {
        place.handle.store(GONE, Ordering::Release);
    }
}

/// Identity of the world, if the handle is the world's.
#[cold]
fn world_identity(handle: u64) -> Option<u64> {
    (predefined(handle) == Some(0)).then(|| WORLD_IDENTITY.load(Ordering::Relaxed))
}

/// The place of a communicator that has an identity.
#[inline]
fn identified(family: Family, word: u64) -> Option<&'static Place> {
    let handle = family.handle(word);
    let place = find(handle).or_else(|| claim(handle, world_identity(handle)?));
    place.filter(|place| place.identity.load(Ordering::Relaxed) != 0)
}

/// A collective begins on the communicator of this handle.
#[inline]
pub(super) fn count(family: Family, word: u64) -> Option<Numbered> {
    let place = identified(family, word)?;
    let sequence = place.collectives.fetch_add(1, Ordering::Relaxed) + 1;
    Some(Numbered {
        place,
        sequence: sequence as u32,
    })
}

/// A successful call made a communicator of the one with handle `parent`, or none for this rank. All ranks call such
/// functions in the same order.
#[cold]
pub(super) fn made(family: Family, parent: u64, makes: Makes, child: u64, color: i32) {
    let Some(place) = identified(family, parent) else {
        return;
    };
    let count = place.children.fetch_add(1, Ordering::Relaxed);
    let handle = family.handle(child);
    if count >= UNCOUNTED || !is_handle(handle) {
        return;
    }
    // The handle of a communicator whose end was not seen.
    forget(handle);
    let own = match makes {
        Makes::Several { .. } => 1 << 32 | u64::from(color.cast_unsigned()),
        Makes::One(_) | Makes::Nothing => 0,
    };
    let identity = mix(mix(place.identity.load(Ordering::Relaxed), count + 1), own);
    claim(handle, identity.max(1));
}

/// Communicators are made of this one, and it is not seen how: what is made of it later is not known by its order.
#[cold]
pub(super) fn missed(family: Family, parent: u64) {
    if let Some(place) = identified(family, parent) {
        place.children.store(UNCOUNTED, Ordering::Relaxed);
    }
}

/// Variables that name the job of a world: one of them, or all of a line, is the same in its ranks alone.
const JOBS: [&[&str]; 4] = [
    &["PMIX_NAMESPACE"],
    &["OMPI_MCA_ess_base_jobid"],
    &["PALS_APID"],
    &["SLURM_JOB_ID", "SLURM_STEP_ID", "PMI_RANK"],
];
/// What MPICH's launcher sets. It names no job, and its ranks inherit the names of the one that it is started in.
const HYDRA: &str = "HYDI_CONTROL_FD";

/// Names the world. When this library is loaded: later, threads may change the environment.
pub(super) fn at_load() {
    let variable = |name: &&str| std::env::var_os(name).map(std::ffi::OsString::into_encoded_bytes);
    let is_named = std::env::var_os(HYDRA).is_none();
    let job = JOBS.iter().filter(|_| is_named).find_map(|names| {
        let values: Option<Vec<Vec<u8>>> = names.iter().map(variable).collect();
        // The rank shows who started the process; it differs.
        values.map(|values| (names, values))
    });
    let hash = |start: u64, bytes: &[u8]| bytes.iter().fold(start, |hash, byte| mix(hash, u64::from(*byte)));
    let named = job.map(|(names, values)| {
        let pairs = names.iter().zip(values).filter(|(name, _)| !name.ends_with("_RANK"));
        pairs.fold(1, |start, (name, value)| hash(hash(start, name.as_bytes()), &value))
    });
    if named.is_none() {
        IS_AMBIGUOUS.store(1, Ordering::Relaxed);
    }
    let identity = named.unwrap_or_else(|| hash(1, b"world")).max(1);
    WORLD_IDENTITY.store(identity, Ordering::Relaxed);
}
