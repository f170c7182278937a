//! The functions of the run-time's tables: names, return types, and number of stack words of their arguments. Functions
//! of later releases are missing.

use crate::table::AmdLayout;

/// A function of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Whether it returns a status; otherwise a value or nothing.
    pub has_status: bool,
    /// Number of stack words of its arguments.
    pub stack_words: u8,
}

const fn status(name: &'static str, stack_words: u8) -> Function {
    Function {
        name,
        has_status: true,
        stack_words,
    }
}

const fn other(name: &'static str, stack_words: u8) -> Function {
    Function {
        name,
        has_status: false,
        stack_words,
    }
}

/// The function of an entry of an AMD table of this layout; `None` if unknown.
pub fn amd(layout: AmdLayout, entry: usize) -> Option<&'static Function> {
    if let Some(newer) = entry.checked_sub(AMD.len()) {
        return newer_amd(layout).get(newer);
    }
    let newest = (0..AMD.len()).find(|newest| layout.entry(*newest) == Some(entry))?;
    AMD.get(newest)
}

/// The first entries of [`AMD_NEWER`] have the same index in all published headers.
const AGREED: usize = 6;

/// Tables that are completely known: step, entries.
const KNOWN: [(u32, usize); 2] = [(0x0e, 84), (0x12, 91)];

/// The known functions after [`AMD`] of a table of this layout.
pub fn newer_amd(layout: AmdLayout) -> &'static [Function] {
    let is_known = KNOWN.contains(&(layout.step, layout.entries()));
    let known = if is_known { AMD_NEWER.len() } else { AGREED };
    AMD_NEWER.split_at(layout.unknown().min(known)).0
}

