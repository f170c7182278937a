// Calls every family of the HIP API once or a few times, in a known order, from three threads, with ROC-TX ranges and marks
// before, around and after the calls. Some calls fail on purpose.
//
//   api_tour [--roctx=auto|weak|dlsym|dlopen|none] [--only=PART,…]
//
// PART: launches, copies, memory, events, graphs, modules, failures.
// ROC-TX is not linked. The program looks for its functions as weak symbols, by dlsym, then by dlopen; without them it makes
// no marks. The output is the same. Modules come from module_kernels.hsaco beside the program.
// The headers' version and the device's attributes decide which calls are left out.
#include "count.hpp"
#include <hip/hip_ext.h>

#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

// ---- ROC-TX.

extern "C" {
__attribute__((weak)) void roctxMarkA(const char*);
__attribute__((weak)) int roctxRangePushA(const char*);
__attribute__((weak)) int roctxRangePop();
__attribute__((weak)) uint64_t roctxRangeStartA(const char*);
__attribute__((weak)) void roctxRangeStop(uint64_t);
}

struct Roctx {
  decltype(&::roctxMarkA) mark = nullptr;
  decltype(&::roctxRangePushA) push = nullptr;
  decltype(&::roctxRangePop) pop = nullptr;
  decltype(&::roctxRangeStartA) start = nullptr;
  decltype(&::roctxRangeStop) stop = nullptr;

  bool complete() const { return mark && push && pop && start && stop; }

  void from(void* handle) {
    mark = (decltype(mark))dlsym(handle, "roctxMarkA");
    push = (decltype(push))dlsym(handle, "roctxRangePushA");
    pop = (decltype(pop))dlsym(handle, "roctxRangePop");
    start = (decltype(start))dlsym(handle, "roctxRangeStartA");
    stop = (decltype(stop))dlsym(handle, "roctxRangeStop");
  }

  void find(const std::string& how) {
    bool any = how == "auto";
    if (any || how == "weak") *this = {roctxMarkA, roctxRangePushA, roctxRangePop, roctxRangeStartA, roctxRangeStop};
    if (!complete() && (any || how == "dlsym")) from(RTLD_DEFAULT);
    if (!complete() && (any || how == "dlopen"))
      for (const char* name : {"libroctx64.so.4", "libroctx64.so", "librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so"})
        if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
          from(handle);
          if (complete()) break;
        }
    if (!complete()) *this = {};
  }
};

static Roctx roctx;

static void mark(const char* text) {
  if (!roctx.mark) return;
  APP_COUNT("roctxMarkA", 1);
  roctx.mark(text);
}

static uint64_t start(const char* text) {
  if (!roctx.start) return 0;
  APP_COUNT("roctxRangeStartA", 1);
  return roctx.start(text);
}

static void stop(uint64_t id) {
  if (!roctx.stop) return;
  APP_COUNT("roctxRangeStop", 1);
  roctx.stop(id);
}

struct Range {
  explicit Range(const char* text) {
    if (!roctx.push) return;
    APP_COUNT("roctxRangePushA", 1);
    roctx.push(text);
  }
  ~Range() {
    if (!roctx.pop) return;
    APP_COUNT("roctxRangePop", 1);
    roctx.pop();
  }
};

// ---- Kernels: plain, template, in a namespace, with static and dynamic LDS, with many arguments, one never launched.

__global__ void plain(int* p) {
  if (p) p[threadIdx.x] = int(threadIdx.x);
}

template <typename T>
__global__ void scale(T* p, T factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= factor;
}

namespace math {
template <int Tile, typename T>
__global__ void tiled(T* out, const T* in) {
  __shared__ T t[Tile][Tile + 1];
  int x = threadIdx.x, y = threadIdx.y;
  t[y][x] = in[y * Tile + x];
  __syncthreads();
  out[y * Tile + x] = t[x][y];
}

namespace {
__global__ void hidden(int* p) {
  if (p) p[0] = 1;
}
}  // namespace
}  // namespace math

struct Big {
  double values[16];
};

__global__ void many_arguments(Big big, char c, short s, float f, int* p, const Big* q) {
  extern __shared__ double dynamic[];
  dynamic[threadIdx.x] = big.values[threadIdx.x % 16] + c + s + f;
  __syncthreads();
  if (p && q) p[threadIdx.x] = int(dynamic[0] + q->values[0]);
}

