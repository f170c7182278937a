// Times kernels as autotuners do, by events: launched with them, and between two of them.
//
//   event_times [KERNELS=40] [ROUNDS=6]
//
// Prints for both ways how many times are within 10 % of the smallest, and the times' median, 90th percentile and maximum in us.
#include "count.hpp"

#include <hip/hip_ext.h>

#include <algorithm>
#include <vector>

__global__ void tuned() {}

static float elapsed(hipEvent_t from, hipEvent_t to) {
  float ms = 0;
  // The stream's work is over; HIP may not have noted it for each event.
  OK(hipEventSynchronize, from);
  OK(hipEventSynchronize, to);
  OK(hipEventElapsedTime, &ms, from, to);
  return ms * 1000;
}

static void print(const char* how, std::vector<float>& times) {
  std::sort(times.begin(), times.end());
  auto near = std::upper_bound(times.begin(), times.end(), times[0] * 1.1f) - times.begin();
  printf("%s: %td of %zu, %.1f, %.1f, %.1f us\n", how, near, times.size(), times[times.size() / 2], times[times.size() * 9 / 10],
         times.back());
}

int main(int argc, char** argv) {
  long kernels = app::arg(argc, argv, 1, 40), rounds = app::arg(argc, argv, 2, 6);
  hipStream_t stream;
  OK(hipStreamCreate, &stream);
  std::vector<hipEvent_t> begins(kernels), ends(kernels);
  for (long i = 0; i < kernels; i++) {
    OK(hipEventCreate, &begins[i]);
    OK(hipEventCreate, &ends[i]);
  }
  std::vector<float> with, between;
  for (long round = 0; round <= rounds; round++) {
    for (long i = 0; i < kernels; i++) {
      APP_COUNT("hipExtLaunchKernel", 1);
      hipExtLaunchKernelGGL(tuned, dim3(1), dim3(64), 0, stream, begins[i], ends[i], 0);
    }
    OK(hipStreamSynchronize, stream);
    // The first round warms up.
    for (long i = 0; i < kernels && round > 0; i++) with.push_back(elapsed(begins[i], ends[i]));
    for (long i = 0; i < kernels; i++) {
      OK(hipEventRecord, begins[i], stream);
      LAUNCH(tuned, dim3(1), dim3(64), 0, stream);
      OK(hipEventRecord, ends[i], stream);
    }
    OK(hipStreamSynchronize, stream);
    for (long i = 0; i < kernels && round > 0; i++) between.push_back(elapsed(begins[i], ends[i]));
  }
  print("launched with events", with);
  print("between two events", between);
  for (long i = 0; i < kernels; i++) {
    OK(hipEventDestroy, begins[i]);
    OK(hipEventDestroy, ends[i]);
  }
  OK(hipStreamDestroy, stream);
  app::finish();
}
