// Ends with work in flight: launches and copies in two streams until a signal kills the program, or until it ends
// itself after LAUNCHES launches.
//
//   crash_mid [forever|abort|segv|exit|_exit|return|kill [LAUNCHES=5000]]
//
// kill: polls until both streams are idle, then immediately sends itself SIGKILL.
// Prints "ready" after the first 1000 launches have completed. exit ends with 3, _exit with 4, return with 5; the streams
// still have work then. The program writes its counts before it ends (not in `forever`).
#include "count.hpp"

#include <csignal>
#include <unistd.h>

__global__ void crunch(int* p, int n) {
  for (int i = 0; i < n; i++) p[threadIdx.x] += i;
}

__global__ void second(int* p) { p[threadIdx.x] = 0; }

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "forever";
  bool forever = !std::strcmp(how, "forever");
  long end = app::arg(argc, argv, 2, 5000);
  constexpr size_t bytes = 1 << 16;

  int *dev[2], *host;
  hipStream_t stream[2];
  OK(hipHostMalloc, &host, bytes, hipHostMallocDefault);
  for (int s = 0; s < 2; s++) {
    OK(hipMalloc, &dev[s], bytes);
    OK(hipStreamCreate, &stream[s]);
  }

  for (long i = 0; forever || i < end; i++) {
    int s = i % 2;
    if (i % 10 == 9)
      LAUNCH(second, 1, 64, 0, stream[s], dev[s]);
    else
      LAUNCH(crunch, 4, 256, 0, stream[s], dev[s], 100);
    if (i % 50 == 0) OK(hipMemcpyAsync, dev[s], host, bytes, hipMemcpyHostToDevice, stream[s]);
    if (i % 50 == 25) OK(hipMemcpyAsync, host, dev[s], bytes, hipMemcpyDeviceToHost, stream[s]);
    if (i == 999) {
      OK(hipDeviceSynchronize);
      std::puts("ready");
      std::fflush(stdout);
    }
    // At most a few hundred in flight, so that "completed" follows "launched" closely.
    if (i % 200 == 199) OK(hipStreamSynchronize, stream[s]);
  }

  if (!std::strcmp(how, "kill")) {
    for (hipStream_t s : stream)
      while (hipStreamQuery(s) == hipErrorNotReady) {
      }
    ::kill(::getpid(), SIGKILL);
  }
  app::finish();
  if (!std::strcmp(how, "abort")) std::abort();
  if (!std::strcmp(how, "segv")) std::raise(SIGSEGV);
  if (!std::strcmp(how, "exit")) std::exit(3);
  if (!std::strcmp(how, "_exit")) ::_exit(4);
  return 5;
}
