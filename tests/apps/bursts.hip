// Stresses the reader: the program pauses for seconds, then a thread calls as fast as it can, several times.
//
//   bursts [CALLS=200000] [QUIET=2500]
//
// Three bursts of CALLS calls, each after a pause of QUIET milliseconds and with a few launches at its end.
#include "count.hpp"

#include <unistd.h>

__global__ void after() {}

int main(int argc, char** argv) {
  long calls = app::arg(argc, argv, 1, 200000), quiet = app::arg(argc, argv, 2, 2500);
  hipStream_t stream;
  OK(hipStreamCreate, &stream);
  int device = 0;
  for (int turn = 0; turn < 3; turn++) {
    usleep(quiet * 1000);
    hipError_t bad = hipSuccess;
    for (long i = 0; i < calls; i++)
      if (hipError_t e = hipGetDevice(&device)) bad = e;
    COUNT_MANY(hipGetDevice, calls);
    app::check(bad, "hipGetDevice", __FILE__, __LINE__);
    for (int i = 0; i < 100; i++) LAUNCH(after, dim3(1 + i % 3), dim3(64), 0, stream);
    OK(hipStreamSynchronize, stream);
  }
  OK(hipStreamDestroy, stream);
  app::finish();
}
