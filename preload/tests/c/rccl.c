// Calls RCCL as a program does that is linked to it, or as a library that hands its table over (argument "table").
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct { char bytes[128]; } Id;
int ncclGetUniqueId(Id *);
int ncclCommInitRank(void **, int, Id, int);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
int ncclSend(const void *, size_t, int, int, void *, void *);
int ncclCommDestroy(void *);
const char *ncclGetErrorString(int);

int main(int argc, char **argv) {
  int (*reduce)(const void *, void *, size_t, int, int, void *, void *) = ncclAllReduce;
  struct { size_t size; void *functions[38]; } table = {sizeof table, {0}};
  if (argc > 1 && !strcmp(argv[1], "table")) {
    void *library = dlopen("librccl.so.1", RTLD_NOLOAD | RTLD_NOW), *tables[] = {&table};
    int (*set)(const char *, uint64_t, uint64_t, void **, uint64_t) = dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
    // What the library itself has behind its exported functions: one of another library, that passes on.
    table.functions[1] = (void *)reduce;
    printf("%d\n", set ? set("rccl", 22004, 0, tables, 1) : -1);
    reduce = table.functions[1];
    if (library) dlclose(library);
  }
  Id id;
  void *comm = 0;
  printf("%d", ncclGetUniqueId(&id));
  printf(" %d", ncclCommInitRank(&comm, 2, id, 1));
  printf(" %d", reduce((void *)1, (void *)2, 1 << 20, 7, 0, comm, (void *)0x50));
  printf(" %d", reduce((void *)1, (void *)2, 0, 7, 0, comm, (void *)0x50));
  printf(" %d", ncclSend((void *)1, 9, 3, 1, comm, 0));
  const char *text = ncclGetErrorString(0);
  printf(" %d %s\n", ncclCommDestroy(comm), text);
  return 0;
}
