/* HSA calls in callbacks of domain HSA_API: numbers, arguments, and their text.
 *
 * Calls are numbered consecutively by the run-time's core, AMD and image tables. Releases inserted entries into the AMD
 * table, so the numbers are those of the HSA headers that the program is compiled with; the library numbers calls by
 * the loaded release. If the detection below does not know a release, define ROCTRACER_HSA_AMD_ENTRIES as the number of
 * functions in its AMD table.
 */
#ifndef ROCTRACER_HSA_PROF_STR_H_
#define ROCTRACER_HSA_PROF_STR_H_

#include <stdbool.h>
#include <stdint.h>

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ext_image.h>

#if defined(__has_include)
#if __has_include(<hsa/hsa_api_trace_version.h>)
#include <hsa/hsa_api_trace_version.h> /* 6.2 and later */
#endif
#if __has_include(<hip/hip_version.h>)
#include <hip/hip_version.h>
#endif
#endif

#ifndef ROCTRACER_HSA_AMD_ENTRIES
#if defined(HSA_AMD_EXT_API_TABLE_STEP_VERSION) && HSA_AMD_EXT_API_TABLE_STEP_VERSION >= 8
#define ROCTRACER_HSA_AMD_ENTRIES 76 /* 7.2 */
#elif defined(HSA_AMD_EXT_API_TABLE_STEP_VERSION) && HSA_AMD_EXT_API_TABLE_STEP_VERSION >= 7
#define ROCTRACER_HSA_AMD_ENTRIES 74 /* 7.0 */
#elif defined(HSA_AMD_EXT_API_TABLE_STEP_VERSION) && HSA_AMD_EXT_API_TABLE_STEP_VERSION >= 5
#define ROCTRACER_HSA_AMD_ENTRIES 72 /* 6.4 */
#elif defined(HSA_AMD_EXT_API_TABLE_STEP_VERSION) && HSA_AMD_EXT_API_TABLE_STEP_VERSION >= 4
#define ROCTRACER_HSA_AMD_ENTRIES 71 /* 6.3 */
#elif defined(HSA_AMD_EXT_API_TABLE_STEP_VERSION) && HSA_AMD_EXT_API_TABLE_STEP_VERSION >= 3
#define ROCTRACER_HSA_AMD_ENTRIES 70 /* 6.2 */
#elif HSA_AMD_INTERFACE_VERSION_MINOR >= 15
#define ROCTRACER_HSA_AMD_ENTRIES 76
#elif HSA_AMD_INTERFACE_VERSION_MINOR >= 11
#define ROCTRACER_HSA_AMD_ENTRIES 74
#elif HSA_AMD_INTERFACE_VERSION_MINOR >= 7
#define ROCTRACER_HSA_AMD_ENTRIES 72
#elif HSA_AMD_INTERFACE_VERSION_MINOR >= 5
#if defined(HIP_VERSION_MAJOR) && HIP_VERSION_MAJOR == 6 && HIP_VERSION_MINOR <= 2
#define ROCTRACER_HSA_AMD_ENTRIES 70
#else
#define ROCTRACER_HSA_AMD_ENTRIES 71
#endif
#elif HSA_AMD_INTERFACE_VERSION_MINOR >= 4
#if defined(HIP_VERSION_MAJOR) && HIP_VERSION_MAJOR == 6 && HIP_VERSION_MINOR == 0
#define ROCTRACER_HSA_AMD_ENTRIES 67 /* 6.0 */
#else
#define ROCTRACER_HSA_AMD_ENTRIES 68 /* 6.1 */
#endif
#elif HSA_AMD_INTERFACE_VERSION_MINOR >= 1
#define ROCTRACER_HSA_AMD_ENTRIES 55 /* 5.6, 5.7 */
#elif defined(HIP_VERSION_MAJOR) && HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR >= 5
#define ROCTRACER_HSA_AMD_ENTRIES 51 /* 5.5 */
#else
#define ROCTRACER_HSA_AMD_ENTRIES 48 /* 5.2 to 5.4 */
#endif
#endif

/* Declared for tools only. */
typedef void (*hsa_amd_queue_intercept_packet_writer)(const void* packets, uint64_t count);
typedef void (*hsa_amd_queue_intercept_handler)(const void* packets, uint64_t count, uint64_t index, void* data,
                                                hsa_amd_queue_intercept_packet_writer writer);
typedef void (*hsa_amd_runtime_queue_notifier)(const hsa_queue_t* queue, hsa_agent_t agent, void* data);

enum hsa_api_id_t {
  HSA_API_ID_hsa_init = 0,
  HSA_API_ID_hsa_shut_down,
  HSA_API_ID_hsa_system_get_info,
  HSA_API_ID_hsa_system_extension_supported,
  HSA_API_ID_hsa_system_get_extension_table,
  HSA_API_ID_hsa_iterate_agents,
  HSA_API_ID_hsa_agent_get_info,
  HSA_API_ID_hsa_queue_create,
  HSA_API_ID_hsa_soft_queue_create,
  HSA_API_ID_hsa_queue_destroy,
  HSA_API_ID_hsa_queue_inactivate,
  HSA_API_ID_hsa_queue_load_read_index_scacquire,
  HSA_API_ID_hsa_queue_load_read_index_relaxed,
  HSA_API_ID_hsa_queue_load_write_index_scacquire,
  HSA_API_ID_hsa_queue_load_write_index_relaxed,
  HSA_API_ID_hsa_queue_store_write_index_relaxed,
  HSA_API_ID_hsa_queue_store_write_index_screlease,
  HSA_API_ID_hsa_queue_cas_write_index_scacq_screl,
  HSA_API_ID_hsa_queue_cas_write_index_scacquire,
  HSA_API_ID_hsa_queue_cas_write_index_relaxed,
  HSA_API_ID_hsa_queue_cas_write_index_screlease,
  HSA_API_ID_hsa_queue_add_write_index_scacq_screl,
  HSA_API_ID_hsa_queue_add_write_index_scacquire,
  HSA_API_ID_hsa_queue_add_write_index_relaxed,
  HSA_API_ID_hsa_queue_add_write_index_screlease,
  HSA_API_ID_hsa_queue_store_read_index_relaxed,
  HSA_API_ID_hsa_queue_store_read_index_screlease,
  HSA_API_ID_hsa_agent_iterate_regions,
  HSA_API_ID_hsa_region_get_info,
  HSA_API_ID_hsa_agent_get_exception_policies,
  HSA_API_ID_hsa_agent_extension_supported,
  HSA_API_ID_hsa_memory_register,
  HSA_API_ID_hsa_memory_deregister,
  HSA_API_ID_hsa_memory_allocate,
  HSA_API_ID_hsa_memory_free,
  HSA_API_ID_hsa_memory_copy,
  HSA_API_ID_hsa_memory_assign_agent,
  HSA_API_ID_hsa_signal_create,
  HSA_API_ID_hsa_signal_destroy,
  HSA_API_ID_hsa_signal_load_relaxed,
  HSA_API_ID_hsa_signal_load_scacquire,
  HSA_API_ID_hsa_signal_store_relaxed,
  HSA_API_ID_hsa_signal_store_screlease,
  HSA_API_ID_hsa_signal_wait_relaxed,
  HSA_API_ID_hsa_signal_wait_scacquire,
  HSA_API_ID_hsa_signal_and_relaxed,
  HSA_API_ID_hsa_signal_and_scacquire,
  HSA_API_ID_hsa_signal_and_screlease,
  HSA_API_ID_hsa_signal_and_scacq_screl,
  HSA_API_ID_hsa_signal_or_relaxed,
  HSA_API_ID_hsa_signal_or_scacquire,
  HSA_API_ID_hsa_signal_or_screlease,
  HSA_API_ID_hsa_signal_or_scacq_screl,
  HSA_API_ID_hsa_signal_xor_relaxed,
  HSA_API_ID_hsa_signal_xor_scacquire,
  HSA_API_ID_hsa_signal_xor_screlease,
  HSA_API_ID_hsa_signal_xor_scacq_screl,
  HSA_API_ID_hsa_signal_exchange_relaxed,
  HSA_API_ID_hsa_signal_exchange_scacquire,
  HSA_API_ID_hsa_signal_exchange_screlease,
  HSA_API_ID_hsa_signal_exchange_scacq_screl,
  HSA_API_ID_hsa_signal_add_relaxed,
  HSA_API_ID_hsa_signal_add_scacquire,
  HSA_API_ID_hsa_signal_add_screlease,
  HSA_API_ID_hsa_signal_add_scacq_screl,
  HSA_API_ID_hsa_signal_subtract_relaxed,
  HSA_API_ID_hsa_signal_subtract_scacquire,
  HSA_API_ID_hsa_signal_subtract_screlease,
  HSA_API_ID_hsa_signal_subtract_scacq_screl,
  HSA_API_ID_hsa_signal_cas_relaxed,
  HSA_API_ID_hsa_signal_cas_scacquire,
  HSA_API_ID_hsa_signal_cas_screlease,
  HSA_API_ID_hsa_signal_cas_scacq_screl,
  HSA_API_ID_hsa_isa_from_name,
  HSA_API_ID_hsa_isa_get_info,
  HSA_API_ID_hsa_isa_compatible,
  HSA_API_ID_hsa_code_object_serialize,
  HSA_API_ID_hsa_code_object_deserialize,
  HSA_API_ID_hsa_code_object_destroy,
  HSA_API_ID_hsa_code_object_get_info,
  HSA_API_ID_hsa_code_object_get_symbol,
  HSA_API_ID_hsa_code_symbol_get_info,
  HSA_API_ID_hsa_code_object_iterate_symbols,
  HSA_API_ID_hsa_executable_create,
  HSA_API_ID_hsa_executable_destroy,
  HSA_API_ID_hsa_executable_load_code_object,
  HSA_API_ID_hsa_executable_freeze,
  HSA_API_ID_hsa_executable_get_info,
  HSA_API_ID_hsa_executable_global_variable_define,
  HSA_API_ID_hsa_executable_agent_global_variable_define,
  HSA_API_ID_hsa_executable_readonly_variable_define,
  HSA_API_ID_hsa_executable_validate,
  HSA_API_ID_hsa_executable_get_symbol,
  HSA_API_ID_hsa_executable_symbol_get_info,
  HSA_API_ID_hsa_executable_iterate_symbols,
  HSA_API_ID_hsa_status_string,
  HSA_API_ID_hsa_extension_get_name,
  HSA_API_ID_hsa_system_major_extension_supported,
  HSA_API_ID_hsa_system_get_major_extension_table,
  HSA_API_ID_hsa_agent_major_extension_supported,
  HSA_API_ID_hsa_cache_get_info,
  HSA_API_ID_hsa_agent_iterate_caches,
  HSA_API_ID_hsa_signal_silent_store_relaxed,
  HSA_API_ID_hsa_signal_silent_store_screlease,
  HSA_API_ID_hsa_signal_group_create,
  HSA_API_ID_hsa_signal_group_destroy,
  HSA_API_ID_hsa_signal_group_wait_any_scacquire,
  HSA_API_ID_hsa_signal_group_wait_any_relaxed,
  HSA_API_ID_hsa_agent_iterate_isas,
  HSA_API_ID_hsa_isa_get_info_alt,
  HSA_API_ID_hsa_isa_get_exception_policies,
  HSA_API_ID_hsa_isa_get_round_method,
  HSA_API_ID_hsa_wavefront_get_info,
  HSA_API_ID_hsa_isa_iterate_wavefronts,
  HSA_API_ID_hsa_code_object_get_symbol_from_name,
  HSA_API_ID_hsa_code_object_reader_create_from_file,
  HSA_API_ID_hsa_code_object_reader_create_from_memory,
  HSA_API_ID_hsa_code_object_reader_destroy,
  HSA_API_ID_hsa_executable_create_alt,
  HSA_API_ID_hsa_executable_load_program_code_object,
  HSA_API_ID_hsa_executable_load_agent_code_object,
  HSA_API_ID_hsa_executable_validate_alt,
  HSA_API_ID_hsa_executable_get_symbol_by_name,
  HSA_API_ID_hsa_executable_iterate_agent_symbols,
  HSA_API_ID_hsa_executable_iterate_program_symbols,
  HSA_API_ID_hsa_amd_coherency_get_type,
  HSA_API_ID_hsa_amd_coherency_set_type,
  HSA_API_ID_hsa_amd_profiling_set_profiler_enabled,
  HSA_API_ID_hsa_amd_profiling_async_copy_enable,
  HSA_API_ID_hsa_amd_profiling_get_dispatch_time,
  HSA_API_ID_hsa_amd_profiling_get_async_copy_time,
  HSA_API_ID_hsa_amd_profiling_convert_tick_to_system_domain,
  HSA_API_ID_hsa_amd_signal_async_handler,
  HSA_API_ID_hsa_amd_async_function,
  HSA_API_ID_hsa_amd_signal_wait_any,
  HSA_API_ID_hsa_amd_queue_cu_set_mask,
  HSA_API_ID_hsa_amd_memory_pool_get_info,
  HSA_API_ID_hsa_amd_agent_iterate_memory_pools,
  HSA_API_ID_hsa_amd_memory_pool_allocate,
  HSA_API_ID_hsa_amd_memory_pool_free,
  HSA_API_ID_hsa_amd_memory_async_copy,
#if ROCTRACER_HSA_AMD_ENTRIES >= 55
  HSA_API_ID_hsa_amd_memory_async_copy_on_engine,
  HSA_API_ID_hsa_amd_memory_copy_engine_status,
#endif
  HSA_API_ID_hsa_amd_agent_memory_pool_get_info,
  HSA_API_ID_hsa_amd_agents_allow_access,
  HSA_API_ID_hsa_amd_memory_pool_can_migrate,
  HSA_API_ID_hsa_amd_memory_migrate,
  HSA_API_ID_hsa_amd_memory_lock,
  HSA_API_ID_hsa_amd_memory_unlock,
  HSA_API_ID_hsa_amd_memory_fill,
  HSA_API_ID_hsa_amd_interop_map_buffer,
  HSA_API_ID_hsa_amd_interop_unmap_buffer,
  HSA_API_ID_hsa_amd_image_create,
  HSA_API_ID_hsa_amd_pointer_info,
  HSA_API_ID_hsa_amd_pointer_info_set_userdata,
  HSA_API_ID_hsa_amd_ipc_memory_create,
  HSA_API_ID_hsa_amd_ipc_memory_attach,
  HSA_API_ID_hsa_amd_ipc_memory_detach,
  HSA_API_ID_hsa_amd_signal_create,
  HSA_API_ID_hsa_amd_ipc_signal_create,
  HSA_API_ID_hsa_amd_ipc_signal_attach,
  HSA_API_ID_hsa_amd_register_system_event_handler,
  HSA_API_ID_hsa_amd_queue_intercept_create,
  HSA_API_ID_hsa_amd_queue_intercept_register,
  HSA_API_ID_hsa_amd_queue_set_priority,
  HSA_API_ID_hsa_amd_memory_async_copy_rect,
  HSA_API_ID_hsa_amd_runtime_queue_create_register,
  HSA_API_ID_hsa_amd_memory_lock_to_pool,
  HSA_API_ID_hsa_amd_register_deallocation_callback,
  HSA_API_ID_hsa_amd_deregister_deallocation_callback,
  HSA_API_ID_hsa_amd_signal_value_pointer,
  HSA_API_ID_hsa_amd_svm_attributes_set,
  HSA_API_ID_hsa_amd_svm_attributes_get,
  HSA_API_ID_hsa_amd_svm_prefetch_async,
#if ROCTRACER_HSA_AMD_ENTRIES >= 51
  HSA_API_ID_hsa_amd_spm_acquire,
  HSA_API_ID_hsa_amd_spm_release,
  HSA_API_ID_hsa_amd_spm_set_dest_buffer,
#endif
  HSA_API_ID_hsa_amd_queue_cu_get_mask,
#if ROCTRACER_HSA_AMD_ENTRIES >= 55
  HSA_API_ID_hsa_amd_portable_export_dmabuf,
  HSA_API_ID_hsa_amd_portable_close_dmabuf,
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 67
  HSA_API_ID_hsa_amd_vmem_address_reserve,
  HSA_API_ID_hsa_amd_vmem_address_free,
  HSA_API_ID_hsa_amd_vmem_handle_create,
  HSA_API_ID_hsa_amd_vmem_handle_release,
  HSA_API_ID_hsa_amd_vmem_map,
  HSA_API_ID_hsa_amd_vmem_unmap,
  HSA_API_ID_hsa_amd_vmem_set_access,
  HSA_API_ID_hsa_amd_vmem_get_access,
  HSA_API_ID_hsa_amd_vmem_export_shareable_handle,
  HSA_API_ID_hsa_amd_vmem_import_shareable_handle,
  HSA_API_ID_hsa_amd_vmem_retain_alloc_handle,
  HSA_API_ID_hsa_amd_vmem_get_alloc_properties_from_handle,
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 68
  HSA_API_ID_hsa_amd_agent_set_async_scratch_limit,
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 70
  HSA_API_ID_hsa_amd_queue_get_info,
  HSA_API_ID_hsa_amd_vmem_address_reserve_align,
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 71
  HSA_API_ID_hsa_amd_enable_logging,
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 72
  HSA_API_ID_hsa_amd_signal_wait_all,
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 74
  HSA_API_ID_hsa_amd_memory_get_preferred_copy_engine,
  HSA_API_ID_hsa_amd_portable_export_dmabuf_v2,
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 76
  HSA_API_ID_hsa_amd_ais_file_write,
  HSA_API_ID_hsa_amd_ais_file_read,
#endif
  HSA_API_ID_hsa_ext_image_get_capability,
  HSA_API_ID_hsa_ext_image_data_get_info,
  HSA_API_ID_hsa_ext_image_create,
  HSA_API_ID_hsa_ext_image_import,
  HSA_API_ID_hsa_ext_image_export,
  HSA_API_ID_hsa_ext_image_copy,
  HSA_API_ID_hsa_ext_image_clear,
  HSA_API_ID_hsa_ext_image_destroy,
  HSA_API_ID_hsa_ext_sampler_create,
  HSA_API_ID_hsa_ext_sampler_destroy,
  HSA_API_ID_hsa_ext_image_get_capability_with_layout,
  HSA_API_ID_hsa_ext_image_data_get_info_with_layout,
  HSA_API_ID_hsa_ext_image_create_with_layout,
#if ROCTRACER_HSA_AMD_ENTRIES >= 72
  HSA_API_ID_hsa_ext_sampler_create_v2,
#endif
  HSA_API_ID_DISPATCH,
  HSA_API_ID_NUMBER
};

