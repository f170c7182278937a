/* A tool that makes the program's import tables writable and leaves them so, as libraries that rewrite tables do. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>

static int open_tables(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[at];
        if (header->p_type != PT_GNU_RELRO) continue;
        uintptr_t begin = (info->dlpi_addr + header->p_vaddr) & ~(uintptr_t)4095;
        uintptr_t end = (info->dlpi_addr + header->p_vaddr + header->p_memsz) & ~(uintptr_t)4095;
        mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE);
    }
    return 1; /* The program is the first. */
}

__attribute__((constructor)) static void start(void) { dl_iterate_phdr(open_tables, 0); }
