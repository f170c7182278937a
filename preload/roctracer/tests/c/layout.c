/* Values and layouts of the shipped library, C and C++. */
#include <roctracer.h>
#include <roctracer_ext.h>
#include <roctracer_roctx.h>
#include <roctx.h>

#include <stddef.h>

#ifdef __cplusplus
#define SAME(name, a, b) static_assert((a) == (b), #name)
#else
#define SAME(name, a, b) typedef char name[(long)(a) == (long)(b) ? 1 : -1]
#endif
#define AT(name, type, member, offset) SAME(name, offsetof(type, member), offset)

SAME(domain_hsa_api, ACTIVITY_DOMAIN_HSA_API, 0);
SAME(domain_hsa_ops, ACTIVITY_DOMAIN_HSA_OPS, 1);
SAME(domain_hip_ops, ACTIVITY_DOMAIN_HIP_OPS, 2);
SAME(domain_hcc_ops, ACTIVITY_DOMAIN_HCC_OPS, 2);
SAME(domain_hip_vdi, ACTIVITY_DOMAIN_HIP_VDI, 2);
SAME(domain_hip_api, ACTIVITY_DOMAIN_HIP_API, 3);
SAME(domain_kfd_api, ACTIVITY_DOMAIN_KFD_API, 4);
SAME(domain_ext_api, ACTIVITY_DOMAIN_EXT_API, 5);
SAME(domain_roctx, ACTIVITY_DOMAIN_ROCTX, 6);
SAME(domain_hsa_evt, ACTIVITY_DOMAIN_HSA_EVT, 7);
SAME(domain_number, ACTIVITY_DOMAIN_NUMBER, 8);

SAME(status_success, ROCTRACER_STATUS_SUCCESS, 0);
SAME(status_error, ROCTRACER_STATUS_ERROR, -1);
SAME(status_domain, ROCTRACER_STATUS_ERROR_INVALID_DOMAIN_ID, -2);
SAME(status_argument, ROCTRACER_STATUS_ERROR_INVALID_ARGUMENT, -3);
SAME(status_undefined, ROCTRACER_STATUS_ERROR_DEFAULT_POOL_UNDEFINED, -4);
SAME(status_defined, ROCTRACER_STATUS_ERROR_DEFAULT_POOL_ALREADY_DEFINED, -5);
SAME(status_memory, ROCTRACER_STATUS_ERROR_MEMORY_ALLOCATION, -6);
SAME(status_external, ROCTRACER_STATUS_ERROR_MISMATCHED_EXTERNAL_CORRELATION_ID, -7);
SAME(status_not_there, ROCTRACER_STATUS_ERROR_NOT_IMPLEMENTED, -8);
SAME(status_bad_domain, ROCTRACER_STATUS_BAD_DOMAIN, -2);
SAME(status_bad_parameter, ROCTRACER_STATUS_BAD_PARAMETER, -3);
SAME(status_uninit, ROCTRACER_STATUS_UNINIT, 2);
SAME(status_break, ROCTRACER_STATUS_BREAK, 3);
SAME(status_hip_api, ROCTRACER_STATUS_HIP_API_ERR, 6);
SAME(status_hip_ops, ROCTRACER_STATUS_HIP_OPS_ERR, 7);
SAME(status_hcc_ops, ROCTRACER_STATUS_HCC_OPS_ERR, 7);
SAME(status_hsa, ROCTRACER_STATUS_HSA_ERR, 7);
SAME(status_roctx, ROCTRACER_STATUS_ROCTX_ERR, 8);

SAME(record_size, sizeof(activity_record_t), 64);
SAME(record_same, sizeof(roctracer_record_t), 64);
AT(record_domain, activity_record_t, domain, 0);
AT(record_kind, activity_record_t, kind, 4);
AT(record_op, activity_record_t, op, 8);
AT(record_activity_id, activity_record_t, activity_id, 8);
AT(record_correlation, activity_record_t, correlation_id, 16);
AT(record_begin, activity_record_t, begin_ns, 24);
AT(record_end, activity_record_t, end_ns, 32);
AT(record_device, activity_record_t, device_id, 40);
AT(record_queue, activity_record_t, queue_id, 48);
AT(record_stream, activity_record_t, stream_id, 48);
AT(record_process, activity_record_t, process_id, 40);
AT(record_thread, activity_record_t, thread_id, 44);
AT(record_external, activity_record_t, external_id, 40);
AT(record_bytes, activity_record_t, bytes, 56);
AT(record_kernel, activity_record_t, kernel_name, 56);
AT(record_sample, activity_record_t, pc_sample.pc, 32);

SAME(properties_size, sizeof(roctracer_properties_t), 48);
AT(properties_buffer, roctracer_properties_t, buffer_size, 8);
AT(properties_allocator, roctracer_properties_t, alloc_fun, 16);
AT(properties_allocator_arg, roctracer_properties_t, alloc_arg, 24);
AT(properties_callback, roctracer_properties_t, buffer_callback_fun, 32);
AT(properties_callback_arg, roctracer_properties_t, buffer_callback_arg, 40);

SAME(phase_enter, ROCTRACER_API_PHASE_ENTER, 0);
SAME(phase_exit, ROCTRACER_API_PHASE_EXIT, 1);
SAME(ext_mark, ACTIVITY_EXT_OP_MARK, 0);
SAME(ext_id, ACTIVITY_EXT_OP_EXTERN_ID, 1);
SAME(ext_properties, sizeof(roctracer_ext_properties_t), 16);
SAME(roctx_data, sizeof(roctx_api_data_t), 16);
AT(roctx_id, roctx_api_data_t, args.id, 8);
SAME(roctx_number, ROCTX_API_ID_NUMBER, 5);
