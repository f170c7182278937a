//! Argument sizes of HSA's functions, in table order: enough to lay them out as programs' callbacks read them.
//!
//! A digit is an argument of that many bytes, each in its register or stack word; `r` is the pointer to a copy's range,
//! whose value is also in the callbacks' structure; `s` is a text.

/// Core functions.
pub(super) static CORE: [&str; 125] = [
    "",         // hsa_init
    "",         // hsa_shut_down
    "48",       // hsa_system_get_info
    "2228",     // hsa_system_extension_supported
    "2228",     // hsa_system_get_extension_table
    "88",       // hsa_iterate_agents
    "848",      // hsa_agent_get_info
    "84488448", // hsa_queue_create
    "844488",   // hsa_soft_queue_create
    "8",        // hsa_queue_destroy
    "8",        // hsa_queue_inactivate
    "8",        // hsa_queue_load_read_index_scacquire
    "8",        // hsa_queue_load_read_index_relaxed
    "8",        // hsa_queue_load_write_index_scacquire
    "8",        // hsa_queue_load_write_index_relaxed
    "88",       // hsa_queue_store_write_index_relaxed
    "88",       // hsa_queue_store_write_index_screlease
    "888",      // hsa_queue_cas_write_index_scacq_screl
    "888",      // hsa_queue_cas_write_index_scacquire
    "888",      // hsa_queue_cas_write_index_relaxed
    "888",      // hsa_queue_cas_write_index_screlease
    "88",       // hsa_queue_add_write_index_scacq_screl
    "88",       // hsa_queue_add_write_index_scacquire
    "88",       // hsa_queue_add_write_index_relaxed
    "88",       // hsa_queue_add_write_index_screlease
    "88",       // hsa_queue_store_read_index_relaxed
    "88",       // hsa_queue_store_read_index_screlease
    "888",      // hsa_agent_iterate_regions
    "848",      // hsa_region_get_info
    "848",      // hsa_agent_get_exception_policies
    "28228",    // hsa_agent_extension_supported
    "88",       // hsa_memory_register
    "88",       // hsa_memory_deregister
    "888",      // hsa_memory_allocate
    "8",        // hsa_memory_free
    "888",      // hsa_memory_copy
    "884",      // hsa_memory_assign_agent
    "8488",     // hsa_signal_create
    "8",        // hsa_signal_destroy
    "8",        // hsa_signal_load_relaxed
    "8",        // hsa_signal_load_scacquire
    "88",       // hsa_signal_store_relaxed
    "88",       // hsa_signal_store_screlease
    "84884",    // hsa_signal_wait_relaxed
    "84884",    // hsa_signal_wait_scacquire
    "88",       // hsa_signal_and_relaxed
    "88",       // hsa_signal_and_scacquire
    "88",       // hsa_signal_and_screlease
    "88",       // hsa_signal_and_scacq_screl
    "88",       // hsa_signal_or_relaxed
    "88",       // hsa_signal_or_scacquire
    "88",       // hsa_signal_or_screlease
    "88",       // hsa_signal_or_scacq_screl
    "88",       // hsa_signal_xor_relaxed
    "88",       // hsa_signal_xor_scacquire
    "88",       // hsa_signal_xor_screlease
    "88",       // hsa_signal_xor_scacq_screl
    "88",       // hsa_signal_exchange_relaxed
    "88",       // hsa_signal_exchange_scacquire
    "88",       // hsa_signal_exchange_screlease
    "88",       // hsa_signal_exchange_scacq_screl
    "88",       // hsa_signal_add_relaxed
    "88",       // hsa_signal_add_scacquire
    "88",       // hsa_signal_add_screlease
    "88",       // hsa_signal_add_scacq_screl
    "88",       // hsa_signal_subtract_relaxed
    "88",       // hsa_signal_subtract_scacquire
    "88",       // hsa_signal_subtract_screlease
    "88",       // hsa_signal_subtract_scacq_screl
    "888",      // hsa_signal_cas_relaxed
    "888",      // hsa_signal_cas_scacquire
    "888",      // hsa_signal_cas_screlease
    "888",      // hsa_signal_cas_scacq_screl
    "s8",       // hsa_isa_from_name
    "8448",     // hsa_isa_get_info
    "888",      // hsa_isa_compatible
    "888s88",   // hsa_code_object_serialize
    "88s8",     // hsa_code_object_deserialize
    "8",        // hsa_code_object_destroy
    "848",      // hsa_code_object_get_info
    "8s8",      // hsa_code_object_get_symbol
    "848",      // hsa_code_symbol_get_info
    "888",      // hsa_code_object_iterate_symbols
    "44s8",     // hsa_executable_create
    "8",        // hsa_executable_destroy
    "888s",     // hsa_executable_load_code_object
    "8s",       // hsa_executable_freeze
    "848",      // hsa_executable_get_info
    "8s8",      // hsa_executable_global_variable_define
    "88s8",     // hsa_executable_agent_global_variable_define
    "88s8",     // hsa_executable_readonly_variable_define
    "88",       // hsa_executable_validate
    "8ss848",   // hsa_executable_get_symbol
    "848",      // hsa_executable_symbol_get_info
    "888",      // hsa_executable_iterate_symbols
    "48",       // hsa_status_string
    "28",       // hsa_extension_get_name
    "2288",     // hsa_system_major_extension_supported
    "2288",     // hsa_system_get_major_extension_table
    "28288",    // hsa_agent_major_extension_supported
    "848",      // hsa_cache_get_info
    "888",      // hsa_agent_iterate_caches
    "88",       // hsa_signal_silent_store_relaxed
    "88",       // hsa_signal_silent_store_screlease
    "48488",    // hsa_signal_group_create
    "8",        // hsa_signal_group_destroy
    "888488",   // hsa_signal_group_wait_any_scacquire
    "888488",   // hsa_signal_group_wait_any_relaxed
    "888",      // hsa_agent_iterate_isas
    "848",      // hsa_isa_get_info_alt
    "848",      // hsa_isa_get_exception_policies
    "8448",     // hsa_isa_get_round_method
    "848",      // hsa_wavefront_get_info
    "888",      // hsa_isa_iterate_wavefronts
    "8ss8",     // hsa_code_object_get_symbol_from_name
    "48",       // hsa_code_object_reader_create_from_file
    "888",      // hsa_code_object_reader_create_from_memory
    "8",        // hsa_code_object_reader_destroy
    "44s8",     // hsa_executable_create_alt
    "88s8",     // hsa_executable_load_program_code_object
    "888s8",    // hsa_executable_load_agent_code_object
    "8s8",      // hsa_executable_validate_alt
    "8s88",     // hsa_executable_get_symbol_by_name
    "8888",     // hsa_executable_iterate_agent_symbols
    "888",      // hsa_executable_iterate_program_symbols
];

