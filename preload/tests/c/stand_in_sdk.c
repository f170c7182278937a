/* Stands in for rocprofiler-sdk: the part of its published ABI by which counters are found, configured and counted over
 * dispatches and whole agents. Built once for each release that differs: -DSDK_VERSION=400, 600 or 10000
 * (10000 * major + 100 * minor). Values are synthetic and exact; stand_in_* drive it in place of a run-time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#ifndef SDK_VERSION
#define SDK_VERSION 10000
#endif
#define MOST_GPUS 8u

typedef int status;
enum { OK = 0, NO_COUNTER = 8, LOCKED = 16, HSA_NOT_LOADED = 22, EXCEEDS = 38, DENIED = 40 };
typedef struct { uint64_t handle; } id;

typedef struct { size_t size; int (*initialize)(void *, void *); void (*finalize)(void *); void *data; } configured;
#if SDK_VERSION >= 10000
typedef struct { size_t size; const char *name; uint32_t handle; } client;
#else
typedef struct { const char *name; uint32_t handle; } client;
#endif
typedef configured *(*configure_fn)(uint32_t, const char *, uint32_t, client *);

typedef struct {
    uint64_t size, agent, queue, kernel, dispatch;
    uint32_t private_size, group_size, workgroup[3], grid[3];
    uint8_t padding[56];
} dispatch_info;
typedef struct {
    uint64_t size, correlation[2];
#if SDK_VERSION >= 500
    uint64_t start, end;
#endif
    dispatch_info info;
#ifdef LONGER
    uint64_t longer[4];
#endif
} dispatch_data;
typedef struct {
    uint64_t id;
    double value;
    uint64_t dispatch, user;
#if SDK_VERSION >= 10000
    uint64_t agent;
#endif
} counter_record;
typedef struct {
    uint64_t context, thread, correlation[2];
#if SDK_VERSION >= 10000
    uint64_t ancestor;
#endif
    int kind, operation, phase;
    void *payload;
} tracing_record;
typedef struct {
    uint64_t size, kernel_id, code_object;
    const char *name;
    uint64_t object;
    uint32_t kernarg, alignment, group, private_size, sgpr, vgpr, agpr;
#if SDK_VERSION >= 10000
    int64_t entry;
    uint64_t address;
#endif
} kernel_symbol;
typedef struct { uint64_t id; const char *name, *description, *block, *expression; uint8_t flags; } counter_info;
typedef struct { const char *name; size_t instances; uint64_t id; } dimension;

#if SDK_VERSION >= 500
#define AGENT_SIZE 312
#else
#define AGENT_SIZE 296
#endif
_Static_assert(sizeof(dispatch_info) == 128, "dispatch info");
#ifndef LONGER
_Static_assert(sizeof(dispatch_data) == (SDK_VERSION >= 500 ? 168 : 152), "dispatch data");
#endif
_Static_assert(sizeof(counter_record) == (SDK_VERSION >= 10000 ? 40 : 32), "counter record");
_Static_assert(sizeof(tracing_record) == (SDK_VERSION >= 10000 ? 64 : 56), "tracing record");
_Static_assert(sizeof(kernel_symbol) == (SDK_VERSION >= 10000 ? 88 : 72), "kernel symbol");

typedef void (*dispatch_fn)(dispatch_data, uint64_t *, uint64_t *, void *);
typedef void (*values_fn)(dispatch_data, counter_record *, size_t, uint64_t, void *);
typedef void (*tracing_fn)(tracing_record, uint64_t *, void *);
typedef status (*set_fn)(id, id);
typedef void (*device_fn)(id, id, set_fn, void *);

enum { ENGINES = 4, CHANNELS = 16, CODE_OBJECT = 10, KERNEL_DISPATCH = 12 };
typedef struct { uint64_t size, start, end; dispatch_info info; } traced_dispatch;
static struct { uint64_t id; const char *name, *description, *block, *expression; uint8_t flags; } COUNTERS[] = {
    {101, "SQ_WAVES", "Waves sent to the sequencers, one value for each shader engine", "SQ", "", 0},
    {102, "GRBM_COUNT", "Clocks", "GRBM", "", 0},
    {103, "TCC_HIT", "Hits of the L2 cache, one value for each channel", "TCC", "", 0},
    {104, "L2CacheHit", "Share of L2 hits", "", "100*reduce(TCC_HIT,sum)/(reduce(TCC_HIT,sum)+reduce(TCC_MISS,sum))", 2},
    {105, NULL, "From a definition", "", "defined", 2},
};
enum { N = sizeof COUNTERS / sizeof *COUNTERS, CONFIGS = 64 };
static size_t known = N - 1;

static struct { uint64_t ids[N]; size_t count; } configs[CONFIGS];
static uint64_t config_count;
static dispatch_fn on_dispatch;
static values_fn on_values;
static tracing_fn on_tracing, on_traced;
static device_fn on_device;
static void (*on_buffer)(id, id, void **, size_t, void *, uint64_t);
static void *device_data;
static int samples_by;
static uint64_t device_config, device_waves;
enum { CONTEXTS = 16 };
static int started[CONTEXTS], hsa_loaded;
/* What each context is for; 0 is none, and never started. */
static uint64_t counts_in, names_in, traces_in, device_in, samples_in;
static configured *tool;
static uint64_t dispatches;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void intercept_queues(void *root);

