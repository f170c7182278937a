/* Each rule of ROCTracer's manual, on a HIP without a GPU. One rule per process. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "fake_hip.h"
#include "roctracer.h"
#include "roctracer_ext.h"
#include "roctracer_roctx.h"

/* ---- Data of callbacks and pools -------------------------------------------------------------------------------- */

struct seen {
  uint32_t domain, op, phase;
  uint64_t correlation, argument;
  void* arg;
};
static struct seen calls[64];
static atomic_uint call_count;

static void on_call(uint32_t domain, uint32_t op, const void* data, void* arg) {
  const uint64_t* words = data;
  struct seen* seen = &calls[call_count++ % 64];
  seen->domain = domain;
  seen->op = op;
  seen->correlation = words[0];
  seen->phase = (uint32_t)words[1];
  seen->argument = words[2];
  seen->arg = arg;
}

static void on_other_call(uint32_t domain, uint32_t op, const void* data, void* arg) {
  (void)domain, (void)op, (void)data;
  ++*(int*)arg;
}

struct sink {
  activity_record_t records[4096];
  char names[4096][32];
  atomic_uint count, buffers;
  size_t largest;
  pthread_t thread;
  atomic_int is_slow;
};
static struct sink sinks[2];

static void on_buffer(const char* begin, const char* end, void* arg) {
  struct sink* sink = arg;
  const activity_record_t* record = (const activity_record_t*)begin;
  CHECK((end - begin) % sizeof *record == 0 && end > begin);
  if ((size_t)(end - begin) > sink->largest) sink->largest = end - begin;
  if (sink->is_slow) usleep(30000);
  while (record < (const activity_record_t*)end) {
    const unsigned at = sink->count % 4096;
    sink->records[at] = *record;
    if (record->domain == ACTIVITY_DOMAIN_HIP_OPS && record->op == 0 && record->kernel_name)
      snprintf(sink->names[at], sizeof sink->names[at], "%s", record->kernel_name);
    sink->count++;
    GIVES(SUCCESS, roctracer_next_record(record, &record));
  }
  sink->thread = pthread_self();
  sink->buffers++;
}

static roctracer_properties_t properties(int sink, size_t size) {
  roctracer_properties_t p;
  memset(&p, 0, sizeof p);
  p.buffer_size = size;
  p.buffer_callback_fun = on_buffer;
  p.buffer_callback_arg = &sinks[sink];
  return p;
}

static void open_default(size_t size) {
  const roctracer_properties_t p = properties(0, size);
  GIVES(SUCCESS, roctracer_open_pool(&p));
}

/* ---- Versions, errors, names ------------------------------------------------------------------------------------ */

static void versions(void) {
  CHECK(roctracer_version_major() == ROCTRACER_VERSION_MAJOR && ROCTRACER_VERSION_MAJOR == 4);
  CHECK(roctracer_minor_version() == ROCTRACER_VERSION_MINOR && ROCTRACER_VERSION_MINOR == 1);
}

static int has_error(const char* part) {
  char* text = (char*)roctracer_error_string();
  const int has = part ? strstr(text, part) != NULL : text[0] == 0;
  free(text);
  return has;
}

static void* another_thread(void* arg) {
  (void)arg;
  CHECK(has_error(NULL));
  return NULL;
}

static void error_strings(void) {
  CHECK(has_error(NULL));
  GIVES(ERROR_INVALID_DOMAIN_ID, roctracer_disable_domain_callback((activity_domain_t)77));
  CHECK(has_error("77"));
  /* A success keeps it, each thread has its own, it can be read twice. */
  GIVES(SUCCESS, roctracer_disable_domain_callback(ACTIVITY_DOMAIN_HIP_API));
  CHECK(has_error("77") && has_error("77"));
  pthread_t thread;
  pthread_create(&thread, NULL, another_thread, NULL);
  pthread_join(thread, NULL);
  GIVES(ERROR_DEFAULT_POOL_UNDEFINED, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_OPS, 0));
  CHECK(has_error("default pool") && !has_error("77"));
}

static int is(const char* text, const char* expected) { return text && strcmp(text, expected) == 0; }

