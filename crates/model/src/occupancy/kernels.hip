// Kernels that take few and many registers, in work-groups of W work-items with L words of LDS.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#ifndef W
#define W 256
#endif
#ifndef L
#define L 1
#endif
#define B __attribute__((amdgpu_flat_work_group_size(W, W)))
template <int N> __device__ void many(float* p, int n) {
  float a[N];
  for (int i = 0; i < N; i++) a[i] = p[i * n + __builtin_amdgcn_workitem_id_x()];
  for (int k = 0; k < n; k++)
    for (int i = 0; i < N; i++) a[i] = a[i] * a[(i + 1) % N] + k;
  for (int i = 0; i < N; i++) p[i * n + __builtin_amdgcn_workitem_id_x()] = a[i];
}
#define K(N) extern "C" __global__ B void kernel_##N(float* p, int n) { __shared__ float s[L]; s[__builtin_amdgcn_workitem_id_x()%L]=p[n]; __builtin_amdgcn_s_barrier(); many<N>(p, n); p[n]=s[n%L]; }
K(4) K(20) K(28) K(36) K(44) K(60) K(76) K(92) K(124) K(160) K(220)
