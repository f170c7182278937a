/* Kernels that the program has waited for have their records when it stops tracing, although HIP comes to them later: the
 * thread that reports work is in a stream's callback meanwhile. Prints how many came. */
#include <roctracer_ext.h>
#include <roctracer_hip.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#define OK(call)                                                                \
  do {                                                                          \
    int e = (int)(call);                                                        \
    if (e) return fprintf(stderr, "%d: %s gives %d\n", __LINE__, #call, e), 1; \
  } while (0)

static std::atomic<unsigned> recorded, is_slow;

static void buffer(const char* begin, const char* end, void*) {
  for (auto* record = (const roctracer_record_t*)begin; (const char*)record < end; roctracer_next_record(record, &record))
    recorded += record->op == HIP_OP_ID_DISPATCH;
}

static void slow(hipStream_t, hipError_t, void*) {
  is_slow = 1;
  usleep(300000);
}

__global__ void nothing() {}

int main() {
  constexpr unsigned launches = 100;
  roctracer_properties_t properties;
  memset(&properties, 0, sizeof properties);
  properties.buffer_size = 0x10000;
  properties.buffer_callback_fun = buffer;
  OK(roctracer_open_pool(&properties));
  OK(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_OPS));
  hipStream_t held, stream;
  OK(hipStreamCreate(&held));
  OK(hipStreamCreate(&stream));
  OK(hipStreamAddCallback(held, slow, nullptr, 0));
  while (!is_slow) usleep(100);
  for (unsigned i = 0; i < launches; i++) nothing<<<1, 64, 0, stream>>>();
  OK(hipStreamSynchronize(stream));
  roctracer_stop();
  OK(roctracer_flush_activity());
  printf("recorded %u of %u\n", recorded.load(), launches);
  OK(hipDeviceSynchronize());
  OK(roctracer_close_pool());
  printf("done\n");
  return 0;
}