static void take(configure_fn configure) {
    client own;
    memset(&own, 0, sizeof own);
    if (tool || !configure) return;
    tool = configure(SDK_VERSION, "stand-in", 0, &own);
    if (tool && tool->initialize) tool->initialize(NULL, tool->data);
}

status rocprofiler_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch) {
    const char *other = getenv("STAND_IN_VERSION");
    uint32_t version = other ? (uint32_t)atoi(other) : SDK_VERSION;
    *major = version / 10000, *minor = version / 100 % 100, *patch = version % 100;
    return OK;
}

int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count) {
    (void)version, (void)instance, (void)count;
    take((configure_fn)dlsym(RTLD_DEFAULT, "rocprofiler_configure"));
    if (!strcmp(name, "hsa")) hsa_loaded = 1;
    if (!strcmp(name, "hsa") && getenv("STAND_IN_QUEUES") && on_dispatch) intercept_queues(tables[0]);
    return 0;
}

status rocprofiler_force_configure(configure_fn configure) {
    if (tool) return LOCKED;
    take(configure);
    return OK;
}

const char *rocprofiler_get_status_string(status s) {
    switch (s) {
    case EXCEEDS: return "Request exceeds the capabilities of the hardware to collect";
    case DENIED: return "Permission denied";
    default: return NULL;
    }
}

status rocprofiler_create_context(id *context) { static uint64_t next; context->handle = ++next % CONTEXTS; return OK; }

static status set_config(id context, id config) { (void)context; device_config = config.handle; return OK; }

status rocprofiler_start_context(id context) {
    if (on_device && context.handle == device_in) {
        id agent = {9001};
        if (!hsa_loaded) return HSA_NOT_LOADED;
        on_device(context, agent, set_config, device_data);
    }
    started[context.handle % CONTEXTS] = 1;
    return OK;
}

status rocprofiler_create_buffer(id context, size_t size, size_t mark, int policy, void *cb, void *data, id *buffer) {
    (void)context, (void)size, (void)mark, (void)policy, (void)data;
    on_buffer = cb;
    buffer->handle = 1;
    return OK;
}

/* GPUs of this machine, nodes 1, 2, … as the driver numbers them behind its processor. */
static uint32_t gpus(void) {
    const char *said = getenv("STAND_IN_GPUS");
    uint32_t count = said ? (uint32_t)atoi(said) : 1;
    return count < MOST_GPUS ? count : MOST_GPUS;
}

status rocprofiler_query_available_agents(int version, status (*cb)(int, const void **, size_t, void *), size_t size,
                                          void *data) {
    static uint8_t agents[1 + MOST_GPUS][AGENT_SIZE];
    const void *list[1 + MOST_GPUS];
    if (version != 1 || size > AGENT_SIZE) return 18;
    for (uint32_t node = 0; node <= gpus(); node++) {
        uint8_t *agent = agents[node];
        const char *name = node ? "gfx906" : "AMD EPYC", *product = node ? "Stand-in GPU" : "AMD EPYC";
        uint64_t size_said = AGENT_SIZE, handle = 9000 + node;
        uint32_t kind = node ? 2 : 1, wave = node ? 64 : 0, units = node ? 60 : 8;
        memcpy(agent, &size_said, 8), memcpy(agent + 8, &handle, 8), memcpy(agent + 16, &kind, 4);
        memcpy(agent + 64, &wave, 4), memcpy(agent + 72, &units, 4);
        memcpy(agent + 248, &name, 8), memcpy(agent + 264, &product, 8);
        memcpy(agent + 280, &node, 4), memcpy(agent + 284, &node, 4);
        list[node] = agent;
    }
    return cb(version, list, 1 + gpus(), data);
}