__global__ __launch_bounds__(64) void uses_scratch(int* p, int n) {
  int local[200];
  for (int i = 0; i < 200; i++) local[i] = i * n;
  if (p) p[threadIdx.x] = local[(threadIdx.x * n) % 200];
}

__global__ void never_launched(int* p) { p[0] = 0; }

__device__ int device_symbol[64];
__constant__ int constant_symbol[64];

constexpr int n = 1 << 16;
constexpr size_t bytes = n * sizeof(float);

static void same(const void* a, const void* b, size_t size, const char* what) {
  if (std::memcmp(a, b, size)) app::fail(what);
}

static void fails(hipError_t e, hipError_t wanted, const char* what) {
  if (e != wanted) {
    std::fprintf(stderr, "%s returned %d, not %d\n", what, (int)e, (int)wanted);
    app::fail(what);
  }
}

// ---- The tour.

static int has(hipDeviceAttribute_t attribute) {
  int value = 0;
  OK(hipDeviceGetAttribute, &value, attribute, 0);
  return value;
}

static void devices() {
  Range range("devices");
  int count = 0, device = -1, version = 0;
  OK(hipInit, 0);
  OK(hipGetDeviceCount, &count);
  OK(hipSetDevice, 0);
  OK(hipGetDevice, &device);
  if (count < 1 || device != 0) app::fail("device");
  OK(hipRuntimeGetVersion, &version);
  OK(hipDriverGetVersion, &version);
  hipDeviceProp_t properties;
  OK(hipGetDeviceProperties, &properties, 0);
  char name[64], bus[64];
  hipDevice_t handle;
  OK(hipDeviceGet, &handle, 0);
  OK(hipDeviceGetName, name, sizeof name, handle);
  OK(hipDeviceGetPCIBusId, bus, sizeof bus, 0);
  OK(hipDeviceGetByPCIBusId, &device, bus);
  size_t memory = 0, available = 0;
  OK(hipDeviceTotalMem, &memory, handle);
  OK(hipMemGetInfo, &available, &memory);
  int major = 0, minor = 0;
  OK(hipDeviceComputeCapability, &major, &minor, handle);
  unsigned flags = 0;
  OK(hipGetDeviceFlags, &flags);
  int low = 0, high = 0;
  OK(hipDeviceGetStreamPriorityRange, &low, &high);
  size_t limit = 0;
  OK(hipDeviceGetLimit, &limit, hipLimitMallocHeapSize);
  if (has(hipDeviceAttributeWarpSize) < 32) app::fail("warp size");
  for (int peer = 1; peer < count; peer++) {
    int can = 0;
    OK(hipDeviceCanAccessPeer, &can, 0, peer);
  }
}

static void launches(hipStream_t stream, float* a, float* b) {
  Range range("launches");
  for (int i = 0; i < 3; i++) {
    Range inner(i == 1 ? "middle \"quoted\", with comma" : "step");
    LAUNCH((scale<float>), dim3((n + 255) / 256), dim3(256), 0, stream, a, 2.0f, n);
    LAUNCH((math::tiled<16, float>), dim3(4, 2, 1), dim3(16, 16, 1), 0, stream, b, a);
  }
  LAUNCH(plain, 1, 64, 0, stream, nullptr);
  LAUNCH(math::hidden, dim3(2, 3, 4), dim3(8, 4, 2), 0, stream, nullptr);
  LAUNCH(many_arguments, 2, 128, 2048, stream, Big{}, 'c', short(2), 3.0f, nullptr, nullptr);
  LAUNCH(uses_scratch, 3, 64, 0, stream, nullptr, 5);
  OK(hipGetLastError);
  OK(hipPeekAtLastError);

  // The same kernel through the other launch functions.
  int* none = nullptr;
  void* arguments[] = {&none};
  OK(hipLaunchKernel, (const void*)plain, dim3(5), dim3(64), arguments, 0, stream);
  OK(hipExtLaunchKernel, (const void*)plain, dim3(6), dim3(64), arguments, 0, stream, nullptr, nullptr, 0);
}

