// A run-time whose AMD table has what ROCr 1.21 has (step 0x12, 91 entries), made of the real one's functions. Preloaded and
// named in HSA_TOOLS_LIB, it gets the real tables, hands longer ones to the collector, and exports the new functions, which jump
// through the table as the run-time's own do.
//
// The new functions do what their header says by older ones: a counted queue is one of two for each agent, a batch is copies on one
// separate counting signal. hsa_amd_queue_create makes a plain queue; NEWER_HSA_NOTES gets a line for each call of it.
// NEWER_HSA_HIDES=N lets the run-time make every Nth queue that HIP asks for unseen by tools, as in a way that nobody knows.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OLD = 76, ENTRIES = 91, STEP = 0x12, ACQUIRE = 76, RELEASE = 77, BATCH = 78, CREATE = 86 };

struct table {
  uint32_t major, size, step, reserved;
  void *entries[];
};
struct root {
  uint32_t major, size, step, reserved;
  struct table *core, *amd;
};

// In front of the collector, whose priority is 25.
const uint32_t HSA_AMD_TOOL_PRIORITY = 1;

static struct {
  uint32_t major, size, step, reserved;
  void *entries[ENTRIES];
} newer;

// The run-time's own functions, before anybody put others into its tables.
static hsa_status_t (*queue_create)(hsa_agent_t, uint32_t, hsa_queue_type32_t, void (*)(hsa_status_t, hsa_queue_t *, void *), void *,
                                    uint32_t, uint32_t, hsa_queue_t **);
static hsa_status_t (*queue_destroy)(hsa_queue_t *);
static hsa_status_t (*set_priority)(hsa_queue_t *, hsa_amd_queue_priority_t);
static hsa_status_t (*async_copy)(void *, hsa_agent_t, const void *, hsa_agent_t, size_t, uint32_t, const hsa_signal_t *, hsa_signal_t);

static void note(const char *text) {
  const char *path = getenv("NEWER_HSA_NOTES");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (file) fprintf(file, "%s\n", text), fclose(file);
}

static hsa_status_t refuse(void) { return HSA_STATUS_ERROR; }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { COUNTED = 2 };
static struct counted {
  uint64_t agent;
  hsa_queue_t *queue;
  int users;
} counted[COUNTED];

static hsa_status_t acquire(hsa_agent_t agent, hsa_queue_type_t type, hsa_amd_queue_priority_t priority,
                            void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint64_t flags, hsa_queue_t **out) {
  hsa_status_t status = HSA_STATUS_SUCCESS;
  (void)flags;
  pthread_mutex_lock(&lock);
  struct counted *least = counted;
  for (int i = 1; i < COUNTED; i++)
    if (counted[i].users < least->users) least = counted + i;
  if (!least->queue) status = queue_create(agent, 1024, type, callback, data, UINT32_MAX, UINT32_MAX, &least->queue);
  if (!status && priority != HSA_AMD_QUEUE_PRIORITY_NORMAL) set_priority(least->queue, priority);
  if (!status) least->users++;
  *out = least->queue;
  pthread_mutex_unlock(&lock);
  return status;
}

static hsa_status_t release(hsa_queue_t *queue) {
  hsa_status_t status = HSA_STATUS_ERROR_INVALID_QUEUE;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < COUNTED; i++)
    if (counted[i].queue == queue) {
      status = HSA_STATUS_SUCCESS;
      if (--counted[i].users == 0) {
        status = queue_destroy(queue);
        counted[i].queue = NULL;
      }
    }
  pthread_mutex_unlock(&lock);
  return status;
}

struct copy {
  uint16_t version, type, entries, traffic_class;
  hsa_signal_t done;
  void *src;
  hsa_agent_t src_agent, dst_agent;
  void *dst;
  size_t size, more;
  char rest[96];
};

// All entries of an operation have one signal, whose times are those of the whole: here they are one copy, since the program lays
// them side by side.
static hsa_status_t batch(const struct copy *copies, uint32_t count, uint32_t signals, const hsa_signal_t *before) {
  for (uint32_t i = 0; i < count; i++) {
    const struct copy *one = copies + i;
    if (one->version != 1 || one->done.handle != copies->done.handle) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    void *src = one->src, *dst = one->dst;
    hsa_agent_t to = one->dst_agent;
    size_t size = one->size;
    if (one->entries) {
      src = *(void **)one->src;
      dst = *(void **)one->dst;
      to = *(hsa_agent_t *)one->dst_agent.handle;
      size = 0;
      for (int k = 0; k < one->entries; k++) size += ((size_t *)one->size)[k];
    }
    hsa_status_t status = async_copy(dst, to, src, one->src_agent, size, signals, before, one->done);
    if (status) return status;
  }
  return HSA_STATUS_SUCCESS;
}