static void names(void) {
  CHECK(is(roctracer_op_string(ACTIVITY_DOMAIN_HIP_API, 1, 0), "hipFake1"));
  CHECK(is(roctracer_id_string(ACTIVITY_DOMAIN_HIP_API, 40), "hipFake40"));
  CHECK(is(roctracer_op_string(ACTIVITY_DOMAIN_HIP_OPS, 0, 0x11f0), "KernelExecution"));
  CHECK(is(roctracer_op_string(ACTIVITY_DOMAIN_HIP_OPS, 1, 0x11f4), "CopyHostToDevice"));
  CHECK(is(roctracer_op_string(ACTIVITY_DOMAIN_HSA_API, 0, 0), "hsa_init"));
  CHECK(is(roctracer_op_string(ACTIVITY_DOMAIN_HSA_API, 7, 0), "hsa_queue_create"));
  CHECK(is(roctracer_op_string(ACTIVITY_DOMAIN_HSA_API, 125, 0), "hsa_amd_coherency_get_type"));
  const char* ops[] = {"DISPATCH", "COPY", "BARRIER", "PCSAMPLE"};
  for (uint32_t op = 0; op < 4; op++) CHECK(is(roctracer_op_string(ACTIVITY_DOMAIN_HSA_OPS, op, 0), ops[op]));
  const char* events[] = {"ALLOCATE", "DEVICE", "MEMCOPY", "SUBMIT", "KSYMBOL", "CODEOBJ"};
  for (uint32_t op = 0; op < 6; op++) CHECK(is(roctracer_op_string(ACTIVITY_DOMAIN_HSA_EVT, op, 0), events[op]));
  CHECK(is(roctracer_op_string(ACTIVITY_DOMAIN_EXT_API, ACTIVITY_EXT_OP_EXTERN_ID, 0), "EXT_API"));
  CHECK(!roctracer_op_string(ACTIVITY_DOMAIN_HSA_OPS, 4, 0) && has_error("no operation 4"));
  CHECK(!roctracer_op_string(ACTIVITY_DOMAIN_HSA_EVT, 6, 0));
  CHECK(!roctracer_op_string(ACTIVITY_DOMAIN_KFD_API, 0, 0));
  CHECK(!roctracer_op_string(ACTIVITY_DOMAIN_NUMBER, 0, 0) && has_error("8 is not a domain"));
}

static void codes(void) {
  uint32_t op = 99, kind = 99;
  GIVES(SUCCESS, roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, "hipFake33", &op, &kind));
  CHECK(op == 33 && kind == 0);
  GIVES(SUCCESS, roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, "hipFake7", &op, NULL));
  CHECK(op == 7);
  GIVES(SUCCESS, roctracer_op_code(ACTIVITY_DOMAIN_HSA_API, "hsa_signal_create", &op, &kind));
  CHECK(op == 37 && kind == 0);
  op = 5;
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, "hipNothing", &op, &kind));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, "unknown", &op, &kind));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_op_code(ACTIVITY_DOMAIN_HSA_API, "hsa_nothing", &op, &kind));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, NULL, &op, &kind));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, "hipFake7", NULL, &kind));
  GIVES(BAD_DOMAIN, roctracer_op_code(ACTIVITY_DOMAIN_ROCTX, "roctxMarkA", &op, &kind));
  GIVES(BAD_DOMAIN, roctracer_op_code(1000, "x", &op, &kind));
  CHECK(op == 5);
}

/* ---- Callbacks -------------------------------------------------------------------------------------------------- */

static uint64_t inner_word;
static void stores_word(uint32_t domain, uint32_t op, const void* data, void* arg) {
  (void)domain, (void)op, (void)arg;
  uint64_t* const* word = (uint64_t* const*)((const char*)data + 1512);
  if (((const uint32_t*)data)[2] == ACTIVITY_API_PHASE_ENTER) {
    **word = 4711;
  } else {
    inner_word = **word;
  }
}

static void callbacks_of_an_operation(void) {
  int arg = 0;
  CHECK(!fake_is_registered());
  GIVES(SUCCESS, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, 5, on_call, &arg));
  CHECK(fake_is_registered());
  fake_call(4, 1, NULL);
  CHECK(call_count == 0);
  fake_call(5, 12345, NULL);
  CHECK(call_count == 2);
  CHECK(calls[0].domain == ACTIVITY_DOMAIN_HIP_API && calls[0].op == 5 && calls[0].arg == &arg);
  CHECK(calls[0].phase == ROCTRACER_API_PHASE_ENTER && calls[1].phase == ROCTRACER_API_PHASE_EXIT);
  CHECK(calls[0].argument == 12345 && calls[1].argument == 12345);
  CHECK(calls[0].correlation != 0 && calls[0].correlation == calls[1].correlation);
  fake_call(5, 0, NULL);
  CHECK(call_count == 4 && calls[2].correlation > calls[0].correlation);
  /* A second callback replaces it. */
  GIVES(SUCCESS, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, 5, on_other_call, &arg));
  fake_call(5, 0, NULL);
  CHECK(call_count == 4 && arg == 2);
  GIVES(SUCCESS, roctracer_disable_op_callback(ACTIVITY_DOMAIN_HIP_API, 5));
  fake_call(5, 0, NULL);
  CHECK(arg == 2 && !fake_is_registered());
  /* The program's word is kept from the first phase to the second. */
  GIVES(SUCCESS, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, 5, stores_word, NULL));
  fake_call(5, 0, NULL);
  CHECK(inner_word == 4711);
}

