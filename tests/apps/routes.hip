// Copies and fills known sizes in every direction and prints the bytes per direction, so that a test compares them with the
// recording.
//
//   routes [TIMES=20]
//
// Output: a line for each direction: `route NAME CALLS BYTES`.
#include "count.hpp"

#include <vector>

// All below the sizes from which every release uses a DMA engine.
constexpr size_t sizes[] = {16, 256, 1000, 4096, 12288};
constexpr size_t room = 64 << 10;

struct Sum {
  size_t calls = 0, bytes = 0;
};
static std::map<std::string, Sum> sums;

static void count(const char* way, size_t bytes) {
  sums[way].calls++;
  sums[way].bytes += bytes;
}

int main(int argc, char** argv) {
  long times = app::arg(argc, argv, 1, 20);
  uint8_t *a, *b, *pinned;
  hipStream_t stream;
  OK(hipMalloc, &a, room);
  OK(hipMalloc, &b, room);
  OK(hipHostMalloc, &pinned, room, hipHostMallocDefault);
  OK(hipStreamCreate, &stream);
  std::vector<uint8_t> host(room, 7);
  for (long time = 0; time < times; time++) {
    for (size_t n : sizes) {
      OK(hipMemcpyHtoD, (hipDeviceptr_t)a, host.data(), n);
      count("H2D", n);
      OK(hipMemcpyHtoDAsync, (hipDeviceptr_t)a, pinned, n, stream);
      count("H2D", n);
      OK(hipMemcpyAsync, a, pinned, n, hipMemcpyDefault, stream);
      count("H2D", n);
      OK(hipMemcpyDtoD, (hipDeviceptr_t)b, (hipDeviceptr_t)a, n);
      count("D2D", n);
      OK(hipMemcpyAsync, b, a, n, hipMemcpyDeviceToDevice, stream);
      count("D2D", n);
      OK(hipMemcpyAsync, b, a, n, hipMemcpyDefault, stream);
      count("D2D", n);
      OK(hipMemcpyDtoH, host.data(), (hipDeviceptr_t)b, n);
      count("D2H", n);
      OK(hipMemcpyDtoHAsync, pinned, (hipDeviceptr_t)b, n, stream);
      count("D2H", n);
      OK(hipMemcpyAsync, pinned, b, n, hipMemcpyDefault, stream);
      count("D2H", n);
      OK(hipMemsetAsync, a, 3, n, stream);
      count("fill", n);
      OK(hipMemsetD32Async, (hipDeviceptr_t)b, 5, n / 4, stream);
      count("fill", n / 4 * 4);
      OK(hipStreamSynchronize, stream);
    }
  }
  OK(hipDeviceSynchronize);
  OK(hipStreamDestroy, stream);
  OK(hipHostFree, pinned);
  OK(hipFree, b);
  OK(hipFree, a);
  for (auto& [way, sum] : sums)
    std::printf("route %s %zu %zu\n", way.c_str(), sum.calls, sum.bytes);
  app::finish();
}
