// Two ranks, a process each, over the real RCCL: each call's operation, number of elements, begin and end (ns of
// CLOCK_BOOTTIME) go to calls.RANK in the working directory.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  char internal[128];
} Id;
typedef void* Comm;
typedef void* Stream;
enum { FLOAT32 = 7, SUM = 0, RANKS = 2 };

static FILE* truth;
static int rank;

static void* load(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (!handle) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return handle;
}

static void* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "%s is missing\n", name);
    exit(2);
  }
  return found;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void succeeds(const char* what, int error) {
  if (error) {
    fprintf(stderr, "rank %d: %s returned %d\n", rank, what, error);
    exit(3);
  }
}

#define CALL(communicator, name, count, ...)                                                       \
  do {                                                                                             \
    uint64_t begin = now();                                                                        \
    succeeds("nccl" #name, nccl##name(__VA_ARGS__));                                               \
    fprintf(truth, "%d %s %d %lu %lu\n", communicator, #name, count, (unsigned long)begin,         \
            (unsigned long)now());                                                                 \
  } while (0)

static int run(void) {
  void *hip = load("libamdhip64.so.7"), *rccl = load("librccl.so.1");
#define HIP(name, ...) int (*name)(__VA_ARGS__) = find(hip, #name)
#define NCCL(name, ...) int (*nccl##name)(__VA_ARGS__) = find(rccl, "nccl" #name)
  HIP(hipSetDevice, int);
  HIP(hipMalloc, void**, size_t);
  HIP(hipStreamCreate, Stream*);
  HIP(hipStreamSynchronize, Stream);
  NCCL(GetUniqueId, Id*);
  NCCL(CommInitRank, Comm*, int, Id, int);
  NCCL(CommSplit, Comm, int, int, Comm*, void*);
  NCCL(CommDestroy, Comm);
  NCCL(GroupStart, void);
  NCCL(GroupEnd, void);
  NCCL(AllReduce, const void*, void*, size_t, int, int, Comm, Stream);
  NCCL(Reduce, const void*, void*, size_t, int, int, int, Comm, Stream);
  NCCL(Broadcast, const void*, void*, size_t, int, int, Comm, Stream);
  NCCL(AllGather, const void*, void*, size_t, int, Comm, Stream);
  NCCL(ReduceScatter, const void*, void*, size_t, int, int, Comm, Stream);
  NCCL(AllToAll, const void*, void*, size_t, int, Comm, Stream);
  NCCL(Send, const void*, size_t, int, int, Comm, Stream);
  NCCL(Recv, void*, size_t, int, int, Comm, Stream);

  char name[16];
  snprintf(name, sizeof name, "calls.%d", rank);
  truth = fopen(name, "w");
  Id id;
  if (rank == 0) {
    succeeds("ncclGetUniqueId", ncclGetUniqueId(&id));
    FILE* file = fopen("id.new", "w");
    fwrite(&id, sizeof id, 1, file);
    fclose(file);
    rename("id.new", "id");
  } else {
    FILE* file;
    while (!(file = fopen("id", "r"))) usleep(1000);
    if (fread(&id, sizeof id, 1, file) != 1) return 3;
    fclose(file);
  }
  succeeds("hipSetDevice", hipSetDevice(rank));
  Comm world, half;
  succeeds("ncclCommInitRank", ncclCommInitRank(&world, RANKS, id, rank));
  void *from, *to;
  Stream stream;
  hipMalloc(&from, 1 << 20);
  hipMalloc(&to, 1 << 20);
  hipStreamCreate(&stream);

  for (int i = 0; i < 10; i++) CALL(0, AllReduce, 1024, from, to, 1024, FLOAT32, SUM, world, stream);
  CALL(0, Reduce, 512, from, to, 512, FLOAT32, SUM, 1, world, stream);
  CALL(0, Broadcast, 256, from, to, 256, FLOAT32, 0, world, stream);
  CALL(0, AllGather, 128, from, to, 128, FLOAT32, world, stream);
  CALL(0, ReduceScatter, 64, from, to, 64, FLOAT32, SUM, world, stream);
  CALL(0, AllToAll, 32, from, to, 32, FLOAT32, world, stream);
  ncclGroupStart();
  CALL(0, Send, 16, from, 16, FLOAT32, !rank, world, stream);
  CALL(0, Recv, 16, to, 16, FLOAT32, !rank, world, stream);
  succeeds("ncclGroupEnd", ncclGroupEnd());
  succeeds("ncclCommSplit", ncclCommSplit(world, 0, -rank, &half, NULL));
  ncclGroupStart();
  CALL(1, AllReduce, 8, from, to, 8, FLOAT32, SUM, half, stream);
  CALL(0, AllReduce, 4, from, to, 4, FLOAT32, SUM, world, stream);
  succeeds("ncclGroupEnd", ncclGroupEnd());
  succeeds("hipStreamSynchronize", hipStreamSynchronize(stream));
  succeeds("ncclCommDestroy", ncclCommDestroy(half));
  succeeds("ncclCommDestroy", ncclCommDestroy(world));
  return fclose(truth);
}

int main(void) {
  unlink("id");
  for (rank = 0; rank < RANKS; rank++)
    if (!fork()) exit(run());
  int status, failed = 0;
  while (wait(&status) > 0) failed |= status;
  return failed != 0;
}