static void callbacks_of_a_domain_and_of_all(void) {
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, on_call, NULL));
  for (uint32_t op = 1; op <= FAKE_CALLS; op++) fake_call(op, op, NULL);
  CHECK(call_count == 2 * FAKE_CALLS);
  GIVES(SUCCESS, roctracer_disable_op_callback(ACTIVITY_DOMAIN_HIP_API, 1));
  fake_call(1, 0, NULL);
  fake_call(2, 0, NULL);
  CHECK(call_count == 2 * FAKE_CALLS + 2);
  GIVES(SUCCESS, roctracer_disable_domain_callback(ACTIVITY_DOMAIN_HIP_API));
  fake_call(2, 0, NULL);
  CHECK(call_count == 2 * FAKE_CALLS + 2);
  GIVES(SUCCESS, roctracer_enable_callback(on_call, NULL));
  fake_call(3, 0, NULL);
  roctxMark("all");
  CHECK(call_count == 2 * FAKE_CALLS + 5);
  GIVES(SUCCESS, roctracer_disable_callback());
  fake_call(3, 0, NULL);
  roctxMark("none");
  CHECK(call_count == 2 * FAKE_CALLS + 5 && !fake_is_registered());
  /* The manual's name for all operations. */
  GIVES(SUCCESS, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, 0xffffffffu, on_call, NULL));
  fake_call(40, 0, NULL);
  CHECK(call_count == 2 * FAKE_CALLS + 7);
}

static void calls_inside(void) { fake_call(6, 0, NULL); }

static void a_call_inside_a_call_has_its_own_id(void) {
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, on_call, NULL));
  fake_call(5, 0, calls_inside);
  CHECK(call_count == 4);
  CHECK(calls[0].op == 5 && calls[1].op == 6 && calls[2].op == 6 && calls[3].op == 5);
  CHECK(calls[1].correlation == calls[2].correlation && calls[0].correlation == calls[3].correlation);
  CHECK(calls[0].correlation != calls[1].correlation);
}

static void marks(void) {
  GIVES(SUCCESS, roctracer_enable_op_callback(ACTIVITY_DOMAIN_ROCTX, ROCTX_API_ID_roctxRangePushA, on_call, NULL));
  roctxMark("not asked for");
  CHECK(call_count == 0);
  CHECK(roctxRangePush("pushed") == 0);
  CHECK(call_count == 1 && calls[0].domain == ACTIVITY_DOMAIN_ROCTX && calls[0].op == ROCTX_API_ID_roctxRangePushA);
  CHECK(strcmp((const char*)calls[0].correlation, "pushed") == 0);
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_ROCTX, on_call, NULL));
  CHECK(roctxRangePop() == 0 && roctxRangePop() == -1);
  const roctx_range_id_t id = roctxRangeStart("started");
  roctxRangeStop(id);
  CHECK(call_count == 5 && id != 0);
  CHECK(calls[1].op == ROCTX_API_ID_roctxRangePop && calls[1].correlation == 0);
  CHECK(calls[3].op == ROCTX_API_ID_roctxRangeStartA && calls[4].op == ROCTX_API_ID_roctxRangeStop);
  /* Start and stop do not affect marks. */
  roctracer_stop();
  roctxMark("while stopped");
  CHECK(call_count == 6);
  GIVES(SUCCESS, roctracer_disable_domain_callback(ACTIVITY_DOMAIN_ROCTX));
  roctxMark("not any more");
  CHECK(call_count == 6);
}

/* ---- Pools ------------------------------------------------------------------------------------------------------ */

static void the_default_pool(void) {
  const roctracer_properties_t p = properties(0, 4096);
  CHECK(roctracer_default_pool() == NULL);
  GIVES(SUCCESS, roctracer_close_pool());
  GIVES(SUCCESS, roctracer_flush_activity());
  GIVES(SUCCESS, roctracer_open_pool(&p));
  roctracer_pool_t* first = roctracer_default_pool();
  CHECK(first != NULL && roctracer_default_pool_expl(NULL) == first);
  GIVES(ERROR_DEFAULT_POOL_ALREADY_DEFINED, roctracer_open_pool(&p));
  GIVES(ERROR_DEFAULT_POOL_ALREADY_DEFINED, roctracer_open_pool_expl(&p, NULL));
  CHECK(roctracer_default_pool() == first);
  /* A separate pool does not affect the default one. */
  roctracer_pool_t* second = NULL;
  GIVES(SUCCESS, roctracer_open_pool_expl(&p, &second));
  CHECK(second != NULL && second != first && roctracer_default_pool() == first);
  CHECK(roctracer_default_pool_expl(second) == first && roctracer_default_pool() == second);
  GIVES(SUCCESS, roctracer_close_pool());
  CHECK(roctracer_default_pool() == NULL);
  GIVES(SUCCESS, roctracer_close_pool_expl(first));
  /* Without one, the explicit form opens it. */
  GIVES(SUCCESS, roctracer_open_pool_expl(&p, NULL));
  CHECK(roctracer_default_pool() != NULL);
  GIVES(SUCCESS, roctracer_close_pool_expl(NULL));
  CHECK(roctracer_default_pool() == NULL);
}

