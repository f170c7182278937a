// Exercises the driver's work other than plain launches, and compares every byte that a copy or a fill moved:
// graphs, events and waits between streams, registered, managed and stream-ordered memory, stream values, cooperative
// launches, host functions, sixty-four streams, copies between GPUs, and virtual memory management where it exists.
//
//   features [ROUNDS=1]
//
// Kernels write nothing that is checked: the emulated GPU does not execute them.
#include "count.hpp"

#include <atomic>
#include <vector>

__global__ void touch(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += 0;
}

static constexpr size_t N = 300001;

static std::vector<unsigned char> noise(unsigned seed) {
  std::vector<unsigned char> v(N);
  for (auto& b : v) b = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
  return v;
}

static void same(const void* a, const void* b, size_t n, const char* what) {
  if (std::memcmp(a, b, n) != 0) app::fail(what);
}

static void graphs() {
  unsigned char *in, *out, *a, *b;
  OK(hipHostMalloc, (void**)&in, N, hipHostMallocDefault);
  OK(hipHostMalloc, (void**)&out, N, hipHostMallocDefault);
  OK(hipMalloc, (void**)&a, N);
  OK(hipMalloc, (void**)&b, N);
  hipStream_t s;
  OK(hipStreamCreate, &s);
  hipGraph_t graph;
  hipGraphExec_t exec;
  OK(hipStreamBeginCapture, s, hipStreamCaptureModeGlobal);
  OK(hipMemcpyAsync, a, in, N, hipMemcpyHostToDevice, s);
  LAUNCH(touch, 64, 64, 0, s, (int*)a, 4096);
  OK(hipMemsetAsync, b, 0x11, N, s);
  OK(hipMemcpyAsync, b, a, N - 100, hipMemcpyDeviceToDevice, s);
  OK(hipMemcpyAsync, out, b, N, hipMemcpyDeviceToHost, s);
  OK(hipStreamEndCapture, s, &graph);
  OK(hipGraphInstantiate, &exec, graph, nullptr, nullptr, 0);
  for (unsigned round = 0; round < 5; round++) {
    auto v = noise(round);
    std::memcpy(in, v.data(), N);
    std::memset(out, 0, N);
    OK(hipGraphLaunch, exec, s);
    OK(hipStreamSynchronize, s);
    std::memset(v.data() + N - 100, 0x11, 100);
    same(out, v.data(), N, "graph");
  }
  OK(hipGraphExecDestroy, exec);
  OK(hipGraphDestroy, graph);
  OK(hipStreamDestroy, s);
  OK(hipFree, a);
  OK(hipFree, b);
  OK(hipHostFree, in);
  OK(hipHostFree, out);
}

static void events_between_streams() {
  const int links = 8;
  auto v = noise(7);
  std::vector<unsigned char> out(N);
  unsigned char* d[links];
  hipStream_t s[links];
  hipEvent_t e[links], first, last;
  OK(hipEventCreate, &first);
  OK(hipEventCreate, &last);
  for (int i = 0; i < links; i++) {
    OK(hipMalloc, (void**)&d[i], N);
    OK(hipStreamCreateWithFlags, &s[i], hipStreamNonBlocking);
    OK(hipEventCreateWithFlags, &e[i], hipEventDisableTiming);
  }
  OK(hipEventRecord, first, s[0]);
  OK(hipMemcpyAsync, d[0], v.data(), N, hipMemcpyHostToDevice, s[0]);
  for (int i = 1; i < links; i++) {
    LAUNCH(touch, 64, 64, 0, s[i - 1], (int*)d[i - 1], 4096);
    OK(hipEventRecord, e[i - 1], s[i - 1]);
    OK(hipStreamWaitEvent, s[i], e[i - 1], 0);
    OK(hipMemcpyAsync, d[i], d[i - 1], N, hipMemcpyDeviceToDevice, s[i]);
  }
  OK(hipEventRecord, last, s[links - 1]);
  OK(hipMemcpyAsync, out.data(), d[links - 1], N, hipMemcpyDeviceToHost, s[links - 1]);
  OK(hipStreamSynchronize, s[links - 1]);
  same(out.data(), v.data(), N, "a chain of copies over streams");
  float ms = -1;
  OK(hipEventSynchronize, last);
  OK(hipEventElapsedTime, &ms, first, last);
  if (!(ms > 0) || ms > 60000) app::fail("elapsed time of the chain");
  for (int i = 0; i < links; i++) {
    OK(hipFree, d[i]);
    OK(hipStreamDestroy, s[i]);
    OK(hipEventDestroy, e[i]);
  }
  OK(hipEventDestroy, first);
  OK(hipEventDestroy, last);
}