/// Core functions; the table never changed.
pub static CORE: [Function; 125] = [
    status("hsa_init", 0),
    status("hsa_shut_down", 0),
    status("hsa_system_get_info", 0),
    status("hsa_system_extension_supported", 0),
    status("hsa_system_get_extension_table", 0),
    status("hsa_iterate_agents", 0),
    status("hsa_agent_get_info", 0),
    status("hsa_queue_create", 2),
    status("hsa_soft_queue_create", 0),
    status("hsa_queue_destroy", 0),
    status("hsa_queue_inactivate", 0),
    other("hsa_queue_load_read_index_scacquire", 0),
    other("hsa_queue_load_read_index_relaxed", 0),
    other("hsa_queue_load_write_index_scacquire", 0),
    other("hsa_queue_load_write_index_relaxed", 0),
    other("hsa_queue_store_write_index_relaxed", 0),
    other("hsa_queue_store_write_index_screlease", 0),
    other("hsa_queue_cas_write_index_scacq_screl", 0),
    other("hsa_queue_cas_write_index_scacquire", 0),
    other("hsa_queue_cas_write_index_relaxed", 0),
    other("hsa_queue_cas_write_index_screlease", 0),
    other("hsa_queue_add_write_index_scacq_screl", 0),
    other("hsa_queue_add_write_index_scacquire", 0),
    other("hsa_queue_add_write_index_relaxed", 0),
    other("hsa_queue_add_write_index_screlease", 0),
    other("hsa_queue_store_read_index_relaxed", 0),
    other("hsa_queue_store_read_index_screlease", 0),
    status("hsa_agent_iterate_regions", 0),
    status("hsa_region_get_info", 0),
    status("hsa_agent_get_exception_policies", 0),
    status("hsa_agent_extension_supported", 0),
    status("hsa_memory_register", 0),
    status("hsa_memory_deregister", 0),
    status("hsa_memory_allocate", 0),
    status("hsa_memory_free", 0),
    status("hsa_memory_copy", 0),
    status("hsa_memory_assign_agent", 0),
    status("hsa_signal_create", 0),
    status("hsa_signal_destroy", 0),
    other("hsa_signal_load_relaxed", 0),
    other("hsa_signal_load_scacquire", 0),
    other("hsa_signal_store_relaxed", 0),
    other("hsa_signal_store_screlease", 0),
    other("hsa_signal_wait_relaxed", 0),
    other("hsa_signal_wait_scacquire", 0),
    other("hsa_signal_and_relaxed", 0),
    other("hsa_signal_and_scacquire", 0),
    other("hsa_signal_and_screlease", 0),
    other("hsa_signal_and_scacq_screl", 0),
    other("hsa_signal_or_relaxed", 0),
    other("hsa_signal_or_scacquire", 0),
    other("hsa_signal_or_screlease", 0),
    other("hsa_signal_or_scacq_screl", 0),
    other("hsa_signal_xor_relaxed", 0),
    other("hsa_signal_xor_scacquire", 0),
    other("hsa_signal_xor_screlease", 0),
    other("hsa_signal_xor_scacq_screl", 0),
    other("hsa_signal_exchange_relaxed", 0),
    other("hsa_signal_exchange_scacquire", 0),
    other("hsa_signal_exchange_screlease", 0),
    other("hsa_signal_exchange_scacq_screl", 0),
    other("hsa_signal_add_relaxed", 0),
    other("hsa_signal_add_scacquire", 0),
    other("hsa_signal_add_screlease", 0),
    other("hsa_signal_add_scacq_screl", 0),
    other("hsa_signal_subtract_relaxed", 0),
    other("hsa_signal_subtract_scacquire", 0),
    other("hsa_signal_subtract_screlease", 0),
    other("hsa_signal_subtract_scacq_screl", 0),
    other("hsa_signal_cas_relaxed", 0),
    other("hsa_signal_cas_scacquire", 0),
    other("hsa_signal_cas_screlease", 0),
    other("hsa_signal_cas_scacq_screl", 0),
    status("hsa_isa_from_name", 0),
    status("hsa_isa_get_info", 0),
    status("hsa_isa_compatible", 0),
    status("hsa_code_object_serialize", 0),
    status("hsa_code_object_deserialize", 0),
    status("hsa_code_object_destroy", 0),
    status("hsa_code_object_get_info", 0),
    status("hsa_code_object_get_symbol", 0),
    status("hsa_code_symbol_get_info", 0),
    status("hsa_code_object_iterate_symbols", 0),
    status("hsa_executable_create", 0),
    status("hsa_executable_destroy", 0),
    status("hsa_executable_load_code_object", 0),
    status("hsa_executable_freeze", 0),
    status("hsa_executable_get_info", 0),
    status("hsa_executable_global_variable_define", 0),
    status("hsa_executable_agent_global_variable_define", 0),
    status("hsa_executable_readonly_variable_define", 0),
    status("hsa_executable_validate", 0),
    status("hsa_executable_get_symbol", 0),
    status("hsa_executable_symbol_get_info", 0),
    status("hsa_executable_iterate_symbols", 0),
    status("hsa_status_string", 0),
    status("hsa_extension_get_name", 0),
    status("hsa_system_major_extension_supported", 0),
    status("hsa_system_get_major_extension_table", 0),
    status("hsa_agent_major_extension_supported", 0),
    status("hsa_cache_get_info", 0),
    status("hsa_agent_iterate_caches", 0),
    other("hsa_signal_silent_store_relaxed", 0),
    other("hsa_signal_silent_store_screlease", 0),
    status("hsa_signal_group_create", 0),
    status("hsa_signal_group_destroy", 0),
    status("hsa_signal_group_wait_any_scacquire", 0),
    status("hsa_signal_group_wait_any_relaxed", 0),
    status("hsa_agent_iterate_isas", 0),
    status("hsa_isa_get_info_alt", 0),
    status("hsa_isa_get_exception_policies", 0),
    status("hsa_isa_get_round_method", 0),
    status("hsa_wavefront_get_info", 0),
    status("hsa_isa_iterate_wavefronts", 0),
    status("hsa_code_object_get_symbol_from_name", 0),
    status("hsa_code_object_reader_create_from_file", 0),
    status("hsa_code_object_reader_create_from_memory", 0),
    status("hsa_code_object_reader_destroy", 0),
    status("hsa_executable_create_alt", 0),
    status("hsa_executable_load_program_code_object", 0),
    status("hsa_executable_load_agent_code_object", 0),
    status("hsa_executable_validate_alt", 0),
    status("hsa_executable_get_symbol_by_name", 0),
    status("hsa_executable_iterate_agent_symbols", 0),
    status("hsa_executable_iterate_program_symbols", 0),
];

