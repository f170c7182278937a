// Stands in for librccl.so.1, in as many processes as there are ranks. A collective blocks until all ranks have called it,
// and then for the time that its bytes take. Nothing is moved. What happened is written to $RANKS_TRUTH.PID, a line an
// operation: communicator, sequence number, operation, count, rank, begin and end, in ns of CLOCK_BOOTTIME.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 256, RANKS = 64, MAGIC = 0x6e63636c, INVALID = 4, QUEUED = 128, NS_PER_KIB = 100 };

typedef struct { char bytes[128]; } Id;

// What the ranks of a communicator share.
typedef struct {
  struct { _Atomic uint64_t arrived, last; } slots[SLOTS];
  _Atomic uint64_t sent[RANKS][RANKS], received[RANKS][RANKS];
  struct { _Atomic uint64_t present; int color, key; } splits[SLOTS][RANKS];
} Shared;

typedef struct {
  uint32_t magic;
  int rank, size;
  uint64_t sequence, splits, sent[RANKS], received[RANKS], inside[RANKS];
  char name[256];
  Shared *shared;
} Comm;

typedef struct {
  Comm *comm;
  const char *name;
  uint64_t count, bytes, sequence, logged;
  int peer, kind;
  uint64_t begin, end;
} Op;

// Communicators that a group creates: where they are stored when it ends.
typedef struct { Comm **place, *comm; } Creation;

static __thread Op queued[QUEUED];
static __thread Creation creations[QUEUED];
static __thread int queue_length, creation_count, depth, is_inside, is_failing;
static FILE *truth;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

// By this clock the ranks meet: CLOCK_BOOTTIME may differ between them, by time namespaces.
static uint64_t shared_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void rest(void) {
  struct timespec time = {0, 20000};
  nanosleep(&time, 0);
}

static void log_op(const Op *op) {
  if (!op->logged) return;
  if (!truth) {
    char path[512];
    if (!getenv("RANKS_TRUTH")) return;
    snprintf(path, sizeof path, "%s.%d", getenv("RANKS_TRUTH"), getpid());
    truth = fopen(path, "a");
  }
  if (!truth) return;
  fprintf(truth, "%s %lu %s %lu %d %lu %lu %d\n", op->comm->name, op->logged, op->name, op->count, op->comm->rank,
          op->begin, op->end, op->peer);
  fflush(truth);
}

static Comm *open_comm(const char *name, int rank, int size) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", getenv("RANKS_DIR") ? getenv("RANKS_DIR") : "/dev/shm", name);
  int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared))) return 0;
  Shared *shared = mmap(0, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  Comm *comm = calloc(1, sizeof *comm);
  comm->magic = MAGIC;
  comm->rank = rank;
  comm->size = size;
  comm->shared = shared;
  snprintf(comm->name, sizeof comm->name, "%s", name);
  return comm;
}

static void raise_to(_Atomic uint64_t *word, uint64_t value) {
  uint64_t known = atomic_load(word);
  while (known < value && !atomic_compare_exchange_weak(word, &known, value)) {}
}

static void arrive(Op *op) {
  Shared *shared = op->comm->shared;
  int rank = op->comm->rank;
  op->begin = now();
  if (op->kind == 0) {
    raise_to(&shared->slots[op->sequence % SLOTS].last, shared_now());
    atomic_fetch_add(&shared->slots[op->sequence % SLOTS].arrived, 1);
  } else if (op->kind == 1) {
    atomic_fetch_add(&shared->sent[rank][op->peer], 1);
  } else {
    atomic_fetch_add(&shared->received[op->peer][rank], 1);
  }
}

// Whether all have come; then `ready` is when the last did.
static int is_complete(Op *op, uint64_t *ready) {
  Shared *shared = op->comm->shared;
  int rank = op->comm->rank;
  if (op->kind == 0) {
    *ready = atomic_load(&shared->slots[op->sequence % SLOTS].last);
    return atomic_load(&shared->slots[op->sequence % SLOTS].arrived) >= op->comm->size * (1 + (op->sequence - 1) / SLOTS);
  }
  *ready = shared_now();
  if (op->kind == 1) return atomic_load(&shared->received[rank][op->peer]) >= op->sequence;
  return atomic_load(&shared->sent[op->peer][rank]) >= op->sequence;
}

static int run(Op *ops, int length) {
  uint64_t end = 0;
  for (int i = 0; i < length; i++) arrive(&ops[i]);
  for (int i = 0; i < length; i++) {
    uint64_t ready = 0;
    while (!is_complete(&ops[i], &ready)) rest();
    ready += ops[i].bytes * NS_PER_KIB / 1024;
    if (ready > end) end = ready;
  }
  while (shared_now() < end) rest();
  for (int i = 0; i < length; i++) {
    ops[i].end = now();
    log_op(&ops[i]);
  }
  return 0;
}

static int operate(Comm *comm, const char *name, uint64_t count, int type, int peer, int kind) {
  static const int sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  if (!comm || comm->magic != MAGIC || type < 0 || type >= 10 || peer >= comm->size) return INVALID;
  Op op = {comm, name, count, count * sizes[type], 0, 0, peer, kind, 0, 0};
  op.sequence = kind == 0 ? ++comm->sequence : kind == 1 ? ++comm->sent[peer] : ++comm->received[peer];
  // The ranks do not number what an operation does inside.
  op.logged = is_inside ? 0 : kind ? op.sequence - comm->inside[peer] : op.sequence;
  if (!depth) return run(&op, 1);
  if (queue_length == QUEUED) return INVALID;
  queued[queue_length++] = op;
  return 0;
}

