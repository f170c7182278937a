// Stresses calls that fail: prints each with its code, as `name code`, for a tracer to be compared with.
#include "count.hpp"

#define FAILS(f, ...) std::printf("%s %d\n", APP_STR(f), (int)CALL(f, __VA_ARGS__))

int main() {
  int count = 0;
  OK(hipGetDeviceCount, &count);
  void* p = nullptr;
  FAILS(hipSetDevice, 1000);
  FAILS(hipMalloc, (void**)nullptr, size_t(16));
  FAILS(hipMalloc, &p, size_t(1) << 60);
  FAILS(hipMemcpy, nullptr, nullptr, size_t(64), hipMemcpyHostToDevice);
  FAILS(hipFree, (void*)0x1234);
  FAILS(hipEventQuery, (hipEvent_t) nullptr);
  FAILS(hipModuleLoad, (hipModule_t*)&p, "/no/such/file");
  FAILS(hipGetDevice, (int*)nullptr);
  for (int i = 0; i < 100; i++) FAILS(hipDeviceGetName, (char*)nullptr, 0, 0);
  OK(hipDeviceSynchronize);
  app::finish();
}