/// AMD extension functions, as numbered since 5.6.
pub(super) static AMD: [&str; 76] = [
    "88",         // hsa_amd_coherency_get_type
    "84",         // hsa_amd_coherency_set_type
    "84",         // hsa_amd_profiling_set_profiler_enabled
    "1",          // hsa_amd_profiling_async_copy_enable
    "888",        // hsa_amd_profiling_get_dispatch_time
    "88",         // hsa_amd_profiling_get_async_copy_time
    "888",        // hsa_amd_profiling_convert_tick_to_system_domain
    "84888",      // hsa_amd_signal_async_handler
    "88",         // hsa_amd_async_function
    "4888848",    // hsa_amd_signal_wait_any
    "848",        // hsa_amd_queue_cu_set_mask
    "848",        // hsa_amd_memory_pool_get_info
    "888",        // hsa_amd_agent_iterate_memory_pools
    "8848",       // hsa_amd_memory_pool_allocate
    "8",          // hsa_amd_memory_pool_free
    "88888488",   // hsa_amd_memory_async_copy
    "8888848841", // hsa_amd_memory_async_copy_on_engine
    "888",        // hsa_amd_memory_copy_engine_status
    "8848",       // hsa_amd_agent_memory_pool_get_info
    "4888",       // hsa_amd_agents_allow_access
    "888",        // hsa_amd_memory_pool_can_migrate
    "884",        // hsa_amd_memory_migrate
    "88848",      // hsa_amd_memory_lock
    "8",          // hsa_amd_memory_unlock
    "848",        // hsa_amd_memory_fill
    "48448888",   // hsa_amd_interop_map_buffer
    "8",          // hsa_amd_interop_unmap_buffer
    "888848",     // hsa_amd_image_create
    "88888",      // hsa_amd_pointer_info
    "88",         // hsa_amd_pointer_info_set_userdata
    "888",        // hsa_amd_ipc_memory_create
    "88488",      // hsa_amd_ipc_memory_attach
    "8",          // hsa_amd_ipc_memory_detach
    "84888",      // hsa_amd_signal_create
    "88",         // hsa_amd_ipc_signal_create
    "88",         // hsa_amd_ipc_signal_attach
    "88",         // hsa_amd_register_system_event_handler
    "84488448",   // hsa_amd_queue_intercept_create
    "888",        // hsa_amd_queue_intercept_register
    "84",         // hsa_amd_queue_set_priority
    "8888r84488", // hsa_amd_memory_async_copy_rect
    "88",         // hsa_amd_runtime_queue_create_register
    "8884848",    // hsa_amd_memory_lock_to_pool
    "888",        // hsa_amd_register_deallocation_callback
    "88",         // hsa_amd_deregister_deallocation_callback
    "88",         // hsa_amd_signal_value_pointer
    "8888",       // hsa_amd_svm_attributes_set
    "8888",       // hsa_amd_svm_attributes_get
    "888488",     // hsa_amd_svm_prefetch_async
    "8",          // hsa_amd_spm_acquire
    "8",          // hsa_amd_spm_release
    "888888",     // hsa_amd_spm_set_dest_buffer
    "848",        // hsa_amd_queue_cu_get_mask
    "8888",       // hsa_amd_portable_export_dmabuf
    "4",          // hsa_amd_portable_close_dmabuf
    "8888",       // hsa_amd_vmem_address_reserve
    "88",         // hsa_amd_vmem_address_free
    "88488",      // hsa_amd_vmem_handle_create
    "8",          // hsa_amd_vmem_handle_release
    "88888",      // hsa_amd_vmem_map
    "88",         // hsa_amd_vmem_unmap
    "8888",       // hsa_amd_vmem_set_access
    "888",        // hsa_amd_vmem_get_access
    "888",        // hsa_amd_vmem_export_shareable_handle
    "48",         // hsa_amd_vmem_import_shareable_handle
    "88",         // hsa_amd_vmem_retain_alloc_handle
    "888",        // hsa_amd_vmem_get_alloc_properties_from_handle
    "88",         // hsa_amd_agent_set_async_scratch_limit
    "848",        // hsa_amd_queue_get_info
    "88888",      // hsa_amd_vmem_address_reserve_align
    "88",         // hsa_amd_enable_logging
    "4888848",    // hsa_amd_signal_wait_all
    "888",        // hsa_amd_memory_get_preferred_copy_engine
    "88888",      // hsa_amd_portable_export_dmabuf_v2
    "888888",     // hsa_amd_ais_file_write
    "888888",     // hsa_amd_ais_file_read
];