status rocprofiler_iterate_agent_supported_counters(id agent, status (*cb)(id, id *, size_t, void *), void *data) {
    id ids[N];
    for (size_t i = 0; i < N; i++) ids[i].handle = COUNTERS[i].id;
    return cb(agent, ids, agent.handle > 9000 ? known : 0, data);
}

#if SDK_VERSION >= 10000
/* One more counter: what follows "name: ". */
status rocprofiler_load_counter_definition(const char *yaml, size_t size, int flags) {
    static char name[64];
    const char *at = memmem(yaml, size, "name: ", 6);
    if (flags != 2 || !at) return 23;
    sscanf(at + 6, "%63s", name);
    COUNTERS[N - 1].name = name, known = N;
    return OK;
}
#endif

status rocprofiler_query_counter_info(id counter, int version, void *room) {
    if (version != 1) return 18;
    for (size_t i = 0; i < known; i++)
        if (COUNTERS[i].id == counter.handle) {
            counter_info info = {COUNTERS[i].id, COUNTERS[i].name, COUNTERS[i].description,
                                 COUNTERS[i].block, COUNTERS[i].expression, COUNTERS[i].flags};
            memcpy(room, &info, sizeof info);
            return OK;
        }
    return NO_COUNTER;
}

status rocprofiler_iterate_counter_dimensions(id counter, status (*cb)(id, const dimension *, size_t, void *), void *data) {
    dimension engines[2] = {{"DIMENSION_INSTANCE", 1, 7}, {"DIMENSION_SHADER_ENGINE", ENGINES, 3}};
    dimension channels = {"DIMENSION_INSTANCE", CHANNELS, 7};
    if (counter.handle == 101) return cb(counter, engines, 2, data);
    if (counter.handle != 103) channels.instances = 1;
    return cb(counter, &channels, 1, data);
}

status rocprofiler_query_record_counter_id(uint64_t record, id *counter) { counter->handle = record >> 48; return OK; }

status rocprofiler_query_record_dimension_position(uint64_t record, uint64_t dimension_id, size_t *position) {
    *position = record >> 6 * (dimension_id - 1) & 0x3f;
    return OK;
}

/* Two basic counters fit at once. */
#if SDK_VERSION >= 10000
#define CREATE rocprofiler_create_counter_config
#define COUNT rocprofiler_configure_callback_dispatch_counting_service
#else
#define CREATE rocprofiler_create_profile_config
#if SDK_VERSION >= 500
#define COUNT rocprofiler_configure_callback_dispatch_counting_service
#else
#define COUNT rocprofiler_configure_callback_dispatch_profile_counting_service
#endif
#endif
status CREATE(id agent, id *counters, size_t count, id *config) {
    (void)agent;
    if (getenv("STAND_IN_DENY")) return DENIED;
    if (count > 2) return EXCEEDS;
    if (config_count >= CONFIGS) return 29;
    for (size_t i = 0; i < count; i++) configs[config_count].ids[i] = counters[i].handle;
    configs[config_count].count = count;
    config->handle = ++config_count;
    return OK;
}

status COUNT(id context, dispatch_fn dispatch, void *a, values_fn values, void *b) {
    (void)a, (void)b;
    counts_in = context.handle;
    on_dispatch = dispatch, on_values = values;
    return OK;
}

status rocprofiler_configure_callback_tracing_service(id context, int kind, const int *ops, size_t n, tracing_fn cb,
                                                      void *data) {
    (void)ops, (void)n, (void)data;
    if (kind == CODE_OBJECT) on_tracing = cb, names_in = context.handle;
    if (kind == KERNEL_DISPATCH) on_traced = cb, traces_in = context.handle;
    return OK;
}

status rocprofiler_query_callback_tracing_kind_name(int kind, const char **name, uint64_t *length) {
    *name = kind == CODE_OBJECT ? "CODE_OBJECT" : kind == KERNEL_DISPATCH ? "KERNEL_DISPATCH" : kind < 20 ? "OTHER" : NULL;
    *length = 0;
    return kind < 20 ? OK : 4;
}

