/* Output of HIP's types, for the argument strings that HIP's own header makes with HIP_PROF_HIP_API_STRING.
 * C++ only. */
#ifndef ROCTRACER_HIP_OSTREAM_OPS_H_
#define ROCTRACER_HIP_OSTREAM_OPS_H_

#ifdef __cplusplus
#include "argument_text.h"

namespace roctracer {
namespace hip_support {
namespace detail {

template <typename T> inline std::ostream& operator<<(std::ostream& out, const T& value) {
  return argument_text::write(out, value);
}

inline std::ostream& operator<<(std::ostream& out, const dim3& value) {
  return argument_text::write_three(out, value.x, value.y, value.z);
}

}  // namespace detail
}  // namespace hip_support
}  // namespace roctracer
/* Releases before 5.5 write structures without naming the namespace of the operator; programs may do the same. */
inline std::ostream& operator<<(std::ostream& out, const dim3& value) {
  return roctracer::argument_text::write_three(out, value.x, value.y, value.z);
}
#define ROCTRACER_HIP_TEXT(type) \
  inline std::ostream& operator<<(std::ostream& out, const type& value) { \
    return roctracer::argument_text::write(out, value); \
  }
ROCTRACER_HIP_TEXT(HIP_ARRAY3D_DESCRIPTOR)
ROCTRACER_HIP_TEXT(HIP_ARRAY_DESCRIPTOR)
ROCTRACER_HIP_TEXT(hip_Memcpy2D)
ROCTRACER_HIP_TEXT(HIP_MEMCPY3D)
ROCTRACER_HIP_TEXT(hipChannelFormatDesc)
ROCTRACER_HIP_TEXT(hipDeviceProp_t)
ROCTRACER_HIP_TEXT(hipExtent)
ROCTRACER_HIP_TEXT(hipExternalMemoryBufferDesc)
ROCTRACER_HIP_TEXT(hipExternalMemoryHandleDesc)
ROCTRACER_HIP_TEXT(hipExternalSemaphoreHandleDesc)
ROCTRACER_HIP_TEXT(hipExternalSemaphoreSignalParams)
ROCTRACER_HIP_TEXT(hipExternalSemaphoreWaitParams)
ROCTRACER_HIP_TEXT(hipFuncAttributes)
ROCTRACER_HIP_TEXT(hipHostNodeParams)
ROCTRACER_HIP_TEXT(hipIpcEventHandle_t)
ROCTRACER_HIP_TEXT(hipIpcMemHandle_t)
ROCTRACER_HIP_TEXT(hipKernelNodeParams)
ROCTRACER_HIP_TEXT(hipLaunchParams)
ROCTRACER_HIP_TEXT(hipMemAccessDesc)
ROCTRACER_HIP_TEXT(hipMemAllocationProp)
ROCTRACER_HIP_TEXT(hipMemcpy3DParms)
ROCTRACER_HIP_TEXT(hipMemLocation)
ROCTRACER_HIP_TEXT(hipMemPoolProps)
ROCTRACER_HIP_TEXT(hipMemPoolPtrExportData)
ROCTRACER_HIP_TEXT(hipMemsetParams)
ROCTRACER_HIP_TEXT(hipPitchedPtr)
ROCTRACER_HIP_TEXT(hipPointerAttribute_t)
ROCTRACER_HIP_TEXT(hipPos)
ROCTRACER_HIP_TEXT(hipResourceDesc)
ROCTRACER_HIP_TEXT(hipUUID)
ROCTRACER_HIP_TEXT(textureReference)
#if HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR < 5
ROCTRACER_HIP_TEXT(hipArray)
ROCTRACER_HIP_TEXT(hipArrayMapInfo)
ROCTRACER_HIP_TEXT(hipKernelNodeAttrValue)
ROCTRACER_HIP_TEXT(hipMipmappedArray)
#endif
#undef ROCTRACER_HIP_TEXT
#endif

#endif
