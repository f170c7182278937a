// Ranks of a job that follow a script: `ranks SIZE SCRIPT`. Communicator 0 has all ranks. A line is the ranks that follow
// it, a colon, and what they do:
//
//   *: reduce COMM COUNT       or gather, scatter (ReduceScatter), broadcast, exchange (AllToAll)
//   3: sleep MS                also: until MS (after the start), range NAME, pop
//   0,1: send COMM PEER COUNT  also: recv; group, end
//   *: split COMM COLOR NEW    COLOR may be `even` (rank modulo two); also: new NEW, destroy COMM, abort COMM, ask COMM
//   2: kill SIGNAL             also: exit CODE, hang, garbage COMM, repeat N (the lines up to `done`)
//   *: failing COMM            a group that would create a communicator fails; its variable gets a garbage handle, and the
//                              next group reduces over COMM
//   *: leave N                 N threads end inside of groups that would create communicators
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct { char bytes[128]; } Id;
typedef void *Comm;
int ncclGetUniqueId(Id *);
int ncclCommInitRank(Comm *, int, Id, int);
int ncclCommSplit(Comm, int, int, Comm *, void *);
int ncclCommDestroy(Comm);
int ncclCommCount(Comm, int *);
int ncclCommUserRank(Comm, int *);
int ncclCommAbort(Comm);
int ncclGroupStart(void);
int ncclGroupEnd(void);
void standInFail(void);
int ncclAllReduce(const void *, void *, size_t, int, int, Comm, void *);
int ncclAllGather(const void *, void *, size_t, int, Comm, void *);
int ncclReduceScatter(const void *, void *, size_t, int, int, Comm, void *);
int ncclBroadcast(const void *, void *, size_t, int, int, Comm, void *);
int ncclAllToAll(const void *, void *, size_t, int, Comm, void *);
int ncclSend(const void *, size_t, int, int, Comm, void *);
int ncclRecv(void *, size_t, int, int, Comm, void *);
int roctxRangePushA(const char *) __attribute__((weak));
int roctxRangePop(void) __attribute__((weak));

enum { LINES = 4096, COMMS = 64 };
static Comm comms[COMMS];
static char lines[LINES][128];
static int count, rank, size;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void pause_for(uint64_t ns) {
  struct timespec time = {ns / 1000000000, ns % 1000000000};
  while (nanosleep(&time, &time)) {}
}

static int is_mine(const char *ranks) {
  if (*ranks == '*') return 1;
  for (const char *at = ranks; at && *at != ':'; at = strpbrk(at, ",:")) {
    if (*at == ',') at++;
    if (atoi(at) == rank) return 1;
  }
  return 0;
}

// An id that all ranks make alike: no rank needs to ask another one.
static Id id_of(int number) {
  Id id;
  memset(&id, 0, sizeof id);
  snprintf(id.bytes, sizeof id.bytes, "%s.%d", getenv("RANKS_JOB"), number);
  return id;
}

// Writes when a fault happens.
static void fault(void) {
  char path[512];
  if (!getenv("RANKS_TRUTH")) return;
  snprintf(path, sizeof path, "%s.fault", getenv("RANKS_TRUTH"));
  FILE *file = fopen(path, "w");
  if (!file) return;
  fprintf(file, "%lu\n", now());
  fclose(file);
}

static Comm *volatile kept;

static int failing(Comm comm) {
  Comm local = 0;
  kept = &local;
  ncclGroupStart();
  ncclCommInitRank(&local, size, id_of(900), rank);
  standInFail();
  if (!ncclGroupEnd()) return -1;
  *kept = calloc(1, 4096);
  ncclGroupStart();
  ncclAllReduce((void *)1, (void *)2, 8, 7, 0, comm, 0);
  return ncclGroupEnd();
}

static void *leaving(void *unused) {
  Comm local = 0;
  kept = &local;
  ncclGroupStart();
  ncclCommInitRank(&local, size, id_of(901), rank);
  return unused;
}

static int leave(long threads) {
  for (long i = 0; i < threads; i++) {
    pthread_t thread;
    if (pthread_create(&thread, 0, leaving, 0)) return -1;
    pthread_join(thread, 0);
  }
  return 0;
}

static int follow(int from, int to, uint64_t start);

