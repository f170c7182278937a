/* Repeatedly opens, uses and closes the library, before a run-time is loaded and after. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"
#include "roctracer.h"

static unsigned buffers;
static void on_buffer(const char* begin, const char* end, void* arg) {
  (void)begin, (void)end, (void)arg;
  buffers++;
}

static void* name(void* library, const char* symbol, const char* version) {
  void* found = dlvsym(library, symbol, version);
  CHECK(found && found == dlsym(library, symbol));
  return found;
}

static void* round_trip(void* arg) {
  (void)arg;
  void* library = dlopen("libroctracer64.so.4", RTLD_LAZY);
  CHECK(library);
  __typeof__(&roctracer_get_timestamp) now = name(library, "roctracer_get_timestamp", "ROCTRACER_4.0");
  __typeof__(&roctracer_open_pool_expl) open_pool = name(library, "roctracer_open_pool_expl", "ROCTRACER_4.0");
  __typeof__(&roctracer_close_pool_expl) close_pool = name(library, "roctracer_close_pool_expl", "ROCTRACER_4.0");
  __typeof__(&roctracer_default_pool) default_pool = name(library, "roctracer_default_pool", "ROCTRACER_4.1");
  uint64_t time = 0;
  GIVES(SUCCESS, now(&time));
  CHECK(time != 0 && default_pool() == NULL);
  roctracer_properties_t p = {0};
  p.buffer_size = 4096;
  p.buffer_callback_fun = on_buffer;
  roctracer_pool_t* pool = NULL;
  GIVES(SUCCESS, open_pool(&p, &pool));
  GIVES(SUCCESS, close_pool(pool));
  CHECK(dlclose(library) == 0);
  return NULL;
}

int main(void) {
  for (int i = 0; i < 20; i++) round_trip(NULL);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, round_trip, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  printf("ok\n");
  return 0;
}
