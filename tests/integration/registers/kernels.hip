// Kernels that take few and many registers, without any header: every target of every compiler builds them.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
extern "C" __global__ void few(int* p) { p[__builtin_amdgcn_workitem_id_x()] = 1; }
template <int N> __device__ void many(float* p, int n) {
  float a[N];
  for (int i = 0; i < N; i++) a[i] = p[i * n + __builtin_amdgcn_workitem_id_x()];
  for (int k = 0; k < n; k++)
    for (int i = 0; i < N; i++) a[i] = a[i] * a[(i + 1) % N] + k;
  for (int i = 0; i < N; i++) p[i * n + __builtin_amdgcn_workitem_id_x()] = a[i];
}
extern "C" __global__ void vgpr20(float* p, int n) { many<20>(p, n); }
extern "C" __global__ void vgpr60(float* p, int n) { many<60>(p, n); }
extern "C" __global__ __launch_bounds__(64) void vgpr200(float* p, int n) { many<200>(p, n); }