/// Image extension functions.
pub(super) static IMAGE: [&str; 14] = [
    "8488",     // hsa_ext_image_get_capability
    "8848",     // hsa_ext_image_data_get_info
    "88848",    // hsa_ext_image_create
    "888888",   // hsa_ext_image_import
    "888888",   // hsa_ext_image_export
    "888888",   // hsa_ext_image_copy
    "8888",     // hsa_ext_image_clear
    "88",       // hsa_ext_image_destroy
    "888",      // hsa_ext_sampler_create
    "88",       // hsa_ext_sampler_destroy
    "84848",    // hsa_ext_image_get_capability_with_layout
    "8844888",  // hsa_ext_image_data_get_info_with_layout
    "88844888", // hsa_ext_image_create_with_layout
    "888",      // hsa_ext_sampler_create_v2
];

#[cfg(test)]
mod tests {
    use super::*;
    use hsa_sys::function;

    #[test]
    fn arguments_after_the_sixth_are_on_the_stack() {
        let tables: [(&[&str], &[function::Function]); 3] = [
            (&CORE, &function::CORE),
            (&AMD, &function::AMD),
            (&IMAGE, &function::IMAGE),
        ];
        for (sizes, functions) in tables {
            assert_eq!(sizes.len(), functions.len());
            for (sizes, function) in sizes.iter().zip(functions) {
                let on_stack = sizes.len().saturating_sub(6);
                assert_eq!(on_stack, usize::from(function.stack_words), "{}", function.name);
            }
        }
    }
}