#if SDK_VERSION >= 10000
status rocprofiler_configure_device_counting_service(id context, id buffer, id agent, device_fn cb, void *data) {
    (void)buffer, (void)agent;
    device_in = context.handle;
    on_device = cb, device_data = data;
    return OK;
}
#endif

static size_t fill(uint64_t config, uint64_t dispatch, uint64_t user, uint64_t waves, uint64_t clocks, counter_record *out) {
    size_t n = 0;
    for (size_t i = 0; i < configs[config - 1].count; i++) {
        uint64_t counter = configs[config - 1].ids[i];
        uint64_t parts = counter == 101 ? ENGINES : counter == 103 ? CHANNELS : 1;
        for (uint64_t part = 0; part < parts; part++) {
            counter_record *one = &out[n++];
            memset(one, 0, sizeof *one);
            one->id = counter << 48 | part << 6 * ((counter == 101 ? 3 : 7) - 1);
            one->value = counter == 101   ? (double)(waves / ENGINES + (part < waves % ENGINES))
                         : counter == 102 ? (double)clocks
                         : counter == 103 ? (double)(part + 1)
                                          : 75.0;
            one->dispatch = dispatch, one->user = user;
        }
    }
    return n;
}

#if SDK_VERSION >= 10000
status rocprofiler_sample_device_counting_service(id context, uint64_t user, int flags, counter_record *out, size_t *count) {
    counter_record records[64];
    (void)context, (void)user, (void)flags;
    if (!device_config) return 32;
    device_waves += 256;
    size_t n = fill(device_config, 0, 0, device_waves, device_waves * 10, records);
    if (n > *count) return 29;
    memcpy(out, records, n * sizeof *records);
    *count = n;
    return OK;
}
#endif

/* PC sampling: STAND_IN_SAMPLING offers both methods, else there is none. */
typedef struct { uint64_t size; int method, unit; uint64_t min, max, flags; } sampling_configuration;
_Static_assert(sizeof(sampling_configuration) == 40, "sampling configuration");
enum { NOT_IMPLEMENTED = 17, NOT_AVAILABLE = 37, STOCHASTIC = 1, HOST_TRAP = 2 };

static status is_sampling_on(void) {
    const char *beta = getenv("ROCPROFILER_PC_SAMPLING_BETA_ENABLED");
    return beta && (!strcmp(beta, "1") || !strcasecmp(beta, "on")) ? OK : NOT_IMPLEMENTED;
}

#if SDK_VERSION >= 10000
status rocprofiler_query_pc_sampling_agent_configurations(id agent,
                                                          status (*cb)(const sampling_configuration *, size_t, void *),
                                                          void *data) {
    const sampling_configuration offers[] = {{40, HOST_TRAP, 3, 1, 1000000, 0}, {40, STOCHASTIC, 2, 256, 1 << 20, 1}};
    (void)agent;
    if (is_sampling_on()) return is_sampling_on();
    return getenv("STAND_IN_SAMPLING") ? cb(offers, 2, data) : NOT_AVAILABLE;
}

status rocprofiler_configure_pc_sampling_service(id context, id agent, int method, int unit, uint64_t interval, id buffer,
                                                 int flags) {
    (void)agent, (void)unit, (void)interval, (void)buffer, (void)flags;
    samples_by = method, samples_in = context.handle;
    return is_sampling_on();
}
#endif

/* Two samples of a dispatch, the second of no code object; and one invalid sample. */
static void take_samples(const dispatch_data *data) {
    typedef struct { uint32_t category, kind; void *payload; } header;
    uint64_t records[2][13], nothing = 8, context = 1, buffer = 1;
    header headers[3];
    void *list[3] = {&headers[0], &headers[1], &headers[2]};
    if (!samples_by || !on_buffer) return;
    memset(records, 0, sizeof records);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t *r = records[i], code_object = 1 - i, offset = 0x1240, mask = 0xffff, at = now();
        uint64_t place = 2 | 5 << 6 | 3ull << 24; /* chiplet 2, wave slot 5, shader engine 3 */
        uint32_t group[3] = {7, 0, 0};
        if (samples_by == HOST_TRAP) {
            memcpy((char *)r + 72, group, 12), memcpy((char *)r + 84, "\x03", 1);
            r[0] = 88, r[1] = place, r[2] = code_object, r[3] = offset, r[4] = mask, r[5] = at, r[6] = data->info.dispatch, r[7] = 5;
        } else {
            uint32_t waves = 3, snapshot = 3 | 1 << 5 | 1 << 27; /* a VALU instruction was issued, two of them */
            memcpy((char *)r + 48, group, 12);
            r[0] = 104, r[2] = place, r[1] = (uint64_t)((i ? 1 : 0) | (i ? 1 : 15) << 1) << 16, r[3] = code_object, r[4] = offset;
            r[5] = mask, r[8] = at, r[9] = data->info.dispatch, r[10] = 5;
            memcpy((char *)r + 60, &waves, 4), memcpy((char *)r + 96, &snapshot, 4);
        }
        headers[i] = (header){2, samples_by == HOST_TRAP ? 2 : 3, r};
    }
    headers[2] = (header){2, 1, &nothing};
    on_buffer((id){context}, (id){buffer}, list, 3, NULL, 1);
}