static void copies(hipStream_t stream, float* a, float* b) {
  Range range("copies");
  std::vector<float> in(n), out(n);
  for (int i = 0; i < n; i++) in[i] = float(i);
  float *pinned, *device_view;
  OK(hipHostMalloc, &pinned, bytes, hipHostMallocMapped);
  OK(hipHostGetDevicePointer, (void**)&device_view, pinned, 0);
  unsigned flags = 0;
  OK(hipHostGetFlags, &flags, pinned);

  OK(hipMemcpy, a, in.data(), bytes, hipMemcpyHostToDevice);
  OK(hipMemcpy, b, a, bytes, hipMemcpyDeviceToDevice);
  OK(hipMemcpy, out.data(), b, bytes, hipMemcpyDeviceToHost);
  same(in.data(), out.data(), bytes, "hipMemcpy");
  OK(hipMemcpy, pinned, out.data(), bytes, hipMemcpyHostToHost);

  OK(hipMemsetAsync, b, 0, bytes, stream);
  OK(hipMemcpyAsync, a, pinned, bytes / 2, hipMemcpyHostToDevice, stream);
  OK(hipMemcpyAsync, b, a, bytes / 2, hipMemcpyDeviceToDevice, stream);
  OK(hipMemcpyAsync, out.data(), b, bytes, hipMemcpyDeviceToHost, stream);
  OK(hipStreamSynchronize, stream);
  same(in.data(), out.data(), bytes / 2, "hipMemcpyAsync");
  if (out[n - 1] != 0) app::fail("hipMemsetAsync");

  OK(hipMemcpyHtoD, (hipDeviceptr_t)a, in.data(), 1000);
  OK(hipMemcpyHtoDAsync, (hipDeviceptr_t)b, in.data(), 1000, stream);
  OK(hipMemcpyDtoDAsync, (hipDeviceptr_t)b, (hipDeviceptr_t)a, 1000, stream);
  OK(hipMemcpyDtoHAsync, out.data(), (hipDeviceptr_t)b, 1000, stream);
  OK(hipStreamSynchronize, stream);
  same(in.data(), out.data(), 1000, "hipMemcpyDtoHAsync");
  OK(hipMemcpyWithStream, out.data(), a, 1000, hipMemcpyDeviceToHost, stream);

  OK(hipMemset, a, 7, bytes);
  OK(hipMemsetD8, (hipDeviceptr_t)a, 8, 100);
  OK(hipMemsetD16, (hipDeviceptr_t)a, 9, 100);
  OK(hipMemsetD32, (hipDeviceptr_t)a, 10, 100);
  OK(hipMemset2D, b, 1024, 11, 512, 16);

  void* pitched;
  size_t pitch = 0;
  OK(hipMallocPitch, &pitched, &pitch, 1000, 32);
  OK(hipMemcpy2D, pitched, pitch, in.data(), 1000, 1000, 32, hipMemcpyHostToDevice);
  OK(hipMemcpy2DAsync, out.data(), 1000, pitched, pitch, 1000, 32, hipMemcpyDeviceToHost, stream);
  OK(hipStreamSynchronize, stream);
  same(in.data(), out.data(), 32000, "hipMemcpy2D");
  OK(hipFree, pitched);

  int numbers[64], back[64];
  for (int i = 0; i < 64; i++) numbers[i] = i * i;
  void* address = nullptr;
  size_t size = 0;
  OK(hipGetSymbolAddress, &address, HIP_SYMBOL(device_symbol));
  OK(hipGetSymbolSize, &size, HIP_SYMBOL(device_symbol));
  if (size != sizeof numbers) app::fail("hipGetSymbolSize");
  OK(hipMemcpyToSymbol, HIP_SYMBOL(device_symbol), numbers, sizeof numbers, 0, hipMemcpyHostToDevice);
  OK(hipMemcpyFromSymbol, back, HIP_SYMBOL(device_symbol), sizeof back, 0, hipMemcpyDeviceToHost);
  same(numbers, back, sizeof back, "device symbol");
  OK(hipMemcpyToSymbolAsync, HIP_SYMBOL(constant_symbol), numbers, sizeof numbers, 0, hipMemcpyHostToDevice, stream);
  OK(hipMemcpyFromSymbolAsync, back, HIP_SYMBOL(constant_symbol), sizeof back, 0, hipMemcpyDeviceToHost, stream);
  OK(hipStreamSynchronize, stream);
  same(numbers, back, sizeof back, "constant symbol");
  OK(hipHostFree, pinned);
}

