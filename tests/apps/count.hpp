// What the HIP programs of these tests share: each call is counted by the name that the run-time exports.
//
//   OK(hipMalloc, &p, n);                     counted, called, and the program ends with 1 when it fails
//   hipError_t e = CALL(hipFree, p);          counted and called
//   LAUNCH((scale<float>), grid, block, lds, stream, p, 2.0f, n);
//
// The counts are written by app::finish() at the end of main: lines `name count`, to the file named by APP_CALL_COUNTS,
// and those of ROC-TX to the one named by APP_MARKER_COUNTS. A child process adds `.PID` (app::in_child).
// Names are what the headers' macros expand to (hipGetDeviceProperties is hipGetDevicePropertiesR0600 from 6.0 on).
// A <<<>>> launch is three calls: __hipPushCallConfiguration, __hipPopCallConfiguration and hipLaunchKernel.
#pragma once
#include <hip/hip_runtime.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <unistd.h>

namespace app {

// One per call site; enters the list of all sites when it is first hit. No lock, no allocation.
struct Site {
  const char* name;
  std::atomic<uint64_t> hits{0};
  Site* next = nullptr;
  constexpr explicit Site(const char* n) : name(n) {}
  void hit(uint64_t n = 1);
};

inline std::atomic<Site*> sites{nullptr};

inline void Site::hit(uint64_t n) {
  if (n == 0 || hits.fetch_add(n, std::memory_order_relaxed) != 0) return;
  next = sites.load(std::memory_order_relaxed);
  while (!sites.compare_exchange_weak(next, this, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

inline bool is_child = false;

// To be called first in a forked child: it has the parent's counts, and its own file.
inline void in_child() {
  is_child = true;
  for (Site* s = sites.exchange(nullptr); s;) {
    Site* after = s->next;
    s->hits = 0;
    s = after;
  }
}

inline void write_counts(const char* variable, bool markers) {
  const char* path = std::getenv(variable);
  if (!path || !*path) return;
  std::map<std::string, uint64_t> sums;
  for (Site* s = sites.load(std::memory_order_acquire); s; s = s->next)
    if ((std::strncmp(s->name, "roctx", 5) == 0) == markers) sums[s->name] += s->hits;
  std::string file = path;
  if (is_child) file += "." + std::to_string(getpid());
  FILE* out = std::fopen(file.c_str(), "w");
  if (!out) {
    std::perror(file.c_str());
    std::_Exit(1);
  }
  for (const auto& [name, count] : sums) std::fprintf(out, "%s %llu\n", name.c_str(), (unsigned long long)count);
  std::fclose(out);
}

// Writes the counts, and what was printed. Every other thread of the program has ended its calls.
inline void finish() {
  std::fflush(stdout);
  write_counts("APP_CALL_COUNTS", false);
  write_counts("APP_MARKER_COUNTS", true);
}

inline void check(hipError_t e, const char* name, const char* file, int line) {
  if (e == hipSuccess) return;
  // hipGetErrorString is a call like any other to a tracer, so it is not used here.
  std::fprintf(stderr, "%s:%d: %s failed: %d\n", file, line, name, (int)e);
  std::exit(1);
}

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::exit(1);
}

// The n-th argument as a number, or its default.
inline long arg(int argc, char** argv, int n, long otherwise) {
  if (n >= argc) return otherwise;
  char* end = nullptr;
  long value = std::strtol(argv[n], &end, 0);
  if (end == argv[n] || *end || value < 0) fail("an argument is not a number");
  return value;
}

}  // namespace app

#define APP_STR2(x) #x
#define APP_STR(x) APP_STR2(x)
#define APP_COUNT(name, n) ([&] { static app::Site site{name}; site.hit(n); }())

#define COUNT_MANY(f, n) APP_COUNT(APP_STR(f), n)
#define CALL(f, ...) (APP_COUNT(APP_STR(f), 1), f(__VA_ARGS__))
#define OK(f, ...) app::check(CALL(f, __VA_ARGS__), APP_STR(f), __FILE__, __LINE__)
#define COUNT_LAUNCHES(n) \
  (APP_COUNT("__hipPushCallConfiguration", n), APP_COUNT("__hipPopCallConfiguration", n), APP_COUNT("hipLaunchKernel", n))
#define LAUNCH(kernel, grid, block, lds, stream, ...) \
  (COUNT_LAUNCHES(1), kernel<<<grid, block, lds, stream>>>(__VA_ARGS__))

// To be called after a synchronous copy that a thread of HIP's may end: one to pageable memory, or within the host's.
//
// Where a stream's commands have a thread of HIP's (AMD_DIRECT_DISPATCH=0), HIP 7 returns from hipMemcpy as soon as the last
// signal is set that the command knows (ROCclr, HostQueue::finishCommand asks IsHwEventReady alone), while that thread still
// moves bytes: from the staging buffer to where they belong, or from pageable to pinned memory, where the GPU has no part at
// all. Seen on 7.2.4: one hipMemcpy in 20 to 80 of 1 MiB returned up to half a millisecond before its bytes were there, and
// the driver had ended its copy before. Waiting for the stream waits for the thread too.
namespace app {
inline void arrived() {
#if HIP_VERSION_MAJOR >= 7
  const char* direct = std::getenv("AMD_DIRECT_DISPATCH");
  if (direct && !std::strcmp(direct, "0")) OK(hipStreamSynchronize, nullptr);
#endif
}
}  // namespace app