static void registered_memory() {
  std::vector<unsigned char> host(N + 4096), out(N);
  auto v = noise(9);
  unsigned char* p = host.data() + 123;
  std::memcpy(p, v.data(), N);
  OK(hipHostRegister, p, N, hipHostRegisterDefault);
  unsigned char *d, *seen;
  OK(hipMalloc, (void**)&d, N);
  OK(hipHostGetDevicePointer, (void**)&seen, p, 0);
  OK(hipMemcpy, d, p, N, hipMemcpyHostToDevice);
  OK(hipMemset, d, 0x22, 1000);
  OK(hipMemcpy, p, d, N, hipMemcpyDeviceToHost);
  std::memset(v.data(), 0x22, 1000);
  same(p, v.data(), N, "registered memory");
  OK(hipHostUnregister, p);
  OK(hipFree, d);
}

static void managed_memory() {
  unsigned char *m, *d;
  OK(hipMallocManaged, (void**)&m, N, hipMemAttachGlobal);
  OK(hipMalloc, (void**)&d, N);
  auto v = noise(11);
  std::memcpy(m, v.data(), N);
  OK(hipMemAdvise, m, N, hipMemAdviseSetReadMostly, 0);
  OK(hipMemPrefetchAsync, m, N, 0, 0);
  OK(hipMemcpy, d, m, N, hipMemcpyDefault);
  OK(hipMemset, m, 0, N);
  OK(hipDeviceSynchronize);
  for (size_t i = 0; i < N; i++)
    if (m[i]) app::fail("managed memory after a fill");
  OK(hipMemcpy, m, d, N, hipMemcpyDefault);
  app::arrived();
  same(m, v.data(), N, "managed memory");
  OK(hipFree, m);
  OK(hipFree, d);
}

static void stream_ordered_memory() {
  int supported = 0;
  OK(hipDeviceGetAttribute, &supported, hipDeviceAttributeMemoryPoolsSupported, 0);
  if (!supported) return;
  std::vector<unsigned char> out(N);
  for (unsigned round = 0; round < 5; round++) {
    auto v = noise(round + 20);
    void *a, *b;
    OK(hipMallocAsync, &a, N, 0);
    OK(hipMallocAsync, &b, N, 0);
    OK(hipMemcpyAsync, a, v.data(), N, hipMemcpyHostToDevice, 0);
    OK(hipMemcpyAsync, b, a, N, hipMemcpyDeviceToDevice, 0);
    OK(hipMemcpyAsync, out.data(), b, N, hipMemcpyDeviceToHost, 0);
    OK(hipFreeAsync, a, 0);
    OK(hipFreeAsync, b, 0);
    OK(hipStreamSynchronize, 0);
    same(out.data(), v.data(), N, "stream-ordered memory");
  }
}

static void stream_values() {
  int supported = 0;
  OK(hipDeviceGetAttribute, &supported, hipDeviceAttributeCanUseStreamWaitValue, 0);
  if (!supported) return;
  void* word;
  OK(hipExtMallocWithFlags, &word, 8, hipMallocSignalMemory);
  *(volatile uint64_t*)word = 0;
  hipStream_t writer, waiter;
  OK(hipStreamCreateWithFlags, &writer, hipStreamNonBlocking);
  OK(hipStreamCreateWithFlags, &waiter, hipStreamNonBlocking);
  OK(hipStreamWaitValue64, waiter, word, 42, hipStreamWaitValueEq, ~0ull);
  LAUNCH(touch, 1, 64, 0, waiter, (int*)nullptr, 0);
  if (CALL(hipStreamQuery, waiter) != hipErrorNotReady) app::fail("a stream went on before its value");
  OK(hipStreamWriteValue64, writer, word, 42, 0);
  OK(hipStreamSynchronize, writer);
  OK(hipStreamSynchronize, waiter);
  OK(hipStreamDestroy, writer);
  OK(hipStreamDestroy, waiter);
  OK(hipFree, word);
}

static void cooperative_and_host() {
  int supported = 0;
  OK(hipDeviceGetAttribute, &supported, hipDeviceAttributeCooperativeLaunch, 0);
  int *p = nullptr, n = 0;
  void* args[] = {&p, &n};
  hipStream_t s;
  OK(hipStreamCreate, &s);
  for (int i = 0; supported && i < 10; i++)
    OK(hipLaunchCooperativeKernel, (const void*)touch, dim3(4), dim3(64), args, 0u, s);
  std::atomic<int> calls{0};
  for (int i = 0; i < 10; i++) {
    LAUNCH(touch, 1, 64, 0, s, p, n);
    OK(hipStreamAddCallback, s, [](hipStream_t, hipError_t, void* c) { ++*(std::atomic<int>*)c; }, &calls, 0u);
  }
  OK(hipStreamSynchronize, s);
  if (calls != 10) app::fail("host functions");
  OK(hipStreamDestroy, s);
}

