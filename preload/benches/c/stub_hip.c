// Stands in for libamdhip64: one cheap call, as the run-time has it. With TRACER it has the tracer callback of 6.x too.
#include <stddef.h>
#include <stdint.h>

typedef int (*Callback)(uint32_t domain, uint32_t op, void *data);
typedef void (*Phase)(uint32_t op, void *data);

int stub_device;

__attribute__((noinline)) int stub_plain(int *device) {
  *device = stub_device;
  return 0;
}

// A call that has a site.
int hipMalloc(void **memory, size_t bytes) {
  *memory = (void *)bytes;
  return 0;
}

#ifdef TRACER
// hip_api_data_t of 6.x: the arguments, then the tool's words.
struct Data { uint64_t correlation; char arguments[1512]; uint64_t enter, phase_data; Phase on_enter, on_exit; };
_Static_assert(offsetof(struct Data, enter) == 1520, "where the collector expects it");

static Callback callback;
void hipRegisterTracerCallback(Callback wanted) { callback = wanted; }
const char *hipApiName(uint32_t id) { return id == 1 ? "hipGetDevice" : NULL; }

// What the run-time does around a call when somebody registered.
__attribute__((noinline)) int stub_asked(int *device) {
  struct Data data;
  Callback ask = callback;
  int traced = ask && ask(3, 1, &data) == 0;
  *device = stub_device;
  if (traced && data.on_exit) data.on_exit(1, &data);
  return 0;
}
int hipGetDevice(int *device) { return stub_asked(device); }
#else
int hipGetDevice(int *device) { return stub_plain(device); }
#endif