struct descriptor {
  uint16_t version, flags;
  uint8_t engine, reserved0[3];
  uint32_t bytes, priority;
  void (*callback)(hsa_status_t, hsa_queue_t *, void *);
  void *data;
  hsa_queue_t *queue;
  const uint32_t *mask;
  uint32_t type, scratch, bits, reserved1[3], traffic_class, reserved2[5];
};

static hsa_status_t create(hsa_agent_t agent, struct descriptor *all, uint32_t count) {
  hsa_status_t answer = HSA_STATUS_SUCCESS;
  for (uint32_t i = 0; i < count; i++) {
    char text[64];
    snprintf(text, sizeof text, "created %u bytes flags %u", all[i].bytes, all[i].flags);
    note(text);
    all[i].queue = NULL;
    hsa_status_t status = queue_create(agent, all[i].bytes / 64, all[i].type, all[i].callback, all[i].data, all[i].scratch, UINT32_MAX,
                                       &all[i].queue);
    if (!answer) answer = status;
  }
  return answer;
}

static void *entry_of(const struct table *table, int entry) {
  return 16 + 8 * (entry + 1) <= (int)table->size ? table->entries[entry] : NULL;
}

// The number of an entry in the real table, which differs before 5.6 (56 entries).
static int real(const struct table *table, int entry) {
  if (table->size >= 456 || entry < 16) return entry;
  if (entry < 18) return -1;
  if (entry < 49 || table->size >= 424) return entry - 2;
  return entry < 52 ? -1 : entry - 5;
}

static void *next(const char *name) {
  static char own;
  Dl_info here, there;
  void *found = dlsym(RTLD_NEXT, name);
  return found && dladdr(&own, &here) && dladdr(found, &there) && here.dli_fbase != there.dli_fbase ? found : NULL;
}

bool OnLoad(struct root *root, uint64_t version, uint64_t failed, const char *const *names) {
  struct table *amd = root->amd;
  memset(&newer, 0, sizeof newer);
  newer.major = amd->major;
  newer.size = 16 + 8 * ENTRIES;
  newer.step = STEP;
  for (int i = 0; i < ENTRIES; i++) newer.entries[i] = refuse;
  for (int i = 0; i < OLD; i++) {
    int at = real(amd, i);
    void *held = at < 0 ? NULL : entry_of(amd, at);
    if (held) newer.entries[i] = held;
  }
  queue_create = root->core->entries[7];
  queue_destroy = root->core->entries[9];
  async_copy = newer.entries[15];
  set_priority = newer.entries[39];
  newer.entries[ACQUIRE] = acquire;
  newer.entries[RELEASE] = release;
  newer.entries[BATCH] = batch;
  newer.entries[CREATE] = create;
  bool (*collector)(void *, uint64_t, uint64_t, const char *const *) = next("OnLoad");
  if (!collector) return true;
  struct root longer[4];
  memcpy(longer, root, root->size < sizeof longer ? root->size : sizeof longer);
  longer->amd = (struct table *)&newer;
  collector(longer, version, failed, names);
  // What the collector put into the entries that the real table has too.
  for (int i = 0; i < OLD; i++) {
    int at = real(amd, i);
    if (at >= 0 && entry_of(amd, at)) amd->entries[at] = newer.entries[i];
  }
  return true;
}

void OnUnload(void) {
  void (*collector)(void) = next("OnUnload");
  if (collector) collector();
}

// Tools that HSA_TOOLS_LIB names come first: this one alone.
__attribute__((constructor)) static void begin(void) {
  Dl_info own;
  if (dladdr((void *)OnLoad, &own)) setenv("HSA_TOOLS_LIB", own.dli_fname, 1);
}

hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                              void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint32_t private, uint32_t group,
                              hsa_queue_t **out) {
  static int calls;
  static typeof(queue_create) shown;
  const char *hides = getenv("NEWER_HSA_HIDES");
  if (!shown) *(void **)&shown = dlsym(RTLD_NEXT, "hsa_queue_create");
  bool is_hidden = hides && queue_create && ++calls % atoi(hides) == 0;
  return (is_hidden ? queue_create : shown)(agent, size, type, callback, data, private, group, out);
}

hsa_status_t hsa_amd_counted_queue_acquire(hsa_agent_t agent, hsa_queue_type_t type, hsa_amd_queue_priority_t priority,
                                           void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint64_t flags,
                                           hsa_queue_t **out) {
  return ((typeof(&acquire))newer.entries[ACQUIRE])(agent, type, priority, callback, data, flags, out);
}
hsa_status_t hsa_amd_counted_queue_release(hsa_queue_t *queue) { return ((typeof(&release))newer.entries[RELEASE])(queue); }
hsa_status_t hsa_amd_memory_async_batch_copy(const void *copies, uint32_t count, uint32_t signals, const hsa_signal_t *before) {
  return ((typeof(&batch))newer.entries[BATCH])(copies, count, signals, before);
}
hsa_status_t hsa_amd_queue_create(hsa_agent_t agent, void *descriptors, uint32_t count) {
  return ((typeof(&create))newer.entries[CREATE])(agent, descriptors, count);
}
