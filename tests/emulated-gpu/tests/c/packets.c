/* Drives the real aqlprofile library through its published interface: the packets that it makes are put around a kernel
 * on an HSA queue, and what it reads back is printed, one line a value: block event counter value. */
#include <dlfcn.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From aqlprofile's own header (aql_profile_v2.h of ROCm 7.0). */
typedef struct { uint64_t handle; } handle;
typedef struct { const char *gfxip; uint32_t xccs, engines, units, arrays_per_engine; } agent_info;
typedef struct { uint32_t block_index, event, flags; int block; } event_t;
typedef struct { handle agent; const event_t *events; uint32_t count; } profile_t;
typedef struct { uint16_t header, command[27]; hsa_signal_t completion; } packet_t;
typedef struct { packet_t start, stop, read; } packets_t;
enum { GRBM = 3, SQ = 6, TCC = 12 };

static hsa_agent_t gpu;
static hsa_queue_t *queue;
static char memory[4096];

static void check(int status, const char *what) {
    if (status == 0) return;
    printf("%s: status 0x%x\n", what, status);
    exit(1);
}

static hsa_status_t agent(hsa_agent_t a, void *data) {
    hsa_device_type_t type;
    hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
    if (type == HSA_DEVICE_TYPE_GPU) gpu = a;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t allocate(void **out, uint64_t size, uint32_t flags, void *data) {
    *out = mmap(NULL, (size + 4095) & ~4095ull, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return *out == MAP_FAILED ? HSA_STATUS_ERROR : HSA_STATUS_SUCCESS;
}
static void deallocate(void *memory, void *data) {}
static hsa_status_t copy(void *to, const void *from, size_t size, void *data) {
    memcpy(to, from, size);
    return HSA_STATUS_SUCCESS;
}
static hsa_status_t value(event_t event, uint64_t counter, uint64_t found, void *data) {
    printf("%d %u %u %llu\n", event.block, event.event, event.block_index, (unsigned long long)found);
    return HSA_STATUS_SUCCESS;
}

/* The last packet is published first: the GPU sees all of them at one moment, and no clock runs between two. */
static void submit(const void *const *packets, const uint32_t *headers, int count) {
    uint64_t index = hsa_queue_add_write_index_relaxed(queue, count);
    for (int i = count - 1; i >= 0; i--) {
        char *place = (char *)queue->base_address + ((index + i) & (queue->size - 1)) * 64;
        memcpy(place + 4, (const char *)packets[i] + 4, 60);
        __atomic_store_n((uint32_t *)place, headers[i], __ATOMIC_RELEASE);
    }
    hsa_signal_store_screlease(queue->doorbell_signal, index + count - 1);
}

int main(int argc, char **argv) {
    uint32_t engines = (uint32_t)atoi(argv[2]), groups = (uint32_t)atoi(argv[3]), size = (uint32_t)atoi(argv[4]);
    void *library = dlopen("libhsa-amd-aqlprofile64.so.1", RTLD_NOW);
    if (!library) return printf("no aqlprofile: %s\n", dlerror()), 77;
    hsa_status_t (*registered)(handle *, const agent_info *) = dlsym(library, "aqlprofile_register_agent");
    hsa_status_t (*create)(handle *, packets_t *, profile_t, void *, void *, void *, void *) =
        dlsym(library, "aqlprofile_pmc_create_packets");
    hsa_status_t (*iterate)(handle, void *, void *) = dlsym(library, "aqlprofile_pmc_iterate_data");
    if (!registered || !create || !iterate) return puts("another interface"), 77;

    check(hsa_init(), "hsa_init");
    check(hsa_iterate_agents(agent, NULL), "agents");
    check(hsa_queue_create(gpu, 256, HSA_QUEUE_TYPE_MULTI, NULL, NULL, 0, 0, &queue), "queue");
    agent_info info = {argv[1], 1, engines, (uint32_t)atoi(argv[5]), 1};
    handle own, made;
    check(registered(&own, &info), "register");
    event_t events[] = {{0, 0, 0, GRBM}, {0, 2, 0, GRBM}, {0, 4, 0, SQ}, {0, 17, 0, TCC}, {1, 17, 0, TCC}};
    profile_t profile = {own, events, sizeof events / sizeof *events};
    packets_t packets;
    memset(&packets, 0, sizeof packets);
    check(create(&made, &packets, profile, allocate, deallocate, copy, NULL), "create packets");

    hsa_signal_t done;
    check(hsa_signal_create(1, 0, NULL, &done), "signal");
    hsa_kernel_dispatch_packet_t kernel;
    memset(&kernel, 0, sizeof kernel);
    kernel.workgroup_size_x = size, kernel.workgroup_size_y = kernel.workgroup_size_z = 1;
    kernel.grid_size_x = size * groups, kernel.grid_size_y = kernel.grid_size_z = 1;
    kernel.kernel_object = (uint64_t)memory;
    packets.stop.completion = done;
    uint32_t barrier = HSA_PACKET_TYPE_VENDOR_SPECIFIC | 1 << HSA_PACKET_HEADER_BARRIER | 1 << 16;
    for (int round = 0; round < 2; round++) {
        hsa_signal_store_relaxed(done, 1);
        const void *all[] = {&packets.start, &kernel, &packets.read, &packets.stop};
        uint32_t dispatch = HSA_PACKET_TYPE_KERNEL_DISPATCH | 1 << HSA_PACKET_HEADER_BARRIER | 1 << 16;
        submit(all, (uint32_t[]){barrier, dispatch, barrier, barrier}, 4);
        hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, -1, HSA_WAIT_STATE_BLOCKED);
        printf("round %d\n", round);
        check(iterate(made, value, NULL), "iterate");
    }
    hsa_queue_destroy(queue);
    hsa_shut_down();
    return 0;
}
