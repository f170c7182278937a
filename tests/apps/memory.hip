// Allocates and frees, and tracks its GPU memory: after each call it writes a line `name bytes held owner` to the file named
// by APP_MEMORY.
//
//   memory [ROUNDS=3]
#include "count.hpp"

#include <vector>

__global__ void touch(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += 0;
}

static FILE* lines;
static unsigned long long held;

static void report(const char* name, size_t bytes, long long change) {
  held += change;
  const char* whose = std::strncmp(name, "hipHost", 7) == 0 ? "cpu" : "gpu";
  if (lines) std::fprintf(lines, "%s %zu %llu %s\n", name, bytes, held, whose);
}

static void plain(long round) {
  std::vector<std::pair<void*, size_t>> all;
  for (size_t i = 1; i <= 20; i++) {
    size_t bytes = 4096 * (i * i + round);
    void* p = nullptr;
    OK(hipMalloc, &p, bytes);
    report("hipMalloc", bytes, bytes);
    all.push_back({p, bytes});
    if (i % 3 == 0) {
      auto last = all[all.size() / 2];
      all.erase(all.begin() + all.size() / 2);
      OK(hipFree, last.first);
      report("hipFree", last.second, -(long long)last.second);
    }
  }
  void* never = nullptr;
  if (CALL(hipMalloc, &never, (size_t)1 << 50) == hipSuccess) app::fail("a petabyte");
  (void)CALL(hipGetLastError);
  for (auto& one : all) {
    OK(hipFree, one.first);
    report("hipFree", one.second, -(long long)one.second);
  }
}

static void on_the_host() {
  void* p = nullptr;
  OK(hipHostMalloc, &p, 8192 * 5, hipHostMallocDefault);
  report("hipHostMalloc", 8192 * 5, 0);
  OK(hipHostFree, p);
  report("hipHostFree", 8192 * 5, 0);
}

// Physical memory is held until it is released and unmapped.
static void virtual_memory() {
#if HIP_VERSION_MAJOR >= 6
  int supported = 0;
  if (CALL(hipDeviceGetAttribute, &supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0) != hipSuccess || !supported)
    return;
  hipMemAllocationProp prop = {};
  prop.type = hipMemAllocationTypePinned;
  prop.location.type = hipMemLocationTypeDevice;
  size_t grain = 0;
  OK(hipMemGetAllocationGranularity, &grain, &prop, hipMemAllocationGranularityMinimum);
  size_t bytes = 4 * grain;
  void* base;
  hipMemGenericAllocationHandle_t first, second;
  OK(hipMemAddressReserve, &base, 2 * bytes, 0, nullptr, 0);
  OK(hipMemCreate, &first, bytes, &prop, 0);
  report("hipMemCreate", bytes, bytes);
  OK(hipMemCreate, &second, bytes, &prop, 0);
  report("hipMemCreate", bytes, bytes);
  OK(hipMemMap, base, bytes, 0, first, 0);
  report("hipMemMap", bytes, 0);
  OK(hipMemUnmap, base, bytes);
  report("hipMemUnmap", bytes, 0);
  OK(hipMemRelease, first);
  report("hipMemRelease", bytes, -(long long)bytes);
  OK(hipMemRelease, second);
  report("hipMemRelease", bytes, -(long long)bytes);
  OK(hipMemAddressFree, base, 2 * bytes);
#endif
}

int main(int argc, char** argv) {
  long rounds = app::arg(argc, argv, 1, 3);
  const char* path = std::getenv("APP_MEMORY");
  lines = path ? std::fopen(path, "w") : nullptr;
  // The run-time makes its internal allocations now.
  int* p;
  OK(hipMalloc, (void**)&p, 4096);
  report("hipMalloc", 4096, 4096);
  LAUNCH(touch, 1, 64, 0, 0, p, 64);
  int word = 0;
  OK(hipMemcpy, p, &word, 4, hipMemcpyHostToDevice);
  OK(hipMemcpy, &word, p, 4, hipMemcpyDeviceToHost);
  OK(hipDeviceSynchronize);
  for (long round = 0; round < rounds; round++) {
    plain(round);
    on_the_host();
    virtual_memory();
  }
  OK(hipFree, p);
  report("hipFree", 4096, -4096);
  if (lines) std::fclose(lines);
  app::finish();
  std::printf("memory: rounds %ld, held at the end %llu\n", rounds, held);
  return 0;
}
