// A kernel whose values do not fit into its registers, and one whose do.
//
//   spills
#include "count.hpp"

extern "C" __global__ __attribute__((amdgpu_num_vgpr(24))) void spilling(float* p) {
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; i++) v[i] = p[64 * threadIdx.x + i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 64; i++) p[64 * threadIdx.x + i] = v[63 - i] * v[i];
}

extern "C" __global__ void fitting(float* p) { p[threadIdx.x] += 1; }

int main() {
  float* data;
  OK(hipMalloc, (void**)&data, 64 * 64 * sizeof *data);
  LAUNCH(spilling, 1, 64, 0, 0, data);
  LAUNCH(fitting, 1, 64, 0, 0, data);
  OK(hipDeviceSynchronize);
  OK(hipFree, data);
  std::printf("spills: done\n");
  app::finish();
}
