//! Libraries loaded at run time: search path, functions by name, build ids.

#![expect(unsafe_code, reason = "the loader's interface")]

use std::ffi::{CStr, CString, c_int, c_void};

/// A loaded library; it stays loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    handle: usize,
    /// File name.
    pub(crate) name: &'static str,
}

/// Directories that are searched after those of the loader.
fn places() -> Vec<String> {
    let rocm = std::env::var("ROCM_PATH").ok();
    let mut places = vec![String::new()];
    places.extend(rocm.map(|place| format!("{place}/lib/")));
    places.push("/opt/rocm/lib/".to_owned());
    places
}

impl Library {
    /// Loads the first of these names that is found. The error contains no directory.
    pub(crate) fn open(names: &[&'static str]) -> Result<Self, String> {
        for place in places() {
            for name in names {
                let Ok(path) = CString::new(format!("{place}{name}")) else {
                    continue;
                };
                // SAFETY: a terminated path; what the library's constructors do is the run-time's business.
                let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
                if !handle.is_null() {
                    return Ok(Self {
                        handle: handle as usize,
                        name,
                    });
                }
            }
        }
        Err(format!("{} cannot be loaded", names.join(", ")))
    }

    /// The address of a function.
    pub(crate) fn find(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the library stays open, the name is terminated.
        let address = unsafe { libc::dlsym(self.handle as *mut c_void, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// GNU build id of the library with this function; empty without one.
    pub(crate) fn build_id(self, function: &CStr) -> String {
        let Some(address) = self.find(function) else {
            return String::new();
        };
        let mut search = Search {
            address: address as u64,
            id: String::new(),
        };
        // SAFETY: the callback has the loader's type, and `search` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        search.id
    }
}

struct Search {
    address: u64,
    id: String,
}

const NOTE_BUILD_ID: u32 = 3;

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader's structure, valid in the callback.
    let info = unsafe { &*info };
    // SAFETY: `build_id` passes its own search.
    let search = unsafe { &mut *data.cast::<Search>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader says how many headers there are.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let is_inside = headers.iter().any(|header| {
        let start = info.dlpi_addr + header.p_vaddr;
        header.p_type == libc::PT_LOAD && (start..start + header.p_memsz).contains(&search.address)
    });
    if !is_inside {
        return 0;
    }
    for header in headers.iter().filter(|header| header.p_type == libc::PT_NOTE) {
        let start = (info.dlpi_addr + header.p_vaddr) as *const u8;
        // SAFETY: a note segment of a loaded library is mapped for as long as the library.
        let bytes = unsafe { std::slice::from_raw_parts(start, header.p_memsz as usize) };
        if let Some(id) = build_id_of(bytes) {
            search.id = id;
        }
    }
    1
}

/// The build id in a note segment.
fn build_id_of(mut bytes: &[u8]) -> Option<String> {
    let word = |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    loop {
        let (name, size, kind) = (word(bytes, 0)? as usize, word(bytes, 4)? as usize, word(bytes, 8)?);
        let content = 12 + name.next_multiple_of(4);
        if kind == NOTE_BUILD_ID && bytes.get(12..12 + name)? == b"GNU\0" {
            let id = bytes.get(content..content + size)?;
            return Some(
                id.iter()
                    .fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
            );
        }
        bytes = bytes.get(content + size.next_multiple_of(4)..)?;
    }
}

/// Declares a structure of functions that are looked up by name.
macro_rules! functions {
    ($(#[$doc:meta])* $Name:ident { $($field:ident = $symbol:literal: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $Name {
            $(pub(crate) $field: $ty,)*
        }

        impl $Name {
            pub(crate) fn load(library: $crate::library::Library) -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        const { assert!(size_of::<$ty>() == size_of::<*mut std::ffi::c_void>()) };
                        let address = library
                            .find($symbol)
                            .ok_or_else(|| format!("{} has no {}", library.name, $symbol.to_string_lossy()))?;
                        // SAFETY: not null, of the size of a pointer, and of this type in every release.
                        unsafe { std::mem::transmute_copy(&address) }
                    },)*
                })
            }
        }
    };
}
pub(crate) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_id_is_behind_other_notes() {
        let mut bytes = Vec::new();
        for (kind, content) in [(1u32, &[9u8, 9, 9, 9][..]), (NOTE_BUILD_ID, &[0xab, 0x01, 0x02])] {
            bytes.extend(4u32.to_ne_bytes());
            bytes.extend((content.len() as u32).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(b"GNU\0");
            bytes.extend(content);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_of(&bytes).as_deref(), Some("ab0102"));
        assert_eq!(build_id_of(&bytes[..16]), None);
    }

    #[test]
    fn missing_library_is_named_without_directory() {
        let error = Library::open(&["libnothing.so.1"]).unwrap_err();
        assert_eq!(error, "libnothing.so.1 cannot be loaded");
    }
}
