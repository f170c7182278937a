//! Texts of call arguments that programs may keep. The shipped library copies each and never frees it, and tools read
//! them long after the call. Here each distinct text is kept once.

use crate::registration;
use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};

struct Texts(UnsafeCell<BTreeSet<CString>>);
// SAFETY: used with the registrations' lock held.
unsafe impl Sync for Texts {}

static TEXTS: Texts = Texts(UnsafeCell::new(BTreeSet::new()));

/// The same text at a permanent address.
pub(crate) fn keep(text: &CStr) -> *const CStr {
    let mut kept = std::ptr::from_ref(text);
    // This lock survives a fork unlocked.
    registration::locked(|| {
        // SAFETY: the lock is held.
        let texts = unsafe { &mut *TEXTS.0.get() };
        if !texts.contains(text) {
            texts.insert(text.to_owned());
        }
        // The text is in a separate allocation, which does not move with the set.
        kept = texts.get(text).map_or(kept, |text| std::ptr::from_ref(text.as_c_str()));
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_and_never_freed() {
        let mut all = Vec::new();
        for number in 0..1000 {
            let text = CString::new(format!("text {}", number % 500)).unwrap();
            all.push((number % 500, keep(&text)));
        }
        for (number, kept) in &all {
            // SAFETY: permanent.
            assert_eq!(unsafe { &**kept }.to_str().unwrap(), format!("text {number}"));
            assert_eq!(
                all.iter().filter(|(_, other)| std::ptr::addr_eq(*other, *kept)).count(),
                2
            );
        }
    }
}
