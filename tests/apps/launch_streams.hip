// Measures launches into many streams: ns per launch, on the host's side and until the GPU is idle.
//
//   launch_streams [--csv] [THREADS=4] [STREAMS=4] [BLOCK=250] [ROUNDS=20]
//
// Each thread launches BLOCK empty kernels in turn into STREAMS streams that only it uses. All threads begin a round together, and
// all queues are empty then. `host` is the time of the slowest thread's launches divided by all launches of the round,
// `drained` includes the wait for the GPU; minimum and median over the rounds.
#include "count.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

__global__ void empty() {}

static double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Threads spin, so that all begin at once.
struct Barrier {
  std::atomic<long> arrived{0}, round{0};
  void wait(long threads) {
    long mine = round.load();
    if (arrived.fetch_add(1) + 1 == threads) {
      arrived = 0;
      round++;
      return;
    }
    for (long looks = 0; round.load() == mine; looks++)
      if (looks > 2000) std::this_thread::yield();
  }
};

int main(int argc, char** argv) {
  bool csv = argc > 1 && !std::strcmp(argv[1], "--csv");
  if (csv) argc--, argv++;
  long threads = app::arg(argc, argv, 1, 4), streams = app::arg(argc, argv, 2, 4), block = app::arg(argc, argv, 3, 250),
       rounds = app::arg(argc, argv, 4, 20);
  if (!threads || !streams || !block || !rounds) app::fail("no threads, streams, launches or rounds");

  Barrier barrier;
  std::vector<double> ends(threads);
  double begin = 0;
  std::vector<double> host, drained;
  std::vector<std::thread> workers;
  for (long t = 0; t < threads; t++)
    workers.emplace_back([&, t] {
      OK(hipSetDevice, 0);
      std::vector<hipStream_t> own(streams);
      for (auto& s : own) OK(hipStreamCreate, &s);
      for (auto& s : own) LAUNCH(empty, 1, 64, 0, s);
      for (auto& s : own) OK(hipStreamSynchronize, s);
      for (long round = 0; round < rounds; round++) {
        barrier.wait(threads);
        if (t == 0) begin = now();
        barrier.wait(threads);
        for (long i = 0; i < block; i++) empty<<<1, 64, 0, own[i % streams]>>>();
        ends[t] = now();
        COUNT_LAUNCHES(block);
        for (auto& s : own) OK(hipStreamSynchronize, s);
        barrier.wait(threads);
        if (t == 0) {
          drained.push_back(now() - begin);
          host.push_back(*std::max_element(ends.begin(), ends.end()) - begin);
        }
      }
      for (auto& s : own) OK(hipStreamDestroy, s);
    });
  for (auto& w : workers) w.join();

  std::printf(csv ? "what,launches,min_ns,median_ns\n" : "%-24s %9s %10s %10s\n", "what", "launches", "min ns", "median ns");
  long launches = threads * block;
  auto print = [&](const char* what, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    char name[64];
    std::snprintf(name, sizeof name, "%s_%ldx%ld", what, threads, streams);
    std::printf(csv ? "%s,%ld,%.1f,%.1f\n" : "%-24s %9ld %10.1f %10.1f\n", name, launches * rounds, times.front() / launches,
                times[times.size() / 2] / launches);
  };
  print("host", host);
  print("drained", drained);
  app::finish();
}