static void misused_pools(void) {
  roctracer_properties_t p = properties(0, 4096);
  roctracer_pool_t* pool = NULL;
  int nothing = 0;
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_open_pool(NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_open_pool_expl(NULL, &pool));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_close_pool_expl(&nothing));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_flush_activity_expl(&nothing));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_activity_expl(ACTIVITY_DOMAIN_HIP_OPS, 0, &nothing));
  CHECK(roctracer_default_pool_expl(&nothing) == NULL && roctracer_default_pool() == NULL);
  GIVES(SUCCESS, roctracer_open_pool_expl(&p, &pool));
  GIVES(SUCCESS, roctracer_close_pool_expl(pool));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_close_pool_expl(pool));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_flush_activity_expl(pool));
  p.buffer_callback_fun = NULL;
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_open_pool(&p));
  p = properties(0, SIZE_MAX / 2);
  GIVES(ERROR_MEMORY_ALLOCATION, roctracer_open_pool(&p));
  CHECK(has_error("no memory"));
  p = properties(0, SIZE_MAX);
  GIVES(ERROR_MEMORY_ALLOCATION, roctracer_open_pool(&p));
  CHECK(roctracer_default_pool() == NULL);
}

static int given, taken;
static size_t given_size;
static void allocate(char** ptr, size_t size, void* arg) {
  CHECK(arg == &given);
  if (size != 0) {
    CHECK(*ptr == NULL);
    given++;
    given_size = size;
    /* Unaligned: the program chooses its memory. */
    *ptr = (char*)malloc(size + 1) + 1;
  } else {
    taken++;
    free(*ptr - 1);
    *ptr = NULL;
  }
}
static void refuse(char** ptr, size_t size, void* arg) { (void)ptr, (void)size, (void)arg; }

static void own_allocators(void) {
  roctracer_properties_t p = properties(0, 1024);
  p.alloc_fun = allocate;
  p.alloc_arg = &given;
  GIVES(SUCCESS, roctracer_open_pool(&p));
  CHECK(given == 1 && taken == 0 && given_size >= 2 * 1024);
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  for (int i = 0; i < 100; i++) fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_close_pool());
  CHECK(given == 1 && taken == 1 && sinks[0].count == 100);
  p.alloc_fun = refuse;
  GIVES(ERROR_MEMORY_ALLOCATION, roctracer_open_pool(&p));
}

static void records_of_calls(void) {
  GIVES(ERROR_DEFAULT_POOL_UNDEFINED, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  GIVES(ERROR_DEFAULT_POOL_UNDEFINED, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
  GIVES(ERROR_DEFAULT_POOL_UNDEFINED, roctracer_enable_activity());
  open_default(4096);
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  GIVES(SUCCESS, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, 3, on_call, NULL));
  uint64_t before, after;
  GIVES(SUCCESS, roctracer_get_timestamp(&before));
  fake_call(2, 0, NULL);
  fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_get_timestamp(&after));
  CHECK(sinks[0].count == 0);
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(sinks[0].count == 1 && sinks[0].buffers == 1);
  const activity_record_t* r = &sinks[0].records[0];
  CHECK(r->domain == ACTIVITY_DOMAIN_HIP_API && r->op == 3 && r->activity_id == 3 && r->kind == 0);
  CHECK(r->correlation_id == calls[0].correlation);
  CHECK(before <= r->begin_ns && r->begin_ns <= r->end_ns && r->end_ns <= after);
  CHECK(r->process_id == (uint32_t)getpid() && r->thread_id == (uint32_t)syscall(SYS_gettid));
  CHECK(!pthread_equal(sinks[0].thread, pthread_self()));
  /* Records need no callback, and callbacks no records. */
  GIVES(SUCCESS, roctracer_disable_op_callback(ACTIVITY_DOMAIN_HIP_API, 3));
  fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_disable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(sinks[0].count == 2 && call_count == 2 && !fake_is_registered());
  /* For a domain, for all domains. */
  GIVES(SUCCESS, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
  for (uint32_t op = 1; op <= FAKE_CALLS; op++) fake_call(op, 0, NULL);
  GIVES(SUCCESS, roctracer_disable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
  fake_call(1, 0, NULL);
  GIVES(SUCCESS, roctracer_enable_activity());
  fake_call(1, 0, NULL);
  CHECK(fake_work(1, 0x11f4, 1, 2, NULL, 64));
  GIVES(SUCCESS, roctracer_disable_activity());
  CHECK(!fake_work(1, 0x11f4, 1, 2, NULL, 64));
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(sinks[0].count == 2 + FAKE_CALLS + 2);
}

static void starts_a_copy(void) { CHECK(fake_work(1, 0x11f4, 100, 200, NULL, 4096)); }

static void records_of_work(void) {
  open_default(4096);
  CHECK(!fake_work(0, 0x11f0, 1, 2, "kernel", 0));
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_OPS, 1));
  CHECK(!fake_work(0, 0x11f0, 1, 2, "kernel", 0));
  GIVES(SUCCESS, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_OPS));
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 9));
  fake_call(9, 0, starts_a_copy);
  CHECK(fake_work(0, 0x11f0, 10, 20, "a kernel", 0));
  CHECK(fake_work(0, 0x11f0, 11, 21, NULL, 0));
  CHECK(fake_work(2, 0x11fe, 12, 22, NULL, 0));
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(sinks[0].count == 5);
  const activity_record_t* r = sinks[0].records;
  CHECK(r[0].domain == ACTIVITY_DOMAIN_HIP_OPS && r[0].op == 1 && r[0].kind == 0x11f4 && r[0].bytes == 4096);
  CHECK(r[0].begin_ns == 100 && r[0].end_ns == 200 && r[0].device_id == 3 && r[0].stream_id == 7);
  CHECK(r[0].correlation_id == r[1].correlation_id && r[1].op == 9);
  CHECK(r[2].correlation_id == 0 && strcmp(sinks[0].names[2], "a kernel") == 0);
  CHECK(r[3].kernel_name == NULL && r[4].op == 2);
}

