/* Data of HIP_API callbacks: hip_api_data_t, from the header of the HIP that the program is compiled for. */
#ifndef ROCTRACER_HIP_H_
#define ROCTRACER_HIP_H_

#include "roctracer.h"

#ifdef __cplusplus
#include <hip/hip_runtime.h>
#else
#include <stdbool.h>
#include <hip/hip_runtime_api.h>
#endif
#if defined(__has_include)
#if __has_include(<hip/hip_deprecated.h>)
#include <hip/hip_deprecated.h> /* 5.5 and later */
#endif
#endif
#include "hip_ostream_ops.h"
#include <hip/amd_detail/hip_prof_str.h>

/* Operations of HIP_OPS. */
typedef enum {
  HIP_OP_ID_DISPATCH = 0,
  HIP_OP_ID_COPY = 1,
  HIP_OP_ID_BARRIER = 2,
  HIP_OP_ID_NUMBER = 3
} hip_op_id_t;

/* Manual: all operations of HIP_API. */
#ifndef HIP_API_ID_ANY
#define HIP_API_ID_ANY 0xffffffffu
#endif

#endif
