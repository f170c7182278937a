/* The headers with those of HIP and HSA, C and C++; layouts and numbers of the installed release. */
#include <string.h>
#include <roctracer_hip.h>
#include <roctracer_hsa.h>
#include <roctracer_hcc.h>

#include <stddef.h>

#ifdef __cplusplus
#define SAME(name, a, b) static_assert((a) == (b), #name)
#else
#define SAME(name, a, b) typedef char name[(long)(a) == (long)(b) ? 1 : -1]
#endif

SAME(hip_dispatch, HIP_OP_ID_DISPATCH, 0);
SAME(hip_copy, HIP_OP_ID_COPY, 1);
SAME(hip_barrier, HIP_OP_ID_BARRIER, 2);
SAME(hip_launch, HIP_API_ID_hipLaunchKernel, 107);
SAME(hip_correlation, offsetof(hip_api_data_t, correlation_id), 0);
SAME(hip_phase, offsetof(hip_api_data_t, phase), 8);
SAME(hip_args, offsetof(hip_api_data_t, args), 16);

SAME(hsa_copy, HSA_OP_ID_COPY, 1);
SAME(hsa_codeobj, HSA_EVT_ID_CODEOBJ, 5);
SAME(hsa_event_size, sizeof(hsa_evt_data_t), 72);
SAME(hsa_event_uri, offsetof(hsa_evt_data_t, codeobj.uri), 56);
SAME(hsa_data_size, sizeof(struct hsa_api_data_t), 120);
SAME(hsa_data_result, offsetof(struct hsa_api_data_t, uint64_t_retval), 16);
SAME(hsa_data_args, offsetof(struct hsa_api_data_t, args), 24);
SAME(hsa_data_word, offsetof(struct hsa_api_data_t, phase_data), 112);
SAME(hsa_first_amd, HSA_API_ID_hsa_amd_coherency_get_type, 125);
SAME(hsa_first_image, HSA_API_ID_hsa_ext_image_get_capability, 125 + ROCTRACER_HSA_AMD_ENTRIES);
SAME(hsa_number, HSA_API_ID_NUMBER, HSA_API_ID_DISPATCH + 1);