static void memory(hipStream_t stream, float* a) {
  Range range("memory");
  hipPointerAttribute_t attributes;
  OK(hipPointerGetAttributes, &attributes, a + 100);
  hipDeviceptr_t base = nullptr;
  size_t size = 0;
  OK(hipMemGetAddressRange, &base, &size, (hipDeviceptr_t)(a + 100));
  if ((float*)base != a || size != bytes) app::fail("hipMemGetAddressRange");
  size = 0;
  OK(hipMemPtrGetInfo, a, &size);

  std::vector<char> own(1 << 16);
  void* view = nullptr;
  OK(hipHostRegister, own.data(), own.size(), hipHostRegisterDefault);
  OK(hipHostGetDevicePointer, &view, own.data(), 0);
  OK(hipMemcpyAsync, a, own.data(), own.size(), hipMemcpyHostToDevice, stream);
  OK(hipStreamSynchronize, stream);
  OK(hipHostUnregister, own.data());

  // Not every system has fine-grained device memory.
  void* fine;
  if (CALL(hipExtMallocWithFlags, &fine, 4096, hipDeviceMallocFinegrained) == hipSuccess) OK(hipFree, fine);

  if (has(hipDeviceAttributeManagedMemory)) {
    int* managed;
    OK(hipMallocManaged, &managed, 1 << 16, hipMemAttachGlobal);
    for (int i = 0; i < 1000; i++) managed[i] = i;
    CALL(hipMemAdvise, managed, 1 << 16, hipMemAdviseSetReadMostly, 0);
    CALL(hipMemPrefetchAsync, managed, 1 << 16, 0, stream);
    LAUNCH(plain, 1, 64, 0, stream, nullptr);
    OK(hipStreamSynchronize, stream);
    for (int i = 0; i < 1000; i++)
      if (managed[i] != i) app::fail("managed memory");
    OK(hipFree, managed);
  }

  if (has(hipDeviceAttributeMemoryPoolsSupported)) {
    hipMemPool_t pool;
    OK(hipDeviceGetDefaultMemPool, &pool, 0);
    void* ordered;
    OK(hipMallocAsync, &ordered, bytes, stream);
    OK(hipMemsetAsync, ordered, 1, bytes, stream);
    std::vector<char> out(bytes);
    OK(hipMemcpyAsync, out.data(), ordered, bytes, hipMemcpyDeviceToHost, stream);
    OK(hipStreamSynchronize, stream);
    if (out.front() != 1 || out.back() != 1) app::fail("stream-ordered memory");
#if HIP_VERSION >= 50300000
    OK(hipFreeAsync, ordered, stream);
    OK(hipStreamSynchronize, stream);
    OK(hipMemPoolTrimTo, pool, 0);
#else
    // On 5.2.3, hipStreamDestroy never returns after hipFreeAsync.
    OK(hipFree, ordered);
#endif
  }
}

static int callbacks = 0;

[[maybe_unused]] static void host_function(void*) { callbacks++; }
static void stream_callback(hipStream_t, hipError_t, void*) { callbacks++; }

static void streams_and_events(hipStream_t one, hipStream_t two) {
  Range range("streams and events");
  hipEvent_t begin, end, quiet;
  OK(hipEventCreate, &begin);
  OK(hipEventCreate, &end);
  OK(hipEventCreateWithFlags, &quiet, hipEventDisableTiming);
  OK(hipEventRecord, begin, one);
  LAUNCH(plain, 8, 64, 0, one, nullptr);
  OK(hipEventRecord, end, one);
  OK(hipEventRecord, quiet, one);
  OK(hipStreamWaitEvent, two, quiet, 0);
  LAUNCH(plain, 9, 64, 0, two, nullptr);
  OK(hipStreamAddCallback, two, stream_callback, nullptr, 0);
#if HIP_VERSION >= 50300000  // 5.2.3 declares it and does not export it
  OK(hipLaunchHostFunc, two, host_function, nullptr);
#endif
  OK(hipStreamSynchronize, two);
  OK(hipEventSynchronize, end);
  OK(hipEventQuery, end);
  float ms = -1;
  OK(hipEventElapsedTime, &ms, begin, end);
  if (ms < 0) app::fail("hipEventElapsedTime");
  OK(hipExtLaunchKernel, (const void*)math::hidden, dim3(1), dim3(64), std::vector<void*>{&begin}.data(), 0, one, begin, end, 0);
  OK(hipStreamSynchronize, one);
  OK(hipStreamQuery, one);
  OK(hipEventDestroy, begin);
  OK(hipEventDestroy, end);
  OK(hipEventDestroy, quiet);
  if (callbacks != 1 + (HIP_VERSION >= 50300000)) app::fail("callbacks");

  // Not from two threads at once: if both make the first call, 7.2.4 sometimes crashes in hsa_shut_down at exit.
  if (has(hipDeviceAttributeCooperativeLaunch)) {
    int* none = nullptr;
    void* arguments[] = {&none};
    OK(hipLaunchCooperativeKernel, (const void*)plain, dim3(7), dim3(64), arguments, 0u, one);
    OK(hipStreamSynchronize, one);
  }

  unsigned flags = 0;
  int priority = 0;
  OK(hipStreamGetFlags, one, &flags);
  OK(hipStreamGetPriority, one, &priority);
  hipStream_t other;
  OK(hipStreamCreateWithFlags, &other, hipStreamNonBlocking);
  LAUNCH(plain, 10, 64, 0, other, nullptr);
  OK(hipStreamSynchronize, other);
  OK(hipStreamDestroy, other);
  OK(hipStreamCreateWithPriority, &other, hipStreamDefault, 0);
  LAUNCH(plain, 11, 64, 0, other, nullptr);
  OK(hipStreamDestroy, other);
  LAUNCH(plain, 12, 64, 0, hipStreamPerThread, nullptr);
  OK(hipStreamSynchronize, hipStreamPerThread);
}

