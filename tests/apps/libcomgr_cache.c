// A cache in front of the run-time's code object manager (comgr). HIP 5.2 compiles its copy kernels again in each process, which is
// most of the CPU time of a short program. Later releases have such a cache themselves.
//
//   LD_PRELOAD=libcomgr_cache.so COMGR_CACHE=FOLDER program
//
// It has the soname of the real library, so that HIP's dlopen finds it. It answers compilations from the folder where it can, and passes
// every other call on.
#include <amd_comgr.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PASSED(_) \
  _(action_data_count) _(action_data_get_data) _(action_info_get_isa_name) _(action_info_get_language) \
  _(action_info_get_logging) _(action_info_get_option_list_count) _(action_info_get_option_list_item) \
  _(action_info_get_options) _(action_info_get_working_directory_path) _(action_info_set_isa_name) \
  _(action_info_set_language) _(action_info_set_logging) _(action_info_set_option_list) _(action_info_set_options) \
  _(action_info_set_working_directory_path) _(create_action_info) _(create_data) _(create_data_set) \
  _(create_disassembly_info) _(create_symbolizer_info) _(data_set_add) _(data_set_remove) _(demangle_symbol_name) \
  _(destroy_action_info) _(destroy_data_set) _(destroy_disassembly_info) _(destroy_metadata) \
  _(destroy_symbolizer_info) _(disassemble_instruction) _(get_data) _(get_data_isa_name) _(get_data_kind) \
  _(get_data_metadata) _(get_data_name) _(get_isa_count) _(get_isa_metadata) _(get_isa_name) _(get_metadata_kind) \
  _(get_metadata_list_size) _(get_metadata_map_size) _(get_metadata_string) _(get_version) _(index_list_metadata) \
  _(iterate_map_metadata) _(iterate_symbols) _(lookup_code_object) _(metadata_lookup) _(release_data) _(set_data) \
  _(set_data_from_file_slice) _(set_data_name) _(status_string) _(symbol_get_info) _(symbol_lookup) _(symbolize)

#define REAL "/usr/lib/x86_64-linux-gnu/libamd_comgr.so.2"

enum {
#define NUMBER(name) at_##name,
  PASSED(NUMBER) at_do_action,
  COUNT
};

// What the functions below jump to.
__attribute__((visibility("hidden"))) void *comgr_real[COUNT];

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_real(void) {
  static const char *names[COUNT] = {
#define NAME(name) "amd_comgr_" #name,
      PASSED(NAME) "amd_comgr_do_action"};
  void *real = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
  for (int i = 0; real && i < COUNT; i++) comgr_real[i] = dlsym(real, names[i]);
}

__attribute__((visibility("hidden"))) void comgr_load(void) { pthread_once(&once, find_real); }