/* A kernel is loaded. */
void stand_in_load(uint64_t kernel, const char *name) {
    kernel_symbol symbol;
    tracing_record record;
    if (!on_tracing || !started[names_in]) return;
    memset(&symbol, 0, sizeof symbol), memset(&record, 0, sizeof record);
    symbol.size = sizeof symbol, symbol.kernel_id = kernel, symbol.code_object = 1, symbol.name = name;
    symbol.object = 0x10000 * kernel, symbol.group = 512, symbol.sgpr = 16, symbol.vgpr = 8, symbol.agpr = 4;
    record.kind = CODE_OBJECT, record.operation = 2, record.phase = 1, record.payload = &symbol;
    on_tracing(record, NULL, NULL);
}

static void trace_dispatch(int operation, int phase, const dispatch_data *data) {
    traced_dispatch traced;
    tracing_record record;
    if (!on_traced) return;
    memset(&traced, 0, sizeof traced), memset(&record, 0, sizeof record);
    traced.size = sizeof traced, traced.info = data->info;
#if SDK_VERSION >= 500
    traced.start = data->start, traced.end = data->end;
#endif
    record.kind = KERNEL_DISPATCH, record.operation = operation, record.phase = phase, record.payload = &traced;
    on_traced(record, NULL, NULL);
}

/* A kernel runs for 5 us on a grid of work-items in work-groups of 256; 1 when it was counted. */
int stand_in_dispatch(uint64_t kernel, uint32_t grid) {
    dispatch_data data;
    uint64_t config = 0, user = 0, begin = now(), number = ++dispatches;
    counter_record records[64];
    int is_counting = on_dispatch && started[counts_in], is_traced = started[traces_in];
    if (!is_counting && !is_traced && !started[samples_in]) return 0;
    memset(&data, 0, sizeof data);
    data.size = sizeof data;
#if SDK_VERSION >= 500
    data.start = begin, data.end = begin + 5000;
#endif
    data.info.size = 72, data.info.agent = 9001, data.info.queue = 1, data.info.kernel = kernel;
    data.info.dispatch = number, data.info.group_size = 512;
    data.info.workgroup[0] = 256, data.info.workgroup[1] = data.info.workgroup[2] = 1;
    data.info.grid[0] = grid, data.info.grid[1] = data.info.grid[2] = 1;
    if (is_traced) trace_dispatch(1, 1, &data);
    if (is_counting) on_dispatch(data, &config, &user, NULL);
    if (is_traced) trace_dispatch(1, 2, &data), trace_dispatch(2, 0, &data);
    take_samples(&data);
    if (!config) return 0;
    size_t n = fill(config, number, user, (grid + 63) / 64, 5000, records);
    on_values(data, records, n, user, NULL);
    return 1;
}

/* Beside a real HSA (STAND_IN_QUEUES): queues are made as intercepted ones by the functions that the table has before any
 * other tool changes it, each kernel gets a signal of this library's and a barrier behind it serves the program's, and the
 * values are given when it has ended, as the SDK does. Counted are exact waves, and clocks of 1 GHz. */
typedef struct {
    uint16_t header, setup, workgroup[3], reserved;
    uint32_t grid[3], private_size, group_size;
    uint64_t object, kernarg, more, completion;
} packet;
typedef void (*writer_fn)(const packet *, uint64_t);
typedef int (*create_fn)(uint64_t, uint32_t, uint32_t, void *, void *, uint32_t, uint32_t, void **);
typedef struct { dispatch_data data; uint64_t signal, config, user, waves; int is_traced; } session;
static create_fn intercept_create;
static int (*intercept_register)(void *, void *, void *);
static int (*agent_get_info)(uint64_t, int, void *);

