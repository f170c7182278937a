// Streams, devices and copies beside the usual ones: streams for a few operations each, with priorities and compute units of
// their own, webs of events, boxes, fills of all widths, copies between devices, kernels over several devices, streams whose
// threads have ended.
//
//   streams [ROUNDS=2]
//
// Kernels write nothing that is checked; what copies and fills move is compared.
#include "count.hpp"
#include <hip/hip_ext.h>

#include <thread>
#include <vector>

__global__ void touch(int* p, int n) {
  if (threadIdx.x < (unsigned)n) p[threadIdx.x] += 0;
}
__global__ void cooperate(int* p) { p[threadIdx.x] += 1; }

static void short_lived(long rounds) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([=] {
      int* p;
      OK(hipMalloc, (void**)&p, 4096);
      std::vector<int> in(1024, t), out(1024);
      for (long i = 0; i < 15 * rounds; i++) {
        hipStream_t s;
        if (i % 3 == 0) OK(hipStreamCreate, &s);
        else if (i % 3 == 1) OK(hipStreamCreateWithFlags, &s, hipStreamNonBlocking);
        else OK(hipStreamCreateWithPriority, &s, hipStreamNonBlocking, (int)(i % 2) - 1);
        OK(hipMemcpyAsync, p, in.data(), 4096, hipMemcpyHostToDevice, s);
        for (int k = 0; k < 5; k++) LAUNCH(touch, 1 + k, 64, 0, s, p, 64);
        OK(hipMemcpyAsync, out.data(), p, 4096, hipMemcpyDeviceToHost, s);
        OK(hipStreamSynchronize, s);
        if (in != out) app::fail("short-lived stream");
        LAUNCH(touch, 9, 64, 0, s, p, 64);
        // With work under way.
        OK(hipStreamDestroy, s);
      }
      OK(hipDeviceSynchronize);
      OK(hipFree, p);
    });
  for (auto& t : threads) t.join();
}

static void masked(long rounds) {
  uint32_t mask[] = {0x0000ffff};
  hipStream_t s;
  OK(hipExtStreamCreateWithCUMask, &s, 1, mask);
  uint32_t got[2] = {};
  OK(hipExtStreamGetCUMask, s, 2, got);
  int* p;
  OK(hipMalloc, (void**)&p, 4096);
  for (long i = 0; i < 20 * rounds; i++) LAUNCH(touch, 1 + i % 4, 64, 0, s, p, 64);
  OK(hipStreamSynchronize, s);
  // Not destroyed: its queue is its own, and 7.2.4 may destroy that in HSA's callback thread, which then waits for itself.
  OK(hipFree, p);
}

static void web(long rounds) {
  const int width = 6;
  hipStream_t s[width];
  hipEvent_t e[width];
  int* p;
  OK(hipMalloc, (void**)&p, 4096);
  for (int i = 0; i < width; i++) {
    OK(hipStreamCreateWithFlags, &s[i], i % 2 ? hipStreamNonBlocking : hipStreamDefault);
    OK(hipEventCreateWithFlags, &e[i], i % 3 ? hipEventDefault : hipEventDisableTiming);
  }
  for (long round = 0; round < 10 * rounds; round++) {
    for (int i = 0; i < width; i++) {
      LAUNCH(touch, 1 + i, 64, 0, s[i], p, 64);
      OK(hipEventRecord, e[i], s[i]);
    }
    for (int i = 0; i < width; i++)
      for (int j = 0; j < width; j++)
        if ((i + j + round) % 3 == 0) OK(hipStreamWaitEvent, s[i], e[j], 0);
  }
  OK(hipDeviceSynchronize);
  float ms = -1;
  OK(hipEventElapsedTime, &ms, e[1], e[2]);
  for (int i = 0; i < width; i++) {
    OK(hipEventDestroy, e[i]);
    OK(hipStreamDestroy, s[i]);
  }
  // The event of a kernel alone.
  hipEvent_t start, stop;
  OK(hipEventCreate, &start);
  OK(hipEventCreate, &stop);
  int n = 64;
  void* arguments[] = {&p, &n};
  for (long i = 0; i < 10 * rounds; i++) {
    OK(hipExtLaunchKernel, (const void*)touch, dim3(2), dim3(64), arguments, (size_t)0, (hipStream_t)0, start, stop, 0);
    OK(hipEventSynchronize, stop);
    OK(hipEventElapsedTime, &ms, start, stop);
    if (!(ms >= 0) || ms > 60000) app::fail("time of a kernel");
  }
  OK(hipEventDestroy, start);
  OK(hipEventDestroy, stop);
  OK(hipFree, p);
}