static void graphs(hipStream_t stream, float* a) {
  Range range("graphs");
  hipGraph_t graph;
  hipGraphExec_t exec;
  hipStreamCaptureStatus status;
  OK(hipStreamBeginCapture, stream, hipStreamCaptureModeThreadLocal);
  OK(hipStreamIsCapturing, stream, &status);
  for (int i = 0; i < 4; i++) LAUNCH(plain, 2 + i, 32, 0, stream, nullptr);
  OK(hipStreamEndCapture, stream, &graph);
  size_t nodes = 0;
  OK(hipGraphGetNodes, graph, nullptr, &nodes);
  if (nodes != 4) app::fail("hipGraphGetNodes");
  OK(hipGraphInstantiate, &exec, graph, nullptr, nullptr, 0);
  for (int i = 0; i < 2; i++) OK(hipGraphLaunch, exec, stream);
  OK(hipStreamSynchronize, stream);
  OK(hipGraphExecDestroy, exec);
  OK(hipGraphDestroy, graph);

  // One built by hand: a kernel, then a copy.
  OK(hipGraphCreate, &graph, 0);
  int* none = nullptr;
  void* arguments[] = {&none};
  hipKernelNodeParams kernel = {};
  kernel.func = (void*)plain;
  kernel.gridDim = dim3(13);
  kernel.blockDim = dim3(64);
  kernel.kernelParams = arguments;
  hipGraphNode_t first, second;
  OK(hipGraphAddKernelNode, &first, graph, nullptr, 0, &kernel);
  std::vector<float> host(n, 1.5f);
  OK(hipGraphAddMemcpyNode1D, &second, graph, &first, 1, a, host.data(), bytes, hipMemcpyHostToDevice);
  OK(hipGraphInstantiate, &exec, graph, nullptr, nullptr, 0);
  OK(hipGraphLaunch, exec, stream);
  OK(hipStreamSynchronize, stream);
  OK(hipGraphExecDestroy, exec);
  OK(hipGraphDestroy, graph);
}