static void *hsa(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) abort();
    return found;
}

static int ended(int64_t value, void *data) {
    session *one = data;
    uint64_t times[2] = {0, 0};
    counter_record records[64];
    (void)value;
    uint64_t agent;
    memcpy(&agent, &one->data.info.padding, 8);
    ((int (*)(uint64_t, uint64_t, uint64_t *))hsa("hsa_amd_profiling_get_dispatch_time"))(agent, one->signal, times);
#if SDK_VERSION >= 500
    one->data.start = times[0], one->data.end = times[1];
#endif
    memset(one->data.info.padding, 0, sizeof one->data.info.padding);
    if (one->is_traced) trace_dispatch(2, 0, &one->data);
    if (one->config) {
        size_t n = fill(one->config, one->data.info.dispatch, one->user, one->waves, times[1] - times[0], records);
        on_values(one->data, records, n, one->user, NULL);
    }
    ((int (*)(uint64_t))hsa("hsa_signal_destroy"))(one->signal);
    free(one);
    return 0;
}

static void write_packets(const packet *packets, uint64_t count, uint64_t index, void *agent, writer_fn writer) {
    packet *out = calloc(2 * count, sizeof *out);
    uint64_t n = 0;
    uint32_t node = 1;
    (void)index;
    agent_get_info((uint64_t)agent, 0xa004 /* HSA_AMD_AGENT_INFO_DRIVER_NODE_ID */, &node);
    for (uint64_t i = 0; i < count; i++) {
        out[n++] = packets[i];
        if ((packets[i].header & 0xff) != 2) continue;
        session *one = calloc(1, sizeof *one);
        dispatch_info *info = &one->data.info;
        one->data.size = sizeof one->data;
        info->size = 72, info->agent = 9000 + node, info->queue = 77, info->kernel = packets[i].object;
        info->dispatch = __atomic_add_fetch(&dispatches, 1, __ATOMIC_SEQ_CST);
        info->private_size = packets[i].private_size, info->group_size = packets[i].group_size;
        uint64_t items = 1, groups = 1;
        for (int d = 0; d < 3; d++) {
            info->workgroup[d] = packets[i].workgroup[d], info->grid[d] = packets[i].grid[d];
            items *= info->workgroup[d], groups *= (info->grid[d] + info->workgroup[d] - 1) / info->workgroup[d];
        }
        one->waves = (items + 63) / 64 * groups;
        one->is_traced = started[traces_in];
        if (one->is_traced) trace_dispatch(1, 1, &one->data);
        if (started[counts_in]) on_dispatch(one->data, &one->config, &one->user, NULL);
        if (one->is_traced) trace_dispatch(1, 2, &one->data);
        memcpy(info->padding, &agent, 8);
        ((int (*)(int64_t, uint32_t, void *, uint64_t *))hsa("hsa_signal_create"))(1, 0, NULL, &one->signal);
        out[n - 1].completion = one->signal;
        if (packets[i].completion) {
            packet barrier = {.header = 3 | 1 << 8, .completion = packets[i].completion};
            out[n++] = barrier;
        }
        ((int (*)(uint64_t, int, int64_t, void *, void *))hsa("hsa_amd_signal_async_handler"))(one->signal, 0, 0, ended, one);
    }
    writer(out, n);
    free(out);
}

static int create_queue(uint64_t agent, uint32_t size, uint32_t type, void *callback, void *data, uint32_t private_size,
                        uint32_t group_size, void **queue) {
    int status = intercept_create(agent, size, type, callback, data, private_size, group_size, queue);
    if (status) return status;
    ((int (*)(void *, int))hsa("hsa_amd_profiling_set_profiler_enabled"))(*queue, 1);
    return intercept_register(*queue, write_packets, (void *)agent);
}

static void intercept_queues(void *root) {
    uint8_t *core = ((uint8_t **)root)[2], *amd = ((uint8_t **)root)[3];
    uint32_t bytes;
    memcpy(&bytes, amd + 4, 4);
    int entry = bytes > 424 ? 37 : 35;
    memcpy(&intercept_create, amd + 16 + 8 * entry, 8), memcpy(&intercept_register, amd + 16 + 8 * (entry + 1), 8);
    memcpy(&agent_get_info, core + 16 + 8 * 6, 8);
    create_fn ours = create_queue;
    memcpy(core + 16 + 8 * 7, &ours, 8);
}
