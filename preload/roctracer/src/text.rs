//! Texts that programs may keep: those of calls' arguments. The shipped library copies each and never frees it, and tools
//! read them when the call is long over. Here each distinct one is kept once.

use crate::registration;
use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};

struct Texts(UnsafeCell<BTreeSet<CString>>);
// SAFETY: used with the registrations' lock held.
unsafe impl Sync for Texts {}

static TEXTS: Texts = Texts(UnsafeCell::new(BTreeSet::new()));

/// The same text at an address that stays.
pub(crate) fn keep(text: &CStr) -> *const CStr {
    let mut kept = std::ptr::from_ref(text);
    // That lock is the one that a fork leaves free.
    registration::locked(|| {
        // SAFETY: the lock is held.
        let texts = unsafe { &mut *TEXTS.0.get() };
        if !texts.contains(text) {
            texts.insert(text.to_owned());
        }
        // The text lies in memory of its own, which does not move with the set.
        kept = texts.get(text).map_or(kept, |text| std::ptr::from_ref(text.as_c_str()));
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_for_ever() {
        let mut all = Vec::new();
        for number in 0..1000 {
            let text = CString::new(format!("text {}", number % 500)).unwrap();
            all.push((number % 500, keep(&text)));
        }
        for (number, kept) in &all {
            // SAFETY: kept for ever.
            assert_eq!(unsafe { &**kept }.to_str().unwrap(), format!("text {number}"));
            assert_eq!(
                all.iter().filter(|(_, other)| std::ptr::addr_eq(*other, *kept)).count(),
                2
            );
        }
    }
}