/// AMD extension functions as numbered since 5.6; see [`AmdLayout::entry`](crate::table::AmdLayout::entry).
pub static AMD: [Function; 76] = [
    status("hsa_amd_coherency_get_type", 0),
    status("hsa_amd_coherency_set_type", 0),
    status("hsa_amd_profiling_set_profiler_enabled", 0),
    status("hsa_amd_profiling_async_copy_enable", 0),
    status("hsa_amd_profiling_get_dispatch_time", 0),
    status("hsa_amd_profiling_get_async_copy_time", 0),
    status("hsa_amd_profiling_convert_tick_to_system_domain", 0),
    status("hsa_amd_signal_async_handler", 0),
    status("hsa_amd_async_function", 0),
    other("hsa_amd_signal_wait_any", 1),
    status("hsa_amd_queue_cu_set_mask", 0),
    status("hsa_amd_memory_pool_get_info", 0),
    status("hsa_amd_agent_iterate_memory_pools", 0),
    status("hsa_amd_memory_pool_allocate", 0),
    status("hsa_amd_memory_pool_free", 0),
    status("hsa_amd_memory_async_copy", 2),
    status("hsa_amd_memory_async_copy_on_engine", 4),
    status("hsa_amd_memory_copy_engine_status", 0),
    status("hsa_amd_agent_memory_pool_get_info", 0),
    status("hsa_amd_agents_allow_access", 0),
    status("hsa_amd_memory_pool_can_migrate", 0),
    status("hsa_amd_memory_migrate", 0),
    status("hsa_amd_memory_lock", 0),
    status("hsa_amd_memory_unlock", 0),
    status("hsa_amd_memory_fill", 0),
    status("hsa_amd_interop_map_buffer", 2),
    status("hsa_amd_interop_unmap_buffer", 0),
    status("hsa_amd_image_create", 0),
    status("hsa_amd_pointer_info", 0),
    status("hsa_amd_pointer_info_set_userdata", 0),
    status("hsa_amd_ipc_memory_create", 0),
    status("hsa_amd_ipc_memory_attach", 0),
    status("hsa_amd_ipc_memory_detach", 0),
    status("hsa_amd_signal_create", 0),
    status("hsa_amd_ipc_signal_create", 0),
    status("hsa_amd_ipc_signal_attach", 0),
    status("hsa_amd_register_system_event_handler", 0),
    status("hsa_amd_queue_intercept_create", 2),
    status("hsa_amd_queue_intercept_register", 0),
    status("hsa_amd_queue_set_priority", 0),
    status("hsa_amd_memory_async_copy_rect", 4),
    status("hsa_amd_runtime_queue_create_register", 0),
    status("hsa_amd_memory_lock_to_pool", 1),
    status("hsa_amd_register_deallocation_callback", 0),
    status("hsa_amd_deregister_deallocation_callback", 0),
    status("hsa_amd_signal_value_pointer", 0),
    status("hsa_amd_svm_attributes_set", 0),
    status("hsa_amd_svm_attributes_get", 0),
    status("hsa_amd_svm_prefetch_async", 0),
    status("hsa_amd_spm_acquire", 0),
    status("hsa_amd_spm_release", 0),
    status("hsa_amd_spm_set_dest_buffer", 0),
    status("hsa_amd_queue_cu_get_mask", 0),
    status("hsa_amd_portable_export_dmabuf", 0),
    status("hsa_amd_portable_close_dmabuf", 0),
    status("hsa_amd_vmem_address_reserve", 0),
    status("hsa_amd_vmem_address_free", 0),
    status("hsa_amd_vmem_handle_create", 0),
    status("hsa_amd_vmem_handle_release", 0),
    status("hsa_amd_vmem_map", 0),
    status("hsa_amd_vmem_unmap", 0),
    status("hsa_amd_vmem_set_access", 0),
    status("hsa_amd_vmem_get_access", 0),
    status("hsa_amd_vmem_export_shareable_handle", 0),
    status("hsa_amd_vmem_import_shareable_handle", 0),
    status("hsa_amd_vmem_retain_alloc_handle", 0),
    status("hsa_amd_vmem_get_alloc_properties_from_handle", 0),
    status("hsa_amd_agent_set_async_scratch_limit", 0),
    status("hsa_amd_queue_get_info", 0),
    status("hsa_amd_vmem_address_reserve_align", 0),
    status("hsa_amd_enable_logging", 0),
    other("hsa_amd_signal_wait_all", 1),
    status("hsa_amd_memory_get_preferred_copy_engine", 0),
    status("hsa_amd_portable_export_dmabuf_v2", 0),
    status("hsa_amd_ais_file_write", 0),
    status("hsa_amd_ais_file_read", 0),
];