static int step(const char *line, uint64_t start, int at) {
  char verb[16] = "", word[64] = "";
  long a = 0, b = 0, c = 0;
  const char *what = strchr(line, ':') + 1;
  sscanf(what, " %15s %63s %ld %ld", verb, word, &b, &c);
  a = atol(word);
  Comm comm = comms[a < COMMS && a >= 0 ? a : 0];
  if (!strcmp(verb, "reduce")) return ncclAllReduce((void *)1, (void *)2, b, c ? c : 7, 0, comm, 0);
  if (!strcmp(verb, "gather")) return ncclAllGather((void *)1, (void *)2, b, 7, comm, 0);
  if (!strcmp(verb, "scatter")) return ncclReduceScatter((void *)1, (void *)2, b, 7, 0, comm, 0);
  if (!strcmp(verb, "broadcast")) return ncclBroadcast((void *)1, (void *)2, b, 7, c, comm, 0);
  if (!strcmp(verb, "exchange")) return ncclAllToAll((void *)1, (void *)2, b, 7, comm, 0);
  if (!strcmp(verb, "send")) return ncclSend((void *)1, c, 7, b, comm, 0);
  if (!strcmp(verb, "recv")) return ncclRecv((void *)2, c, 7, b, comm, 0);
  if (!strcmp(verb, "group")) return ncclGroupStart();
  if (!strcmp(verb, "end")) return ncclGroupEnd();
  if (!strcmp(verb, "new")) return ncclCommInitRank(&comms[a], size, id_of(a), rank);
  if (!strcmp(verb, "split")) {
    char color[64];
    sscanf(what, " %*s %*s %63s %ld", color, &c);
    return ncclCommSplit(comm, strcmp(color, "even") ? atoi(color) : rank % 2, rank, &comms[c], 0);
  }
  if (!strcmp(verb, "ask")) {
    int answer;
    return ncclCommCount(comm, &answer) || ncclCommUserRank(comm, &answer);
  }
  if (!strcmp(verb, "destroy")) return ncclCommDestroy(comm);
  if (!strcmp(verb, "failing")) return failing(comm);
  if (!strcmp(verb, "leave")) return leave(a);
  if (!strcmp(verb, "abort")) return ncclCommAbort(comm);
  if (!strcmp(verb, "garbage")) return comms[a] = calloc(1, 4096), 0;
  if (!strcmp(verb, "sleep")) return pause_for(a * 1000000), 0;
  if (!strcmp(verb, "until")) {
    uint64_t then = start + a * 1000000;
    if (then > now()) pause_for(then - now());
    return 0;
  }
  if (!strcmp(verb, "range")) return roctxRangePushA ? roctxRangePushA(word), 0 : 0;
  if (!strcmp(verb, "pop")) return roctxRangePop ? roctxRangePop(), 0 : 0;
  if (!strcmp(verb, "kill")) return fault(), kill(getpid(), a), 0;
  if (!strcmp(verb, "exit")) fault(), exit(a);
  if (!strcmp(verb, "hang")) {
    fault();
    for (;;) pause_for(1000000000);
  }
  if (!strcmp(verb, "repeat")) {
    int last = at + 1;
    while (last < count && !strstr(lines[last], ": done")) last++;
    for (long turn = 0; turn < a; turn++) follow(at + 1, last, start);
    return last - at;
  }
  return 0;
}

static int follow(int from, int to, uint64_t start) {
  for (int at = from; at < to; at++) {
    if (!strchr(lines[at], ':') || !is_mine(lines[at])) continue;
    int result = step(lines[at], start, at);
    if (strstr(lines[at], ": repeat")) at += result;
    else if (result && !strstr(lines[at], "?")) fprintf(stderr, "rank %d: %s: %d\n", rank, lines[at], result);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  size = atoi(argv[1]);
  if (argc == 3) {
    char text[64];
    if (!getenv("RANKS_JOB")) {
      snprintf(text, sizeof text, "job-%d-%lu", getpid(), now());
      setenv("RANKS_JOB", text, 1);
    }
    int only = getenv("RANKS_ONLY") ? atoi(getenv("RANKS_ONLY")) : -1, result = 0;
    for (int child = 0; child < size; child++) {
      if (only >= 0 && child != only) continue;
      snprintf(text, sizeof text, "%d", child);
      setenv("RANK", text, 1);
      if (!fork()) {
        execl("/proc/self/exe", "ranks", argv[1], argv[2], text, (char *)0);
        _exit(127);
      }
    }
    for (int status; wait(&status) > 0;) result |= status;
    return result != 0;
  }
  rank = atoi(argv[3]);
  FILE *script = fopen(argv[2], "r");
  while (script && count < LINES && fgets(lines[count], sizeof lines[0], script)) {
    lines[count][strcspn(lines[count], "\n")] = 0;
    count++;
  }
  ncclCommInitRank(&comms[0], size, id_of(0), rank);
  ncclAllReduce((void *)1, (void *)2, 1, 7, 0, comms[0], 0);
  return follow(0, count, now());
}
