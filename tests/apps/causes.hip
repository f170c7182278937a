// A GPU without kernels for a known reason.
//
//   causes host|asleep|event|copy|start-up|shared|mixture [ROUNDS=30]
//
// Each round ends with a kernel on GPU 0, and the program waits for it. Before the kernel:
//   host      the thread computes for 20 ms
//   asleep    the thread sleeps for 20 ms
//   event     the kernel waits for an event of GPU 1, behind a kernel there
//   copy      the kernel stands behind a copy of 32 MiB to the GPU
//   start-up  as host, but the first kernel comes after 600 ms
//   shared    the kernel stands behind one of another stream that waits for an event of GPU 1; the test gives both streams
//             one hardware queue (GPU_MAX_HW_QUEUES=1)
//   mixture   host, asleep, event and copy in turn
// What the thread did is printed: `phase NAME BEGIN END`, ns of CLOCK_BOOTTIME. `launch` is the launch that ends a round, and
// `phase waited 0 NS` is how long the thread waited for a CPU in all rounds.
#include "count.hpp"

#include <ctime>
#include <vector>

__global__ void brief(int* p) { p[threadIdx.x] += 1; }
__global__ void lengthy(int* p) { p[threadIdx.x] -= 1; }

struct Phase {
  const char* name;
  uint64_t begin, end;
};
static std::vector<Phase> phases;

static const size_t BYTES = 32 << 20;
static const uint64_t MS = 1000000;

static int* data[2];
static int* host;
static hipStream_t first, second, other;
static hipEvent_t event;

static uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void compute(uint64_t ns) {
  uint64_t begin = now();
  while (now() - begin < ns) {
  }
  phases.push_back({"host", begin, now()});
}

// How long this thread has waited for a CPU. On a busy machine that follows each sleep, and is none.
static uint64_t waited() {
  unsigned long long running = 0, ready = 0;
  if (FILE* file = std::fopen("/proc/thread-self/schedstat", "r")) {
    if (std::fscanf(file, "%llu %llu", &running, &ready) != 2) ready = 0;
    std::fclose(file);
  }
  return ready;
}

static void sleep_for(uint64_t ns) {
  uint64_t before = waited(), begin = now();
  timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
  nanosleep(&t, nullptr);
  uint64_t end = now();
  phases.push_back({"asleep", begin, end - (waited() - before)});
}

// A kernel of GPU 1, and a stream of GPU 0 that waits for its event.
static void wait_for_other(hipStream_t stream) {
  OK(hipSetDevice, 1);
  LAUNCH(lengthy, 1, 64, 0, other, data[1]);
  OK(hipEventRecord, event, other);
  OK(hipSetDevice, 0);
  OK(hipStreamWaitEvent, stream, event, 0);
}

static void end_round() {
  uint64_t begin = now();
  LAUNCH(brief, 1, 64, 0, first, data[0]);
  phases.push_back({"launch", begin, now()});
  OK(hipStreamSynchronize, first);
}

static void by_event() {
  wait_for_other(first);
  end_round();
}

static void by_copy() {
  OK(hipMemcpyAsync, data[0], host, BYTES, hipMemcpyHostToDevice, first);
  end_round();
}

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "";
  long rounds = app::arg(argc, argv, 2, 30);
  if (mode == "start-up") sleep_for(600 * MS);
  // Two GPUs for the modes that need them. GPU 1 has loaded its kernels before the first one of GPU 0 runs.
  bool two = mode == "event" || mode == "shared" || mode == "mixture";
  // An event belongs to the GPU that records it.
  OK(hipSetDevice, two);
  OK(hipEventCreateWithFlags, &event, hipEventDisableTiming);
  for (int gpu = two; gpu >= 0; gpu--) {
    OK(hipSetDevice, gpu);
    OK(hipMalloc, (void**)&data[gpu], BYTES);
    OK(hipStreamCreateWithFlags, gpu ? &other : &first, hipStreamNonBlocking);
    LAUNCH(brief, 1, 64, 0, gpu ? other : first, data[gpu]);
    OK(hipDeviceSynchronize);
  }
  OK(hipStreamCreateWithFlags, &second, hipStreamNonBlocking);
  OK(hipHostMalloc, (void**)&host, BYTES, 0);
  uint64_t before = waited();
  for (long round = 0; round < rounds; round++) {
    if (mode == "host" || mode == "start-up") {
      compute(20 * MS);
      end_round();
    } else if (mode == "asleep") {
      sleep_for(20 * MS);
      end_round();
    } else if (mode == "event") {
      by_event();
    } else if (mode == "copy") {
      by_copy();
    } else if (mode == "shared") {
      wait_for_other(second);
      LAUNCH(brief, 1, 64, 0, second, data[0]);
      end_round();
      OK(hipStreamSynchronize, second);
    } else if (mode == "mixture") {
      compute(10 * MS);
      end_round();
      sleep_for(15 * MS);
      end_round();
      by_event();
      by_copy();
    } else {
      app::fail("no such mode");
    }
  }
  OK(hipDeviceSynchronize);
  phases.push_back({"waited", 0, waited() - before});
  for (const Phase& phase : phases)
    std::printf("phase %s %llu %llu\n", phase.name, (unsigned long long)phase.begin, (unsigned long long)phase.end);
  app::finish();
}
