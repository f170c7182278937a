// Measures the cost of a call: loops of a cheap call, of launches, of small copies; prints ns per call.
//
//   launch_loop [--csv] [CALLS=100000] [BLOCK=1000]
//
// CALLS of each kind (a fiftieth of it for the copies, which wait) in blocks of BLOCK; the minimum and the median over
// the blocks. `launch` is the host's side alone: the queue drains between the blocks, outside the measured time; `drained`
// includes the wait. `clock` is two reads of the time-stamp counter, the floor of the others.
#include "count.hpp"

#include <algorithm>
#include <chrono>
#include <vector>
#include <x86intrin.h>

__global__ void empty() {}

static double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Cost {
  const char* what;
  long calls;
  double min, median;
};

// Both are called with the number of calls in the block; `after` is not timed.
template <typename Body, typename After>
static Cost measure(const char* what, long calls, long block, Body body, After after) {
  std::vector<double> blocks;
  block = std::max(1L, std::min(block, calls));
  calls = std::max(1L, calls / block) * block;
  for (long done = 0; done < calls; done += block) {
    double t = now();
    body(block);
    blocks.push_back((now() - t) / double(block));
    after(block);
  }
  std::sort(blocks.begin(), blocks.end());
  return {what, calls, blocks.front(), blocks[blocks.size() / 2]};
}

int main(int argc, char** argv) {
  bool csv = argc > 1 && !std::strcmp(argv[1], "--csv");
  if (csv) argc--, argv++;
  long calls = app::arg(argc, argv, 1, 100000), block = app::arg(argc, argv, 2, 1000);

  hipStream_t stream;
  char* dev;
  char* pinned;
  char pageable[64] = {};
  OK(hipStreamCreate, &stream);
  OK(hipMalloc, &dev, 4096);
  OK(hipHostMalloc, &pinned, 4096, hipHostMallocDefault);
  // The first call of each kind includes what the run-time loads and allocates.
  LAUNCH(empty, 1, 64, 0, stream);
  OK(hipStreamSynchronize, stream);
  OK(hipMemcpy, dev, pageable, sizeof pageable, hipMemcpyHostToDevice);

  auto nothing = [](long) {};
  auto drain = [&](long) { OK(hipStreamSynchronize, stream); };
  int device = 0;
  hipError_t bad = hipSuccess;
  std::vector<Cost> costs;

  volatile uint64_t sink = 0;
  costs.push_back(measure("clock", calls, block, [&](long n) { for (long i = 0; i < n; i++) { sink = __rdtsc(); sink = __rdtsc(); } }, nothing));
  // Counted per block, so that the figure excludes the counter's cost.
  costs.push_back(measure("hipGetDevice", calls, block, [&](long n) { for (long i = 0; i < n; i++) if (hipError_t e = hipGetDevice(&device)) bad = e; },
                          [](long n) { COUNT_MANY(hipGetDevice, n); }));
  costs.push_back(measure("launch", calls, block, [&](long n) { for (long i = 0; i < n; i++) empty<<<1, 64, 0, stream>>>(); },
                          [&](long n) { COUNT_LAUNCHES(n); drain(n); }));
  costs.push_back(measure("drained", calls, block,
                          [&](long n) { for (long i = 0; i < n; i++) empty<<<1, 64, 0, stream>>>(); if (hipError_t e = hipStreamSynchronize(stream)) bad = e; },
                          [&](long n) { COUNT_LAUNCHES(n); COUNT_MANY(hipStreamSynchronize, 1); }));
  long few = std::max(1L, calls / 50), small = std::max(1L, block / 50);
  costs.push_back(measure("copy_to_device", few, small, [&](long n) { for (long i = 0; i < n; i++) if (hipError_t e = hipMemcpy(dev, pageable, 64, hipMemcpyHostToDevice)) bad = e; },
                          [](long n) { COUNT_MANY(hipMemcpy, n); }));
  costs.push_back(measure("copy_to_host", few, small, [&](long n) { for (long i = 0; i < n; i++) if (hipError_t e = hipMemcpy(pageable, dev, 64, hipMemcpyDeviceToHost)) bad = e; },
                          [](long n) { COUNT_MANY(hipMemcpy, n); }));
  costs.push_back(measure("copy_async", few, small, [&](long n) { for (long i = 0; i < n; i++) if (hipError_t e = hipMemcpyAsync(pinned, dev, 64, hipMemcpyDeviceToHost, stream)) bad = e; },
                          [&](long n) { COUNT_MANY(hipMemcpyAsync, n); drain(n); }));
  costs.push_back(measure("launch_and_wait", few, small,
                          [&](long n) { for (long i = 0; i < n; i++) { empty<<<1, 64, 0, stream>>>(); if (hipError_t e = hipStreamSynchronize(stream)) bad = e; } },
                          [](long n) { COUNT_LAUNCHES(n); COUNT_MANY(hipStreamSynchronize, n); }));
  app::check(bad, "a call in a loop", __FILE__, __LINE__);

  std::printf(csv ? "what,calls,min_ns,median_ns\n" : "%-16s %9s %10s %10s\n", "what", "calls", "min ns", "median ns");
  for (const Cost& c : costs) std::printf(csv ? "%s,%ld,%.1f,%.1f\n" : "%-16s %9ld %10.1f %10.1f\n", c.what, c.calls, c.min, c.median);

  OK(hipHostFree, pinned);
  OK(hipFree, dev);
  OK(hipStreamDestroy, stream);
  app::finish();
}