struct hsa_api_data_t {
  uint64_t correlation_id;
  uint32_t phase;
  /* In the second phase. */
  union {
    uint64_t uint64_t_retval;
    uint32_t uint32_t_retval;
    hsa_signal_value_t hsa_signal_value_t_retval;
    hsa_status_t hsa_status_t_retval;
  };
  union {
    struct {
      char none; /* no arguments */
    } hsa_init;
    struct {
      char none; /* no arguments */
    } hsa_shut_down;
    struct {
      hsa_system_info_t attribute;
      void* value;
    } hsa_system_get_info;
    struct {
      uint16_t extension;
      uint16_t version_major;
      uint16_t version_minor;
      bool* result;
    } hsa_system_extension_supported;
    struct {
      uint16_t extension;
      uint16_t version_major;
      uint16_t version_minor;
      void* table;
    } hsa_system_get_extension_table;
    struct {
      hsa_status_t (*callback)(hsa_agent_t agent, void* data);
      void* data;
    } hsa_iterate_agents;
    struct {
      hsa_agent_t agent;
      hsa_agent_info_t attribute;
      void* value;
    } hsa_agent_get_info;
    struct {
      hsa_agent_t agent;
      uint32_t size;
      hsa_queue_type32_t type;
      void (*callback)(hsa_status_t status, hsa_queue_t *source, void *data);
      void* data;
      uint32_t private_segment_size;
      uint32_t group_segment_size;
      hsa_queue_t** queue;
    } hsa_queue_create;
    struct {
      hsa_region_t region;
      uint32_t size;
      hsa_queue_type32_t type;
      uint32_t features;
      hsa_signal_t doorbell_signal;
      hsa_queue_t** queue;
    } hsa_soft_queue_create;
    struct {
      hsa_queue_t* queue;
    } hsa_queue_destroy;
    struct {
      hsa_queue_t* queue;
    } hsa_queue_inactivate;
    struct {
      const hsa_queue_t* queue;
    } hsa_queue_load_read_index_scacquire;
    struct {
      const hsa_queue_t* queue;
    } hsa_queue_load_read_index_relaxed;
    struct {
      const hsa_queue_t* queue;
    } hsa_queue_load_write_index_scacquire;
    struct {
      const hsa_queue_t* queue;
    } hsa_queue_load_write_index_relaxed;
    struct {
      const hsa_queue_t* queue;
      uint64_t value;
    } hsa_queue_store_write_index_relaxed;
    struct {
      const hsa_queue_t* queue;
      uint64_t value;
    } hsa_queue_store_write_index_screlease;
    struct {
      const hsa_queue_t* queue;
      uint64_t expected;
      uint64_t value;
    } hsa_queue_cas_write_index_scacq_screl;
    struct {
      const hsa_queue_t* queue;
      uint64_t expected;
      uint64_t value;
    } hsa_queue_cas_write_index_scacquire;
    struct {
      const hsa_queue_t* queue;
      uint64_t expected;
      uint64_t value;
    } hsa_queue_cas_write_index_relaxed;
    struct {
      const hsa_queue_t* queue;
      uint64_t expected;
      uint64_t value;
    } hsa_queue_cas_write_index_screlease;
    struct {
      const hsa_queue_t* queue;
      uint64_t value;
    } hsa_queue_add_write_index_scacq_screl;
    struct {
      const hsa_queue_t* queue;
      uint64_t value;
    } hsa_queue_add_write_index_scacquire;
    struct {
      const hsa_queue_t* queue;
      uint64_t value;
    } hsa_queue_add_write_index_relaxed;
    struct {
      const hsa_queue_t* queue;
      uint64_t value;
    } hsa_queue_add_write_index_screlease;
    struct {
      const hsa_queue_t* queue;
      uint64_t value;
    } hsa_queue_store_read_index_relaxed;
    struct {
      const hsa_queue_t* queue;
      uint64_t value;
    } hsa_queue_store_read_index_screlease;
    struct {
      hsa_agent_t agent;
      hsa_status_t (*callback)(hsa_region_t region, void* data);
      void* data;
    } hsa_agent_iterate_regions;
    struct {
      hsa_region_t region;
      hsa_region_info_t attribute;
      void* value;
    } hsa_region_get_info;
    struct {
      hsa_agent_t agent;
      hsa_profile_t profile;
      uint16_t* mask;
    } hsa_agent_get_exception_policies;
    struct {
      uint16_t extension;
      hsa_agent_t agent;
      uint16_t version_major;
      uint16_t version_minor;
      bool* result;
    } hsa_agent_extension_supported;
    struct {
      void* ptr;
      size_t size;
    } hsa_memory_register;
    struct {
      void* ptr;
      size_t size;
    } hsa_memory_deregister;
    struct {
      hsa_region_t region;
      size_t size;
      void** ptr;
    } hsa_memory_allocate;
    struct {
      void* ptr;
    } hsa_memory_free;
    struct {
      void* dst;
      const void* src;
      size_t size;
    } hsa_memory_copy;
    struct {
      void* ptr;
      hsa_agent_t agent;
      hsa_access_permission_t access;
    } hsa_memory_assign_agent;
    struct {
      hsa_signal_value_t initial_value;
      uint32_t num_consumers;
      const hsa_agent_t* consumers;
      hsa_signal_t* signal;
    } hsa_signal_create;
    struct {
      hsa_signal_t signal;
    } hsa_signal_destroy;
    struct {
      hsa_signal_t signal;
    } hsa_signal_load_relaxed;
    struct {
      hsa_signal_t signal;
    } hsa_signal_load_scacquire;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_store_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_store_screlease;
    struct {
      hsa_signal_t signal;
      hsa_signal_condition_t condition;
      hsa_signal_value_t compare_value;
      uint64_t timeout_hint;
      hsa_wait_state_t wait_state_hint;
    } hsa_signal_wait_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_condition_t condition;
      hsa_signal_value_t compare_value;
      uint64_t timeout_hint;
      hsa_wait_state_t wait_state_hint;
    } hsa_signal_wait_scacquire;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_and_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_and_scacquire;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_and_screlease;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_and_scacq_screl;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_or_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_or_scacquire;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_or_screlease;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_or_scacq_screl;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_xor_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_xor_scacquire;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_xor_screlease;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_xor_scacq_screl;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_exchange_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_exchange_scacquire;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_exchange_screlease;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_exchange_scacq_screl;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_add_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_add_scacquire;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_add_screlease;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_add_scacq_screl;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_subtract_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_subtract_scacquire;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_subtract_screlease;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_subtract_scacq_screl;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t expected;
      hsa_signal_value_t value;
    } hsa_signal_cas_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t expected;
      hsa_signal_value_t value;
    } hsa_signal_cas_scacquire;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t expected;
      hsa_signal_value_t value;
    } hsa_signal_cas_screlease;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t expected;
      hsa_signal_value_t value;
    } hsa_signal_cas_scacq_screl;
    struct {
      const char* name;
      hsa_isa_t* isa;
    } hsa_isa_from_name;
    struct {
      hsa_isa_t isa;
      hsa_isa_info_t attribute;
      uint32_t index;
      void* value;
    } hsa_isa_get_info;
    struct {
      hsa_isa_t code_object_isa;
      hsa_isa_t agent_isa;
      bool* result;
    } hsa_isa_compatible;
    struct {
      hsa_code_object_t code_object;
      hsa_status_t (*alloc_callback)(size_t size, hsa_callback_data_t data, void **address);
      hsa_callback_data_t callback_data;
      const char* options;
      void** serialized_code_object;
      size_t* serialized_code_object_size;
    } hsa_code_object_serialize;
    struct {
      void* serialized_code_object;
      size_t serialized_code_object_size;
      const char* options;
      hsa_code_object_t* code_object;
    } hsa_code_object_deserialize;
    struct {
      hsa_code_object_t code_object;
    } hsa_code_object_destroy;
    struct {
      hsa_code_object_t code_object;
      hsa_code_object_info_t attribute;
      void* value;
    } hsa_code_object_get_info;
    struct {
      hsa_code_object_t code_object;
      const char* symbol_name;
      hsa_code_symbol_t* symbol;
    } hsa_code_object_get_symbol;
    struct {
      hsa_code_symbol_t code_symbol;
      hsa_code_symbol_info_t attribute;
      void* value;
    } hsa_code_symbol_get_info;
    struct {
      hsa_code_object_t code_object;
      hsa_status_t (*callback)(hsa_code_object_t code_object, hsa_code_symbol_t symbol, void *data);
      void* data;
    } hsa_code_object_iterate_symbols;
    struct {
      hsa_profile_t profile;
      hsa_executable_state_t executable_state;
      const char* options;
      hsa_executable_t* executable;
    } hsa_executable_create;
    struct {
      hsa_executable_t executable;
    } hsa_executable_destroy;
    struct {
      hsa_executable_t executable;
      hsa_agent_t agent;
      hsa_code_object_t code_object;
      const char* options;
    } hsa_executable_load_code_object;
    struct {
      hsa_executable_t executable;
      const char* options;
    } hsa_executable_freeze;
    struct {
      hsa_executable_t executable;
      hsa_executable_info_t attribute;
      void* value;
    } hsa_executable_get_info;
    struct {
      hsa_executable_t executable;
      const char* variable_name;
      void* address;
    } hsa_executable_global_variable_define;
    struct {
      hsa_executable_t executable;
      hsa_agent_t agent;
      const char* variable_name;
      void* address;
    } hsa_executable_agent_global_variable_define;
    struct {
      hsa_executable_t executable;
      hsa_agent_t agent;
      const char* variable_name;
      void* address;
    } hsa_executable_readonly_variable_define;
    struct {
      hsa_executable_t executable;
      uint32_t* result;
    } hsa_executable_validate;
    struct {
      hsa_executable_t executable;
      const char* module_name;
      const char* symbol_name;
      hsa_agent_t agent;
      int32_t call_convention;
      hsa_executable_symbol_t* symbol;
    } hsa_executable_get_symbol;
    struct {
      hsa_executable_symbol_t executable_symbol;
      hsa_executable_symbol_info_t attribute;
      void* value;
    } hsa_executable_symbol_get_info;
    struct {
      hsa_executable_t executable;
      hsa_status_t (*callback)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data);
      void* data;
    } hsa_executable_iterate_symbols;
    struct {
      hsa_status_t status;
      const char** status_string;
    } hsa_status_string;
    struct {
      uint16_t extension;
      const char** name;
    } hsa_extension_get_name;
    struct {
      uint16_t extension;
      uint16_t version_major;
      uint16_t* version_minor;
      bool* result;
    } hsa_system_major_extension_supported;
    struct {
      uint16_t extension;
      uint16_t version_major;
      size_t table_length;
      void* table;
    } hsa_system_get_major_extension_table;
    struct {
      uint16_t extension;
      hsa_agent_t agent;
      uint16_t version_major;
      uint16_t* version_minor;
      bool* result;
    } hsa_agent_major_extension_supported;
    struct {
      hsa_cache_t cache;
      hsa_cache_info_t attribute;
      void* value;
    } hsa_cache_get_info;
    struct {
      hsa_agent_t agent;
      hsa_status_t (*callback)(hsa_cache_t cache, void* data);
      void* data;
    } hsa_agent_iterate_caches;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_silent_store_relaxed;
    struct {
      hsa_signal_t signal;
      hsa_signal_value_t value;
    } hsa_signal_silent_store_screlease;
    struct {
      uint32_t num_signals;
      const hsa_signal_t* signals;
      uint32_t num_consumers;
      const hsa_agent_t* consumers;
      hsa_signal_group_t* signal_group;
    } hsa_signal_group_create;
    struct {
      hsa_signal_group_t signal_group;
    } hsa_signal_group_destroy;
    struct {
      hsa_signal_group_t signal_group;
      const hsa_signal_condition_t* conditions;
      const hsa_signal_value_t* compare_values;
      hsa_wait_state_t wait_state_hint;
      hsa_signal_t* signal;
      hsa_signal_value_t* value;
    } hsa_signal_group_wait_any_scacquire;
    struct {
      hsa_signal_group_t signal_group;
      const hsa_signal_condition_t* conditions;
      const hsa_signal_value_t* compare_values;
      hsa_wait_state_t wait_state_hint;
      hsa_signal_t* signal;
      hsa_signal_value_t* value;
    } hsa_signal_group_wait_any_relaxed;
    struct {
      hsa_agent_t agent;
      hsa_status_t (*callback)(hsa_isa_t isa, void *data);
      void* data;
    } hsa_agent_iterate_isas;
    struct {
      hsa_isa_t isa;
      hsa_isa_info_t attribute;
      void* value;
    } hsa_isa_get_info_alt;
    struct {
      hsa_isa_t isa;
      hsa_profile_t profile;
      uint16_t* mask;
    } hsa_isa_get_exception_policies;
    struct {
      hsa_isa_t isa;
      hsa_fp_type_t fp_type;
      hsa_flush_mode_t flush_mode;
      hsa_round_method_t* round_method;
    } hsa_isa_get_round_method;
    struct {
      hsa_wavefront_t wavefront;
      hsa_wavefront_info_t attribute;
      void* value;
    } hsa_wavefront_get_info;
    struct {
      hsa_isa_t isa;
      hsa_status_t (*callback)(hsa_wavefront_t wavefront, void *data);
      void* data;
    } hsa_isa_iterate_wavefronts;
    struct {
      hsa_code_object_t code_object;
      const char* module_name;
      const char* symbol_name;
      hsa_code_symbol_t* symbol;
    } hsa_code_object_get_symbol_from_name;
    struct {
      hsa_file_t file;
      hsa_code_object_reader_t* code_object_reader;
    } hsa_code_object_reader_create_from_file;
    struct {
      const void* code_object;
      size_t size;
      hsa_code_object_reader_t* code_object_reader;
    } hsa_code_object_reader_create_from_memory;
    struct {
      hsa_code_object_reader_t code_object_reader;
    } hsa_code_object_reader_destroy;
    struct {
      hsa_profile_t profile;
      hsa_default_float_rounding_mode_t default_float_rounding_mode;
      const char* options;
      hsa_executable_t* executable;
    } hsa_executable_create_alt;
    struct {
      hsa_executable_t executable;
      hsa_code_object_reader_t code_object_reader;
      const char* options;
      hsa_loaded_code_object_t* loaded_code_object;
    } hsa_executable_load_program_code_object;
    struct {
      hsa_executable_t executable;
      hsa_agent_t agent;
      hsa_code_object_reader_t code_object_reader;
      const char* options;
      hsa_loaded_code_object_t* loaded_code_object;
    } hsa_executable_load_agent_code_object;
    struct {
      hsa_executable_t executable;
      const char* options;
      uint32_t* result;
    } hsa_executable_validate_alt;
    struct {
      hsa_executable_t executable;
      const char* symbol_name;
      const hsa_agent_t* agent;
      hsa_executable_symbol_t* symbol;
    } hsa_executable_get_symbol_by_name;
    struct {
      hsa_executable_t executable;
      hsa_agent_t agent;
      hsa_status_t (*callback)(hsa_executable_t exec, hsa_agent_t agent, hsa_executable_symbol_t symbol, void *data);
      void* data;
    } hsa_executable_iterate_agent_symbols;
    struct {
      hsa_executable_t executable;
      hsa_status_t (*callback)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data);
      void* data;
    } hsa_executable_iterate_program_symbols;
    struct {
      hsa_agent_t agent;
      hsa_amd_coherency_type_t* type;
    } hsa_amd_coherency_get_type;
    struct {
      hsa_agent_t agent;
      hsa_amd_coherency_type_t type;
    } hsa_amd_coherency_set_type;
    struct {
      hsa_queue_t* queue;
      int enable;
    } hsa_amd_profiling_set_profiler_enabled;
    struct {
      bool enable;
    } hsa_amd_profiling_async_copy_enable;
    struct {
      hsa_agent_t agent;
      hsa_signal_t signal;
      hsa_amd_profiling_dispatch_time_t* time;
    } hsa_amd_profiling_get_dispatch_time;
    struct {
      hsa_signal_t signal;
      hsa_amd_profiling_async_copy_time_t* time;
    } hsa_amd_profiling_get_async_copy_time;
    struct {
      hsa_agent_t agent;
      uint64_t agent_tick;
      uint64_t* system_tick;
    } hsa_amd_profiling_convert_tick_to_system_domain;
    struct {
      hsa_signal_t signal;
      hsa_signal_condition_t cond;
      hsa_signal_value_t value;
      hsa_amd_signal_handler handler;
      void* arg;
    } hsa_amd_signal_async_handler;
    struct {
      void (*callback)(void* arg);
      void* arg;
    } hsa_amd_async_function;
    struct {
      uint32_t signal_count;
      hsa_signal_t* signals;
      hsa_signal_condition_t* conds;
      hsa_signal_value_t* values;
      uint64_t timeout_hint;
      hsa_wait_state_t wait_hint;
      hsa_signal_value_t* satisfying_value;
    } hsa_amd_signal_wait_any;
    struct {
      const hsa_queue_t* queue;
      uint32_t num_cu_mask_count;
      const uint32_t* cu_mask;
    } hsa_amd_queue_cu_set_mask;
    struct {
      hsa_amd_memory_pool_t memory_pool;
      hsa_amd_memory_pool_info_t attribute;
      void* value;
    } hsa_amd_memory_pool_get_info;
    struct {
      hsa_agent_t agent;
      hsa_status_t (*callback)(hsa_amd_memory_pool_t memory_pool, void* data);
      void* data;
    } hsa_amd_agent_iterate_memory_pools;
    struct {
      hsa_amd_memory_pool_t memory_pool;
      size_t size;
      uint32_t flags;
      void** ptr;
    } hsa_amd_memory_pool_allocate;
    struct {
      void* ptr;
    } hsa_amd_memory_pool_free;
    struct {
      void* dst;
      hsa_agent_t dst_agent;
      const void* src;
      hsa_agent_t src_agent;
      size_t size;
      uint32_t num_dep_signals;
      const hsa_signal_t* dep_signals;
      hsa_signal_t completion_signal;
    } hsa_amd_memory_async_copy;