static void names_beside_records(void) {
  /* Space for two records in all: a name, and one that does not fit beside a record. */
  open_default(128);
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_OPS, 0));
  char fits[64], long_name[200];
  memset(fits, 'f', sizeof fits);
  fits[63] = 0;
  memset(long_name, 'l', sizeof long_name);
  long_name[199] = 0;
  CHECK(fake_work(0, 0x11f0, 1, 2, fits, 0));
  CHECK(sinks[0].count == 0);
  CHECK(fake_work(0, 0x11f0, 3, 4, "short", 0));
  CHECK(fake_work(0, 0x11f0, 5, 6, long_name, 0));
  /* The long one is valid only during the call, so all of them have been delivered. */
  CHECK(sinks[0].count == 3 && sinks[0].largest <= 128);
  CHECK(strncmp(sinks[0].names[0], fits, 31) == 0 && strcmp(sinks[0].names[1], "short") == 0);
  CHECK(strncmp(sinks[0].names[2], long_name, 31) == 0);
}

static void small_buffers(void) {
  /* The manual's own size. Each buffer has space for a record and its external id. */
  open_default(12);
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  sinks[0].is_slow = 1;
  for (uint32_t i = 0; i < 9; i++) fake_call(3, 0, NULL);
  /* One buffer is being written, the program has the other: at least the first six were delivered. */
  CHECK(sinks[0].count >= 4);
  sinks[0].is_slow = 0;
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(sinks[0].count == 9 && sinks[0].buffers == 5 && sinks[0].largest == 128);
  for (uint32_t i = 1; i < 9; i++)
    CHECK(sinks[0].records[i].correlation_id == sinks[0].records[i - 1].correlation_id + 1);
  GIVES(SUCCESS, roctracer_activity_push_external_correlation_id(5));
  fake_call(3, 0, NULL);
  fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_close_pool());
  CHECK(sinks[0].count == 13);
}

static atomic_int is_over;
static void* writes(void* arg) {
  (void)arg;
  while (!is_over) fake_call(3, 0, NULL);
  return NULL;
}

static void flushing(void) {
  open_default(1 << 16);
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  fake_call(3, 0, NULL);
  /* It returns only after the program has seen the records. */
  sinks[0].is_slow = 1;
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(sinks[0].count == 1);
  const uint64_t first = sinks[0].records[0].correlation_id;
  sinks[0].is_slow = 0;
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(sinks[0].buffers == 1);
  /* Records written during the flush are delivered whole, now or with a later flush. */
  pthread_t thread;
  pthread_create(&thread, NULL, writes, NULL);
  for (int i = 0; i < 50; i++) {
    GIVES(SUCCESS, roctracer_flush_activity());
    usleep(200);
  }
  is_over = 1;
  pthread_join(thread, NULL);
  GIVES(SUCCESS, roctracer_flush_activity());
  const unsigned seen = sinks[0].count;
  fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_flush_activity());
  /* Every call had an id, one more than the previous, and all are present. */
  CHECK(sinks[0].count == seen + 1);
  CHECK(sinks[0].records[seen % 4096].correlation_id == first + seen);
}

static roctracer_status_t from_inside[3];
static void flushes_itself(const char* begin, const char* end, void* arg) {
  (void)begin, (void)end, (void)arg;
  from_inside[0] = roctracer_flush_activity();
  from_inside[1] = roctracer_close_pool();
  /* More than both buffers hold: records that cannot be waited for are dropped. */
  for (int i = 0; i < 10; i++) fake_call(3, 0, NULL);
  from_inside[2] = roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 4);
}

static void from_its_own_callback(void) {
  roctracer_properties_t p = properties(0, 128);
  p.buffer_callback_fun = flushes_itself;
  GIVES(SUCCESS, roctracer_open_pool(&p));
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  from_inside[0] = from_inside[1] = from_inside[2] = (roctracer_status_t)99;
  fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_flush_activity());
  GIVES(SUCCESS, from_inside[0]);
  GIVES(ERROR, from_inside[1]);
  GIVES(SUCCESS, from_inside[2]);
  GIVES(SUCCESS, roctracer_disable_activity());
  GIVES(SUCCESS, roctracer_close_pool());
}

