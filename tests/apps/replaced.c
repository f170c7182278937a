// Loads libraries in turns, one at the address of the other, and launches through each.
//
//   replaced LIBLAUNCH LIBPASS_A LIBPASS_B
//
// For each launch, prints the library's letter and the address of its function.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *needed(void *found, const char *name) {
    if (found) return found;
    fprintf(stderr, "replaced: no %s: %s\n", name, dlerror());
    exit(2);
}

int main(int count, char **words) {
    if (count < 4) return 2;
    void *hip = needed(dlopen(words[1], RTLD_NOW), words[1]);
    void (*launch)(void) = needed(dlsym(hip, "launch_kernel"), "launch_kernel");
    void (*wait)(void) = needed(dlsym(hip, "wait_for_all"), "wait_for_all");
    for (int round = 0; round < 60; round++) {
        // Each of them several times in turn, too.
        int is_second = round / 3 % 2 ^ round % 2;
        void *library = needed(dlopen(words[2 + is_second], RTLD_NOW), words[2 + is_second]);
        void (*pass)(void (*)(void)) = needed(dlsym(library, "pass"), "pass");
        printf("%c %p\n", "ab"[is_second], (void *)pass);
        for (int time = 0; time < 3; time++) pass(launch);
        dlclose(library);
    }
    wait();
    return 0;
}
