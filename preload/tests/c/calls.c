// Calls the stand-in for HIP in every shape; prints what came back.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct { void *ptr; size_t pitch, x, y; } Pitched;
typedef struct { size_t width, height, depth; } Extent;
typedef struct { int x, y, z, w, f; } Desc;
typedef struct { char bytes[64]; } Handle;
typedef struct { unsigned x, y, z; } Dim3;

int hipGetDevice(int *);
int hipMemcpy(void *, const void *, size_t, int);
int hipMemset3D(Pitched, int, Extent);
int hipTexRefSetMipmapLevelClamp(void *, float, float);
int hipIpcOpenMemHandle(void **, Handle, unsigned);
int hipLaunchKernel(const void *, Dim3, Dim3, void **, size_t, void *);
int hipExtModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, void *, void **, void **,
                             void *, void *, unsigned);
Desc hipCreateChannelDesc(int, int, int, int, int);
const char *hipGetErrorString(int);
int hipMalloc(void **, size_t);
int hipStreamCreate(void **);
int hipStreamDestroy(void *);

int main(void) {
  int device = 0;
  errno = 77;
  printf("%d", hipGetDevice(&device));
  printf(" %d errno %d\n", device, errno);
  char to[6] = "", from[6] = "hello";
  printf("%d ", hipMemcpy(to, from, 6, 0));
  puts(to);
  printf("%d\n", hipMemset3D((Pitched){(void *)1, 2, 3, 4}, 5, (Extent){6, 7, 8}));
  printf("%d\n", hipTexRefSetMipmapLevelClamp((void *)9, 1.5f, 2.5f));
  Handle handle;
  for (int i = 0; i < 64; i++) handle.bytes[i] = (char)i;
  void *p = 0;
  printf("%d\n", hipIpcOpenMemHandle(&p, handle, 3));
  printf("%d\n", hipLaunchKernel((void *)1, (Dim3){2, 3, 4}, (Dim3){5, 6, 7}, (void **)8, 9, (void *)0x10));
  printf("%d\n", hipExtModuleLaunchKernel((void *)1, 2, 3, 4, 5, 6, 7, 8, (void *)0x90, (void **)10, (void **)11, (void *)12, (void *)13, 14));
  Desc d = hipCreateChannelDesc(1, 2, 3, 4, 5);
  printf("%d %d %d %d %d\n", d.x, d.y, d.z, d.w, d.f);
  puts(hipGetErrorString(2));
  printf("%d\n", hipMalloc(&p, 2000));
  void *stream = 0;
  printf("%d", hipStreamCreate(&stream));
  printf(" %d\n", hipStreamDestroy(stream));
  return 0;
}
