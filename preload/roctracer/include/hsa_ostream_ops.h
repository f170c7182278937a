/* Output of HSA's types, for hsa_api_data_pair_t's operator in hsa_prof_str.h. C++ only. */
#ifndef ROCTRACER_HSA_OSTREAM_OPS_H_
#define ROCTRACER_HSA_OSTREAM_OPS_H_

#ifdef __cplusplus
#include "argument_text.h"

namespace roctracer {
namespace hsa_support {
namespace detail {

template <typename T> inline std::ostream& operator<<(std::ostream& out, const T& value) {
  return argument_text::write(out, value);
}

inline std::ostream& operator<<(std::ostream& out, const hsa_dim3_t& value) {
  return argument_text::write_three(out, value.x, value.y, value.z);
}

}  // namespace detail
}  // namespace hsa_support
}  // namespace roctracer
#endif

#endif
