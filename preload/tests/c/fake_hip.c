// Stands in for libamdhip64: functions of every shape of arguments that HIP has, which say whether they arrived whole.
#include <stdint.h>
#include <string.h>

typedef struct { void *ptr; size_t pitch, x, y; } Pitched;
typedef struct { size_t width, height, depth; } Extent;
typedef struct { int x, y, z, w, f; } Desc;
typedef struct { char bytes[64]; } Handle;
typedef struct { unsigned x, y, z; } Dim3;

int hipGetDevice(int *device) { *device = 7; return 0; }
int hipMemcpyAsync(void *dst, const void *src, size_t size, int kind, void *stream) {
  (void)kind, (void)stream;
  memcpy(dst, src, size);
  return 0;
}
// Calls itself through the exported name, as the real one does.
int hipMemcpy(void *dst, const void *src, size_t size, int kind) { return hipMemcpyAsync(dst, src, size, kind, 0); }
int hipMemset3D(Pitched p, int value, Extent e) {
  return p.ptr == (void *)1 && p.pitch == 2 && p.x == 3 && p.y == 4 && value == 5 && e.width == 6 && e.height == 7 && e.depth == 8 ? 0 : 1;
}
int hipTexRefSetMipmapLevelClamp(void *t, float low, float high) { return t == (void *)9 && low == 1.5f && high == 2.5f ? 0 : 1; }
int hipIpcOpenMemHandle(void **p, Handle h, unsigned flags) {
  for (int i = 0; i < 64; i++) if (h.bytes[i] != (char)i) return 1;
  *p = (void *)5;
  return flags == 3 ? 0 : 1;
}
int hipLaunchKernel(const void *f, Dim3 g, Dim3 b, void **args, size_t lds, void *stream) {
  return f == (void *)1 && g.x == 2 && g.y == 3 && g.z == 4 && b.x == 5 && b.y == 6 && b.z == 7 && args == (void **)8 && lds == 9 && stream == (void *)0x10 ? 0 : 1;
}
int hipExtModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned lx, unsigned ly, unsigned lz, size_t lds,
                             void *stream, void **args, void **extra, void *e1, void *e2, unsigned flags) {
  return f == (void *)1 && gx == 2 && gy == 3 && gz == 4 && lx == 5 && ly == 6 && lz == 7 && lds == 8 && stream == (void *)0x90 &&
                 args == (void **)10 && extra == (void **)11 && e1 == (void *)12 && e2 == (void *)13 && flags == 14
             ? 0 : 1;
}
Desc hipCreateChannelDesc(int x, int y, int z, int w, int f) { Desc d = {x, y, z, w, f}; return d; }
const char *hipGetErrorString(int e) { return e == 2 ? "out of memory" : "?"; }
int hipMalloc(void **p, size_t size) { (void)p; return size > 1000 ? 2 : 0; }
int hipStreamCreate(void **s) { *s = (void *)0x1230; return 0; }
int hipProfilerStart(void) { return 0; }
int hipProfilerStop(void) { return 0; }
int hipStreamDestroy(void *s) { return s == (void *)0x1230 ? 0 : 1; }
// Newer than any table: fails, and asks for the error's text through the exported names, as the real one does.
const char *hipGetErrorName(int e) { return e == 2 ? "hipErrorOutOfMemory" : "?"; }
int hipNewerThanRoctop(void) { return hipGetErrorString(2)[0] == 'o' && hipGetErrorName(2)[0] == 'h' ? 2 : 0; }