#if ROCTRACER_HSA_AMD_ENTRIES >= 55
    struct {
      void* dst;
      hsa_agent_t dst_agent;
      const void* src;
      hsa_agent_t src_agent;
      size_t size;
      uint32_t num_dep_signals;
      const hsa_signal_t* dep_signals;
      hsa_signal_t completion_signal;
      hsa_amd_sdma_engine_id_t engine_id;
      bool force_copy_on_sdma;
    } hsa_amd_memory_async_copy_on_engine;
    struct {
      hsa_agent_t dst_agent;
      hsa_agent_t src_agent;
      uint32_t* engine_ids_mask;
    } hsa_amd_memory_copy_engine_status;
#endif
    struct {
      hsa_agent_t agent;
      hsa_amd_memory_pool_t memory_pool;
      hsa_amd_agent_memory_pool_info_t attribute;
      void* value;
    } hsa_amd_agent_memory_pool_get_info;
    struct {
      uint32_t num_agents;
      const hsa_agent_t* agents;
      const uint32_t* flags;
      const void* ptr;
    } hsa_amd_agents_allow_access;
    struct {
      hsa_amd_memory_pool_t src_memory_pool;
      hsa_amd_memory_pool_t dst_memory_pool;
      bool* result;
    } hsa_amd_memory_pool_can_migrate;
    struct {
      const void* ptr;
      hsa_amd_memory_pool_t memory_pool;
      uint32_t flags;
    } hsa_amd_memory_migrate;
    struct {
      void* host_ptr;
      size_t size;
      hsa_agent_t* agents;
      int num_agent;
      void** agent_ptr;
    } hsa_amd_memory_lock;
    struct {
      void* host_ptr;
    } hsa_amd_memory_unlock;
    struct {
      void* ptr;
      uint32_t value;
      size_t count;
    } hsa_amd_memory_fill;
    struct {
      uint32_t num_agents;
      hsa_agent_t* agents;
      int interop_handle;
      uint32_t flags;
      size_t* size;
      void** ptr;
      size_t* metadata_size;
      const void** metadata;
    } hsa_amd_interop_map_buffer;
    struct {
      void* ptr;
    } hsa_amd_interop_unmap_buffer;
    struct {
      hsa_agent_t agent;
      const hsa_ext_image_descriptor_t* image_descriptor;
      const hsa_amd_image_descriptor_t* image_layout;
      const void* image_data;
      hsa_access_permission_t access_permission;
      hsa_ext_image_t* image;
    } hsa_amd_image_create;
    struct {
      const void* ptr;
      hsa_amd_pointer_info_t* info;
      void* (*alloc)(size_t);
      uint32_t* num_agents_accessible;
      hsa_agent_t** accessible;
    } hsa_amd_pointer_info;
    struct {
      const void* ptr;
      void* userdata;
    } hsa_amd_pointer_info_set_userdata;
    struct {
      void* ptr;
      size_t len;
      hsa_amd_ipc_memory_t* handle;
    } hsa_amd_ipc_memory_create;
    struct {
      const hsa_amd_ipc_memory_t* handle;
      size_t len;
      uint32_t num_agents;
      const hsa_agent_t* mapping_agents;
      void** mapped_ptr;
    } hsa_amd_ipc_memory_attach;
    struct {
      void* mapped_ptr;
    } hsa_amd_ipc_memory_detach;
    struct {
      hsa_signal_value_t initial_value;
      uint32_t num_consumers;
      const hsa_agent_t* consumers;
      uint64_t attributes;
      hsa_signal_t* signal;
    } hsa_amd_signal_create;
    struct {
      hsa_signal_t signal;
      hsa_amd_ipc_signal_t* handle;
    } hsa_amd_ipc_signal_create;
    struct {
      const hsa_amd_ipc_signal_t* handle;
      hsa_signal_t* signal;
    } hsa_amd_ipc_signal_attach;
    struct {
      hsa_amd_system_event_callback_t callback;
      void* data;
    } hsa_amd_register_system_event_handler;
    struct {
      hsa_agent_t agent_handle;
      uint32_t size;
      hsa_queue_type32_t type;
      void (*callback)(hsa_status_t status, hsa_queue_t* source, void* data);
      void* data;
      uint32_t private_segment_size;
      uint32_t group_segment_size;
      hsa_queue_t** queue;
    } hsa_amd_queue_intercept_create;
    struct {
      hsa_queue_t* queue;
      hsa_amd_queue_intercept_handler callback;
      void* user_data;
    } hsa_amd_queue_intercept_register;
    struct {
      hsa_queue_t* queue;
      hsa_amd_queue_priority_t priority;
    } hsa_amd_queue_set_priority;
    struct {
      const hsa_pitched_ptr_t* dst;
      const hsa_dim3_t* dst_offset;
      const hsa_pitched_ptr_t* src;
      const hsa_dim3_t* src_offset;
      const hsa_dim3_t* range;
      hsa_dim3_t range__val;
      hsa_agent_t copy_agent;
      hsa_amd_copy_direction_t dir;
      uint32_t num_dep_signals;
      const hsa_signal_t* dep_signals;
      hsa_signal_t completion_signal;
    } hsa_amd_memory_async_copy_rect;
    struct {
      hsa_amd_runtime_queue_notifier callback;
      void* user_data;
    } hsa_amd_runtime_queue_create_register;
    struct {
      void* host_ptr;
      size_t size;
      hsa_agent_t* agents;
      int num_agent;
      hsa_amd_memory_pool_t pool;
      uint32_t flags;
      void** agent_ptr;
    } hsa_amd_memory_lock_to_pool;
    struct {
      void* ptr;
      hsa_amd_deallocation_callback_t callback;
      void* user_data;
    } hsa_amd_register_deallocation_callback;
    struct {
      void* ptr;
      hsa_amd_deallocation_callback_t callback;
    } hsa_amd_deregister_deallocation_callback;
    struct {
      hsa_signal_t signal;
      volatile hsa_signal_value_t** value_ptr;
    } hsa_amd_signal_value_pointer;
    struct {
      void* ptr;
      size_t size;
      hsa_amd_svm_attribute_pair_t* attribute_list;
      size_t attribute_count;
    } hsa_amd_svm_attributes_set;
    struct {
      void* ptr;
      size_t size;
      hsa_amd_svm_attribute_pair_t* attribute_list;
      size_t attribute_count;
    } hsa_amd_svm_attributes_get;
    struct {
      void* ptr;
      size_t size;
      hsa_agent_t agent;
      uint32_t num_dep_signals;
      const hsa_signal_t* dep_signals;
      hsa_signal_t completion_signal;
    } hsa_amd_svm_prefetch_async;
#if ROCTRACER_HSA_AMD_ENTRIES >= 51
    struct {
      hsa_agent_t preferred_agent;
    } hsa_amd_spm_acquire;
    struct {
      hsa_agent_t preferred_agent;
    } hsa_amd_spm_release;
    struct {
      hsa_agent_t preferred_agent;
      size_t size_in_bytes;
      uint32_t* timeout;
      uint32_t* size_copied;
      void* dest;
      bool* is_data_loss;
    } hsa_amd_spm_set_dest_buffer;
#endif
    struct {
      const hsa_queue_t* queue;
      uint32_t num_cu_mask_count;
      uint32_t* cu_mask;
    } hsa_amd_queue_cu_get_mask;
