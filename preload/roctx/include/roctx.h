/* ROC-TX: marks and ranges in a program's own code.
 *
 * Link with -lroctx64. Names and values are those of the ROC-TX library 4.1; the comments are ours. All functions may be
 * called from any thread, before a GPU run-time starts and without one.
 */
#ifndef ROCTX_H_
#define ROCTX_H_ 1

#include <stdint.h>

#define ROCTX_VERSION_MAJOR 4
#define ROCTX_VERSION_MINOR 1

#ifndef ROCTX_API
#define ROCTX_API
#endif
#ifndef ROCTX_EXPORT
#define ROCTX_EXPORT __attribute__((visibility("default")))
#endif
/* The version node of a symbol in the library. */
#define ROCTX_VERSION_4_1

#ifdef __cplusplus
extern "C" {
#define ROCTX_NO_ARGUMENTS
#else
#define ROCTX_NO_ARGUMENTS void
#endif

/* Version of the installed library. It serves programs compiled for the same major and no newer minor version. */
ROCTX_API uint32_t roctx_version_major(ROCTX_NO_ARGUMENTS);
ROCTX_API uint32_t roctx_version_minor(ROCTX_NO_ARGUMENTS);

/* An instant with a text. */
ROCTX_API void roctxMarkA(const char* message);
#define roctxMark(message) roctxMarkA(message)

/* Pushes a range of the calling thread, inside its open ones; returns its level, from 0. */
ROCTX_API int roctxRangePushA(const char* message);
#define roctxRangePush(message) roctxRangePushA(message)

/* Pops the thread's innermost range; returns its level, or a negative number if none is open. */
ROCTX_API int roctxRangePop(ROCTX_NO_ARGUMENTS);

/* Identifies a range that any thread may end; unique in the process, never 0. */
typedef uint64_t roctx_range_id_t;

/* Starts such a range. */
ROCTX_API roctx_range_id_t roctxRangeStartA(const char* message);
#define roctxRangeStart(message) roctxRangeStartA(message)

/* Stops it. */
ROCTX_API void roctxRangeStop(roctx_range_id_t id);

#ifdef __cplusplus
}
#endif
#undef ROCTX_NO_ARGUMENTS

#endif
