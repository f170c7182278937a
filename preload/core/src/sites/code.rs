//! Which words of a stack may be return addresses: those behind a call instruction. Pure.

/// What ends right before an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// No call.
    Nothing,
    /// A call of this address.
    Direct(u64),
    /// A call through a register or through memory.
    Indirect,
}

/// Number of bytes before a return address that are looked at.
pub(super) const BEFORE_BYTES: usize = 8;

/// What ends right before `address`, from the bytes there. x86-64: `e8 rel32`, and all forms of `ff /2`.
pub(super) fn before(address: u64, code: [u8; BEFORE_BYTES]) -> Before {
    if let [_, _, _, 0xe8, distance @ ..] = code {
        return Before::Direct(address.wrapping_add_signed(i64::from(i32::from_le_bytes(distance))));
    }
    let is_call = match code {
        [.., 0xff, form] if is_form(form) => matches!((mode(form), place(form)), (3, _) | (0, 0..=3 | 6 | 7)),
        _ => false,
    } || match code {
        [.., 0xff, form, next] if is_form(form) => match (mode(form), place(form)) {
            (1, near) => near != 4,
            (0, 4) => place(next) != 5,
            _ => false,
        },
        _ => false,
    } || match code {
        [.., 0xff, form, _, _] if is_form(form) => (mode(form), place(form)) == (1, 4),
        _ => false,
    } || match code {
        [.., 0xff, form, _, _, _, _] if is_form(form) => match (mode(form), place(form)) {
            (0, 5) => true,
            (2, near) => near != 4,
            _ => false,
        },
        _ => false,
    } || match code {
        [.., 0xff, form, next, _, _, _, _] if is_form(form) => match (mode(form), place(form)) {
            (2, 4) => true,
            (0, 4) => place(next) == 5,
            _ => false,
        },
        _ => false,
    };
    if is_call { Before::Indirect } else { Before::Nothing }
}

/// Whether this ModRM byte makes `ff` a near call.
const fn is_form(form: u8) -> bool {
    form >> 3 & 7 == 2
}

const fn mode(form: u8) -> u8 {
    form >> 6
}

const fn place(form: u8) -> u8 {
    form & 7
}

/// Number of bytes at a call's target that are looked at.
pub(super) const TARGET_BYTES: usize = 16;

/// What a call's target is, if it is only a jump to somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// It is no jump.
    None,
    /// An entry of a procedure linkage table: the word at this address is where it leads to.
    Through(u64),
    /// Another jump.
    Other,
}

/// The jump at a call's target, from the bytes there.
pub(super) fn jump(target: u64, code: [u8; TARGET_BYTES]) -> Jump {
    let rest = match &code {
        // endbr64
        [0xf3, 0x0f, 0x1e, 0xfa, rest @ ..] => rest,
        all => all.as_slice(),
    };
    // With or without the prefix bnd: jmp through memory or a register, jmp rel32, jmp rel8.
    let rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
    match rest {
        [0xff, 0x25, distance @ ..] if let Some((distance, after)) = distance.split_first_chunk() => {
            let end = target.wrapping_add((TARGET_BYTES - after.len()) as u64);
            Jump::Through(end.wrapping_add_signed(i64::from(i32::from_le_bytes(*distance))))
        }
        [0xff, 0x25 | 0xe0..=0xe7, ..] | [0x41, 0xff, 0xe0..=0xe7, ..] | [0xe9 | 0xeb, ..] => Jump::Other,
        _ => Jump::None,
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test that panics has failed")]
mod tests {
    use super::*;

    fn ends(tail: &[u8]) -> Before {
        let mut code = [0x90; BEFORE_BYTES];
        code[BEFORE_BYTES - tail.len()..].copy_from_slice(tail);
        before(0x1000, code)
    }

    #[test]
    fn direct_calls_name_their_target() {
        assert_eq!(ends(&[0xe8, 0x10, 0, 0, 0]), Before::Direct(0x1010));
        assert_eq!(ends(&[0xe8, 0xf0, 0xff, 0xff, 0xff]), Before::Direct(0xff0));
        assert_eq!(ends(&[0x67, 0xe8, 0, 0, 0, 0]), Before::Direct(0x1000));
    }

    #[test]
    fn all_forms_of_indirect_calls_are_known() {
        let forms: [&[u8]; 12] = [
            &[0xff, 0xd0],                         // call rax
            &[0x41, 0xff, 0xd4],                   // call r12
            &[0xff, 0x10],                         // call [rax]
            &[0xff, 0x50, 0x18],                   // call [rax + 24]
            &[0xff, 0x14, 0xc1],                   // call [rcx + 8 * rax]
            &[0xff, 0x54, 0x24, 0x08],             // call [rsp + 8]
            &[0xff, 0x15, 1, 2, 3, 4],             // call [rip + ...]
            &[0xff, 0x90, 0, 1, 0, 0],             // call [rax + 256]
            &[0x41, 0xff, 0x94, 0x24, 0, 1, 0, 0], // call [r12 + 256]
            &[0xff, 0x14, 0xc5, 1, 2, 3, 4],       // call [8 * rax + ...]
            &[0xff, 0xd3],                         // call rbx
            &[0xff, 0x55, 0x00],                   // call [rbp]
        ];
        for form in forms {
            assert_eq!(ends(form), Before::Indirect, "{form:02x?}");
        }
    }

    #[test]
    fn other_instructions_are_no_calls() {
        let others: [&[u8]; 6] = [
            &[0xff, 0xe0],             // jmp rax
            &[0xff, 0x25, 1, 2, 3, 4], // jmp [rip + ...]
            &[0xff, 0x30],             // push [rax]
            &[0xff, 0xc0],             // inc eax
            &[0x48, 0x89, 0xe5],       // mov rbp, rsp
            &[0xc3],
        ];
        for other in others {
            assert_eq!(ends(other), Before::Nothing, "{other:02x?}");
        }
    }

    #[test]
    fn entries_of_linkage_tables_are_jumps() {
        let at = |start: &[u8]| {
            let mut code = [0; TARGET_BYTES];
            code[..start.len()].copy_from_slice(start);
            jump(0x1000, code)
        };
        assert_eq!(at(&[0xff, 0x25, 0xfa, 1, 0, 0]), Jump::Through(0x1200));
        assert_eq!(
            at(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf5, 0xff, 0xff, 0xff]),
            Jump::Through(0x1000)
        );
        assert_eq!(
            at(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0, 0, 0]),
            Jump::Through(0x1100)
        );
        assert_eq!(at(&[0xff, 0xe0]), Jump::Other);
        assert_eq!(at(&[0xe9, 1, 2, 3, 4]), Jump::Other);
        assert_eq!(at(&[0x55, 0x48, 0x89, 0xe5]), Jump::None);
        assert_eq!(at(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55]), Jump::None);
    }
}