static void boxes(long rounds) {
  const size_t w = 100, h = 7, d = 5;
  std::vector<unsigned char> in(w * h * d), out(w * h * d);
  hipStream_t s;
  OK(hipStreamCreate, &s);
  hipPitchedPtr there;
  OK(hipMalloc3D, &there, make_hipExtent(w, h, d));
  for (long round = 0; round < rounds; round++)
    for (bool async : {false, true}) {
      for (size_t i = 0; i < in.size(); i++) in[i] = (unsigned char)(i * 3 + round);
      std::fill(out.begin(), out.end(), 0);
      hipMemcpy3DParms to = {};
      to.srcPtr = make_hipPitchedPtr(in.data(), w, w, h);
      to.dstPtr = there;
      to.extent = make_hipExtent(w, h, d);
      to.kind = hipMemcpyHostToDevice;
      hipMemcpy3DParms from = {};
      from.srcPtr = there;
      from.dstPtr = make_hipPitchedPtr(out.data(), w, w, h);
      from.extent = to.extent;
      from.kind = hipMemcpyDeviceToHost;
      if (async) {
        OK(hipMemcpy3DAsync, &to, s);
        OK(hipMemcpy3DAsync, &from, s);
        OK(hipStreamSynchronize, s);
      } else {
        OK(hipMemcpy3D, &to);
        OK(hipMemcpy3D, &from);
      }
      if (in != out) app::fail("box");
    }
  OK(hipFree, there.ptr);
  unsigned char* p;
  OK(hipMalloc, (void**)&p, 8192);
  std::vector<unsigned char> all(8192);
  OK(hipMemsetD8Async, (hipDeviceptr_t)p, 0x11, 8192, s);
  OK(hipMemsetD16Async, (hipDeviceptr_t)p, 0x2222, 2048, s);
  OK(hipMemsetD32Async, (hipDeviceptr_t)p, 0x33333333, 512, s);
  OK(hipMemset2DAsync, p + 6144, 64, 0x44, 16, 32, s);
  OK(hipMemcpyAsync, all.data(), p, 8192, hipMemcpyDeviceToHost, s);
  OK(hipStreamSynchronize, s);
  for (size_t i = 0; i < 8192; i++) {
    unsigned char want = i < 2048 ? 0x33 : i < 4096 ? 0x22 : i >= 6144 && (i - 6144) % 64 < 16 ? 0x44 : 0x11;
    if (all[i] != want) app::fail("fills");
  }
  OK(hipFree, p);
  OK(hipStreamDestroy, s);
}

static void devices(long rounds) {
  int count = 0;
  OK(hipGetDeviceCount, &count);
  std::vector<hipStream_t> streams(count);
  std::vector<unsigned char*> memory(count);
  const size_t n = 70000;
  std::vector<unsigned char> in(n), out(n);
  for (int i = 0; i < count; i++) {
    OK(hipSetDevice, i);
    OK(hipStreamCreate, &streams[i]);
    OK(hipMalloc, (void**)&memory[i], n);
    for (int j = 0; j < count; j++) {
      int can = 0;
      if (i != j) OK(hipDeviceCanAccessPeer, &can, i, j);
      if (can) OK(hipDeviceEnablePeerAccess, j, 0);
    }
  }
  for (long round = 0; round < rounds; round++) {
    for (size_t i = 0; i < n; i++) in[i] = (unsigned char)(i + round);
    OK(hipSetDevice, 0);
    OK(hipMemcpyAsync, memory[0], in.data(), n, hipMemcpyHostToDevice, streams[0]);
    OK(hipStreamSynchronize, streams[0]);
    for (int i = 1; i < count; i++) {
      OK(hipSetDevice, i - 1);
      OK(hipMemcpyPeerAsync, memory[i], i, memory[i - 1], i - 1, n, streams[i - 1]);
      OK(hipStreamSynchronize, streams[i - 1]);
    }
    OK(hipSetDevice, count - 1);
    OK(hipMemcpyAsync, out.data(), memory[count - 1], n, hipMemcpyDeviceToHost, streams[count - 1]);
    OK(hipStreamSynchronize, streams[count - 1]);
    if (in != out) app::fail("copies between devices");
    int together = 0;
    OK(hipDeviceGetAttribute, &together, hipDeviceAttributeCooperativeMultiDeviceLaunch, 0);
    if (together) {
      std::vector<hipLaunchParams> launches(count);
      std::vector<void*> arguments(count);
      for (int i = 0; i < count; i++) {
        arguments[i] = &memory[i];
        launches[i] = {};
        launches[i].func = (void*)cooperate;
        launches[i].gridDim = dim3(2);
        launches[i].blockDim = dim3(64);
        launches[i].args = &arguments[i];
        launches[i].stream = streams[i];
      }
      OK(hipLaunchCooperativeKernelMultiDevice, launches.data(), count, 0u);
      for (int i = 0; i < count; i++) OK(hipStreamSynchronize, streams[i]);
    }
    // One thread, its device changed from call to call.
    for (int k = 0; k < 30; k++) {
      OK(hipSetDevice, k % count);
      LAUNCH(touch, 1 + k % 3, 64, 0, streams[k % count], (int*)memory[k % count], 64);
    }
    for (int i = 0; i < count; i++) {
      OK(hipSetDevice, i);
      OK(hipDeviceSynchronize);
    }
  }
  for (int i = 0; i < count; i++) {
    OK(hipSetDevice, i);
    OK(hipStreamDestroy, streams[i]);
    OK(hipFree, memory[i]);
  }
  OK(hipSetDevice, 0);
}

// Threads that end while their kernels run, and whose streams others wait for.
static void left_behind(long rounds) {
  for (long i = 0; i < 5 * rounds; i++) {
    hipStream_t s;
    int* p;
    std::thread([&] {
      OK(hipStreamCreate, &s);
      OK(hipMalloc, (void**)&p, 4096);
      for (int k = 0; k < 20; k++) LAUNCH(touch, 1 + k, 64, 0, s, p, 64);
    }).join();
    std::thread([&] { OK(hipStreamSynchronize, s); }).join();
    OK(hipStreamDestroy, s);
    OK(hipFree, p);
  }
}

int main(int argc, char** argv) {
  long rounds = app::arg(argc, argv, 1, 2);
  short_lived(rounds);
  masked(rounds);
  web(rounds);
  boxes(rounds);
  devices(rounds);
  left_behind(rounds);
  std::puts("streams: done");
  app::finish();
}
