//! Kernel names: demangled with arguments, or truncated to the bare function.

mod itanium;

use regex::Regex;

/// User-defined names of kernels: patterns with their replacements.
#[derive(Clone, Debug, Default)]
pub struct Aliases(Vec<(Regex, String)>);

impl Aliases {
    /// Aliases in order of precedence.
    pub fn new(aliases: Vec<(Regex, String)>) -> Self {
        Self(aliases)
    }

    /// The first alias whose pattern matches the demangled or the mangled name.
    pub fn of(&self, name: &str, mangled: &str) -> Option<&str> {
        let fits = |alias: &&(Regex, String)| alias.0.is_match(name) || alias.0.is_match(mangled);
        self.0.iter().find(fits).map(|alias| alias.1.as_str())
    }

    /// Number of aliases.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no aliases.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Maximum length of a demangled name, bytes. Substitutions can double a name with every few characters: a symbol of
/// 300 characters can stand for terabytes.
const MAX_NAME_BYTES: usize = 64 << 10;

/// Demangles a C++ symbol as `__cxa_demangle` does. Other names, and symbols whose name exceeds 64 KiB, are returned
/// unchanged.
pub fn demangle(mangled: &str) -> String {
    itanium::demangle(mangled, MAX_NAME_BYTES).unwrap_or_else(|| mangled.to_owned())
}

/// The bare function of a demangled name: no return type, template arguments, arguments or namespace.
pub fn truncate(name: &str) -> String {
    let name = &name.replace("(anonymous namespace)::", "");
    let mut depth = 0usize;
    let mut plain = String::new();
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            // The arguments begin here, unless this is `operator()`.
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
    fn a_name_that_doubles_itself_stays_as_it_is() {
        // A<A<A<int, int>, A<int, int>>, A<A<int, int>, A<int, int>>>, and so on.
        let mut mangled = "_Z1f1AIiiE".to_owned();
        for number in 0..34 {
            let last = char::from_digit(number, 36).unwrap_or('0').to_ascii_uppercase();
            mangled.extend(["S_IS", &last.to_string(), "_S", &last.to_string(), "_E"]);
        }
        assert_eq!(demangle(&mangled), mangled);
        assert_eq!(
            demangle("_Z1f1AIiiES_IS0_S0_E"),
            "f(A<int, int>, A<A<int, int>, A<int, int> >)"
        );
    }

    #[test]
    fn the_first_alias_that_fits_either_name_is_taken() {
        let alias = |pattern: &str, name: &str| (Regex::new(pattern).expect("it is one"), name.to_string());
        let aliases = Aliases::new(vec![alias("scale<float>", "scale"), alias("^_Z5", "five")]);
        assert_eq!(
            aliases.of("void scale<float>(float*)", "_Z5scaleIfEvPT_"),
            Some("scale")
        );
        assert_eq!(aliases.of("plain(int*)", "_Z5plainPi"), Some("five"));
        assert_eq!(aliases.of("other(int*)", "_Z6otherPi"), None);
    }

    #[test]
    fn a_truncated_name_is_the_function() {
        assert_eq!(truncate("void scale<float>(float*, float, int)"), "scale");
        assert_eq!(truncate("void math::tiled<16, float>(float*, float const*)"), "tiled");
        assert_eq!(truncate("plain(int*)"), "plain");
        assert_eq!(truncate("void (anonymous namespace)::k(int)"), "k");
    }
}
