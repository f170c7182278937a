// The smallest whole program: allocate, copy in, launch, copy out, free, once or many times.
//
//   matrix_transpose [ITERATIONS=1] [--verify]
//
// Copies are verified byte by byte. The kernels' result is checked only with --verify, because an emulated GPU does
// not execute kernels.
#include "count.hpp"

#include <vector>

constexpr int side = 1024, tile = 32, rows = 8;

__global__ void transpose_naive(float* out, const float* in, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[x * n + y] = in[y * n + x];
}

__global__ void transpose_tiled(float* out, const float* in, int n) {
  __shared__ float t[tile][tile + 1];
  int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  for (int j = 0; j < tile; j += rows) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * tile + threadIdx.x;
  y = blockIdx.x * tile + threadIdx.y;
  for (int j = 0; j < tile; j += rows) out[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}

int main(int argc, char** argv) {
  bool verify = argc > 1 && !std::strcmp(argv[argc - 1], "--verify");
  long iterations = app::arg(argc - verify, argv, 1, 1);
  constexpr size_t count = size_t(side) * side, bytes = count * sizeof(float);

  std::vector<float> in(count), out(count);
  float *d_in, *d_out;
  OK(hipMalloc, &d_in, bytes);
  OK(hipMalloc, &d_out, bytes);

  uint64_t sum = 0;
  for (long i = 0; i < iterations; i++) {
    for (size_t k = 0; k < count; k++) in[k] = float((k * 7 + i) % 1000);
    OK(hipMemcpy, d_in, in.data(), bytes, hipMemcpyHostToDevice);
    LAUNCH(transpose_naive, dim3(side / 16, side / 16), dim3(16, 16), 0, 0, d_out, d_in, side);
    OK(hipGetLastError);
    LAUNCH(transpose_tiled, dim3(side / tile, side / tile), dim3(tile, rows), 0, 0, d_out, d_in, side);
    OK(hipGetLastError);
    OK(hipDeviceSynchronize);
    if (verify) {
      OK(hipMemcpy, out.data(), d_out, bytes, hipMemcpyDeviceToHost);
      for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
          if (out[size_t(x) * side + y] != in[size_t(y) * side + x]) app::fail("transposed matrix");
    }
    // Through both buffers and back: the copied bytes must be unchanged.
    OK(hipMemcpy, d_out, d_in, bytes, hipMemcpyDeviceToDevice);
    OK(hipMemcpy, out.data(), d_out, bytes, hipMemcpyDeviceToHost);
    if (std::memcmp(in.data(), out.data(), bytes)) app::fail("copied matrix");
    for (float v : out) sum += uint64_t(v);
  }

  OK(hipFree, d_in);
  OK(hipFree, d_out);
  std::printf("matrix_transpose: %d x %d, iterations %ld, copies verified, sum %llu\n", side, side, iterations,
              (unsigned long long)sum);
  app::finish();
}