static atomic_uint of_writers;
static void calls_back(const char* begin, const char* end, void* arg) {
  (void)arg;
  const activity_record_t* record = (const activity_record_t*)begin;
  for (; record < (const activity_record_t*)end; record++) of_writers += record->op == 4;
  fake_call(3, 0, NULL);
}
static void* writes_much(void* arg) {
  (void)arg;
  for (int i = 0; i < 5000; i++) fake_call(4, 0, NULL);
  return NULL;
}

static void a_callback_that_calls_among_writers(void) {
  /* Writers wait for the program's callback, which itself writes: it does not wait, and they lose nothing. */
  roctracer_properties_t p = properties(0, 256);
  p.buffer_callback_fun = calls_back;
  alarm(60);
  GIVES(SUCCESS, roctracer_open_pool(&p));
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 4));
  pthread_t writers[3];
  for (int i = 0; i < 3; i++) pthread_create(&writers[i], NULL, writes_much, NULL);
  for (int i = 0; i < 3; i++) pthread_join(writers[i], NULL);
  GIVES(SUCCESS, roctracer_disable_activity());
  GIVES(SUCCESS, roctracer_close_pool());
  CHECK(of_writers == 3 * 5000);
}

static void closing(void) {
  roctracer_pool_t* other = NULL;
  const roctracer_properties_t p = properties(1, 4096);
  open_default(4096);
  GIVES(SUCCESS, roctracer_open_pool_expl(&p, &other));
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  GIVES(SUCCESS, roctracer_enable_op_activity_expl(ACTIVITY_DOMAIN_HIP_API, 4, other));
  GIVES(SUCCESS, roctracer_enable_op_activity_expl(ACTIVITY_DOMAIN_HIP_OPS, 1, other));
  fake_call(3, 0, NULL);
  fake_call(4, 0, NULL);
  /* Written records are delivered, further writing is disabled, the other pool is unchanged. */
  GIVES(SUCCESS, roctracer_close_pool_expl(other));
  CHECK(sinks[1].count == 1 && sinks[0].count == 0);
  CHECK(!fake_work(1, 0x11f4, 1, 2, NULL, 1));
  fake_call(4, 0, NULL);
  fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_close_pool());
  CHECK(sinks[0].count == 2 && sinks[1].count == 1);
  CHECK(!fake_is_registered());
  fake_call(3, 0, NULL);
  /* A new pool does not inherit an old one's registrations. */
  open_default(4096);
  fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_close_pool());
  CHECK(sinks[0].count == 2);
}

/* ---- External ids, start and stop, properties ------------------------------------------------------------------- */

static void* has_no_id(void* arg) {
  (void)arg;
  activity_correlation_id_t last = 1;
  GIVES(ERROR_MISMATCHED_EXTERNAL_CORRELATION_ID, roctracer_activity_pop_external_correlation_id(&last));
  CHECK(last == 0);
  fake_call(3, 0, NULL);
  return NULL;
}

static void external_ids(void) {
  open_default(4096);
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  fake_call(3, 0, NULL);
  GIVES(SUCCESS, roctracer_activity_push_external_correlation_id(31));
  GIVES(SUCCESS, roctracer_activity_push_external_correlation_id(0));
  fake_call(3, 0, NULL);
  activity_correlation_id_t last = 99;
  GIVES(SUCCESS, roctracer_activity_pop_external_correlation_id(&last));
  CHECK(last == 0);
  fake_call(3, 0, NULL);
  pthread_t thread;
  pthread_create(&thread, NULL, has_no_id, NULL);
  pthread_join(thread, NULL);
  GIVES(SUCCESS, roctracer_activity_pop_external_correlation_id(NULL));
  fake_call(3, 0, NULL);
  GIVES(ERROR_MISMATCHED_EXTERNAL_CORRELATION_ID, roctracer_activity_pop_external_correlation_id(&last));
  GIVES(ERROR_MISMATCHED_EXTERNAL_CORRELATION_ID, roctracer_activity_pop_external_correlation_id(NULL));
  CHECK(last == 0 && has_error("no external correlation id"));
  GIVES(SUCCESS, roctracer_flush_activity());
  /* One alone, two with ids, the other thread's, one alone. */
  CHECK(sinks[0].count == 7);
  const activity_record_t* r = sinks[0].records;
  const uint32_t domains[] = {3, 5, 3, 5, 3, 3, 3};
  for (int i = 0; i < 7; i++) CHECK(r[i].domain == domains[i]);
  CHECK(r[1].op == ACTIVITY_EXT_OP_EXTERN_ID && r[1].external_id == 0 && r[3].external_id == 31);
  CHECK(r[1].correlation_id == r[2].correlation_id && r[3].correlation_id == r[4].correlation_id);
}

static int starts, stops;
static void on_start(void) { starts++; }
static void on_stop(void) { stops++; }