/// AMD extension functions after [`AMD`] (ROCr 1.21 and later), in the order of the main line. Published headers
/// disagree from the seventh on, so those are used only for tables of known step and size; see [`newer_amd`].
pub static AMD_NEWER: [Function; 15] = [
    status("hsa_amd_counted_queue_acquire", 1),
    status("hsa_amd_counted_queue_release", 0),
    status("hsa_amd_memory_async_batch_copy", 0),
    status("hsa_amd_agent_preload", 0),
    status("hsa_amd_svm_discard_batch_async", 0),
    status("hsa_amd_signal_get_event_id", 0),
    status("hsa_amd_external_semaphore_handle_open", 0),
    status("hsa_amd_external_semaphore_handle_close", 0),
    status("hsa_amd_vmem_export_fabric_handle", 0),
    status("hsa_amd_vmem_import_fabric_handle", 0),
    status("hsa_amd_queue_create", 0),
    status("hsa_amd_queue_signal_external_semaphore", 0),
    status("hsa_amd_queue_wait_external_semaphore", 0),
    // Their stack arguments are unknown: this is the maximum.
    status("hsa_amd_image_create_v2", 8),
    status("hsa_amd_interop_map_buffer_with_size", 8),
];

/// Image extension functions.
pub static IMAGE: [Function; 14] = [
    status("hsa_ext_image_get_capability", 0),
    status("hsa_ext_image_data_get_info", 0),
    status("hsa_ext_image_create", 0),
    status("hsa_ext_image_import", 0),
    status("hsa_ext_image_export", 0),
    status("hsa_ext_image_copy", 0),
    status("hsa_ext_image_clear", 0),
    status("hsa_ext_image_destroy", 0),
    status("hsa_ext_sampler_create", 0),
    status("hsa_ext_sampler_destroy", 0),
    status("hsa_ext_image_get_capability_with_layout", 0),
    status("hsa_ext_image_data_get_info_with_layout", 1),
    status("hsa_ext_image_create_with_layout", 2),
    status("hsa_ext_sampler_create_v2", 0),
];

/// Finalizer extension functions.
pub static FINALIZER: [Function; 6] = [
    status("hsa_ext_program_create", 0),
    status("hsa_ext_program_destroy", 0),
    status("hsa_ext_program_add_module", 0),
    status("hsa_ext_program_iterate_modules", 0),
    status("hsa_ext_program_get_info", 0),
    status("hsa_ext_program_finalize", 18),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn name(step: u32, entries: usize, entry: usize) -> Option<&'static str> {
        let layout = AmdLayout {
            size: 16 + 8 * entries,
            step,
        };
        amd(layout, entry).map(|function| function.name)
    }

    #[test]
    fn newer_entries_are_named_while_versions_agree() {
        assert_eq!(name(0, 91, 75), Some("hsa_amd_ais_file_read"));
        assert_eq!(name(0, 91, 78), Some("hsa_amd_memory_async_batch_copy"));
        assert_eq!(name(0x0a, 79, 78), Some("hsa_amd_memory_async_batch_copy"));
        assert_eq!(name(0, 91, 82), None);
        assert_eq!(name(0, 76, 76), None);
    }

    #[test]
    fn later_entries_have_names_in_tables_of_known_step_and_size() {
        assert_eq!(name(0x0e, 84, 83), Some("hsa_amd_external_semaphore_handle_close"));
        assert_eq!(name(0x12, 91, 86), Some("hsa_amd_queue_create"));
        assert_eq!(name(0x12, 91, 90), Some("hsa_amd_interop_map_buffer_with_size"));
        // In one branch the images come before the queues.
        for (step, entries) in [(0x0f, 86), (0x10, 87), (0x10, 88), (0x12, 92), (0x13, 91)] {
            assert_eq!(name(step, entries, 84), None);
            assert_eq!(name(step, entries, 86), None);
        }
    }
}