static void modules(hipStream_t stream, const std::string& file) {
  Range range("modules");
  hipFuncAttributes attributes;
  OK(hipFuncGetAttributes, &attributes, (const void*)uses_scratch);
  OK(hipFuncGetAttributes, &attributes, (const void*)never_launched);
  int blocks = 0, size = 0;
  OK(hipOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, (const void*)plain, 256, 0);
  OK(hipOccupancyMaxPotentialBlockSize, &blocks, &size, (const void*)plain, 0, 0);

  std::ifstream in(file, std::ios::binary);
  if (!in) app::fail("module_kernels.hsaco is not beside the program");
  std::vector<char> code((std::istreambuf_iterator<char>(in)), {});
  for (int i = 0; i < 2; i++) {
    hipModule_t module;
    hipFunction_t add, empty;
    if (i == 0)
      OK(hipModuleLoad, &module, file.c_str());
    else
      OK(hipModuleLoadData, &module, code.data());
    OK(hipModuleGetFunction, &add, module, "module_add");
    OK(hipModuleGetFunction, &empty, module, "module_empty");
    int value = 0;
    OK(hipFuncGetAttribute, &value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add);
    OK(hipModuleOccupancyMaxPotentialBlockSize, &blocks, &size, add, 0, 0);
    hipDeviceptr_t global = nullptr;
    size_t global_size = 0;
    OK(hipModuleGetGlobal, &global, &global_size, module, "module_global");
    if (global_size != 64) app::fail("hipModuleGetGlobal");
    void* arguments[] = {&global, &value};
    OK(hipModuleLaunchKernel, add, 2, 1, 1, 8, 1, 1, 0, stream, arguments, nullptr);
    OK(hipExtModuleLaunchKernel, empty, 512, 2, 1, 64, 1, 1, 0, stream, nullptr, nullptr, nullptr, nullptr, 0);
    OK(hipStreamSynchronize, stream);
    fails(CALL(hipModuleGetFunction, &add, module, "no_such_kernel"), hipErrorNotFound, "hipModuleGetFunction");
    OK(hipModuleUnload, module);
  }
}

static void failures() {
  Range range("failures");
  void* p = nullptr;
  int value = 0;
  fails(CALL(hipMalloc, &p, (size_t)1 << 50), hipErrorOutOfMemory, "hipMalloc");
  fails(CALL(hipGetLastError), hipErrorOutOfMemory, "hipGetLastError");
  fails(CALL(hipSetDevice, 99), hipErrorInvalidDevice, "hipSetDevice");
  fails(CALL(hipDeviceGetAttribute, &value, hipDeviceAttributeWarpSize, 99), hipErrorInvalidDevice, "hipDeviceGetAttribute");
  fails(CALL(hipMemcpy, nullptr, nullptr, 16, hipMemcpyHostToDevice), hipErrorInvalidValue, "hipMemcpy");
  OK(hipFree, nullptr);
  CALL(hipGetErrorName, hipErrorOutOfMemory);
  CALL(hipGetErrorString, hipErrorOutOfMemory);
  CALL(hipGetLastError);
}

int main(int argc, char** argv) {
  std::string how = "auto", only;
  for (int i = 1; i < argc; i++) {
    if (!std::strncmp(argv[i], "--roctx=", 8))
      how = argv[i] + 8;
    else if (!std::strncmp(argv[i], "--only=", 7))
      only = "," + std::string(argv[i] + 7) + ",";
    else
      app::fail("usage: api_tour [--roctx=HOW] [--only=PART,...]");
  }
  auto part = [&](const char* name) {
    bool wanted = only.empty() || only.find("," + std::string(name) + ",") != std::string::npos;
    if (wanted) std::puts(name);
    return wanted;
  };
  roctx.find(how);
  std::string program = argv[0];
  size_t slash = program.rfind('/');
  std::string beside = (slash == std::string::npos ? "." : program.substr(0, slash)) + "/module_kernels.hsaco";

  mark("before the first HIP call");
  uint64_t whole = start("whole program");
  devices();

  float *a, *b;
  hipStream_t one, two;
  OK(hipMalloc, &a, bytes);
  OK(hipMalloc, &b, bytes);
  OK(hipStreamCreate, &one);
  OK(hipStreamCreate, &two);

  // Two threads, a stream each; each has its own stack of ranges.
  if (part("launches")) {
    std::thread first([&] {
      OK(hipSetDevice, 0);
      Range range("first thread");
      launches(one, a, b);
      OK(hipStreamSynchronize, one);
    });
    std::thread second([&] {
      OK(hipSetDevice, 0);
      Range range("second thread");
      launches(two, b, a);
      OK(hipStreamSynchronize, two);
    });
    first.join();
    second.join();
  }
  if (part("copies")) copies(one, a, b);
  if (part("memory")) memory(one, a);
  if (part("events")) streams_and_events(one, two);
  if (part("graphs")) graphs(two, a);
  if (part("modules")) modules(one, beside);
  if (part("failures")) failures();

  OK(hipDeviceSynchronize);
  OK(hipStreamDestroy, one);
  OK(hipStreamDestroy, two);
  OK(hipFree, a);
  OK(hipFree, b);
  mark("end");
  stop(whole);
  std::puts("api_tour: done");
  app::finish();
}
