//! The manual's rules, one per process, on a HIP without a GPU; tests/c/rules.c and tests/c/marks.c contain them.

use crate::place::{fake_hip, fake_hip_of, libraries, program, text};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

fn rule(name: &str) {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    if libraries().is_none() {
        return;
    }
    let program = PROGRAM.get_or_init(|| program("rules.c", "rules", &[fake_hip()]));
    let output = Command::new(program).arg(name).output().unwrap();
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), "ok\n"));
}

macro_rules! rules {
    ($($sentence:ident $rule:literal)*) => {
        $(#[test]
        fn $sentence() {
            rule($rule);
        })*
    };
}

rules! {
    the_version_is_4_1 "versions"
    failed_call_leaves_a_message_for_its_thread "error_strings"
    operations_have_names "names"
    names_have_operations "codes"
    a_callback_comes_before_and_after_its_operation "callbacks_of_an_operation"
    callbacks_cover_a_domain_or_all "callbacks_of_a_domain_and_of_all"
    a_call_inside_a_call_has_its_own_id "a_call_inside_a_call_has_its_own_id"
    marks_and_ranges_come_to_callbacks "marks"
    there_is_one_default_pool "the_default_pool"
    a_misused_pool_is_refused "misused_pools"
    a_pool_lives_in_the_programs_own_memory "own_allocators"
    a_call_is_recorded_with_its_times_and_thread "records_of_calls"
    work_is_recorded_as_reported "records_of_work"
    kernel_name_is_valid_in_the_buffer_callback "names_beside_records"
    a_buffer_of_twelve_bytes_loses_nothing "small_buffers"
    flush_returns_after_delivery "flushing"
    a_buffer_callback_may_call_the_library "from_its_own_callback"
    traced_buffer_callback_blocks_no_writer "a_callback_that_calls_among_writers"
    closing_a_pool_disables_and_flushes_it "closing"
    external_id_precedes_its_call_only "external_ids"
    nothing_is_reported_while_stopped "starting_and_stopping"
    misuse_returns_its_status "statuses"
    older_interfaces_do_nothing "older_interfaces"
    threads_lose_nothing "threads"
    forked_child_has_callbacks_and_no_pools "forks"
}

#[test]
fn calls_of_an_unknown_release_are_refused() {
    if libraries().is_none() {
        return;
    }
    let program = program("rules.c", "rules-unknown", &[fake_hip_of(9)]);
    let output = Command::new(program).arg("an_unknown_release").output().unwrap();
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), "ok\n"));
}

#[test]
fn marks_have_levels_and_ids() {
    if libraries().is_none() {
        return;
    }
    let output = Command::new(program("marks.c", "marks", &[])).output().unwrap();
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), "ok\n"));
}