#if ROCTRACER_HSA_AMD_ENTRIES >= 55
    struct {
      const void* ptr;
      size_t size;
      int* dmabuf;
      uint64_t* offset;
    } hsa_amd_portable_export_dmabuf;
    struct {
      int dmabuf;
    } hsa_amd_portable_close_dmabuf;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 67
    struct {
      void** va;
      size_t size;
      uint64_t address;
      uint64_t flags;
    } hsa_amd_vmem_address_reserve;
    struct {
      void* va;
      size_t size;
    } hsa_amd_vmem_address_free;
    struct {
      hsa_amd_memory_pool_t pool;
      size_t size;
      hsa_amd_memory_type_t type;
      uint64_t flags;
      hsa_amd_vmem_alloc_handle_t* memory_handle;
    } hsa_amd_vmem_handle_create;
    struct {
      hsa_amd_vmem_alloc_handle_t memory_handle;
    } hsa_amd_vmem_handle_release;
    struct {
      void* va;
      size_t size;
      size_t in_offset;
      hsa_amd_vmem_alloc_handle_t memory_handle;
      uint64_t flags;
    } hsa_amd_vmem_map;
    struct {
      void* va;
      size_t size;
    } hsa_amd_vmem_unmap;
    struct {
      void* va;
      size_t size;
      const hsa_amd_memory_access_desc_t* desc;
      size_t desc_cnt;
    } hsa_amd_vmem_set_access;
    struct {
      void* va;
      hsa_access_permission_t* perms;
      hsa_agent_t agent_handle;
    } hsa_amd_vmem_get_access;
    struct {
      int* dmabuf_fd;
      hsa_amd_vmem_alloc_handle_t handle;
      uint64_t flags;
    } hsa_amd_vmem_export_shareable_handle;
    struct {
      int dmabuf_fd;
      hsa_amd_vmem_alloc_handle_t* handle;
    } hsa_amd_vmem_import_shareable_handle;
    struct {
      hsa_amd_vmem_alloc_handle_t* memory_handle;
      void* addr;
    } hsa_amd_vmem_retain_alloc_handle;
    struct {
      hsa_amd_vmem_alloc_handle_t memory_handle;
      hsa_amd_memory_pool_t* pool;
      hsa_amd_memory_type_t* type;
    } hsa_amd_vmem_get_alloc_properties_from_handle;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 68
    struct {
      hsa_agent_t agent;
      size_t threshold;
    } hsa_amd_agent_set_async_scratch_limit;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 70
    struct {
      hsa_queue_t* queue;
      hsa_queue_info_attribute_t attribute;
      void* value;
    } hsa_amd_queue_get_info;
    struct {
      void** va;
      size_t size;
      uint64_t address;
      uint64_t alignment;
      uint64_t flags;
    } hsa_amd_vmem_address_reserve_align;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 71
    struct {
      uint8_t* flags;
      void* file;
    } hsa_amd_enable_logging;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 72
    struct {
      uint32_t signal_count;
      hsa_signal_t* signals;
      hsa_signal_condition_t* conds;
      hsa_signal_value_t* values;
      uint64_t timeout_hint;
      hsa_wait_state_t wait_hint;
      hsa_signal_value_t* satisfying_values;
    } hsa_amd_signal_wait_all;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 74
    struct {
      hsa_agent_t dst_agent;
      hsa_agent_t src_agent;
      uint32_t* recommended_ids_mask;
    } hsa_amd_memory_get_preferred_copy_engine;
    struct {
      const void* ptr;
      size_t size;
      int* dmabuf;
      uint64_t* offset;
      uint64_t flags;
    } hsa_amd_portable_export_dmabuf_v2;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 76
    struct {
      hsa_amd_ais_file_handle_t handle;
      void* devicePtr;
      uint64_t size;
      int64_t file_offset;
      uint64_t* size_copied;
      int32_t* status;
    } hsa_amd_ais_file_write;
    struct {
      hsa_amd_ais_file_handle_t handle;
      void* devicePtr;
      uint64_t size;
      int64_t file_offset;
      uint64_t* size_copied;
      int32_t* status;
    } hsa_amd_ais_file_read;
#endif
    struct {
      hsa_agent_t agent;
      hsa_ext_image_geometry_t geometry;
      const hsa_ext_image_format_t* image_format;
      uint32_t* capability_mask;
    } hsa_ext_image_get_capability;
    struct {
      hsa_agent_t agent;
      const hsa_ext_image_descriptor_t* image_descriptor;
      hsa_access_permission_t access_permission;
      hsa_ext_image_data_info_t* image_data_info;
    } hsa_ext_image_data_get_info;
    struct {
      hsa_agent_t agent;
      const hsa_ext_image_descriptor_t* image_descriptor;
      const void* image_data;
      hsa_access_permission_t access_permission;
      hsa_ext_image_t* image;
    } hsa_ext_image_create;
    struct {
      hsa_agent_t agent;
      const void* src_memory;
      size_t src_row_pitch;
      size_t src_slice_pitch;
      hsa_ext_image_t dst_image;
      const hsa_ext_image_region_t* image_region;
    } hsa_ext_image_import;
    struct {
      hsa_agent_t agent;
      hsa_ext_image_t src_image;
      void* dst_memory;
      size_t dst_row_pitch;
      size_t dst_slice_pitch;
      const hsa_ext_image_region_t* image_region;
    } hsa_ext_image_export;
    struct {
      hsa_agent_t agent;
      hsa_ext_image_t src_image;
      const hsa_dim3_t* src_offset;
      hsa_ext_image_t dst_image;
      const hsa_dim3_t* dst_offset;
      const hsa_dim3_t* range;
    } hsa_ext_image_copy;
    struct {
      hsa_agent_t agent;
      hsa_ext_image_t image;
      const void* data;
      const hsa_ext_image_region_t* image_region;
    } hsa_ext_image_clear;
    struct {
      hsa_agent_t agent;
      hsa_ext_image_t image;
    } hsa_ext_image_destroy;
    struct {
      hsa_agent_t agent;
      const hsa_ext_sampler_descriptor_t* sampler_descriptor;
      hsa_ext_sampler_t* sampler;
    } hsa_ext_sampler_create;
    struct {
      hsa_agent_t agent;
      hsa_ext_sampler_t sampler;
    } hsa_ext_sampler_destroy;
    struct {
      hsa_agent_t agent;
      hsa_ext_image_geometry_t geometry;
      const hsa_ext_image_format_t* image_format;
      hsa_ext_image_data_layout_t image_data_layout;
      uint32_t* capability_mask;
    } hsa_ext_image_get_capability_with_layout;
    struct {
      hsa_agent_t agent;
      const hsa_ext_image_descriptor_t* image_descriptor;
      hsa_access_permission_t access_permission;
      hsa_ext_image_data_layout_t image_data_layout;
      size_t image_data_row_pitch;
      size_t image_data_slice_pitch;
      hsa_ext_image_data_info_t* image_data_info;
    } hsa_ext_image_data_get_info_with_layout;
    struct {
      hsa_agent_t agent;
      const hsa_ext_image_descriptor_t* image_descriptor;
      const void* image_data;
      hsa_access_permission_t access_permission;
      hsa_ext_image_data_layout_t image_data_layout;
      size_t image_data_row_pitch;
      size_t image_data_slice_pitch;
      hsa_ext_image_t* image;
    } hsa_ext_image_create_with_layout;
#if ROCTRACER_HSA_AMD_ENTRIES >= 72
    struct {
      hsa_agent_t agent;
      const hsa_ext_sampler_descriptor_v2_t* sampler_descriptor;
      hsa_ext_sampler_t* sampler;
    } hsa_ext_sampler_create_v2;
#endif
  } args;
  uint64_t* phase_data; /* the program's own word, from the first phase to the second */
};

#ifdef __cplusplus
#include <ostream>
#include <utility>
#include "hsa_ostream_ops.h"

/* A call and its structure, to be written to a stream. */
typedef std::pair<uint32_t, hsa_api_data_t> hsa_api_data_pair_t;

