// Rarely used functions of HIP, one group per run. The program prints each call's result, so that a test compares recorded
// and untraced runs.
// A release that does not support a function prints that and continues.
//
//   corners reset|arrays|per_thread|timing|contexts|compiled|managed|callbacks|graphs
//
// reset        hipDeviceReset between the work, three times
// arrays       a copy into an array and out of it
// per_thread   the default stream of each thread
// timing       events around a launch, and around a stream's work
// contexts     contexts created, entered and left; the primary one retained and reset
// compiled     a kernel compiled at run time (hipRTC), launched and unloaded
// managed      managed memory, prefetched to GPU and host
// callbacks    callbacks between kernels
// graphs       graphs with branches that live for one launch, 300 of them (HIP 6.4.3 crashes within some tens, untraced too)
#include "count.hpp"

#include <dlfcn.h>
#include <hip/hip_ext.h>
#include <thread>
#include <vector>

#define REPORT(f, ...)                      \
  ([&] {                                    \
    int result = (int)CALL(f, __VA_ARGS__); \
    std::printf("%s: %d\n", #f, result);    \
    return result;                          \
  }())

__global__ void step(int* p, int n) {
  if (threadIdx.x < (unsigned)n) p[threadIdx.x] += 0;
}

static void work(hipStream_t s, int launches) {
  int* p;
  std::vector<int> in(2048), out(2048);
  for (size_t i = 0; i < in.size(); i++) in[i] = (int)i * launches;
  OK(hipMalloc, (void**)&p, 8192);
  OK(hipMemcpyAsync, p, in.data(), 8192, hipMemcpyHostToDevice, s);
  for (int i = 0; i < launches; i++) LAUNCH(step, 1 + i % 5, 64, 0, s, p, 64);
  OK(hipMemcpyAsync, out.data(), p, 8192, hipMemcpyDeviceToHost, s);
  OK(hipStreamSynchronize, s);
  if (in != out) app::fail("bytes");
  OK(hipFree, p);
}

static void reset() {
  for (int turn = 0; turn < 3; turn++) {
    work(0, 5);
    hipStream_t s;
    REPORT(hipStreamCreate, &s);
    work(s, 7);
    REPORT(hipDeviceReset);
    work(0, 3);
  }
}

static void arrays() {
  hipChannelFormatDesc format = CALL(hipCreateChannelDesc, 32, 0, 0, 0, hipChannelFormatKindFloat);
  hipArray_t array;
  if (REPORT(hipMallocArray, &array, &format, (size_t)64, (size_t)32, 0)) return;
  std::vector<float> in(64 * 32), out(64 * 32);
  for (size_t i = 0; i < in.size(); i++) in[i] = (float)i;
  REPORT(hipMemcpy2DToArray, array, 0, 0, in.data(), 256, 256, 32, hipMemcpyHostToDevice);
  REPORT(hipMemcpy2DFromArray, out.data(), 256, array, 0, 0, 256, 32, hipMemcpyDeviceToHost);
  REPORT(hipFreeArray, array);
}

static void per_thread() {
  std::vector<std::thread> all;
  for (int i = 0; i < 4; i++) all.emplace_back([] { work(hipStreamPerThread, 9); });
  for (auto& t : all) t.join();
  work(hipStreamPerThread, 3);
}

static void elapsed(hipEvent_t from, hipEvent_t to) {
  float ms = -1;
  if (REPORT(hipEventElapsedTime, &ms, from, to) == 0 && !(ms >= 0 && ms < 60000)) app::fail("a time that is none");
}

static void timing() {
  hipEvent_t from, to;
  hipStream_t s;
  int* p;
  REPORT(hipEventCreate, &from);
  REPORT(hipEventCreate, &to);
  REPORT(hipStreamCreate, &s);
  REPORT(hipMalloc, (void**)&p, 4096);
  for (int i = 0; i < 5; i++) {
    APP_COUNT("hipExtLaunchKernel", 1);
    hipExtLaunchKernelGGL(step, dim3(2), dim3(64), 0, s, from, to, 0, p, 4);
    REPORT(hipEventSynchronize, to);
    elapsed(from, to);
  }
  REPORT(hipEventRecord, from, s);
  work(s, 20);
  REPORT(hipEventRecord, to, s);
  REPORT(hipEventSynchronize, to);
  elapsed(from, to);
}

static void contexts() {
  hipCtx_t own, other;
  REPORT(hipCtxCreate, &own, 0, 0);
  REPORT(hipCtxGetCurrent, &other);
  work(0, 3);
  REPORT(hipCtxPushCurrent, own);
  work(0, 2);
  REPORT(hipCtxPopCurrent, &other);
  REPORT(hipCtxSynchronize);
  REPORT(hipCtxDestroy, own);
  work(0, 4);
  REPORT(hipDevicePrimaryCtxRetain, &own, 0);
  work(0, 1);
  REPORT(hipDevicePrimaryCtxRelease, 0);
  REPORT(hipDevicePrimaryCtxReset, 0);
  work(0, 2);
}

// hipRTC is a separate library from 5.3 on, and a part of HIP before.
static void* compiler() {
  for (const char* name : {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.5"})
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  return nullptr;
}

static void compiled() {
  void* library = compiler();
  if (!library) return (void)std::printf("no hipRTC\n");
  auto create = (int (*)(void**, const char*, const char*, int, const char**, const char**))dlsym(library, "hiprtcCreateProgram");
  auto compile = (int (*)(void*, int, const char**))dlsym(library, "hiprtcCompileProgram");
  auto size_of = (int (*)(void*, size_t*))dlsym(library, "hiprtcGetCodeSize");
  auto code_of = (int (*)(void*, char*))dlsym(library, "hiprtcGetCode");
  if (!create || !compile || !size_of || !code_of) return (void)std::printf("no functions of hipRTC\n");
  void* program;
  const char* text = "extern \"C\" __global__ void made(int* p) { p[threadIdx.x] += 2; }";
  const char* options[] = {"--offload-arch=gfx906"};
  if (create(&program, text, "made.hip", 0, nullptr, nullptr) || compile(program, 1, options))
    return (void)std::printf("it cannot be compiled here\n");
  size_t size = 0;
  size_of(program, &size);
  std::vector<char> code(size);
  code_of(program, code.data());
  hipModule_t module;
  hipFunction_t made;
  int* p;
  REPORT(hipModuleLoadData, &module, code.data());
  REPORT(hipModuleGetFunction, &made, module, "made");
  REPORT(hipMalloc, (void**)&p, 4096);
  void* arguments[] = {&p};
  for (int i = 0; i < 6; i++)
    REPORT(hipModuleLaunchKernel, made, 3, 1, 1, 64, 1, 1, 0, (hipStream_t)0, arguments, (void**)nullptr);
  REPORT(hipDeviceSynchronize);
  REPORT(hipModuleUnload, module);
  work(0, 2);
}

static void managed() {
  const size_t size = 1 << 20;
  int* p;
  hipStream_t s;
  REPORT(hipMallocManaged, (void**)&p, size, hipMemAttachGlobal);
  REPORT(hipStreamCreate, &s);
  REPORT(hipStreamAttachMemAsync, s, p, 0, hipMemAttachSingle);
  REPORT(hipMemPrefetchAsync, p, size, 0, s);
  LAUNCH(step, 1, 64, 0, s, p, 4);
  REPORT(hipStreamSynchronize, s);
  REPORT(hipMemPrefetchAsync, p, size, hipCpuDeviceId, s);
  REPORT(hipStreamSynchronize, s);
  REPORT(hipFree, p);
}

static void callbacks() {
  hipStream_t s;
  REPORT(hipStreamCreate, &s);
  static int called = 0;
  for (int i = 0; i < 10; i++) {
    REPORT(hipStreamAddCallback, s, +[](hipStream_t, hipError_t, void*) { called++; }, nullptr, 0);
    LAUNCH(step, 1, 64, 0, s, (int*)nullptr, 0);
  }
  REPORT(hipStreamSynchronize, s);
  std::printf("called: %d\n", called);
}

static void graphs() {
  hipStream_t s;
  int *p, n = 64;
  OK(hipStreamCreate, &s);
  OK(hipMalloc, (void**)&p, 4096);
  void* arguments[] = {&p, &n};
  hipKernelNodeParams kernel = {};
  kernel.func = (void*)step;
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(64);
  kernel.kernelParams = arguments;
  for (int turn = 0; turn < 300; turn++) {
    hipGraph_t graph;
    hipGraphExec_t ready;
    hipGraphNode_t nodes[4];
    OK(hipGraphCreate, &graph, 0);
    OK(hipGraphAddKernelNode, &nodes[0], graph, nullptr, 0, &kernel);
    for (int i = 1; i < 3; i++) OK(hipGraphAddKernelNode, &nodes[i], graph, &nodes[0], 1, &kernel);
    OK(hipGraphAddKernelNode, &nodes[3], graph, &nodes[1], 2, &kernel);
    OK(hipGraphInstantiate, &ready, graph, nullptr, nullptr, 0);
    OK(hipGraphLaunch, ready, s);
    OK(hipStreamSynchronize, s);
    OK(hipGraphExecDestroy, ready);
    OK(hipGraphDestroy, graph);
  }
}

int main(int argc, char** argv) {
  std::string corner = argc > 1 ? argv[1] : "";
  struct {
    const char* name;
    void (*run)();
  } all[] = {
      {"reset", reset},       {"arrays", arrays},     {"per_thread", per_thread}, {"timing", timing},
      {"contexts", contexts}, {"compiled", compiled}, {"managed", managed},       {"callbacks", callbacks},
      {"graphs", graphs},
  };
  for (auto& each : all)
    if (corner == each.name) {
      each.run();
      OK(hipDeviceSynchronize);
      std::printf("corners: %s\n", each.name);
      app::finish();
      return 0;
    }
  app::fail("which corner?");
}
