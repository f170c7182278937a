/* Host twins of the kernels of matrix_transpose (EMULATED_GPU_KERNELS). */
#include <stdint.h>

struct arguments {
  float* out;
  const float* in;
  int side;
};

static void transpose(const void* block) {
  const struct arguments* a = block;
  for (int y = 0; y < a->side; y++)
    for (int x = 0; x < a->side; x++) a->out[x * a->side + y] = a->in[y * a->side + x];
}

void _Z15transpose_naivePfPKfi(const void* block, const uint32_t grid[3], const uint16_t workgroup[3]) {
  const struct arguments* a = block;
  if (grid[0] == (uint32_t)a->side && grid[1] == (uint32_t)a->side && workgroup[0] * workgroup[1] == 256) transpose(block);
}

void _Z15transpose_tiledPfPKfi(const void* block, const uint32_t grid[3], const uint16_t workgroup[3]) {
  (void)grid, (void)workgroup;
  transpose(block);
}
