/* Output of an argument of any type: numbers and enumerations as numbers, strings quoted, pointers as addresses,
 * handles and structures as the words of their bytes. C++11 and later. */
#ifndef ROCTRACER_ARGUMENT_TEXT_H_
#define ROCTRACER_ARGUMENT_TEXT_H_

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#include <cstring>
/* Programs rely on these too: the shipped header has them. */
#include <iomanip>
#include <iostream>
#include <string>
#include <type_traits>

namespace roctracer {
namespace argument_text {

template <typename T> inline std::ostream& write_three(std::ostream& out, T x, T y, T z) {
  return out << "{" << x << "," << y << "," << z << "}";
}

template <typename T>
inline typename std::enable_if<std::is_arithmetic<T>::value, std::ostream&>::type write(std::ostream& out,
                                                                                       const T& value) {
  return out << +value;
}

template <typename T>
inline typename std::enable_if<std::is_enum<T>::value, std::ostream&>::type write(std::ostream& out, const T& value) {
  return out << static_cast<long long>(value);
}

inline std::ostream& write(std::ostream& out, const char* const& value) {
  if (value == nullptr) return out << "NULL";
  return out << '"' << value << '"';
}

inline std::ostream& write(std::ostream& out, char* const& value) {
  return write(out, const_cast<const char* const&>(value));
}

template <typename T>
inline typename std::enable_if<std::is_pointer<T>::value || std::is_null_pointer<T>::value, std::ostream&>::type write(
    std::ostream& out, const T& value) {
  std::uintptr_t address;
  std::memcpy(&address, &value, sizeof address);
  return out << reinterpret_cast<const void*>(address);
}

template <typename T>
inline typename std::enable_if<std::is_class<T>::value || std::is_union<T>::value || std::is_array<T>::value,
                               std::ostream&>::type
write(std::ostream& out, const T& value) {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&value);
  const std::ios_base::fmtflags before = out.flags();
  out << "{" << std::hex;
  for (std::size_t at = 0; at < sizeof(T); at += sizeof(std::uint64_t)) {
    const std::size_t rest = sizeof(T) - at;
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, rest < sizeof word ? rest : sizeof word);
    out << (at == 0 ? "0x" : ",0x") << word;
  }
  out.flags(before);
  return out << "}";
}

}  // namespace argument_text
}  // namespace roctracer
#endif

#endif
