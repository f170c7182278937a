//! Demangled names of C++ and Rust functions.

use roctop_trace::kernel_name;
use std::fmt::{self, Write};

/// Length of a demangled Rust name, bytes. Back references can double a name again and again.
const MAX_NAME_BYTES: usize = 64 << 10;

/// Text that ends at its limit.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_NAME_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Whether this is a name of Rust's older scheme: it looks like one of C++, but ends in a hash.
fn has_hash(symbol: &str) -> bool {
    let end = symbol.find(".llvm.").unwrap_or(symbol.len());
    let bytes = &symbol.as_bytes()[..end];
    bytes.len() > 20 && bytes.ends_with(b"E") && {
        let hash = &bytes[bytes.len() - 20..bytes.len() - 1];
        hash.starts_with(b"17h") && hash[3..].iter().all(u8::is_ascii_hexdigit)
    }
}

/// The function's name as its source has it; other symbols are returned unchanged.
pub(crate) fn demangle(symbol: &str) -> String {
    let is_rust = symbol.starts_with("_R") || symbol.starts_with("_ZN") && has_hash(symbol);
    if is_rust && let Ok(name) = rustc_demangle::try_demangle(symbol) {
        let mut text = Limited(String::new());
        // Without the hash.
        if write!(text, "{name:#}").is_ok() {
            return text.0;
        }
        return symbol.to_owned();
    }
    kernel_name::demangle(symbol)
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_of_both_languages_are_demangled() {
        assert_eq!(demangle("_Z5scaleIfEvPT_S0_i"), "void scale<float>(float*, float, int)");
        assert_eq!(demangle("_ZN3foo3barEv"), "foo::bar()");
        assert_eq!(demangle("_ZN3foo3bar17h0123456789abcdefE"), "foo::bar");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_ZN"), "_ZN");
    }
}
