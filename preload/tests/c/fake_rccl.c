// Stands in for librccl.so.1: functions that say whether their arguments arrived whole, and that call HIP as the real one
// does. No communication is made.
#include <stddef.h>

typedef struct { char bytes[128]; } Id;
int hipGetDevice(int *);

int ncclGetUniqueId(Id *id) {
  for (int i = 0; i < 128; i++) id->bytes[i] = (char)(i ^ 0x55);
  return 0;
}
int ncclCommInitRank(void **comm, int ranks, Id id, int rank) {
  for (int i = 0; i < 128; i++) if (id.bytes[i] != (char)(i ^ 0x55)) return 5;
  *comm = (void *)0xc0;
  return ranks == 2 && rank == 1 ? 0 : 4;
}
int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm, void *stream) {
  int device;
  hipGetDevice(&device);
  return send == (void *)1 && recv == (void *)2 && type == 7 && op == 0 && comm == (void *)0xc0 && stream == (void *)0x50 && count ? 0 : 4;
}
int ncclSend(const void *send, size_t count, int type, int peer, void *comm, void *stream) {
  return send == (void *)1 && count == 9 && type == 3 && peer == 1 && comm == (void *)0xc0 && !stream ? 0 : 4;
}
int ncclCommDestroy(void *comm) { return comm == (void *)0xc0 ? 0 : 4; }
const char *ncclGetErrorString(int code) { return code ? "bad" : "no error"; }
