/* A program whose run-time hands its table to rocprofiler-register, and that runs kernels on the stand-in SDK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void first(void) {}

/* Counters rest, or count: as a viewer says it, and waited for. */
static void counters_rest(uint64_t rest) {
    char path[4096];
    snprintf(path, sizeof path, "%s/control", getenv("ROCTOP_SESSION") ? getenv("ROCTOP_SESSION") : "");
    int control = open(path, O_WRONLY);
    if (control < 0 || pwrite(control, &rest, sizeof rest, 3 * 8) != sizeof rest) abort();
    close(control);
    usleep(300000);
}

int main(int argc, char **argv) {
    struct { size_t size; void *functions[4]; } table = {sizeof table, {first, first, first, first}};
    void *tables[] = {&table};
    int (*set)(const char *, uint64_t, uint64_t, void **, uint64_t) = dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
    printf("hip %d\n", set ? set("hip", 60000, 0, tables, 1) : -1);
    printf("hsa %d\n", set ? set("hsa", 10000, 0, tables, 1) : -1);
    void *sdk = dlopen(getenv("ROCTOP_SDK") ? getenv("ROCTOP_SDK") : "", RTLD_NOW | RTLD_NOLOAD);
    void (*load)(uint64_t, const char *) = sdk ? dlsym(sdk, "stand_in_load") : NULL;
    int (*dispatch)(uint64_t, uint32_t) = sdk ? dlsym(sdk, "stand_in_dispatch") : NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "load") && load) load(1, "_Z5scalePfi.kd"), load(2, "_Z5plainPi.kd");
        if (!strcmp(argv[i], "scale") && dispatch) printf("scale %d\n", dispatch(1, 65536));
        if (!strcmp(argv[i], "plain") && dispatch) printf("plain %d\n", dispatch(2, 100));
        if (!strcmp(argv[i], "rest")) counters_rest(1);
        if (!strcmp(argv[i], "count")) counters_rest(0);
        if (!strcmp(argv[i], "wait")) usleep(400000);
        void (*mark)(const char *) = dlsym(RTLD_DEFAULT, "roctxMarkA");
        if (!strcmp(argv[i], "mark") && mark) mark("here");
    }
    return 0;
}