static void many_streams() {
  const int count = 64;
  hipStream_t s[count];
  unsigned char *d[count], *h[count];
  for (int i = 0; i < count; i++) {
    OK(hipStreamCreateWithFlags, &s[i], hipStreamNonBlocking);
    OK(hipMalloc, (void**)&d[i], 4096);
    OK(hipHostMalloc, (void**)&h[i], 8192, hipHostMallocDefault);
    std::memset(h[i], i + 1, 4096);
  }
  for (int round = 0; round < 4; round++)
    for (int i = 0; i < count; i++) {
      OK(hipMemcpyAsync, d[i], h[i], 4096, hipMemcpyHostToDevice, s[i]);
      LAUNCH(touch, 4, 64, 0, s[i], (int*)d[i], 256);
      OK(hipMemcpyAsync, h[i] + 4096, d[i], 4096, hipMemcpyDeviceToHost, s[i]);
    }
  OK(hipDeviceSynchronize);
  for (int i = 0; i < count; i++) {
    same(h[i], h[i] + 4096, 4096, "sixty-four streams");
    OK(hipStreamDestroy, s[i]);
    OK(hipFree, d[i]);
    OK(hipHostFree, h[i]);
  }
}

static void between_gpus() {
  int count = 0;
  OK(hipGetDeviceCount, &count);
  auto v = noise(31);
  std::vector<unsigned char> out(N);
  for (int to = 1; to < count; to++) {
    unsigned char *a, *b;
    OK(hipSetDevice, 0);
    OK(hipMalloc, (void**)&a, N);
    OK(hipMemcpy, a, v.data(), N, hipMemcpyHostToDevice);
    OK(hipSetDevice, to);
    OK(hipMalloc, (void**)&b, N);
    LAUNCH(touch, 64, 64, 0, 0, (int*)b, 4096);
    OK(hipMemcpyPeer, b, to, a, 0, N);
    std::memset(out.data(), 0, N);
    OK(hipMemcpy, out.data(), b, N, hipMemcpyDeviceToHost);
    app::arrived();
    same(out.data(), v.data(), N, "a copy between GPUs");
    OK(hipFree, b);
    OK(hipSetDevice, 0);
    OK(hipFree, a);
  }
}

static bool virtual_memory() {
#if HIP_VERSION_MAJOR >= 6
  int supported = 0;
  if (CALL(hipDeviceGetAttribute, &supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0) != hipSuccess || !supported)
    return false;
  hipMemAllocationProp prop = {};
  prop.type = hipMemAllocationTypePinned;
  prop.location.type = hipMemLocationTypeDevice;
  prop.location.id = 0;
  size_t grain = 0;
  OK(hipMemGetAllocationGranularity, &grain, &prop, hipMemAllocationGranularityMinimum);
  size_t size = (N / 2 + grain) / grain * grain;
  void* base;
  hipMemGenericAllocationHandle_t half[2];
  OK(hipMemAddressReserve, &base, 2 * size, 0, nullptr, 0);
  for (int i = 0; i < 2; i++) {
    OK(hipMemCreate, &half[i], size, &prop, 0);
    OK(hipMemMap, (char*)base + i * size, size, 0, half[i], 0);
  }
  hipMemAccessDesc access = {};
  access.location = prop.location;
  access.flags = hipMemAccessFlagsProtReadWrite;
  OK(hipMemSetAccess, base, 2 * size, &access, 1);
  auto v = noise(41);
  std::vector<unsigned char> out(N);
  OK(hipMemcpy, base, v.data(), N, hipMemcpyHostToDevice);
  OK(hipMemcpy, out.data(), base, N, hipMemcpyDeviceToHost);
  app::arrived();
  same(out.data(), v.data(), N, "a copy over two mapped handles");
  OK(hipMemUnmap, base, size);
  OK(hipMemUnmap, (char*)base + size, size);
  for (auto handle : half) OK(hipMemRelease, handle);
  OK(hipMemAddressFree, base, 2 * size);
  return true;
#else
  return false;
#endif
}

int main(int argc, char** argv) {
  long rounds = app::arg(argc, argv, 1, 1);
  bool mapped = false;
  for (long i = 0; i < rounds; i++) {
    graphs();
    events_between_streams();
    registered_memory();
    managed_memory();
    stream_ordered_memory();
    stream_values();
    cooperative_and_host();
    many_streams();
    between_gpus();
    mapped = virtual_memory();
  }
  app::finish();
  std::printf("features: rounds %ld, every byte verified%s\n", rounds, mapped ? ", virtual memory too" : "");
  return 0;
}
