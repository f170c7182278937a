// Serves requests until something happens, and for a while afterwards: what a flight recorder is for.
//
//   serve WHAT [BEFORE=120] [AFTER=100]
//
// Each request is a range `request N` with four launches of `work` and takes about 10 ms. After BEFORE requests one thing happens:
//   calm     nothing
//   slow     a request takes 200 ms
//   nan      a mark `loss is NaN`
//   error    hipMalloc fails
//   idle     no request comes for 900 ms
//   stuck    kernel `stuck` is launched (its duration is the emulated GPU's to choose)
//   long     eight launches of `work` with 4000 work-groups instead of 1
//   alloc    forty hipMalloc and hipFree
//   burst    100000 hipGetDevice
//   crash    SIGSEGV
//   copies   nothing, and each request also copies 4 MiB to the GPU and back
// AFTER requests follow, then the program ends with 0. BEFORE may be `until:PATH`: until the file PATH exists, for five minutes at
// most.
#include "count.hpp"

#include <chrono>
#include <csignal>
#include <dlfcn.h>
#include <thread>

extern "C" __global__ void work(int* p) {
  if (p) p[threadIdx.x]++;
}

extern "C" __global__ void stuck(int* p) {
  if (p) p[threadIdx.x]--;
}

using Clock = std::chrono::steady_clock;

static int* data;
static hipStream_t stream;
static int (*push)(const char*);
static int (*pop)();
static void (*mark)(const char*);
static long number;
static void* pinned;
static void* large;
static const size_t LARGE = 4 << 20;

static void rest(long ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

static void request(long ms) {
  char text[32];
  std::snprintf(text, sizeof text, "request %ld", number++);
  if (push) push(text);
  for (int i = 0; i < 4; i++) LAUNCH(work, 1, 64, 0, stream, data);
  if (pinned) {
    OK(hipMemcpyAsync, large, pinned, LARGE, hipMemcpyHostToDevice, stream);
    OK(hipMemcpyAsync, pinned, large, LARGE, hipMemcpyDeviceToHost, stream);
  }
  OK(hipStreamSynchronize, stream);
  rest(ms);
  if (pop) pop();
}

static void requests(const std::string& wanted) {
  if (wanted.rfind("until:", 0) != 0) {
    for (long left = std::stol(wanted); left > 0; left--) request(9);
    return;
  }
  auto end = Clock::now() + std::chrono::minutes(5);
  while (Clock::now() < end && access(wanted.c_str() + 6, F_OK) != 0) request(9);
}

int main(int argc, char** argv) {
  std::string what = argc > 1 ? argv[1] : "calm";
  std::string before = argc > 2 ? argv[2] : "120", after = argc > 3 ? argv[3] : "100";
  push = (decltype(push))dlsym(RTLD_DEFAULT, "roctxRangePushA");
  pop = (decltype(pop))dlsym(RTLD_DEFAULT, "roctxRangePop");
  mark = (decltype(mark))dlsym(RTLD_DEFAULT, "roctxMarkA");
  OK(hipMalloc, &data, 4096);
  OK(hipStreamCreate, &stream);
  if (what == "copies") {
    OK(hipHostMalloc, &pinned, LARGE, hipHostMallocDefault);
    OK(hipMalloc, &large, LARGE);
  }
  requests(before);
  int device;
  void* p = nullptr;
  if (what == "slow") request(200);
  if (what == "nan" && mark) mark("loss is NaN");
  if (what == "error") CALL(hipMalloc, &p, size_t(1) << 60);
  if (what == "idle") rest(900);
  if (what == "stuck") LAUNCH(stuck, 1, 64, 0, stream, data);
  if (what == "long")
    for (int i = 0; i < 8; i++) LAUNCH(work, 4000, 64, 0, stream, data);
  if (what == "alloc")
    for (int i = 0; i < 40; i++) {
      OK(hipMalloc, &p, 4096);
      OK(hipFree, p);
    }
  if (what == "burst")
    for (int i = 0; i < 100000; i++) OK(hipGetDevice, &device);
  if (what == "crash") std::raise(SIGSEGV);
  requests(after);
  app::finish();
  return 0;
}