static void starting_and_stopping(void) {
  roctracer_ext_properties_t p = {on_start, on_stop};
  GIVES(SUCCESS, roctracer_set_properties(ACTIVITY_DOMAIN_EXT_API, &p));
  open_default(4096);
  GIVES(SUCCESS, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_OPS));
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  GIVES(SUCCESS, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, 3, on_call, NULL));
  roctracer_start();
  CHECK(starts == 0);
  roctracer_stop();
  roctracer_stop();
  CHECK(stops == 1 && starts == 0);
  fake_call(3, 0, NULL);
  CHECK(!fake_work(1, 0x11f4, 1, 2, NULL, 1));
  CHECK(call_count == 0);
  roctracer_start();
  roctracer_start();
  CHECK(starts == 1);
  fake_call(3, 0, NULL);
  CHECK(fake_work(1, 0x11f4, 1, 2, NULL, 1));
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(call_count == 2 && sinks[0].count == 2);
}

static void statuses(void) {
  const activity_record_t record = {0};
  const activity_record_t* next = NULL;
  /* Domains and operations of callbacks. */
  GIVES(ERROR_INVALID_DOMAIN_ID, roctracer_enable_op_callback((activity_domain_t)8, 0, on_call, NULL));
  GIVES(ERROR_INVALID_DOMAIN_ID, roctracer_enable_domain_callback((activity_domain_t)99, on_call, NULL));
  GIVES(ERROR_INVALID_DOMAIN_ID, roctracer_disable_op_callback((activity_domain_t)8, 0));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, 41, on_call, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_disable_op_callback(ACTIVITY_DOMAIN_HIP_API, 41));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HSA_API, 5000, on_call, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HSA_EVT, 6, on_call, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_OPS, 3, on_call, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HSA_OPS, 4, on_call, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_callback(ACTIVITY_DOMAIN_ROCTX, 5, on_call, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_callback(ACTIVITY_DOMAIN_EXT_API, 0, on_call, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, 1, NULL, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, NULL, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_callback(NULL, NULL));
  /* KFD_API is accepted and yields nothing. */
  GIVES(SUCCESS, roctracer_enable_op_callback(ACTIVITY_DOMAIN_KFD_API, 17, on_call, NULL));
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_KFD_API, on_call, NULL));
  GIVES(SUCCESS, roctracer_disable_domain_callback(ACTIVITY_DOMAIN_KFD_API));
  GIVES(SUCCESS, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_KFD_API));
  /* Removing something that was not registered is no error. */
  GIVES(SUCCESS, roctracer_disable_callback());
  GIVES(SUCCESS, roctracer_disable_activity());
  GIVES(SUCCESS, roctracer_disable_op_activity(ACTIVITY_DOMAIN_HIP_OPS, 0));
  /* For records. */
  open_default(4096);
  GIVES(ERROR_INVALID_DOMAIN_ID, roctracer_enable_op_activity((activity_domain_t)8, 0));
  GIVES(ERROR_INVALID_DOMAIN_ID, roctracer_enable_domain_activity((activity_domain_t)8));
  GIVES(ERROR_INVALID_DOMAIN_ID, roctracer_disable_domain_activity((activity_domain_t)8));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_OPS, 3));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_disable_op_activity(ACTIVITY_DOMAIN_HIP_OPS, 3));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 41));
  GIVES(SUCCESS, roctracer_enable_op_activity(ACTIVITY_DOMAIN_KFD_API, 3));
  /* The rest. */
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_next_record(NULL, &next));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_next_record(&record, NULL));
  GIVES(SUCCESS, roctracer_next_record(&record, &next));
  CHECK(next == &record + 1 && sizeof record == 64);
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_get_timestamp(NULL));
  GIVES(ERROR_INVALID_ARGUMENT, roctracer_set_properties(ACTIVITY_DOMAIN_EXT_API, NULL));
  GIVES(ERROR_INVALID_DOMAIN_ID, roctracer_set_properties(ACTIVITY_DOMAIN_ROCTX, NULL));
  GIVES(ERROR_INVALID_DOMAIN_ID, roctracer_set_properties((activity_domain_t)8, NULL));
  GIVES(SUCCESS, roctracer_set_properties(ACTIVITY_DOMAIN_HIP_API, NULL));
  GIVES(SUCCESS, roctracer_set_properties(ACTIVITY_DOMAIN_HSA_OPS, NULL));
  CHECK(call_count == 0);
}

int roctracer_load(void);
void roctracer_unload(void);
void roctracer_flush_buf(void);
void roctracer_mark(const char*);

static void older_interfaces(void) {
  CHECK(roctracer_load() == 1);
  roctracer_flush_buf();
  roctracer_mark("x");
  roctracer_unload();
  uint64_t first = 0, second = 0;
  GIVES(SUCCESS, roctracer_get_timestamp(&first));
  GIVES(SUCCESS, roctracer_get_timestamp(&second));
  CHECK(first > 0 && second >= first);
}

/* ---- Threads and forks ------------------------------------------------------------------------------------------ */

