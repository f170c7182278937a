// Submits concurrently: many streams, several threads, launches of four kernels in varying geometry.
//
//   many_streams [THREADS=4] [STREAMS=16] [LAUNCHES=10000]
//
// LAUNCHES is the total; launch i goes to stream i mod STREAMS, and a stream belongs to one thread, so the order in each
// stream is known: kernel i mod 4, grid 1 + i mod 7, work-groups of 64 * (1 + i mod 3), LDS 256 * (i mod 2) bytes.
#include "count.hpp"

#include <thread>
#include <vector>

__global__ void plain(int* p) {
  if (p) p[threadIdx.x] = int(threadIdx.x);
}

template <typename T>
__global__ void scale(T* p, T factor) {
  if (p) p[threadIdx.x] *= factor;
}

namespace math {
template <int N>
__global__ void repeat(int* p) {
  if (p)
    for (int i = 0; i < N; i++) p[threadIdx.x] += i;
}
}  // namespace math

int main(int argc, char** argv) {
  long threads = app::arg(argc, argv, 1, 4), streams = app::arg(argc, argv, 2, 16), launches = app::arg(argc, argv, 3, 10000);
  if (!threads || !streams) app::fail("no threads or no streams");
  if (threads > streams) threads = streams;

  int* data;
  OK(hipMalloc, &data, 4096);
  std::vector<hipStream_t> all(streams);
  for (auto& s : all) OK(hipStreamCreate, &s);

  std::vector<std::thread> workers;
  for (long t = 0; t < threads; t++)
    workers.emplace_back([=, &all] {
      OK(hipSetDevice, 0);
      for (long i = 0; i < launches; i++) {
        long stream = i % streams;
        if (stream % threads != t) continue;
        dim3 grid(1 + i % 7), block(64 * (1 + i % 3));
        unsigned lds = 256 * (i % 2);
        switch (i % 4) {
          case 0: LAUNCH(plain, grid, block, lds, all[stream], data); break;
          case 1: LAUNCH((scale<float>), grid, block, lds, all[stream], (float*)data, 2.0f); break;
          case 2: LAUNCH((scale<double>), grid, block, lds, all[stream], (double*)data, 2.0); break;
          case 3: LAUNCH(math::repeat<3>, grid, block, lds, all[stream], data); break;
        }
      }
      OK(hipGetLastError);
      for (long s = t; s < streams; s += threads) OK(hipStreamSynchronize, all[s]);
    });
  for (auto& w : workers) w.join();

  OK(hipDeviceSynchronize);
  for (auto& s : all) OK(hipStreamDestroy, s);
  OK(hipFree, data);
  std::printf("many_streams: threads %ld, streams %ld, launches %ld\n", threads, streams, launches);
  app::finish();
}