inline std::ostream& operator<<(std::ostream& out, const hsa_api_data_pair_t& call) {
  using roctracer::argument_text::write;
  const hsa_api_data_t& data = call.second;
  switch (call.first) {
    case HSA_API_ID_hsa_init:
      out << "hsa_init(";
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_shut_down:
      out << "hsa_shut_down(";
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_system_get_info:
      out << "hsa_system_get_info(";
      write(out, data.args.hsa_system_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_system_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_system_extension_supported:
      out << "hsa_system_extension_supported(";
      write(out, data.args.hsa_system_extension_supported.extension);
      out << ", ";
      write(out, data.args.hsa_system_extension_supported.version_major);
      out << ", ";
      write(out, data.args.hsa_system_extension_supported.version_minor);
      out << ", ";
      write(out, data.args.hsa_system_extension_supported.result);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_system_get_extension_table:
      out << "hsa_system_get_extension_table(";
      write(out, data.args.hsa_system_get_extension_table.extension);
      out << ", ";
      write(out, data.args.hsa_system_get_extension_table.version_major);
      out << ", ";
      write(out, data.args.hsa_system_get_extension_table.version_minor);
      out << ", ";
      write(out, data.args.hsa_system_get_extension_table.table);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_iterate_agents:
      out << "hsa_iterate_agents(";
      write(out, data.args.hsa_iterate_agents.callback);
      out << ", ";
      write(out, data.args.hsa_iterate_agents.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_agent_get_info:
      out << "hsa_agent_get_info(";
      write(out, data.args.hsa_agent_get_info.agent);
      out << ", ";
      write(out, data.args.hsa_agent_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_agent_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_queue_create:
      out << "hsa_queue_create(";
      write(out, data.args.hsa_queue_create.agent);
      out << ", ";
      write(out, data.args.hsa_queue_create.size);
      out << ", ";
      write(out, data.args.hsa_queue_create.type);
      out << ", ";
      write(out, data.args.hsa_queue_create.callback);
      out << ", ";
      write(out, data.args.hsa_queue_create.data);
      out << ", ";
      write(out, data.args.hsa_queue_create.private_segment_size);
      out << ", ";
      write(out, data.args.hsa_queue_create.group_segment_size);
      out << ", ";
      write(out, data.args.hsa_queue_create.queue);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_soft_queue_create:
      out << "hsa_soft_queue_create(";
      write(out, data.args.hsa_soft_queue_create.region);
      out << ", ";
      write(out, data.args.hsa_soft_queue_create.size);
      out << ", ";
      write(out, data.args.hsa_soft_queue_create.type);
      out << ", ";
      write(out, data.args.hsa_soft_queue_create.features);
      out << ", ";
      write(out, data.args.hsa_soft_queue_create.doorbell_signal);
      out << ", ";
      write(out, data.args.hsa_soft_queue_create.queue);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_queue_destroy:
      out << "hsa_queue_destroy(";
      write(out, data.args.hsa_queue_destroy.queue);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_queue_inactivate:
      out << "hsa_queue_inactivate(";
      write(out, data.args.hsa_queue_inactivate.queue);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_queue_load_read_index_scacquire:
      out << "hsa_queue_load_read_index_scacquire(";
      write(out, data.args.hsa_queue_load_read_index_scacquire.queue);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_load_read_index_relaxed:
      out << "hsa_queue_load_read_index_relaxed(";
      write(out, data.args.hsa_queue_load_read_index_relaxed.queue);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_load_write_index_scacquire:
      out << "hsa_queue_load_write_index_scacquire(";
      write(out, data.args.hsa_queue_load_write_index_scacquire.queue);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_load_write_index_relaxed:
      out << "hsa_queue_load_write_index_relaxed(";
      write(out, data.args.hsa_queue_load_write_index_relaxed.queue);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_store_write_index_relaxed:
      out << "hsa_queue_store_write_index_relaxed(";
      write(out, data.args.hsa_queue_store_write_index_relaxed.queue);
      out << ", ";
      write(out, data.args.hsa_queue_store_write_index_relaxed.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_queue_store_write_index_screlease:
      out << "hsa_queue_store_write_index_screlease(";
      write(out, data.args.hsa_queue_store_write_index_screlease.queue);
      out << ", ";
      write(out, data.args.hsa_queue_store_write_index_screlease.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_queue_cas_write_index_scacq_screl:
      out << "hsa_queue_cas_write_index_scacq_screl(";
      write(out, data.args.hsa_queue_cas_write_index_scacq_screl.queue);
      out << ", ";
      write(out, data.args.hsa_queue_cas_write_index_scacq_screl.expected);
      out << ", ";
      write(out, data.args.hsa_queue_cas_write_index_scacq_screl.value);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_cas_write_index_scacquire:
      out << "hsa_queue_cas_write_index_scacquire(";
      write(out, data.args.hsa_queue_cas_write_index_scacquire.queue);
      out << ", ";
      write(out, data.args.hsa_queue_cas_write_index_scacquire.expected);
      out << ", ";
      write(out, data.args.hsa_queue_cas_write_index_scacquire.value);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_cas_write_index_relaxed:
      out << "hsa_queue_cas_write_index_relaxed(";
      write(out, data.args.hsa_queue_cas_write_index_relaxed.queue);
      out << ", ";
      write(out, data.args.hsa_queue_cas_write_index_relaxed.expected);
      out << ", ";
      write(out, data.args.hsa_queue_cas_write_index_relaxed.value);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_cas_write_index_screlease:
      out << "hsa_queue_cas_write_index_screlease(";
      write(out, data.args.hsa_queue_cas_write_index_screlease.queue);
      out << ", ";
      write(out, data.args.hsa_queue_cas_write_index_screlease.expected);
      out << ", ";
      write(out, data.args.hsa_queue_cas_write_index_screlease.value);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_add_write_index_scacq_screl:
      out << "hsa_queue_add_write_index_scacq_screl(";
      write(out, data.args.hsa_queue_add_write_index_scacq_screl.queue);
      out << ", ";
      write(out, data.args.hsa_queue_add_write_index_scacq_screl.value);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_add_write_index_scacquire:
      out << "hsa_queue_add_write_index_scacquire(";
      write(out, data.args.hsa_queue_add_write_index_scacquire.queue);
      out << ", ";
      write(out, data.args.hsa_queue_add_write_index_scacquire.value);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_add_write_index_relaxed:
      out << "hsa_queue_add_write_index_relaxed(";
      write(out, data.args.hsa_queue_add_write_index_relaxed.queue);
      out << ", ";
      write(out, data.args.hsa_queue_add_write_index_relaxed.value);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_add_write_index_screlease:
      out << "hsa_queue_add_write_index_screlease(";
      write(out, data.args.hsa_queue_add_write_index_screlease.queue);
      out << ", ";
      write(out, data.args.hsa_queue_add_write_index_screlease.value);
      out << ")";
      out << " = ";
      write(out, data.uint64_t_retval);
      break;
    case HSA_API_ID_hsa_queue_store_read_index_relaxed:
      out << "hsa_queue_store_read_index_relaxed(";
      write(out, data.args.hsa_queue_store_read_index_relaxed.queue);
      out << ", ";
      write(out, data.args.hsa_queue_store_read_index_relaxed.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_queue_store_read_index_screlease:
      out << "hsa_queue_store_read_index_screlease(";
      write(out, data.args.hsa_queue_store_read_index_screlease.queue);
      out << ", ";
      write(out, data.args.hsa_queue_store_read_index_screlease.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_agent_iterate_regions:
      out << "hsa_agent_iterate_regions(";
      write(out, data.args.hsa_agent_iterate_regions.agent);
      out << ", ";
      write(out, data.args.hsa_agent_iterate_regions.callback);
      out << ", ";
      write(out, data.args.hsa_agent_iterate_regions.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_region_get_info:
      out << "hsa_region_get_info(";
      write(out, data.args.hsa_region_get_info.region);
      out << ", ";
      write(out, data.args.hsa_region_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_region_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_agent_get_exception_policies:
      out << "hsa_agent_get_exception_policies(";
      write(out, data.args.hsa_agent_get_exception_policies.agent);
      out << ", ";
      write(out, data.args.hsa_agent_get_exception_policies.profile);
      out << ", ";
      write(out, data.args.hsa_agent_get_exception_policies.mask);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_agent_extension_supported:
      out << "hsa_agent_extension_supported(";
      write(out, data.args.hsa_agent_extension_supported.extension);
      out << ", ";
      write(out, data.args.hsa_agent_extension_supported.agent);
      out << ", ";
      write(out, data.args.hsa_agent_extension_supported.version_major);
      out << ", ";
      write(out, data.args.hsa_agent_extension_supported.version_minor);
      out << ", ";
      write(out, data.args.hsa_agent_extension_supported.result);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_memory_register:
      out << "hsa_memory_register(";
      write(out, data.args.hsa_memory_register.ptr);
      out << ", ";
      write(out, data.args.hsa_memory_register.size);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_memory_deregister:
      out << "hsa_memory_deregister(";
      write(out, data.args.hsa_memory_deregister.ptr);
      out << ", ";
      write(out, data.args.hsa_memory_deregister.size);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_memory_allocate:
      out << "hsa_memory_allocate(";
      write(out, data.args.hsa_memory_allocate.region);
      out << ", ";
      write(out, data.args.hsa_memory_allocate.size);
      out << ", ";
      write(out, data.args.hsa_memory_allocate.ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_memory_free:
      out << "hsa_memory_free(";
      write(out, data.args.hsa_memory_free.ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_memory_copy:
      out << "hsa_memory_copy(";
      write(out, data.args.hsa_memory_copy.dst);
      out << ", ";
      write(out, data.args.hsa_memory_copy.src);
      out << ", ";
      write(out, data.args.hsa_memory_copy.size);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_memory_assign_agent:
      out << "hsa_memory_assign_agent(";
      write(out, data.args.hsa_memory_assign_agent.ptr);
      out << ", ";
      write(out, data.args.hsa_memory_assign_agent.agent);
      out << ", ";
      write(out, data.args.hsa_memory_assign_agent.access);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_signal_create:
      out << "hsa_signal_create(";
      write(out, data.args.hsa_signal_create.initial_value);
      out << ", ";
      write(out, data.args.hsa_signal_create.num_consumers);
      out << ", ";
      write(out, data.args.hsa_signal_create.consumers);
      out << ", ";
      write(out, data.args.hsa_signal_create.signal);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_signal_destroy:
      out << "hsa_signal_destroy(";
      write(out, data.args.hsa_signal_destroy.signal);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_signal_load_relaxed:
      out << "hsa_signal_load_relaxed(";
      write(out, data.args.hsa_signal_load_relaxed.signal);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_load_scacquire:
      out << "hsa_signal_load_scacquire(";
      write(out, data.args.hsa_signal_load_scacquire.signal);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_store_relaxed:
      out << "hsa_signal_store_relaxed(";
      write(out, data.args.hsa_signal_store_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_store_relaxed.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_store_screlease:
      out << "hsa_signal_store_screlease(";
      write(out, data.args.hsa_signal_store_screlease.signal);
      out << ", ";
      write(out, data.args.hsa_signal_store_screlease.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_wait_relaxed:
      out << "hsa_signal_wait_relaxed(";
      write(out, data.args.hsa_signal_wait_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_wait_relaxed.condition);
      out << ", ";
      write(out, data.args.hsa_signal_wait_relaxed.compare_value);
      out << ", ";
      write(out, data.args.hsa_signal_wait_relaxed.timeout_hint);
      out << ", ";
      write(out, data.args.hsa_signal_wait_relaxed.wait_state_hint);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_wait_scacquire:
      out << "hsa_signal_wait_scacquire(";
      write(out, data.args.hsa_signal_wait_scacquire.signal);
      out << ", ";
      write(out, data.args.hsa_signal_wait_scacquire.condition);
      out << ", ";
      write(out, data.args.hsa_signal_wait_scacquire.compare_value);
      out << ", ";
      write(out, data.args.hsa_signal_wait_scacquire.timeout_hint);
      out << ", ";
      write(out, data.args.hsa_signal_wait_scacquire.wait_state_hint);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_and_relaxed:
      out << "hsa_signal_and_relaxed(";
      write(out, data.args.hsa_signal_and_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_and_relaxed.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_and_scacquire:
      out << "hsa_signal_and_scacquire(";
      write(out, data.args.hsa_signal_and_scacquire.signal);
      out << ", ";
      write(out, data.args.hsa_signal_and_scacquire.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_and_screlease:
      out << "hsa_signal_and_screlease(";
      write(out, data.args.hsa_signal_and_screlease.signal);
      out << ", ";
      write(out, data.args.hsa_signal_and_screlease.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_and_scacq_screl:
      out << "hsa_signal_and_scacq_screl(";
      write(out, data.args.hsa_signal_and_scacq_screl.signal);
      out << ", ";
      write(out, data.args.hsa_signal_and_scacq_screl.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_or_relaxed:
      out << "hsa_signal_or_relaxed(";
      write(out, data.args.hsa_signal_or_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_or_relaxed.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_or_scacquire:
      out << "hsa_signal_or_scacquire(";
      write(out, data.args.hsa_signal_or_scacquire.signal);
      out << ", ";
      write(out, data.args.hsa_signal_or_scacquire.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_or_screlease:
      out << "hsa_signal_or_screlease(";
      write(out, data.args.hsa_signal_or_screlease.signal);
      out << ", ";
      write(out, data.args.hsa_signal_or_screlease.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_or_scacq_screl:
      out << "hsa_signal_or_scacq_screl(";
      write(out, data.args.hsa_signal_or_scacq_screl.signal);
      out << ", ";
      write(out, data.args.hsa_signal_or_scacq_screl.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_xor_relaxed:
      out << "hsa_signal_xor_relaxed(";
      write(out, data.args.hsa_signal_xor_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_xor_relaxed.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_xor_scacquire:
      out << "hsa_signal_xor_scacquire(";
      write(out, data.args.hsa_signal_xor_scacquire.signal);
      out << ", ";
      write(out, data.args.hsa_signal_xor_scacquire.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_xor_screlease:
      out << "hsa_signal_xor_screlease(";
      write(out, data.args.hsa_signal_xor_screlease.signal);
      out << ", ";
      write(out, data.args.hsa_signal_xor_screlease.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_xor_scacq_screl:
      out << "hsa_signal_xor_scacq_screl(";
      write(out, data.args.hsa_signal_xor_scacq_screl.signal);
      out << ", ";
      write(out, data.args.hsa_signal_xor_scacq_screl.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_exchange_relaxed:
      out << "hsa_signal_exchange_relaxed(";
      write(out, data.args.hsa_signal_exchange_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_exchange_relaxed.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_exchange_scacquire:
      out << "hsa_signal_exchange_scacquire(";
      write(out, data.args.hsa_signal_exchange_scacquire.signal);
      out << ", ";
      write(out, data.args.hsa_signal_exchange_scacquire.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_exchange_screlease:
      out << "hsa_signal_exchange_screlease(";
      write(out, data.args.hsa_signal_exchange_screlease.signal);
      out << ", ";
      write(out, data.args.hsa_signal_exchange_screlease.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_exchange_scacq_screl:
      out << "hsa_signal_exchange_scacq_screl(";
      write(out, data.args.hsa_signal_exchange_scacq_screl.signal);
      out << ", ";
      write(out, data.args.hsa_signal_exchange_scacq_screl.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_add_relaxed:
      out << "hsa_signal_add_relaxed(";
      write(out, data.args.hsa_signal_add_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_add_relaxed.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_add_scacquire:
      out << "hsa_signal_add_scacquire(";
      write(out, data.args.hsa_signal_add_scacquire.signal);
      out << ", ";
      write(out, data.args.hsa_signal_add_scacquire.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_add_screlease:
      out << "hsa_signal_add_screlease(";
      write(out, data.args.hsa_signal_add_screlease.signal);
      out << ", ";
      write(out, data.args.hsa_signal_add_screlease.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_add_scacq_screl:
      out << "hsa_signal_add_scacq_screl(";
      write(out, data.args.hsa_signal_add_scacq_screl.signal);
      out << ", ";
      write(out, data.args.hsa_signal_add_scacq_screl.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_subtract_relaxed:
      out << "hsa_signal_subtract_relaxed(";
      write(out, data.args.hsa_signal_subtract_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_subtract_relaxed.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_subtract_scacquire:
      out << "hsa_signal_subtract_scacquire(";
      write(out, data.args.hsa_signal_subtract_scacquire.signal);
      out << ", ";
      write(out, data.args.hsa_signal_subtract_scacquire.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_subtract_screlease:
      out << "hsa_signal_subtract_screlease(";
      write(out, data.args.hsa_signal_subtract_screlease.signal);
      out << ", ";
      write(out, data.args.hsa_signal_subtract_screlease.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_subtract_scacq_screl:
      out << "hsa_signal_subtract_scacq_screl(";
      write(out, data.args.hsa_signal_subtract_scacq_screl.signal);
      out << ", ";
      write(out, data.args.hsa_signal_subtract_scacq_screl.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_cas_relaxed:
      out << "hsa_signal_cas_relaxed(";
      write(out, data.args.hsa_signal_cas_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_cas_relaxed.expected);
      out << ", ";
      write(out, data.args.hsa_signal_cas_relaxed.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_cas_scacquire:
      out << "hsa_signal_cas_scacquire(";
      write(out, data.args.hsa_signal_cas_scacquire.signal);
      out << ", ";
      write(out, data.args.hsa_signal_cas_scacquire.expected);
      out << ", ";
      write(out, data.args.hsa_signal_cas_scacquire.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_cas_screlease:
      out << "hsa_signal_cas_screlease(";
      write(out, data.args.hsa_signal_cas_screlease.signal);
      out << ", ";
      write(out, data.args.hsa_signal_cas_screlease.expected);
      out << ", ";
      write(out, data.args.hsa_signal_cas_screlease.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_signal_cas_scacq_screl:
      out << "hsa_signal_cas_scacq_screl(";
      write(out, data.args.hsa_signal_cas_scacq_screl.signal);
      out << ", ";
      write(out, data.args.hsa_signal_cas_scacq_screl.expected);
      out << ", ";
      write(out, data.args.hsa_signal_cas_scacq_screl.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_signal_value_t_retval);
      break;
    case HSA_API_ID_hsa_isa_from_name:
      out << "hsa_isa_from_name(";
      write(out, data.args.hsa_isa_from_name.name);
      out << ", ";
      write(out, data.args.hsa_isa_from_name.isa);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_isa_get_info:
      out << "hsa_isa_get_info(";
      write(out, data.args.hsa_isa_get_info.isa);
      out << ", ";
      write(out, data.args.hsa_isa_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_isa_get_info.index);
      out << ", ";
      write(out, data.args.hsa_isa_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_isa_compatible:
      out << "hsa_isa_compatible(";
      write(out, data.args.hsa_isa_compatible.code_object_isa);
      out << ", ";
      write(out, data.args.hsa_isa_compatible.agent_isa);
      out << ", ";
      write(out, data.args.hsa_isa_compatible.result);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_serialize:
      out << "hsa_code_object_serialize(";
      write(out, data.args.hsa_code_object_serialize.code_object);
      out << ", ";
      write(out, data.args.hsa_code_object_serialize.alloc_callback);
      out << ", ";
      write(out, data.args.hsa_code_object_serialize.callback_data);
      out << ", ";
      write(out, data.args.hsa_code_object_serialize.options);
      out << ", ";
      write(out, data.args.hsa_code_object_serialize.serialized_code_object);
      out << ", ";
      write(out, data.args.hsa_code_object_serialize.serialized_code_object_size);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_deserialize:
      out << "hsa_code_object_deserialize(";
      write(out, data.args.hsa_code_object_deserialize.serialized_code_object);
      out << ", ";
      write(out, data.args.hsa_code_object_deserialize.serialized_code_object_size);
      out << ", ";
      write(out, data.args.hsa_code_object_deserialize.options);
      out << ", ";
      write(out, data.args.hsa_code_object_deserialize.code_object);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_destroy:
      out << "hsa_code_object_destroy(";
      write(out, data.args.hsa_code_object_destroy.code_object);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_get_info:
      out << "hsa_code_object_get_info(";
      write(out, data.args.hsa_code_object_get_info.code_object);
      out << ", ";
      write(out, data.args.hsa_code_object_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_code_object_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_get_symbol:
      out << "hsa_code_object_get_symbol(";
      write(out, data.args.hsa_code_object_get_symbol.code_object);
      out << ", ";
      write(out, data.args.hsa_code_object_get_symbol.symbol_name);
      out << ", ";
      write(out, data.args.hsa_code_object_get_symbol.symbol);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_symbol_get_info:
      out << "hsa_code_symbol_get_info(";
      write(out, data.args.hsa_code_symbol_get_info.code_symbol);
      out << ", ";
      write(out, data.args.hsa_code_symbol_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_code_symbol_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_iterate_symbols:
      out << "hsa_code_object_iterate_symbols(";
      write(out, data.args.hsa_code_object_iterate_symbols.code_object);
      out << ", ";
      write(out, data.args.hsa_code_object_iterate_symbols.callback);
      out << ", ";
      write(out, data.args.hsa_code_object_iterate_symbols.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_create:
      out << "hsa_executable_create(";
      write(out, data.args.hsa_executable_create.profile);
      out << ", ";
      write(out, data.args.hsa_executable_create.executable_state);
      out << ", ";
      write(out, data.args.hsa_executable_create.options);
      out << ", ";
      write(out, data.args.hsa_executable_create.executable);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_destroy:
      out << "hsa_executable_destroy(";
      write(out, data.args.hsa_executable_destroy.executable);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_load_code_object:
      out << "hsa_executable_load_code_object(";
      write(out, data.args.hsa_executable_load_code_object.executable);
      out << ", ";
      write(out, data.args.hsa_executable_load_code_object.agent);
      out << ", ";
      write(out, data.args.hsa_executable_load_code_object.code_object);
      out << ", ";
      write(out, data.args.hsa_executable_load_code_object.options);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_freeze:
      out << "hsa_executable_freeze(";
      write(out, data.args.hsa_executable_freeze.executable);
      out << ", ";
      write(out, data.args.hsa_executable_freeze.options);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_get_info:
      out << "hsa_executable_get_info(";
      write(out, data.args.hsa_executable_get_info.executable);
      out << ", ";
      write(out, data.args.hsa_executable_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_executable_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_global_variable_define:
      out << "hsa_executable_global_variable_define(";
      write(out, data.args.hsa_executable_global_variable_define.executable);
      out << ", ";
      write(out, data.args.hsa_executable_global_variable_define.variable_name);
      out << ", ";
      write(out, data.args.hsa_executable_global_variable_define.address);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_agent_global_variable_define:
      out << "hsa_executable_agent_global_variable_define(";
      write(out, data.args.hsa_executable_agent_global_variable_define.executable);
      out << ", ";
      write(out, data.args.hsa_executable_agent_global_variable_define.agent);
      out << ", ";
      write(out, data.args.hsa_executable_agent_global_variable_define.variable_name);
      out << ", ";
      write(out, data.args.hsa_executable_agent_global_variable_define.address);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_readonly_variable_define:
      out << "hsa_executable_readonly_variable_define(";
      write(out, data.args.hsa_executable_readonly_variable_define.executable);
      out << ", ";
      write(out, data.args.hsa_executable_readonly_variable_define.agent);
      out << ", ";
      write(out, data.args.hsa_executable_readonly_variable_define.variable_name);
      out << ", ";
      write(out, data.args.hsa_executable_readonly_variable_define.address);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_validate:
      out << "hsa_executable_validate(";
      write(out, data.args.hsa_executable_validate.executable);
      out << ", ";
      write(out, data.args.hsa_executable_validate.result);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_get_symbol:
      out << "hsa_executable_get_symbol(";
      write(out, data.args.hsa_executable_get_symbol.executable);
      out << ", ";
      write(out, data.args.hsa_executable_get_symbol.module_name);
      out << ", ";
      write(out, data.args.hsa_executable_get_symbol.symbol_name);
      out << ", ";
      write(out, data.args.hsa_executable_get_symbol.agent);
      out << ", ";
      write(out, data.args.hsa_executable_get_symbol.call_convention);
      out << ", ";
      write(out, data.args.hsa_executable_get_symbol.symbol);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_symbol_get_info:
      out << "hsa_executable_symbol_get_info(";
      write(out, data.args.hsa_executable_symbol_get_info.executable_symbol);
      out << ", ";
      write(out, data.args.hsa_executable_symbol_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_executable_symbol_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_iterate_symbols:
      out << "hsa_executable_iterate_symbols(";
      write(out, data.args.hsa_executable_iterate_symbols.executable);
      out << ", ";
      write(out, data.args.hsa_executable_iterate_symbols.callback);
      out << ", ";
      write(out, data.args.hsa_executable_iterate_symbols.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_status_string:
      out << "hsa_status_string(";
      write(out, data.args.hsa_status_string.status);
      out << ", ";
      write(out, data.args.hsa_status_string.status_string);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_extension_get_name:
      out << "hsa_extension_get_name(";
      write(out, data.args.hsa_extension_get_name.extension);
      out << ", ";
      write(out, data.args.hsa_extension_get_name.name);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_system_major_extension_supported:
      out << "hsa_system_major_extension_supported(";
      write(out, data.args.hsa_system_major_extension_supported.extension);
      out << ", ";
      write(out, data.args.hsa_system_major_extension_supported.version_major);
      out << ", ";
      write(out, data.args.hsa_system_major_extension_supported.version_minor);
      out << ", ";
      write(out, data.args.hsa_system_major_extension_supported.result);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_system_get_major_extension_table:
      out << "hsa_system_get_major_extension_table(";
      write(out, data.args.hsa_system_get_major_extension_table.extension);
      out << ", ";
      write(out, data.args.hsa_system_get_major_extension_table.version_major);
      out << ", ";
      write(out, data.args.hsa_system_get_major_extension_table.table_length);
      out << ", ";
      write(out, data.args.hsa_system_get_major_extension_table.table);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_agent_major_extension_supported:
      out << "hsa_agent_major_extension_supported(";
      write(out, data.args.hsa_agent_major_extension_supported.extension);
      out << ", ";
      write(out, data.args.hsa_agent_major_extension_supported.agent);
      out << ", ";
      write(out, data.args.hsa_agent_major_extension_supported.version_major);
      out << ", ";
      write(out, data.args.hsa_agent_major_extension_supported.version_minor);
      out << ", ";
      write(out, data.args.hsa_agent_major_extension_supported.result);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_cache_get_info:
      out << "hsa_cache_get_info(";
      write(out, data.args.hsa_cache_get_info.cache);
      out << ", ";
      write(out, data.args.hsa_cache_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_cache_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_agent_iterate_caches:
      out << "hsa_agent_iterate_caches(";
      write(out, data.args.hsa_agent_iterate_caches.agent);
      out << ", ";
      write(out, data.args.hsa_agent_iterate_caches.callback);
      out << ", ";
      write(out, data.args.hsa_agent_iterate_caches.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_signal_silent_store_relaxed:
      out << "hsa_signal_silent_store_relaxed(";
      write(out, data.args.hsa_signal_silent_store_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_silent_store_relaxed.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_silent_store_screlease:
      out << "hsa_signal_silent_store_screlease(";
      write(out, data.args.hsa_signal_silent_store_screlease.signal);
      out << ", ";
      write(out, data.args.hsa_signal_silent_store_screlease.value);
      out << ")";
      break;
    case HSA_API_ID_hsa_signal_group_create:
      out << "hsa_signal_group_create(";
      write(out, data.args.hsa_signal_group_create.num_signals);
      out << ", ";
      write(out, data.args.hsa_signal_group_create.signals);
      out << ", ";
      write(out, data.args.hsa_signal_group_create.num_consumers);
      out << ", ";
      write(out, data.args.hsa_signal_group_create.consumers);
      out << ", ";
      write(out, data.args.hsa_signal_group_create.signal_group);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_signal_group_destroy:
      out << "hsa_signal_group_destroy(";
      write(out, data.args.hsa_signal_group_destroy.signal_group);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_signal_group_wait_any_scacquire:
      out << "hsa_signal_group_wait_any_scacquire(";
      write(out, data.args.hsa_signal_group_wait_any_scacquire.signal_group);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_scacquire.conditions);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_scacquire.compare_values);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_scacquire.wait_state_hint);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_scacquire.signal);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_scacquire.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_signal_group_wait_any_relaxed:
      out << "hsa_signal_group_wait_any_relaxed(";
      write(out, data.args.hsa_signal_group_wait_any_relaxed.signal_group);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_relaxed.conditions);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_relaxed.compare_values);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_relaxed.wait_state_hint);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_relaxed.signal);
      out << ", ";
      write(out, data.args.hsa_signal_group_wait_any_relaxed.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_agent_iterate_isas:
      out << "hsa_agent_iterate_isas(";
      write(out, data.args.hsa_agent_iterate_isas.agent);
      out << ", ";
      write(out, data.args.hsa_agent_iterate_isas.callback);
      out << ", ";
      write(out, data.args.hsa_agent_iterate_isas.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_isa_get_info_alt:
      out << "hsa_isa_get_info_alt(";
      write(out, data.args.hsa_isa_get_info_alt.isa);
      out << ", ";
      write(out, data.args.hsa_isa_get_info_alt.attribute);
      out << ", ";
      write(out, data.args.hsa_isa_get_info_alt.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_isa_get_exception_policies:
      out << "hsa_isa_get_exception_policies(";
      write(out, data.args.hsa_isa_get_exception_policies.isa);
      out << ", ";
      write(out, data.args.hsa_isa_get_exception_policies.profile);
      out << ", ";
      write(out, data.args.hsa_isa_get_exception_policies.mask);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_isa_get_round_method:
      out << "hsa_isa_get_round_method(";
      write(out, data.args.hsa_isa_get_round_method.isa);
      out << ", ";
      write(out, data.args.hsa_isa_get_round_method.fp_type);
      out << ", ";
      write(out, data.args.hsa_isa_get_round_method.flush_mode);
      out << ", ";
      write(out, data.args.hsa_isa_get_round_method.round_method);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_wavefront_get_info:
      out << "hsa_wavefront_get_info(";
      write(out, data.args.hsa_wavefront_get_info.wavefront);
      out << ", ";
      write(out, data.args.hsa_wavefront_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_wavefront_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_isa_iterate_wavefronts:
      out << "hsa_isa_iterate_wavefronts(";
      write(out, data.args.hsa_isa_iterate_wavefronts.isa);
      out << ", ";
      write(out, data.args.hsa_isa_iterate_wavefronts.callback);
      out << ", ";
      write(out, data.args.hsa_isa_iterate_wavefronts.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_get_symbol_from_name:
      out << "hsa_code_object_get_symbol_from_name(";
      write(out, data.args.hsa_code_object_get_symbol_from_name.code_object);
      out << ", ";
      write(out, data.args.hsa_code_object_get_symbol_from_name.module_name);
      out << ", ";
      write(out, data.args.hsa_code_object_get_symbol_from_name.symbol_name);
      out << ", ";
      write(out, data.args.hsa_code_object_get_symbol_from_name.symbol);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_reader_create_from_file:
      out << "hsa_code_object_reader_create_from_file(";
      write(out, data.args.hsa_code_object_reader_create_from_file.file);
      out << ", ";
      write(out, data.args.hsa_code_object_reader_create_from_file.code_object_reader);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_reader_create_from_memory:
      out << "hsa_code_object_reader_create_from_memory(";
      write(out, data.args.hsa_code_object_reader_create_from_memory.code_object);
      out << ", ";
      write(out, data.args.hsa_code_object_reader_create_from_memory.size);
      out << ", ";
      write(out, data.args.hsa_code_object_reader_create_from_memory.code_object_reader);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_code_object_reader_destroy:
      out << "hsa_code_object_reader_destroy(";
      write(out, data.args.hsa_code_object_reader_destroy.code_object_reader);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_create_alt:
      out << "hsa_executable_create_alt(";
      write(out, data.args.hsa_executable_create_alt.profile);
      out << ", ";
      write(out, data.args.hsa_executable_create_alt.default_float_rounding_mode);
      out << ", ";
      write(out, data.args.hsa_executable_create_alt.options);
      out << ", ";
      write(out, data.args.hsa_executable_create_alt.executable);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_load_program_code_object:
      out << "hsa_executable_load_program_code_object(";
      write(out, data.args.hsa_executable_load_program_code_object.executable);
      out << ", ";
      write(out, data.args.hsa_executable_load_program_code_object.code_object_reader);
      out << ", ";
      write(out, data.args.hsa_executable_load_program_code_object.options);
      out << ", ";
      write(out, data.args.hsa_executable_load_program_code_object.loaded_code_object);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_load_agent_code_object:
      out << "hsa_executable_load_agent_code_object(";
      write(out, data.args.hsa_executable_load_agent_code_object.executable);
      out << ", ";
      write(out, data.args.hsa_executable_load_agent_code_object.agent);
      out << ", ";
      write(out, data.args.hsa_executable_load_agent_code_object.code_object_reader);
      out << ", ";
      write(out, data.args.hsa_executable_load_agent_code_object.options);
      out << ", ";
      write(out, data.args.hsa_executable_load_agent_code_object.loaded_code_object);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_validate_alt:
      out << "hsa_executable_validate_alt(";
      write(out, data.args.hsa_executable_validate_alt.executable);
      out << ", ";
      write(out, data.args.hsa_executable_validate_alt.options);
      out << ", ";
      write(out, data.args.hsa_executable_validate_alt.result);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_get_symbol_by_name:
      out << "hsa_executable_get_symbol_by_name(";
      write(out, data.args.hsa_executable_get_symbol_by_name.executable);
      out << ", ";
      write(out, data.args.hsa_executable_get_symbol_by_name.symbol_name);
      out << ", ";
      write(out, data.args.hsa_executable_get_symbol_by_name.agent);
      out << ", ";
      write(out, data.args.hsa_executable_get_symbol_by_name.symbol);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_iterate_agent_symbols:
      out << "hsa_executable_iterate_agent_symbols(";
      write(out, data.args.hsa_executable_iterate_agent_symbols.executable);
      out << ", ";
      write(out, data.args.hsa_executable_iterate_agent_symbols.agent);
      out << ", ";
      write(out, data.args.hsa_executable_iterate_agent_symbols.callback);
      out << ", ";
      write(out, data.args.hsa_executable_iterate_agent_symbols.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_executable_iterate_program_symbols:
      out << "hsa_executable_iterate_program_symbols(";
      write(out, data.args.hsa_executable_iterate_program_symbols.executable);
      out << ", ";
      write(out, data.args.hsa_executable_iterate_program_symbols.callback);
      out << ", ";
      write(out, data.args.hsa_executable_iterate_program_symbols.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_coherency_get_type:
      out << "hsa_amd_coherency_get_type(";
      write(out, data.args.hsa_amd_coherency_get_type.agent);
      out << ", ";
      write(out, data.args.hsa_amd_coherency_get_type.type);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_coherency_set_type:
      out << "hsa_amd_coherency_set_type(";
      write(out, data.args.hsa_amd_coherency_set_type.agent);
      out << ", ";
      write(out, data.args.hsa_amd_coherency_set_type.type);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_profiling_set_profiler_enabled:
      out << "hsa_amd_profiling_set_profiler_enabled(";
      write(out, data.args.hsa_amd_profiling_set_profiler_enabled.queue);
      out << ", ";
      write(out, data.args.hsa_amd_profiling_set_profiler_enabled.enable);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_profiling_async_copy_enable:
      out << "hsa_amd_profiling_async_copy_enable(";
      write(out, data.args.hsa_amd_profiling_async_copy_enable.enable);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_profiling_get_dispatch_time:
      out << "hsa_amd_profiling_get_dispatch_time(";
      write(out, data.args.hsa_amd_profiling_get_dispatch_time.agent);
      out << ", ";
      write(out, data.args.hsa_amd_profiling_get_dispatch_time.signal);
      out << ", ";
      write(out, data.args.hsa_amd_profiling_get_dispatch_time.time);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_profiling_get_async_copy_time:
      out << "hsa_amd_profiling_get_async_copy_time(";
      write(out, data.args.hsa_amd_profiling_get_async_copy_time.signal);
      out << ", ";
      write(out, data.args.hsa_amd_profiling_get_async_copy_time.time);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_profiling_convert_tick_to_system_domain:
      out << "hsa_amd_profiling_convert_tick_to_system_domain(";
      write(out, data.args.hsa_amd_profiling_convert_tick_to_system_domain.agent);
      out << ", ";
      write(out, data.args.hsa_amd_profiling_convert_tick_to_system_domain.agent_tick);
      out << ", ";
      write(out, data.args.hsa_amd_profiling_convert_tick_to_system_domain.system_tick);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_signal_async_handler:
      out << "hsa_amd_signal_async_handler(";
      write(out, data.args.hsa_amd_signal_async_handler.signal);
      out << ", ";
      write(out, data.args.hsa_amd_signal_async_handler.cond);
      out << ", ";
      write(out, data.args.hsa_amd_signal_async_handler.value);
      out << ", ";
      write(out, data.args.hsa_amd_signal_async_handler.handler);
      out << ", ";
      write(out, data.args.hsa_amd_signal_async_handler.arg);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_async_function:
      out << "hsa_amd_async_function(";
      write(out, data.args.hsa_amd_async_function.callback);
      out << ", ";
      write(out, data.args.hsa_amd_async_function.arg);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_signal_wait_any:
      out << "hsa_amd_signal_wait_any(";
      write(out, data.args.hsa_amd_signal_wait_any.signal_count);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_any.signals);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_any.conds);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_any.values);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_any.timeout_hint);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_any.wait_hint);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_any.satisfying_value);
      out << ")";
      out << " = ";
      write(out, data.uint32_t_retval);
      break;
    case HSA_API_ID_hsa_amd_queue_cu_set_mask:
      out << "hsa_amd_queue_cu_set_mask(";
      write(out, data.args.hsa_amd_queue_cu_set_mask.queue);
      out << ", ";
      write(out, data.args.hsa_amd_queue_cu_set_mask.num_cu_mask_count);
      out << ", ";
      write(out, data.args.hsa_amd_queue_cu_set_mask.cu_mask);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_pool_get_info:
      out << "hsa_amd_memory_pool_get_info(";
      write(out, data.args.hsa_amd_memory_pool_get_info.memory_pool);
      out << ", ";
      write(out, data.args.hsa_amd_memory_pool_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_amd_memory_pool_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_agent_iterate_memory_pools:
      out << "hsa_amd_agent_iterate_memory_pools(";
      write(out, data.args.hsa_amd_agent_iterate_memory_pools.agent);
      out << ", ";
      write(out, data.args.hsa_amd_agent_iterate_memory_pools.callback);
      out << ", ";
      write(out, data.args.hsa_amd_agent_iterate_memory_pools.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_pool_allocate:
      out << "hsa_amd_memory_pool_allocate(";
      write(out, data.args.hsa_amd_memory_pool_allocate.memory_pool);
      out << ", ";
      write(out, data.args.hsa_amd_memory_pool_allocate.size);
      out << ", ";
      write(out, data.args.hsa_amd_memory_pool_allocate.flags);
      out << ", ";
      write(out, data.args.hsa_amd_memory_pool_allocate.ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_pool_free:
      out << "hsa_amd_memory_pool_free(";
      write(out, data.args.hsa_amd_memory_pool_free.ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_async_copy:
      out << "hsa_amd_memory_async_copy(";
      write(out, data.args.hsa_amd_memory_async_copy.dst);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy.dst_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy.src);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy.src_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy.size);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy.num_dep_signals);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy.dep_signals);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy.completion_signal);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#if ROCTRACER_HSA_AMD_ENTRIES >= 55
    case HSA_API_ID_hsa_amd_memory_async_copy_on_engine:
      out << "hsa_amd_memory_async_copy_on_engine(";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.dst);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.dst_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.src);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.src_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.size);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.num_dep_signals);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.dep_signals);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.completion_signal);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.engine_id);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_on_engine.force_copy_on_sdma);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_copy_engine_status:
      out << "hsa_amd_memory_copy_engine_status(";
      write(out, data.args.hsa_amd_memory_copy_engine_status.dst_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_copy_engine_status.src_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_copy_engine_status.engine_ids_mask);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
    case HSA_API_ID_hsa_amd_agent_memory_pool_get_info:
      out << "hsa_amd_agent_memory_pool_get_info(";
      write(out, data.args.hsa_amd_agent_memory_pool_get_info.agent);
      out << ", ";
      write(out, data.args.hsa_amd_agent_memory_pool_get_info.memory_pool);
      out << ", ";
      write(out, data.args.hsa_amd_agent_memory_pool_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_amd_agent_memory_pool_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_agents_allow_access:
      out << "hsa_amd_agents_allow_access(";
      write(out, data.args.hsa_amd_agents_allow_access.num_agents);
      out << ", ";
      write(out, data.args.hsa_amd_agents_allow_access.agents);
      out << ", ";
      write(out, data.args.hsa_amd_agents_allow_access.flags);
      out << ", ";
      write(out, data.args.hsa_amd_agents_allow_access.ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_pool_can_migrate:
      out << "hsa_amd_memory_pool_can_migrate(";
      write(out, data.args.hsa_amd_memory_pool_can_migrate.src_memory_pool);
      out << ", ";
      write(out, data.args.hsa_amd_memory_pool_can_migrate.dst_memory_pool);
      out << ", ";
      write(out, data.args.hsa_amd_memory_pool_can_migrate.result);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_migrate:
      out << "hsa_amd_memory_migrate(";
      write(out, data.args.hsa_amd_memory_migrate.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_memory_migrate.memory_pool);
      out << ", ";
      write(out, data.args.hsa_amd_memory_migrate.flags);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_lock:
      out << "hsa_amd_memory_lock(";
      write(out, data.args.hsa_amd_memory_lock.host_ptr);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock.size);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock.agents);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock.num_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock.agent_ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_unlock:
      out << "hsa_amd_memory_unlock(";
      write(out, data.args.hsa_amd_memory_unlock.host_ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_fill:
      out << "hsa_amd_memory_fill(";
      write(out, data.args.hsa_amd_memory_fill.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_memory_fill.value);
      out << ", ";
      write(out, data.args.hsa_amd_memory_fill.count);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_interop_map_buffer:
      out << "hsa_amd_interop_map_buffer(";
      write(out, data.args.hsa_amd_interop_map_buffer.num_agents);
      out << ", ";
      write(out, data.args.hsa_amd_interop_map_buffer.agents);
      out << ", ";
      write(out, data.args.hsa_amd_interop_map_buffer.interop_handle);
      out << ", ";
      write(out, data.args.hsa_amd_interop_map_buffer.flags);
      out << ", ";
      write(out, data.args.hsa_amd_interop_map_buffer.size);
      out << ", ";
      write(out, data.args.hsa_amd_interop_map_buffer.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_interop_map_buffer.metadata_size);
      out << ", ";
      write(out, data.args.hsa_amd_interop_map_buffer.metadata);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_interop_unmap_buffer:
      out << "hsa_amd_interop_unmap_buffer(";
      write(out, data.args.hsa_amd_interop_unmap_buffer.ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_image_create:
      out << "hsa_amd_image_create(";
      write(out, data.args.hsa_amd_image_create.agent);
      out << ", ";
      write(out, data.args.hsa_amd_image_create.image_descriptor);
      out << ", ";
      write(out, data.args.hsa_amd_image_create.image_layout);
      out << ", ";
      write(out, data.args.hsa_amd_image_create.image_data);
      out << ", ";
      write(out, data.args.hsa_amd_image_create.access_permission);
      out << ", ";
      write(out, data.args.hsa_amd_image_create.image);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_pointer_info:
      out << "hsa_amd_pointer_info(";
      write(out, data.args.hsa_amd_pointer_info.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_pointer_info.info);
      out << ", ";
      write(out, data.args.hsa_amd_pointer_info.alloc);
      out << ", ";
      write(out, data.args.hsa_amd_pointer_info.num_agents_accessible);
      out << ", ";
      write(out, data.args.hsa_amd_pointer_info.accessible);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_pointer_info_set_userdata:
      out << "hsa_amd_pointer_info_set_userdata(";
      write(out, data.args.hsa_amd_pointer_info_set_userdata.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_pointer_info_set_userdata.userdata);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_ipc_memory_create:
      out << "hsa_amd_ipc_memory_create(";
      write(out, data.args.hsa_amd_ipc_memory_create.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_ipc_memory_create.len);
      out << ", ";
      write(out, data.args.hsa_amd_ipc_memory_create.handle);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_ipc_memory_attach:
      out << "hsa_amd_ipc_memory_attach(";
      write(out, data.args.hsa_amd_ipc_memory_attach.handle);
      out << ", ";
      write(out, data.args.hsa_amd_ipc_memory_attach.len);
      out << ", ";
      write(out, data.args.hsa_amd_ipc_memory_attach.num_agents);
      out << ", ";
      write(out, data.args.hsa_amd_ipc_memory_attach.mapping_agents);
      out << ", ";
      write(out, data.args.hsa_amd_ipc_memory_attach.mapped_ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_ipc_memory_detach:
      out << "hsa_amd_ipc_memory_detach(";
      write(out, data.args.hsa_amd_ipc_memory_detach.mapped_ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_signal_create:
      out << "hsa_amd_signal_create(";
      write(out, data.args.hsa_amd_signal_create.initial_value);
      out << ", ";
      write(out, data.args.hsa_amd_signal_create.num_consumers);
      out << ", ";
      write(out, data.args.hsa_amd_signal_create.consumers);
      out << ", ";
      write(out, data.args.hsa_amd_signal_create.attributes);
      out << ", ";
      write(out, data.args.hsa_amd_signal_create.signal);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_ipc_signal_create:
      out << "hsa_amd_ipc_signal_create(";
      write(out, data.args.hsa_amd_ipc_signal_create.signal);
      out << ", ";
      write(out, data.args.hsa_amd_ipc_signal_create.handle);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_ipc_signal_attach:
      out << "hsa_amd_ipc_signal_attach(";
      write(out, data.args.hsa_amd_ipc_signal_attach.handle);
      out << ", ";
      write(out, data.args.hsa_amd_ipc_signal_attach.signal);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_register_system_event_handler:
      out << "hsa_amd_register_system_event_handler(";
      write(out, data.args.hsa_amd_register_system_event_handler.callback);
      out << ", ";
      write(out, data.args.hsa_amd_register_system_event_handler.data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_queue_intercept_create:
      out << "hsa_amd_queue_intercept_create(";
      write(out, data.args.hsa_amd_queue_intercept_create.agent_handle);
      out << ", ";
      write(out, data.args.hsa_amd_queue_intercept_create.size);
      out << ", ";
      write(out, data.args.hsa_amd_queue_intercept_create.type);
      out << ", ";
      write(out, data.args.hsa_amd_queue_intercept_create.callback);
      out << ", ";
      write(out, data.args.hsa_amd_queue_intercept_create.data);
      out << ", ";
      write(out, data.args.hsa_amd_queue_intercept_create.private_segment_size);
      out << ", ";
      write(out, data.args.hsa_amd_queue_intercept_create.group_segment_size);
      out << ", ";
      write(out, data.args.hsa_amd_queue_intercept_create.queue);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_queue_intercept_register:
      out << "hsa_amd_queue_intercept_register(";
      write(out, data.args.hsa_amd_queue_intercept_register.queue);
      out << ", ";
      write(out, data.args.hsa_amd_queue_intercept_register.callback);
      out << ", ";
      write(out, data.args.hsa_amd_queue_intercept_register.user_data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_queue_set_priority:
      out << "hsa_amd_queue_set_priority(";
      write(out, data.args.hsa_amd_queue_set_priority.queue);
      out << ", ";
      write(out, data.args.hsa_amd_queue_set_priority.priority);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_async_copy_rect:
      out << "hsa_amd_memory_async_copy_rect(";
      write(out, data.args.hsa_amd_memory_async_copy_rect.dst);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_rect.dst_offset);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_rect.src);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_rect.src_offset);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_rect.range);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_rect.copy_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_rect.dir);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_rect.num_dep_signals);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_rect.dep_signals);
      out << ", ";
      write(out, data.args.hsa_amd_memory_async_copy_rect.completion_signal);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_runtime_queue_create_register:
      out << "hsa_amd_runtime_queue_create_register(";
      write(out, data.args.hsa_amd_runtime_queue_create_register.callback);
      out << ", ";
      write(out, data.args.hsa_amd_runtime_queue_create_register.user_data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_memory_lock_to_pool:
      out << "hsa_amd_memory_lock_to_pool(";
      write(out, data.args.hsa_amd_memory_lock_to_pool.host_ptr);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock_to_pool.size);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock_to_pool.agents);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock_to_pool.num_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock_to_pool.pool);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock_to_pool.flags);
      out << ", ";
      write(out, data.args.hsa_amd_memory_lock_to_pool.agent_ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_register_deallocation_callback:
      out << "hsa_amd_register_deallocation_callback(";
      write(out, data.args.hsa_amd_register_deallocation_callback.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_register_deallocation_callback.callback);
      out << ", ";
      write(out, data.args.hsa_amd_register_deallocation_callback.user_data);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_deregister_deallocation_callback:
      out << "hsa_amd_deregister_deallocation_callback(";
      write(out, data.args.hsa_amd_deregister_deallocation_callback.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_deregister_deallocation_callback.callback);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_signal_value_pointer:
      out << "hsa_amd_signal_value_pointer(";
      write(out, data.args.hsa_amd_signal_value_pointer.signal);
      out << ", ";
      write(out, data.args.hsa_amd_signal_value_pointer.value_ptr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_svm_attributes_set:
      out << "hsa_amd_svm_attributes_set(";
      write(out, data.args.hsa_amd_svm_attributes_set.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_svm_attributes_set.size);
      out << ", ";
      write(out, data.args.hsa_amd_svm_attributes_set.attribute_list);
      out << ", ";
      write(out, data.args.hsa_amd_svm_attributes_set.attribute_count);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_svm_attributes_get:
      out << "hsa_amd_svm_attributes_get(";
      write(out, data.args.hsa_amd_svm_attributes_get.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_svm_attributes_get.size);
      out << ", ";
      write(out, data.args.hsa_amd_svm_attributes_get.attribute_list);
      out << ", ";
      write(out, data.args.hsa_amd_svm_attributes_get.attribute_count);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_svm_prefetch_async:
      out << "hsa_amd_svm_prefetch_async(";
      write(out, data.args.hsa_amd_svm_prefetch_async.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_svm_prefetch_async.size);
      out << ", ";
      write(out, data.args.hsa_amd_svm_prefetch_async.agent);
      out << ", ";
      write(out, data.args.hsa_amd_svm_prefetch_async.num_dep_signals);
      out << ", ";
      write(out, data.args.hsa_amd_svm_prefetch_async.dep_signals);
      out << ", ";
      write(out, data.args.hsa_amd_svm_prefetch_async.completion_signal);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#if ROCTRACER_HSA_AMD_ENTRIES >= 51
    case HSA_API_ID_hsa_amd_spm_acquire:
      out << "hsa_amd_spm_acquire(";
      write(out, data.args.hsa_amd_spm_acquire.preferred_agent);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_spm_release:
      out << "hsa_amd_spm_release(";
      write(out, data.args.hsa_amd_spm_release.preferred_agent);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_spm_set_dest_buffer:
      out << "hsa_amd_spm_set_dest_buffer(";
      write(out, data.args.hsa_amd_spm_set_dest_buffer.preferred_agent);
      out << ", ";
      write(out, data.args.hsa_amd_spm_set_dest_buffer.size_in_bytes);
      out << ", ";
      write(out, data.args.hsa_amd_spm_set_dest_buffer.timeout);
      out << ", ";
      write(out, data.args.hsa_amd_spm_set_dest_buffer.size_copied);
      out << ", ";
      write(out, data.args.hsa_amd_spm_set_dest_buffer.dest);
      out << ", ";
      write(out, data.args.hsa_amd_spm_set_dest_buffer.is_data_loss);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
    case HSA_API_ID_hsa_amd_queue_cu_get_mask:
      out << "hsa_amd_queue_cu_get_mask(";
      write(out, data.args.hsa_amd_queue_cu_get_mask.queue);
      out << ", ";
      write(out, data.args.hsa_amd_queue_cu_get_mask.num_cu_mask_count);
      out << ", ";
      write(out, data.args.hsa_amd_queue_cu_get_mask.cu_mask);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#if ROCTRACER_HSA_AMD_ENTRIES >= 55
    case HSA_API_ID_hsa_amd_portable_export_dmabuf:
      out << "hsa_amd_portable_export_dmabuf(";
      write(out, data.args.hsa_amd_portable_export_dmabuf.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_portable_export_dmabuf.size);
      out << ", ";
      write(out, data.args.hsa_amd_portable_export_dmabuf.dmabuf);
      out << ", ";
      write(out, data.args.hsa_amd_portable_export_dmabuf.offset);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_portable_close_dmabuf:
      out << "hsa_amd_portable_close_dmabuf(";
      write(out, data.args.hsa_amd_portable_close_dmabuf.dmabuf);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 67
    case HSA_API_ID_hsa_amd_vmem_address_reserve:
      out << "hsa_amd_vmem_address_reserve(";
      write(out, data.args.hsa_amd_vmem_address_reserve.va);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_address_reserve.size);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_address_reserve.address);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_address_reserve.flags);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_address_free:
      out << "hsa_amd_vmem_address_free(";
      write(out, data.args.hsa_amd_vmem_address_free.va);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_address_free.size);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_handle_create:
      out << "hsa_amd_vmem_handle_create(";
      write(out, data.args.hsa_amd_vmem_handle_create.pool);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_handle_create.size);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_handle_create.type);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_handle_create.flags);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_handle_create.memory_handle);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_handle_release:
      out << "hsa_amd_vmem_handle_release(";
      write(out, data.args.hsa_amd_vmem_handle_release.memory_handle);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_map:
      out << "hsa_amd_vmem_map(";
      write(out, data.args.hsa_amd_vmem_map.va);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_map.size);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_map.in_offset);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_map.memory_handle);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_map.flags);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_unmap:
      out << "hsa_amd_vmem_unmap(";
      write(out, data.args.hsa_amd_vmem_unmap.va);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_unmap.size);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_set_access:
      out << "hsa_amd_vmem_set_access(";
      write(out, data.args.hsa_amd_vmem_set_access.va);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_set_access.size);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_set_access.desc);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_set_access.desc_cnt);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_get_access:
      out << "hsa_amd_vmem_get_access(";
      write(out, data.args.hsa_amd_vmem_get_access.va);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_get_access.perms);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_get_access.agent_handle);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_export_shareable_handle:
      out << "hsa_amd_vmem_export_shareable_handle(";
      write(out, data.args.hsa_amd_vmem_export_shareable_handle.dmabuf_fd);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_export_shareable_handle.handle);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_export_shareable_handle.flags);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_import_shareable_handle:
      out << "hsa_amd_vmem_import_shareable_handle(";
      write(out, data.args.hsa_amd_vmem_import_shareable_handle.dmabuf_fd);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_import_shareable_handle.handle);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_retain_alloc_handle:
      out << "hsa_amd_vmem_retain_alloc_handle(";
      write(out, data.args.hsa_amd_vmem_retain_alloc_handle.memory_handle);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_retain_alloc_handle.addr);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_get_alloc_properties_from_handle:
      out << "hsa_amd_vmem_get_alloc_properties_from_handle(";
      write(out, data.args.hsa_amd_vmem_get_alloc_properties_from_handle.memory_handle);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_get_alloc_properties_from_handle.pool);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_get_alloc_properties_from_handle.type);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 68
    case HSA_API_ID_hsa_amd_agent_set_async_scratch_limit:
      out << "hsa_amd_agent_set_async_scratch_limit(";
      write(out, data.args.hsa_amd_agent_set_async_scratch_limit.agent);
      out << ", ";
      write(out, data.args.hsa_amd_agent_set_async_scratch_limit.threshold);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 70
    case HSA_API_ID_hsa_amd_queue_get_info:
      out << "hsa_amd_queue_get_info(";
      write(out, data.args.hsa_amd_queue_get_info.queue);
      out << ", ";
      write(out, data.args.hsa_amd_queue_get_info.attribute);
      out << ", ";
      write(out, data.args.hsa_amd_queue_get_info.value);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_vmem_address_reserve_align:
      out << "hsa_amd_vmem_address_reserve_align(";
      write(out, data.args.hsa_amd_vmem_address_reserve_align.va);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_address_reserve_align.size);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_address_reserve_align.address);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_address_reserve_align.alignment);
      out << ", ";
      write(out, data.args.hsa_amd_vmem_address_reserve_align.flags);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 71
    case HSA_API_ID_hsa_amd_enable_logging:
      out << "hsa_amd_enable_logging(";
      write(out, data.args.hsa_amd_enable_logging.flags);
      out << ", ";
      write(out, data.args.hsa_amd_enable_logging.file);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 72
    case HSA_API_ID_hsa_amd_signal_wait_all:
      out << "hsa_amd_signal_wait_all(";
      write(out, data.args.hsa_amd_signal_wait_all.signal_count);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_all.signals);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_all.conds);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_all.values);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_all.timeout_hint);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_all.wait_hint);
      out << ", ";
      write(out, data.args.hsa_amd_signal_wait_all.satisfying_values);
      out << ")";
      out << " = ";
      write(out, data.uint32_t_retval);
      break;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 74
    case HSA_API_ID_hsa_amd_memory_get_preferred_copy_engine:
      out << "hsa_amd_memory_get_preferred_copy_engine(";
      write(out, data.args.hsa_amd_memory_get_preferred_copy_engine.dst_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_get_preferred_copy_engine.src_agent);
      out << ", ";
      write(out, data.args.hsa_amd_memory_get_preferred_copy_engine.recommended_ids_mask);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_portable_export_dmabuf_v2:
      out << "hsa_amd_portable_export_dmabuf_v2(";
      write(out, data.args.hsa_amd_portable_export_dmabuf_v2.ptr);
      out << ", ";
      write(out, data.args.hsa_amd_portable_export_dmabuf_v2.size);
      out << ", ";
      write(out, data.args.hsa_amd_portable_export_dmabuf_v2.dmabuf);
      out << ", ";
      write(out, data.args.hsa_amd_portable_export_dmabuf_v2.offset);
      out << ", ";
      write(out, data.args.hsa_amd_portable_export_dmabuf_v2.flags);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
#if ROCTRACER_HSA_AMD_ENTRIES >= 76
    case HSA_API_ID_hsa_amd_ais_file_write:
      out << "hsa_amd_ais_file_write(";
      write(out, data.args.hsa_amd_ais_file_write.handle);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_write.devicePtr);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_write.size);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_write.file_offset);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_write.size_copied);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_write.status);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_amd_ais_file_read:
      out << "hsa_amd_ais_file_read(";
      write(out, data.args.hsa_amd_ais_file_read.handle);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_read.devicePtr);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_read.size);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_read.file_offset);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_read.size_copied);
      out << ", ";
      write(out, data.args.hsa_amd_ais_file_read.status);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
    case HSA_API_ID_hsa_ext_image_get_capability:
      out << "hsa_ext_image_get_capability(";
      write(out, data.args.hsa_ext_image_get_capability.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_get_capability.geometry);
      out << ", ";
      write(out, data.args.hsa_ext_image_get_capability.image_format);
      out << ", ";
      write(out, data.args.hsa_ext_image_get_capability.capability_mask);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_data_get_info:
      out << "hsa_ext_image_data_get_info(";
      write(out, data.args.hsa_ext_image_data_get_info.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_data_get_info.image_descriptor);
      out << ", ";
      write(out, data.args.hsa_ext_image_data_get_info.access_permission);
      out << ", ";
      write(out, data.args.hsa_ext_image_data_get_info.image_data_info);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_create:
      out << "hsa_ext_image_create(";
      write(out, data.args.hsa_ext_image_create.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_create.image_descriptor);
      out << ", ";
      write(out, data.args.hsa_ext_image_create.image_data);
      out << ", ";
      write(out, data.args.hsa_ext_image_create.access_permission);
      out << ", ";
      write(out, data.args.hsa_ext_image_create.image);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_import:
      out << "hsa_ext_image_import(";
      write(out, data.args.hsa_ext_image_import.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_import.src_memory);
      out << ", ";
      write(out, data.args.hsa_ext_image_import.src_row_pitch);
      out << ", ";
      write(out, data.args.hsa_ext_image_import.src_slice_pitch);
      out << ", ";
      write(out, data.args.hsa_ext_image_import.dst_image);
      out << ", ";
      write(out, data.args.hsa_ext_image_import.image_region);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_export:
      out << "hsa_ext_image_export(";
      write(out, data.args.hsa_ext_image_export.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_export.src_image);
      out << ", ";
      write(out, data.args.hsa_ext_image_export.dst_memory);
      out << ", ";
      write(out, data.args.hsa_ext_image_export.dst_row_pitch);
      out << ", ";
      write(out, data.args.hsa_ext_image_export.dst_slice_pitch);
      out << ", ";
      write(out, data.args.hsa_ext_image_export.image_region);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_copy:
      out << "hsa_ext_image_copy(";
      write(out, data.args.hsa_ext_image_copy.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_copy.src_image);
      out << ", ";
      write(out, data.args.hsa_ext_image_copy.src_offset);
      out << ", ";
      write(out, data.args.hsa_ext_image_copy.dst_image);
      out << ", ";
      write(out, data.args.hsa_ext_image_copy.dst_offset);
      out << ", ";
      write(out, data.args.hsa_ext_image_copy.range);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_clear:
      out << "hsa_ext_image_clear(";
      write(out, data.args.hsa_ext_image_clear.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_clear.image);
      out << ", ";
      write(out, data.args.hsa_ext_image_clear.data);
      out << ", ";
      write(out, data.args.hsa_ext_image_clear.image_region);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_destroy:
      out << "hsa_ext_image_destroy(";
      write(out, data.args.hsa_ext_image_destroy.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_destroy.image);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_sampler_create:
      out << "hsa_ext_sampler_create(";
      write(out, data.args.hsa_ext_sampler_create.agent);
      out << ", ";
      write(out, data.args.hsa_ext_sampler_create.sampler_descriptor);
      out << ", ";
      write(out, data.args.hsa_ext_sampler_create.sampler);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_sampler_destroy:
      out << "hsa_ext_sampler_destroy(";
      write(out, data.args.hsa_ext_sampler_destroy.agent);
      out << ", ";
      write(out, data.args.hsa_ext_sampler_destroy.sampler);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_get_capability_with_layout:
      out << "hsa_ext_image_get_capability_with_layout(";
      write(out, data.args.hsa_ext_image_get_capability_with_layout.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_get_capability_with_layout.geometry);
      out << ", ";
      write(out, data.args.hsa_ext_image_get_capability_with_layout.image_format);
      out << ", ";
      write(out, data.args.hsa_ext_image_get_capability_with_layout.image_data_layout);
      out << ", ";
      write(out, data.args.hsa_ext_image_get_capability_with_layout.capability_mask);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_data_get_info_with_layout:
      out << "hsa_ext_image_data_get_info_with_layout(";
      write(out, data.args.hsa_ext_image_data_get_info_with_layout.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_data_get_info_with_layout.image_descriptor);
      out << ", ";
      write(out, data.args.hsa_ext_image_data_get_info_with_layout.access_permission);
      out << ", ";
      write(out, data.args.hsa_ext_image_data_get_info_with_layout.image_data_layout);
      out << ", ";
      write(out, data.args.hsa_ext_image_data_get_info_with_layout.image_data_row_pitch);
      out << ", ";
      write(out, data.args.hsa_ext_image_data_get_info_with_layout.image_data_slice_pitch);
      out << ", ";
      write(out, data.args.hsa_ext_image_data_get_info_with_layout.image_data_info);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
    case HSA_API_ID_hsa_ext_image_create_with_layout:
      out << "hsa_ext_image_create_with_layout(";
      write(out, data.args.hsa_ext_image_create_with_layout.agent);
      out << ", ";
      write(out, data.args.hsa_ext_image_create_with_layout.image_descriptor);
      out << ", ";
      write(out, data.args.hsa_ext_image_create_with_layout.image_data);
      out << ", ";
      write(out, data.args.hsa_ext_image_create_with_layout.access_permission);
      out << ", ";
      write(out, data.args.hsa_ext_image_create_with_layout.image_data_layout);
      out << ", ";
      write(out, data.args.hsa_ext_image_create_with_layout.image_data_row_pitch);
      out << ", ";
      write(out, data.args.hsa_ext_image_create_with_layout.image_data_slice_pitch);
      out << ", ";
      write(out, data.args.hsa_ext_image_create_with_layout.image);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#if ROCTRACER_HSA_AMD_ENTRIES >= 72
    case HSA_API_ID_hsa_ext_sampler_create_v2:
      out << "hsa_ext_sampler_create_v2(";
      write(out, data.args.hsa_ext_sampler_create_v2.agent);
      out << ", ";
      write(out, data.args.hsa_ext_sampler_create_v2.sampler_descriptor);
      out << ", ";
      write(out, data.args.hsa_ext_sampler_create_v2.sampler);
      out << ")";
      out << " = ";
      write(out, data.hsa_status_t_retval);
      break;
#endif
    default:
      out << "unknown";
      break;
  }
  return out;
}
#endif

#endif
