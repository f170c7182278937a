// Stands in for registration only: a vendor build of HIP and HSA hands its dispatch tables to rocprofiler-register when
// it creates them; Debian's builds have the same tables and hand them to nobody. This preloaded library takes the real
// tables of the real run-times and hands them to the real register, with the names and versions of a vendor build.
//
// HIP's tables come from the function that the exported wrappers call first, HSA's from OnLoad (name this library in
// HSA_TOOLS_LIB). Written against HIP 7.2.4 and HSA 1.18; anything unexpected ends the program with a message.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HIP = 70200, HSA = 11800, HIP_BYTES = 4056, COMPILER_BYTES = 80 };

uint32_t rocprofiler_register_import_hip(void) { return HIP; }
uint32_t rocprofiler_register_import_hip_compiler(void) { return HIP; }
uint32_t rocprofiler_register_import_hsa(void) { return HSA; }

static void fail(const char *what) {
  fprintf(stderr, "bridge: %s\n", what);
  _exit(99);
}

// The library's own definition, regardless of preloaded libraries.
static void *definition(struct link_map *map, const char *name) {
  const uint32_t *hash = 0;
  const Elf64_Sym *symbols = 0;
  const char *strings = 0;
  for (Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_GNU_HASH) hash = (void *)d->d_un.d_ptr;
    if (d->d_tag == DT_SYMTAB) symbols = (void *)d->d_un.d_ptr;
    if (d->d_tag == DT_STRTAB) strings = (void *)d->d_un.d_ptr;
  }
  if (!hash || !symbols || !strings) return 0;
  uint32_t h = 5381;
  for (const char *c = name; *c; c++) h = h * 33 + (unsigned char)*c;
  const uint32_t *buckets = hash + 4 + 2 * hash[2], *chain = buckets + hash[0];
  for (uint32_t i = buckets[h % hash[0]]; i >= hash[1]; i++) {
    uint32_t word = chain[i - hash[1]];
    if ((word | 1) == (h | 1) && !strcmp(strings + symbols[i].st_name, name)) return (char *)map->l_addr + symbols[i].st_value;
    if (word & 1) break;
  }
  return 0;
}

static int visit(struct dl_phdr_info *info, size_t size, void *path) {
  (void)size;
  if (strstr(info->dlpi_name, "libamdhip64.so")) *(const char **)path = strdup(info->dlpi_name);
  return 0;
}

// Calls the first function that `function` calls directly; it returns a table that begins with its size.
static void *table(const unsigned char *function, uint64_t bytes) {
  for (int i = 0; function && i < 64; i++)
    if (function[i] == 0xe8) {
      int32_t distance;
      memcpy(&distance, function + i + 1, 4);
      const uint64_t *found = ((const uint64_t *(*)(void))(function + i + 5 + distance))();
      if (*found != bytes) fail("the table's size is another one");
      return (void *)found;
    }
  fail("no call in the wrapper");
  return 0;
}

static void hand_over(const char *name, uint32_t (*import)(void), uint32_t version, void *table) {
  void *library = dlopen("librocprofiler-register.so.0", RTLD_NOW);
  int (*call)(const char *, void *, uint32_t, void **, uint64_t, uint64_t *) = 0;
  if (library) *(void **)&call = dlsym(library, "rocprofiler_register_library_api_table");
  if (!call) fail("no rocprofiler-register");
  uint64_t id = 0;
  int result = call(name, (void *)import, version, &table, 1, &id);
  if (getenv("BRIDGE_SAYS")) fprintf(stderr, "bridge: %s handed over, %d\n", name, result);
}

int OnLoad(void *tables, uint64_t version, uint64_t failed, const char *const *names);

static void hip(void) {
  static int is_done;
  if (is_done) return;
  is_done = 1;
  // A vendor run-time hands its tables over before it looks for tools; here this library is the first tool.
  Dl_info own;
  if (dladdr((void *)OnLoad, &own)) setenv("HSA_TOOLS_LIB", own.dli_fname, 1);
  const char *path = 0;
  dl_iterate_phdr(visit, &path);
  struct link_map *map = path ? dlopen(path, RTLD_NOLOAD | RTLD_NOW) : 0;
  if (!map) return;
  hand_over("hip", rocprofiler_register_import_hip, HIP, table(definition(map, "hipGetDeviceCount"), HIP_BYTES));
  hand_over("hip_compiler", rocprofiler_register_import_hip_compiler, HIP, table(definition(map, "__hipRegisterFatBinary"), COMPILER_BYTES));
}

// The first call of every program built by hipcc.
void **__hipRegisterFatBinary(const void *data) {
  hip();
  void **(*next)(const void *) = 0;
  *(void **)&next = dlsym(RTLD_NEXT, "__hipRegisterFatBinary");
  return next(data);
}

int OnLoad(void *tables, uint64_t version, uint64_t failed, const char *const *names) {
  (void)version, (void)failed, (void)names;
  hand_over("hsa", rocprofiler_register_import_hsa, HSA, tables);
  return 1;
}
void OnUnload(void) {}
