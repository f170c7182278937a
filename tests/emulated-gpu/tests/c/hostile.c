/* Barrier packets on one queue of HSA, with completion signals of four kinds: ROCr's own, one made by hand in the pool of kernel
 * arguments, one in plain fine-grained memory, one in a file's pages that were put over the pool. Prints a line for each: its name, and the milliseconds until it changed, or -1.
 * Then the pages below the pool's signal are replaced while the queue waits: its lines are "idle" and "busy". */
#define _GNU_SOURCE
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 1 << 16, PATIENCE_MS = 1000 };
/* As in amd_hsa_signal.h. */
typedef struct { int64_t kind; volatile int64_t value; uint64_t mailbox; uint32_t event, reserved; uint64_t start, end, more[2]; } by_hand;

static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t pool, plain;
static hsa_queue_t *queue;

static void check(int status, const char *what) {
    if (status == 0) return;
    printf("%s: status 0x%x\n", what, status);
    exit(1);
}

static hsa_status_t agent(hsa_agent_t a, void *data) {
    hsa_device_type_t type;
    hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
    *(type == HSA_DEVICE_TYPE_GPU ? &gpu : &cpu) = a;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t find(hsa_amd_memory_pool_t p, void *data) {
    uint32_t flags = 0, wanted = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
    hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
    if ((flags & wanted) == wanted) pool = p;
    if ((flags & wanted) == HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) plain = p;
    return HSA_STATUS_SUCCESS;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* A barrier that waits for a signal, or for none, and completes another one. */
static void submit(uint64_t waits, uint64_t completes) {
    uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    hsa_barrier_and_packet_t *packet = (hsa_barrier_and_packet_t *)queue->base_address + (index & (queue->size - 1));
    memset((char *)packet + 4, 0, 60);
    packet->dep_signal[0].handle = waits;
    packet->completion_signal.handle = completes;
    uint16_t header = HSA_PACKET_TYPE_BARRIER_AND | 1 << HSA_PACKET_HEADER_BARRIER;
    __atomic_store_n((uint32_t *)packet, header, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, index);
}

static double awaited(volatile int64_t *value) {
    double start = now();
    while (*value == 1)
        if (now() - start > PATIENCE_MS) return -1;
    return now() - start;
}

static by_hand *memory(hsa_amd_memory_pool_t from) {
    void *place;
    check(hsa_amd_memory_pool_allocate(from, PAGES, 0, &place), "allocate");
    check(hsa_amd_agents_allow_access(1, &gpu, NULL, place), "access");
    return place;
}

static by_hand *armed(by_hand *signal) {
    *signal = (by_hand){.kind = 1, .value = 1};
    return signal;
}

static void replace(void *place) {
    int file = memfd_create("pages", 0);
    check(ftruncate(file, PAGES), "ftruncate");
    check(mmap(place, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != place, "mmap");
}

static void mapping(void *place) {
    char line[512], start[32];
    snprintf(start, sizeof start, "%lx-", (unsigned long)place);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (!strncmp(line, start, strlen(start))) printf("mapping %s\n", strchr(line, ' ') + 1);
    fclose(maps);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(hsa_init(), "hsa_init");
    check(hsa_iterate_agents(agent, NULL), "agents");
    check(hsa_amd_agent_iterate_memory_pools(cpu, find, NULL), "pools");
    check(hsa_queue_create(gpu, 256, HSA_QUEUE_TYPE_MULTI, NULL, NULL, 0, 0, &queue), "queue");
    check(hsa_amd_profiling_set_profiler_enabled(queue, 1), "profiling");
    hsa_signal_t own, gate;
    check(hsa_signal_create(1, 0, NULL, &own), "signal");
    check(hsa_signal_create(1, 0, NULL, &gate), "signal");

    double start = now();
    submit(0, own.handle);
    while (hsa_signal_load_scacquire(own) && now() - start < 60000) usleep(100);
    printf("rocr %.1f\n", hsa_signal_load_scacquire(own) ? -1. : now() - start);

    by_hand *one = memory(pool), *other = memory(pool), *cached = memory(plain);
    mapping(one);
    submit(0, (uint64_t)armed(one));
    printf("pool %.1f\n", awaited(&one->value));
    printf("span %lld\n", (long long)(one->end - one->start));

    submit(0, (uint64_t)armed(cached));
    printf("cached %.1f\n", awaited(&cached->value));

    start = now();
    replace(other);
    printf("idle %.1f\n", now() - start);
    submit(0, (uint64_t)armed(other));
    printf("file %.1f\n", awaited(&other->value));

    submit(gate.handle, (uint64_t)armed(one));
    while (hsa_queue_load_read_index_relaxed(queue) < 4) usleep(100);
    replace(memory(pool));
    start = now();
    hsa_signal_store_screlease(gate, 0);
    awaited(&one->value);
    printf("busy %.1f\n", one->value ? -1. : now() - start);
    return 0;
}
