/* A HIP run-time of one callback, without a GPU: calls and work are made by the test. */
#ifndef FAKE_HIP_H
#define FAKE_HIP_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_CALLS = 40 };

/* A call of operation `op`, with `argument` as its first argument; `inside` is called in it. */
void fake_call(uint32_t op, uint64_t argument, void (*inside)(void));
/* Work of the call that this thread is in: the run-time asks, promises by the address 1, and delivers the record.
 * Returns 0 when it was not wanted. */
int fake_work(uint32_t op, uint32_t kind, uint64_t begin, uint64_t end, const char* kernel, size_t bytes);
/* Is a callback registered? */
int fake_is_registered(void);

#endif
