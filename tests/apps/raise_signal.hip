// Ends by a signal immediately after launches, like one of a batch system or of a failed assertion.
//
//   raise_signal SIGNAL [LAUNCHES=2] [outside]
//
// SIGNAL is a number. The program launches two kernels in turn, LAUNCHES in all, and raises the signal at once: some are
// complete then, some are not. "outside" prints "ready" and launches until a signal ends it.
// Each of the two kernels has its own geometry: `first` 4 work-groups of 64, `second` 2 of 128.
#include "count.hpp"

#include <csignal>
#include <unistd.h>

__global__ void first(int* p) { p[threadIdx.x] += 1; }

__global__ void second(int* p) { p[threadIdx.x] = 0; }

static void launch(long i, hipStream_t stream, int* data) {
  if (i % 2)
    LAUNCH(second, 2, 128, 0, stream, data);
  else
    LAUNCH(first, 4, 64, 0, stream, data);
}

int main(int argc, char** argv) {
  int number = int(app::arg(argc, argv, 1, SIGINT));
  long launches = app::arg(argc, argv, 2, 2);
  bool outside = argc > 3 && !std::strcmp(argv[3], "outside");

  int* data;
  hipStream_t stream;
  OK(hipMalloc, &data, 4096);
  OK(hipStreamCreateWithFlags, &stream, hipStreamNonBlocking);
  OK(hipDeviceSynchronize);
  for (long i = 0; i < launches; i++) launch(i, stream, data);
  if (outside) {
    std::puts("ready");
    std::fflush(stdout);
    for (long i = launches;; i++) {
      launch(i, stream, data);
      if (i % 100 == 99) OK(hipStreamSynchronize, stream);
    }
  }
  std::raise(number);
  return 9;
}
