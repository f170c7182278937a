// Launches with stream and attributes in a structure, plain and cooperative, and cooperative kernels in graphs. Every launch
// function launches each kernel, always on the same stream.
//
//   configured [TIMES=10]
//
// Releases before 7.0 have no such launches; there the program prints that and launches nothing.
#include "count.hpp"

#include <hip/hip_cooperative_groups.h>

template <int N>
__global__ void on(int* p, int n) {
  if (threadIdx.x < (unsigned)n) p[threadIdx.x] += N;
}

__global__ void together(int* p, int n) {
  cooperative_groups::this_grid().sync();
  if (threadIdx.x < (unsigned)n) p[threadIdx.x] += 1;
}

#if HIP_VERSION_MAJOR >= 7
static void by_structure(const void* function, hipStream_t stream, bool is_cooperative, void** args) {
  hipLaunchAttribute attributes[2] = {};
  attributes[0].id = hipLaunchAttributePriority;
  attributes[1].id = hipLaunchAttributeCooperative;
  attributes[1].val.cooperative = 1;
  hipLaunchConfig_t config = {};
  config.gridDim = dim3(4);
  config.blockDim = dim3(64);
  config.stream = stream;
  config.attrs = attributes + 1;
  config.numAttrs = is_cooperative ? 1 : 0;
  OK(hipLaunchKernelExC, &config, function, args);
  hipFunction_t handle;
  OK(hipGetFuncBySymbol, &handle, function);
  HIP_LAUNCH_CONFIG driver = {};
  driver.gridDimX = 2;
  driver.gridDimY = driver.gridDimZ = driver.blockDimY = driver.blockDimZ = 1;
  driver.blockDimX = 64;
  driver.hStream = stream;
  driver.attrs = config.attrs;
  driver.numAttrs = config.numAttrs;
  OK(hipDrvLaunchKernelEx, &driver, handle, args, nullptr);
}

static void plainly(long times) {
  int *p, n = 64;
  OK(hipMalloc, (void**)&p, 4096);
  void* args[] = {&p, &n};
  hipStream_t s[2];
  for (auto& each : s) OK(hipStreamCreate, &each);
  for (long i = 0; i < times; i++) {
    LAUNCH(on<1>, 1, 64, 0, s[0], p, n);
    LAUNCH(on<2>, 1, 64, 0, s[1], p, n);
    by_structure((const void*)on<1>, s[0], false, args);
    by_structure((const void*)on<2>, s[1], false, args);
    by_structure((const void*)on<3>, nullptr, false, args);
  }
  OK(hipDeviceSynchronize);
  for (auto each : s) OK(hipStreamDestroy, each);
  OK(hipFree, p);
}

static void cooperatively(long times) {
  int *p, n = 64;
  OK(hipMalloc, (void**)&p, 4096);
  void* args[] = {&p, &n};
  hipStream_t s;
  OK(hipStreamCreate, &s);
  for (long i = 0; i < times; i++) by_structure((const void*)together, s, true, args);
  OK(hipStreamSynchronize, s);
  OK(hipStreamDestroy, s);
  OK(hipFree, p);
}

static void in_graphs(long times) {
  int *p, n = 64;
  OK(hipMalloc, (void**)&p, 4096);
  void* args[] = {&p, &n};
  hipStream_t s;
  OK(hipStreamCreate, &s);
  hipGraph_t graph;
  hipGraphExec_t exec;
  OK(hipStreamBeginCapture, s, hipStreamCaptureModeGlobal);
  for (int i = 0; i < 5; i++) {
    LAUNCH(on<4>, 1, 64, 0, s, p, n);
    OK(hipLaunchCooperativeKernel, (const void*)together, dim3(4), dim3(64), args, 0u, s);
  }
  OK(hipStreamEndCapture, s, &graph);
  OK(hipGraphInstantiate, &exec, graph, nullptr, nullptr, 0);
  for (long i = 0; i < times; i++) OK(hipGraphLaunch, exec, s);
  OK(hipStreamSynchronize, s);
  OK(hipGraphExecDestroy, exec);
  OK(hipGraphDestroy, graph);
  OK(hipStreamDestroy, s);
  OK(hipFree, p);
}
#endif

int main(int argc, char** argv) {
  long times = argc > 1 ? std::atol(argv[1]) : 10;
#if HIP_VERSION_MAJOR >= 7
  plainly(times);
  cooperatively(times);
  in_graphs(times);
  std::printf("configured: %ld times\n", times);
#else
  std::printf("configured: this release has no such launches (%ld)\n", times);
#endif
  app::finish();
  return 0;
}