// Each saves the registers of arguments, loads the real library once, and jumps to its function.
#define JUMP(name)                                                                                             \
  __asm__(".pushsection .text\n.globl amd_comgr_" #name "\n.type amd_comgr_" #name ",@function\n"             \
          "amd_comgr_" #name ":\n"                                                                             \
          "cmpq $0, comgr_real+8*comgr_at_" #name "(%rip)\njne 1f\n"                                           \
          "pushq %rdi\npushq %rsi\npushq %rdx\npushq %rcx\npushq %r8\npushq %r9\nsubq $8, %rsp\n"              \
          "call comgr_load\n"                                                                                  \
          "addq $8, %rsp\npopq %r9\npopq %r8\npopq %rcx\npopq %rdx\npopq %rsi\npopq %rdi\n"                    \
          "1: jmpq *comgr_real+8*comgr_at_" #name "(%rip)\n.popsection\n");
__asm__(".set comgr_next, 0");
#define AT(name) __asm__(".set comgr_at_" #name ", comgr_next\n.set comgr_next, comgr_next + 1");
PASSED(AT)
PASSED(JUMP)

#define CALL(name) ((__typeof__(&amd_comgr_##name))comgr_real[at_##name])

// Two sums of all that an action depends on.
struct key {
  uint64_t a, b;
};

static void add(struct key *key, const void *bytes, size_t size) {
  const unsigned char *from = bytes;
  for (size_t i = 0; i < size; i++) {
    key->a = (key->a ^ from[i]) * 0x100000001b3;
    key->b = (key->b + from[i]) * 0x9e3779b97f4a7c15;
    key->b ^= key->b >> 29;
  }
  key->a = (key->a ^ size) * 0x100000001b3;
}

static int add_data(struct key *key, amd_comgr_data_set_t set, amd_comgr_data_kind_t kind) {
  size_t count = 0;
  if (CALL(action_data_count)(set, kind, &count)) return 0;
  add(key, &count, sizeof count);
  for (size_t i = 0; i < count; i++) {
    amd_comgr_data_t data;
    size_t size = 0, length = 0;
    if (CALL(action_data_get_data)(set, kind, i, &data)) return 0;
    int good = !CALL(get_data)(data, &size, 0) && !CALL(get_data_name)(data, &length, 0);
    char *bytes = malloc(size + length + 1);
    good = good && bytes && !CALL(get_data)(data, &size, bytes) && !CALL(get_data_name)(data, &length, bytes + size);
    if (good) add(key, bytes, size + length);
    free(bytes);
    CALL(release_data)(data);
    if (!good) return 0;
  }
  return 1;
}

static int add_info(struct key *key, amd_comgr_action_info_t info) {
  size_t size = 0, count = 0;
  char text[4096];
  amd_comgr_language_t language = 0;
  if (CALL(action_info_get_language)(info, &language)) return 0;
  add(key, &language, sizeof language);
  if (CALL(action_info_get_isa_name)(info, &size, 0) || size > sizeof text ||
      CALL(action_info_get_isa_name)(info, &size, text))
    return 0;
  add(key, text, size);
  if (CALL(action_info_get_option_list_count)(info, &count)) return 0;
  for (size_t i = 0; i < count; i++) {
    if (CALL(action_info_get_option_list_item)(info, i, &size, 0) || size > sizeof text ||
        CALL(action_info_get_option_list_item)(info, i, &size, text))
      return 0;
    add(key, text, size);
  }
  return 1;
}

static const amd_comgr_data_kind_t kinds[] = {
    AMD_COMGR_DATA_KIND_SOURCE, AMD_COMGR_DATA_KIND_INCLUDE, AMD_COMGR_DATA_KIND_PRECOMPILED_HEADER,
    AMD_COMGR_DATA_KIND_BC,     AMD_COMGR_DATA_KIND_RELOCATABLE, AMD_COMGR_DATA_KIND_EXECUTABLE,
    AMD_COMGR_DATA_KIND_BYTES};
#define KINDS (sizeof kinds / sizeof *kinds)

// Reads a cached result: for each piece its kind, the sizes of its name and bytes, and both.
static int load_result(const char *path, amd_comgr_data_set_t into) {
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  uint64_t head[3];
  int good = 1;
  while (good && fread(head, sizeof head, 1, file) == 1) {
    amd_comgr_data_t data;
    char *bytes = malloc(head[1] + head[2] + 1);
    good = bytes && fread(bytes, 1, head[1] + head[2], file) == head[1] + head[2] &&
           !CALL(create_data)((amd_comgr_data_kind_t)head[0], &data);
    if (good) {
      good = !CALL(set_data_name)(data, bytes) && !CALL(set_data)(data, head[2], bytes + head[1]) &&
             !CALL(data_set_add)(into, data);
      CALL(release_data)(data);
    }
    free(bytes);
  }
  fclose(file);
  return good;
}

static void store_result(const char *path, amd_comgr_data_set_t set) {
  char beside[4200];
  snprintf(beside, sizeof beside, "%s.%d", path, (int)getpid());
  FILE *file = fopen(beside, "we");
  if (!file) return;
  int good = 1;
  for (size_t k = 0; k < KINDS; k++) {
    size_t count = 0;
    good = good && !CALL(action_data_count)(set, kinds[k], &count);
    for (size_t i = 0; good && i < count; i++) {
      amd_comgr_data_t data;
      uint64_t head[3] = {kinds[k], 0, 0};
      good = !CALL(action_data_get_data)(set, kinds[k], i, &data);
      if (!good) break;
      size_t length = 0, size = 0;
      good = !CALL(get_data_name)(data, &length, 0) && !CALL(get_data)(data, &size, 0);
      char *bytes = malloc(length + size + 1);
      good = good && bytes && !CALL(get_data_name)(data, &length, bytes) && !CALL(get_data)(data, &size, bytes + length);
      head[1] = length, head[2] = size;
      good = good && fwrite(head, sizeof head, 1, file) == 1 && fwrite(bytes, 1, length + size, file) == length + size;
      free(bytes);
      CALL(release_data)(data);
    }
  }
  good = !fclose(file) && good;
  // Renamed: another process may read it meanwhile.
  if (!good || rename(beside, path)) unlink(beside);
}

amd_comgr_status_t amd_comgr_do_action(amd_comgr_action_kind_t kind, amd_comgr_action_info_t info,
                                       amd_comgr_data_set_t input, amd_comgr_data_set_t result) {
  comgr_load();
  __typeof__(&amd_comgr_do_action) real = comgr_real[at_do_action];
  const char *folder = getenv("COMGR_CACHE");
  struct key key = {0xcbf29ce484222325, kind};
  struct stat compiler;
  int known = folder && !stat(REAL, &compiler) && add_info(&key, info);
  // Another compiler makes other code.
  if (known) add(&key, &compiler.st_mtim, sizeof compiler.st_mtim), add(&key, &compiler.st_size, sizeof compiler.st_size);
  for (size_t k = 0; known && k < KINDS; k++) known = add_data(&key, input, kinds[k]);
  if (!known) return real(kind, info, input, result);
  char path[4096];
  snprintf(path, sizeof path, "%s/%016llx%016llx", folder, (unsigned long long)key.a, (unsigned long long)key.b);
  if (load_result(path, result)) return AMD_COMGR_STATUS_SUCCESS;
  amd_comgr_status_t status = real(kind, info, input, result);
  if (status == AMD_COMGR_STATUS_SUCCESS) store_result(path, result);
  return status;
}