#ifndef CALLS_EACH
#define CALLS_EACH 20000
#endif
enum { THREADS = 8 };
static atomic_uint counted;
static void counts(uint32_t domain, uint32_t op, const void* data, void* arg) {
  (void)domain, (void)op, (void)data, (void)arg;
  counted++;
}
static void* calls_much(void* arg) {
  (void)arg;
  for (int i = 0; i < CALLS_EACH; i++) fake_call(1 + (uint32_t)i % 10, 0, NULL);
  return NULL;
}

static void threads(void) {
  open_default(64 * 100);
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, counts, NULL));
  GIVES(SUCCESS, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
  pthread_t all[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, calls_much, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(counted == 2 * THREADS * CALLS_EACH);
  CHECK(sinks[0].count == THREADS * CALLS_EACH);
  /* Registrations change during calls: a callback before the call is followed by one after it. */
  counted = 0;
  for (int i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, calls_much, NULL);
  for (int i = 0; i < 200; i++) {
    GIVES(SUCCESS, roctracer_disable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
    GIVES(SUCCESS, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
    roctracer_stop();
    roctracer_start();
  }
  for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
  CHECK(counted % 2 == 0);
  GIVES(SUCCESS, roctracer_close_pool());
}

static void forks(void) {
  open_default(4096);
  GIVES(SUCCESS, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, on_call, NULL));
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_ROCTX, on_call, NULL));
  fake_call(3, 0, NULL);
  roctracer_pool_t* pool = roctracer_default_pool();
  for (int i = 0; i < 20; i++) {
    const pid_t child = fork();
    if (child == 0) {
      /* The child has the callbacks but no pools, because their threads do not exist. */
      alarm(10);
      CHECK(roctracer_default_pool() == NULL);
      call_count = 0;
      fake_call(3, 0, NULL);
      roctxMark("in the child");
      CHECK(call_count == 3);
      GIVES(SUCCESS, roctracer_flush_activity());
      GIVES(SUCCESS, roctracer_close_pool());
      GIVES(ERROR_INVALID_ARGUMENT, roctracer_flush_activity_expl(pool));
      /* A new pool in the child works. */
      const roctracer_properties_t p = properties(1, 256);
      GIVES(SUCCESS, roctracer_open_pool(&p));
      GIVES(SUCCESS, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
      for (int call = 0; call < 10; call++) fake_call(3, 0, NULL);
      GIVES(SUCCESS, roctracer_close_pool());
      CHECK(sinks[1].count == 10 && sinks[1].records[0].process_id == (uint32_t)getpid());
      _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(sinks[0].count == 1 && sinks[1].count == 0);
}

/* With a HIP that reports its calls in an unknown way. */
static void an_unknown_release(void) {
  GIVES(ERROR_NOT_IMPLEMENTED, roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, 3, on_call, NULL));
  CHECK(has_error("not known"));
  GIVES(ERROR_NOT_IMPLEMENTED, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, on_call, NULL));
  open_default(4096);
  GIVES(ERROR_NOT_IMPLEMENTED, roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, 3));
  GIVES(ERROR_NOT_IMPLEMENTED, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
  /* "Everything" means work and marks here. */
  GIVES(SUCCESS, roctracer_enable_callback(on_call, NULL));
  GIVES(SUCCESS, roctracer_enable_activity());
  fake_call(3, 0, NULL);
  roctxMark("a mark");
  CHECK(call_count == 1);
  CHECK(fake_work(1, 0x11f4, 1, 2, NULL, 64));
  GIVES(SUCCESS, roctracer_disable_callback());
  GIVES(SUCCESS, roctracer_disable_activity());
  GIVES(SUCCESS, roctracer_close_pool());
  CHECK(sinks[0].count == 1 && sinks[0].records[0].domain == ACTIVITY_DOMAIN_HIP_OPS);
}

int main(int argc, char** argv) {
  const struct test tests[] = {
      {"versions", versions},
      {"error_strings", error_strings},
      {"names", names},
      {"codes", codes},
      {"callbacks_of_an_operation", callbacks_of_an_operation},
      {"callbacks_of_a_domain_and_of_all", callbacks_of_a_domain_and_of_all},
      {"a_call_inside_a_call_has_its_own_id", a_call_inside_a_call_has_its_own_id},
      {"marks", marks},
      {"the_default_pool", the_default_pool},
      {"misused_pools", misused_pools},
      {"own_allocators", own_allocators},
      {"records_of_calls", records_of_calls},
      {"records_of_work", records_of_work},
      {"names_beside_records", names_beside_records},
      {"small_buffers", small_buffers},
      {"flushing", flushing},
      {"from_its_own_callback", from_its_own_callback},
      {"a_callback_that_calls_among_writers", a_callback_that_calls_among_writers},
      {"closing", closing},
      {"external_ids", external_ids},
      {"starting_and_stopping", starting_and_stopping},
      {"statuses", statuses},
      {"older_interfaces", older_interfaces},
      {"threads", threads},
      {"forks", forks},
      {"an_unknown_release", an_unknown_release},
  };
  return run(tests, sizeof tests / sizeof tests[0], argc, argv);
}
