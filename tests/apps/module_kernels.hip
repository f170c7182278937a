// Stresses modules: a separate code object, which api_tour loads by name (compiled with --genco, no host part).
#include <hip/hip_runtime.h>

extern "C" __device__ int module_global[16];

extern "C" __global__ void module_add(int* p, int value) { p[blockIdx.x * blockDim.x + threadIdx.x] += value + module_global[0]; }

extern "C" __global__ void module_empty() {}

__device__ int module_global[16];
