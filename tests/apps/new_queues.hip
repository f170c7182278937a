// Creates streams, and so the run-time's queues, while a kernel runs.
//
//   new_queues [STREAMS=8]
//
// Each stream after the first is created and used while `longer` runs on the first one. The program waits for every kernel.
#include "count.hpp"

#include <vector>

__global__ void longer(int* p) {
  if (p) p[threadIdx.x] = 1;
}

__global__ void shorter(int* p) {
  if (p) p[threadIdx.x] = 2;
}

int main(int argc, char** argv) {
  long streams = app::arg(argc, argv, 1, 8);
  hipStream_t first;
  OK(hipStreamCreate, &first);
  std::vector<hipStream_t> others(streams > 0 ? streams - 1 : 0);
  for (auto& stream : others) {
    LAUNCH(longer, 1, 64, 0, first, (int*)nullptr);
    OK(hipStreamCreate, &stream);
    LAUNCH(shorter, 1, 64, 0, stream, (int*)nullptr);
    OK(hipStreamSynchronize, stream);
    OK(hipStreamSynchronize, first);
  }
  for (auto& stream : others) OK(hipStreamDestroy, stream);
  OK(hipStreamDestroy, first);
  std::printf("%ld streams\n", streams);
  app::finish();
}