int ncclGetUniqueId(Id *id) {
  static int number;
  memset(id, 0, sizeof *id);
  snprintf(id->bytes, sizeof id->bytes, "rccl-%d-%d-%lu", getpid(), number++, now());
  return 0;
}
int ncclCommInitRank(Comm **comm, int ranks, Id id, int rank) {
  if (ranks < 1 || ranks > RANKS || rank < 0 || rank >= ranks) return INVALID;
  Comm *made = open_comm(id.bytes, rank, ranks);
  *comm = depth ? 0 : made;
  if (depth) {
    if (creation_count == QUEUED) return INVALID;
    creations[creation_count++] = (Creation){comm, made};
  }
  return made ? 0 : 2;
}
// The next group of this thread fails.
void standInFail(void) { is_failing = 1; }
int ncclCommSplit(Comm *comm, int color, int key, Comm **made, void *config) {
  (void)config;
  if (!comm || comm->magic != MAGIC) return INVALID;
  int slot = comm->splits++ % SLOTS, rank = 0, size = 0;
  comm->shared->splits[slot][comm->rank].color = color;
  comm->shared->splits[slot][comm->rank].key = key;
  atomic_store(&comm->shared->splits[slot][comm->rank].present, comm->splits);
  for (int other = 0; other < comm->size; other++) {
    while (atomic_load(&comm->shared->splits[slot][other].present) != comm->splits) rest();
    int theirs = comm->shared->splits[slot][other].key;
    if (comm->shared->splits[slot][other].color != color) continue;
    size++;
    rank += theirs < key || (theirs == key && other < comm->rank);
  }
  *made = 0;
  if (color < 0) return 0;
  char name[256];
  snprintf(name, sizeof name, "%.200s.%lu.%d", comm->name, comm->splits, color);
  *made = open_comm(name, rank, size);
  return 0;
}
int ncclCommCount(Comm *comm, int *count) { return *count = comm->size, 0; }
int ncclCommUserRank(Comm *comm, int *rank) { return *rank = comm->rank, 0; }
static int release(Comm *comm) {
  if (!comm || comm->magic != MAGIC) return INVALID;
  munmap(comm->shared, sizeof(Shared));
  comm->magic = 0;
  free(comm);
  return 0;
}
int ncclCommDestroy(Comm *comm) { return release(comm); }
int ncclCommAbort(Comm *comm) { return release(comm); }
int ncclGroupStart(void) { return depth++, 0; }
int ncclGroupEnd(void) {
  if (--depth) return 0;
  int length = queue_length, created = creation_count, fails = is_failing;
  queue_length = creation_count = is_failing = 0;
  for (int i = 0; i < created; i++) {
    if (fails) release(creations[i].comm);
    else *creations[i].place = creations[i].comm;
  }
  return fails ? INVALID : run(queued, length);
}
int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, Comm *comm, void *stream) {
  (void)send, (void)recv, (void)op, (void)stream;
  return operate(comm, "AllReduce", count, type, -1, 0);
}
int ncclAllGather(const void *send, void *recv, size_t count, int type, Comm *comm, void *stream) {
  (void)send, (void)recv, (void)stream;
  return operate(comm, "AllGather", count, type, -1, 0);
}
int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op, Comm *comm, void *stream) {
  (void)send, (void)recv, (void)op, (void)stream;
  return operate(comm, "ReduceScatter", count, type, -1, 0);
}
int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, Comm *comm, void *stream) {
  (void)send, (void)recv, (void)root, (void)stream;
  return operate(comm, "Broadcast", count, type, -1, 0);
}
// As the real one: by the exported functions, and so through the collector's.
int ncclSend(const void *, size_t, int, int, Comm *, void *);
int ncclRecv(void *, size_t, int, int, Comm *, void *);
int ncclAllToAll(const void *send, void *recv, size_t count, int type, Comm *comm, void *stream) {
  if (!comm || comm->magic != MAGIC) return INVALID;
  Op whole = {comm, "AllToAll", count, 0, 0, 0, -1, 0, now(), 0};
  ncclGroupStart();
  is_inside = 1;
  for (int peer = 0; peer < comm->size; peer++) {
    ncclSend(send, count, type, peer, comm, stream);
    ncclRecv(recv, count, type, peer, comm, stream);
    comm->inside[peer]++;
  }
  is_inside = 0;
  // Counted with the collectives; nobody waits for this number.
  uint64_t sequence = ++comm->sequence;
  raise_to(&comm->shared->slots[sequence % SLOTS].last, shared_now());
  atomic_fetch_add(&comm->shared->slots[sequence % SLOTS].arrived, 1);
  int result = ncclGroupEnd();
  whole.logged = sequence;
  whole.end = now();
  log_op(&whole);
  return result;
}
int ncclSend(const void *send, size_t count, int type, int peer, Comm *comm, void *stream) {
  (void)send, (void)stream;
  return operate(comm, "Send", count, type, peer, 1);
}
int ncclRecv(void *recv, size_t count, int type, int peer, Comm *comm, void *stream) {
  (void)recv, (void)stream;
  return operate(comm, "Recv", count, type, peer, 2);
}
const char *ncclGetErrorString(int code) { return code ? "error" : "no error"; }
