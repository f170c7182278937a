// A program with Python in it: a library that it opens.
//
//   embedded LIBPYTHON LIBLAUNCH LIBCALLS_BACK [unload]
//
// Python launches kernels while another thread holds the loader's lock, and after a failed dlopen of its thread, whose message
// must stay. Then it launches 300 more, and ends. `unload` opens and closes Python's library again and again instead, with a
// launch in between. Exit code 1: a launch waited, or the message is gone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int holds, released;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void hold(void) {
    holds = 1;
    double start = seconds();
    while (!released && seconds() < start + 5) usleep(100);
}

static void *opens(void *library) {
    if (!dlopen(library, RTLD_NOW)) holds = -1;
    return NULL;
}

static void *needed(void *found, const char *name) {
    if (found) return found;
    fprintf(stderr, "embedded: no %s: %s\n", name, dlerror());
    exit(2);
}

int main(int count, char **words) {
    if (count < 4) return 2;
    void *hip = needed(dlopen(words[2], RTLD_NOW), words[2]);
    void (*launch)(void) = needed(dlsym(hip, "launch_kernel"), "launch_kernel");
    void (*wait)(void) = needed(dlsym(hip, "wait_for_all"), "wait_for_all");
    launch();
    wait();
    if (count > 4) {
        for (int round = 0; round < 40; round++) {
            void *python = needed(dlopen(words[1], RTLD_LAZY), words[1]);
            launch();
            if (round % 2) usleep(500 * round);
            dlclose(python);
            launch();
        }
        wait();
        return 0;
    }
    void *python = needed(dlopen(words[1], RTLD_LAZY | RTLD_GLOBAL), words[1]);
    void (*start)(int) = needed(dlsym(python, "Py_InitializeEx"), "Py_InitializeEx");
    int (*run)(const char *) = needed(dlsym(python, "PyRun_SimpleString"), "PyRun_SimpleString");
    start(0);
    char text[4096];
    snprintf(text, sizeof text,
             "import ctypes\n"
             "launch = ctypes.PyDLL('%s').launch_kernel\n"
             "def inner():\n"
             "    launch()\n"
             "def outer():\n"
             "    inner()\n",
             words[2]);
    if (run(text)) return 2;

    snprintf(text, sizeof text, "%lx", (unsigned long)hold);
    setenv("APP_CONSTRUCTOR", text, 1);
    dlopen("no-such-library.so", RTLD_NOW);
    pthread_t holder;
    pthread_create(&holder, NULL, opens, words[3]);
    while (!holds) usleep(100);
    if (holds < 0) return 2;
    double before = seconds();
    for (int launches = 0; launches < 20; launches++) run("outer()");
    double took = seconds() - before;
    released = 1;
    pthread_join(holder, NULL);
    for (int launches = 0; launches < 300; launches++) {
        run("outer()");
        usleep(1000);
    }
    const char *message = dlerror();
    int is_there = message && strstr(message, "no-such-library");
    wait();
    dlclose(python);
    launch();
    wait();
    if (took > 2) printf("20 launches took %.1f s under the loader's lock\n", took);
    if (!is_there) printf("the message of dlopen is gone\n");
    return took > 2 || !is_there;
}
