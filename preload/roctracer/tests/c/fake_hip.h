/* A HIP run-time of one callback, without a GPU: the test makes calls and work. */
#ifndef FAKE_HIP_H
#define FAKE_HIP_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_CALLS = 40 };

/* A call of operation `op`, with `argument` as its first argument; which calls `inside`. */
void fake_call(uint32_t op, uint64_t argument, void (*inside)(void));
/* Work of the thread's current call: the run-time asks, announces it with the address 1, and delivers the record.
 * Returns 0 if it was not requested. */
int fake_work(uint32_t op, uint32_t kind, uint64_t begin, uint64_t end, const char* kernel, size_t bytes);
/* Whether a callback is registered. */
int fake_is_registered(void);

#endif
