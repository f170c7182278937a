//! Reads of this process's memory that fail instead of faulting.

#![expect(unsafe_code, reason = "process_vm_readv")]

/// Maximum number of places that one call reads.
const MAX_PLACES: usize = 32;

/// Copies from `address` on. Number of bytes copied: fewer than requested at the end of what is readable, 0 where the
/// system refuses.
pub(super) fn copy(address: u64, into: &mut [u8]) -> usize {
    let here = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let there = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: into.len(),
    };
    read(&[here], &[there])
}

/// Whether the system lets this process copy from its own memory. A seccomp filter may refuse it.
pub(super) fn can_copy() -> bool {
    let (word, mut into) = ([0x5au8; 8], [0u8; 8]);
    copy(word.as_ptr().addr() as u64, &mut into) == into.len() && into == word
}

/// Copies `N` bytes from each of the addresses; `None` for one that is not readable.
pub(super) fn gather<const N: usize>(addresses: &[u64], mut take: impl FnMut(usize, Option<[u8; N]>)) {
    let mut done = 0;
    while done < addresses.len() {
        let rest = addresses.get(done..).unwrap_or_default();
        let mut found = [[0u8; N]; MAX_PLACES];
        let none = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let (mut here, mut there) = ([none; MAX_PLACES], [none; MAX_PLACES]);
        let mut count = 0;
        for ((address, into), (here, there)) in rest.iter().zip(&mut found).zip(here.iter_mut().zip(&mut there)) {
            *here = libc::iovec {
                iov_base: into.as_mut_ptr().cast(),
                iov_len: N,
            };
            *there = libc::iovec {
                iov_base: *address as *mut libc::c_void,
                iov_len: N,
            };
            count += 1;
        }
        let got = read(
            here.get(..count).unwrap_or_default(),
            there.get(..count).unwrap_or_default(),
        ) / N;
        for (at, bytes) in found.iter().enumerate().take(got) {
            take(done + at, Some(*bytes));
        }
        done += got;
        if got < count {
            // The call ends at the first place that is not readable.
            take(done, None);
            done += 1;
        }
    }
}

/// Number of bytes copied, 0 after an error.
fn read(here: &[libc::iovec], there: &[libc::iovec]) -> usize {
    // SAFETY: the local places are exclusive borrows of the callers', which live during the call; the system checks
    // the others. A raw system call, because the C library's is a cancellation point.
    let got = unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            libc::getpid(),
            here.as_ptr(),
            here.len(),
            there.as_ptr(),
            there.len(),
            // The system reads all 64 bits.
            0usize,
        )
    };
    usize::try_from(got).unwrap_or(0)
}

/// Address of the calling thread's control block.
pub(super) fn control_block() -> u64 {
    let block;
    // SAFETY: the first word of the block is its own address, by the ABI of thread-local storage on x86-64.
    unsafe { core::arch::asm!("mov {}, fs:0", out(reg) block, options(nostack, preserves_flags, readonly, pure)) };
    block
}

/// Zeroed memory for a `T` that is never freed; `None` if there is none.
///
/// # Safety
/// All bytes zero is a valid `T`, and so is any state in which a forked child inherits it.
pub(crate) unsafe fn zeroed<T>() -> Option<&'static T> {
    const { assert!(align_of::<T>() <= 4096) };
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new anonymous mapping.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<T>(), protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping is large enough, at a page boundary, zero, which is valid, and never unmapped.
    Some(unsafe { &*address.cast::<T>() })
}

/// The file that lists this process's mappings, read in parts.
pub(super) struct MapsFile(i32);

impl MapsFile {
    pub(super) fn open() -> Option<Self> {
        let path = c"/proc/self/maps";
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the path is terminated. A raw system call, because an emulated driver may stand in for the library's
        // open.
        let fd = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
        i32::try_from(fd).ok().filter(|fd| *fd >= 0).map(Self)
    }

    /// Number of bytes read; 0 at the end, and after an error.
    pub(super) fn read(&self, into: &mut [u8]) -> usize {
        // SAFETY: the buffer is the caller's and of the length that is passed.
        let got = unsafe { libc::syscall(libc::SYS_read, self.0, into.as_mut_ptr(), into.len()) };
        usize::try_from(got).unwrap_or(0)
    }
}

impl Drop for MapsFile {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_memory_is_an_answer() {
        let words = [7u64, 8, 9];
        let at = words.as_ptr().addr() as u64;
        let mut into = [0u8; 24];
        assert_eq!(copy(at, &mut into), 24);
        assert_eq!(into[8..16], 8u64.to_le_bytes());
        assert_eq!(copy(0x10, &mut into), 0);
        let mut found = Vec::new();
        gather::<8>(&[at, 0x10, at + 8, at + 16, 0x20], |place, bytes| {
            found.push((place, bytes.map(u64::from_le_bytes)));
        });
        assert_eq!(found, [(0, Some(7)), (1, None), (2, Some(8)), (3, Some(9)), (4, None)]);
        let many = vec![at; 3 * MAX_PLACES + 5];
        let mut count = 0;
        gather::<8>(&many, |place, bytes| {
            assert_eq!((place, bytes.map(u64::from_le_bytes)), (count, Some(7)));
            count += 1;
        });
        assert_eq!(count, many.len());
    }
}
