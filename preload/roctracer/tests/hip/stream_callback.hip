/* Streams with program callbacks while HIP is traced, with a stream created before and one created after the first
 * registration.
 *
 *   stream_callback callback|callbacks|records|work [late]
 *
 * late: HIP has started before the registration. Prints the number of callbacks, in order, and of records of work. */
#include <roctracer_hip.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#define OK(call)                                                                \
  do {                                                                          \
    int e = (int)(call);                                                        \
    if (e) return fprintf(stderr, "%d: %s gives %d\n", __LINE__, #call, e), 1; \
  } while (0)

static std::atomic<unsigned> traced, recorded, came;

static void api(uint32_t, uint32_t, const void*, void*) { traced++; }

static void buffer(const char* begin, const char* end, void*) {
  for (auto* record = (const roctracer_record_t*)begin; (const char*)record < end; roctracer_next_record(record, &record))
    recorded++;
}

static void in_order(hipStream_t, hipError_t, void* number) {
  if (came++ != (unsigned)(size_t)number) printf("out of order: %zu\n", (size_t)number);
}

__global__ void nothing() {}

static int run(hipStream_t stream, size_t& number) {
  nothing<<<1, 64, 0, stream>>>();
  OK(hipStreamAddCallback(stream, in_order, (void*)number++, 0));
  nothing<<<1, 64, 0, stream>>>();
  OK(hipStreamAddCallback(stream, in_order, (void*)number++, 0));
  OK(hipStreamAddCallback(stream, in_order, (void*)number++, 0));
  OK(hipDeviceSynchronize());
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  hipStream_t before = nullptr, after;
  size_t number = 0;
  if (argc > 2) OK(hipStreamCreate(&before));

  roctracer_properties_t properties;
  memset(&properties, 0, sizeof properties);
  properties.buffer_size = 0x1000;
  properties.buffer_callback_fun = buffer;
  OK(roctracer_open_pool(&properties));
  if (!strcmp(what, "callback")) {
    OK(roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, HIP_API_ID_hipStreamCreateWithFlags, api, nullptr));
  } else if (!strcmp(what, "callbacks")) {
    OK(roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, api, nullptr));
  } else if (!strcmp(what, "records")) {
    OK(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
  } else if (!strcmp(what, "work")) {
    OK(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_OPS));
  } else {
    return 2;
  }
  OK(hipStreamCreateWithFlags(&after, hipStreamDefault));
  if (before && run(before, number)) return 1;
  if (run(after, number) || run(nullptr, number)) return 1;
  OK(hipStreamDestroy(after));
  OK(roctracer_close_pool());
  printf("came %u of %zu\ntraced %u\nrecorded %u\ndone\n", came.load(), number, traced.load(), recorded.load());
  return 0;
}
