//! Names of kernels: demangled with arguments, and cut to the bare function.

use cpp_demangle::{DemangleOptions, Symbol};

/// The demangled name, or the name itself when it is not a C++ symbol.
pub fn demangle(mangled: &str) -> String {
    let options = DemangleOptions::new();
    match Symbol::new(mangled) {
        Ok(symbol) => symbol
            .demangle_with_options(&options)
            .unwrap_or_else(|_| mangled.to_owned()),
        Err(_) => mangled.to_owned(),
    }
}

/// The bare function of a demangled name: no return type, template arguments, arguments or name space.
pub fn truncate(name: &str) -> String {
    let name = &name.replace("(anonymous namespace)::", "");
    let mut depth = 0usize;
    let mut plain = String::new();
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            // The arguments begin, unless it is the operator of that name.
            '(' if depth == 0 && !plain.ends_with("operator") => break,
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let plain = plain.trim();
    let last = plain.rsplit("::").next().unwrap_or(plain);
    last.rsplit(' ').next().unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled_with_return_type_and_arguments() {
        assert_eq!(demangle("_Z5scaleIfEvPT_S0_i"), "void scale<float>(float*, float, int)");
        assert_eq!(demangle("_Z5plainPi"), "plain(int*)");
        assert_eq!(demangle("__amd_rocclr_copyBuffer"), "__amd_rocclr_copyBuffer");
    }

    #[test]
    fn a_truncated_name_is_the_function() {
        assert_eq!(truncate("void scale<float>(float*, float, int)"), "scale");
        assert_eq!(truncate("void math::tiled<16, float>(float*, float const*)"), "tiled");
        assert_eq!(truncate("plain(int*)"), "plain");
        assert_eq!(truncate("void (anonymous namespace)::k(int)"), "k");
    }
}
