/* ROCTracer: callbacks for the calls of ROCm's run-times, and records of calls and of GPU work.
 *
 * Link with -lroctracer64. Names, values and layouts are those of the shipped library 4.1; the comments are ours. Where
 * its manual differs (names, status values, domain numbers), the library wins and the manual's names are aliases, marked
 * "manual" below: compile by name and both work.
 *
 * All functions may be called from any thread. Those that return a status leave a text of what went wrong for
 * roctracer_error_string.
 */
#ifndef ROCTRACER_H_
#define ROCTRACER_H_

#include <stddef.h>
#include <stdint.h>

#include "ext/prof_protocol.h"

#define ROCTRACER_VERSION_MAJOR 4
#define ROCTRACER_VERSION_MINOR 1

#ifndef ROCTRACER_API
#define ROCTRACER_API
#endif
#ifndef ROCTRACER_EXPORT
#define ROCTRACER_EXPORT __attribute__((visibility("default")))
#endif
#ifndef ROCTRACER_IMPORT
#define ROCTRACER_IMPORT
#endif
/* Around a call in the manual's samples; programs may define their own, before or after. */
#ifndef ROCTRACER_CALL
#define ROCTRACER_CALL
#endif
/* The version node that a symbol carries in the library. */
#define ROCTRACER_VERSION_4_1

#ifdef __cplusplus
extern "C" {
#define ROCTRACER_NO_ARGUMENTS
#else
#define ROCTRACER_NO_ARGUMENTS void
#endif

/* ---- Versions and errors ---------------------------------------------------------------------------------------- */

/* Version of the installed library. It serves a program compiled for the same major and no newer minor version. */
ROCTRACER_API uint32_t roctracer_version_major(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API uint32_t roctracer_version_minor(ROCTRACER_NO_ARGUMENTS);
#define roctracer_major_version roctracer_version_major /* manual */
#define roctracer_minor_version roctracer_version_minor /* manual */

/* What a function returns. The manual has small positive numbers. */
typedef enum {
  ROCTRACER_STATUS_SUCCESS = 0,
  ROCTRACER_STATUS_ERROR = -1,
  ROCTRACER_STATUS_ERROR_INVALID_DOMAIN_ID = -2,
  ROCTRACER_STATUS_ERROR_INVALID_ARGUMENT = -3,
  ROCTRACER_STATUS_ERROR_DEFAULT_POOL_UNDEFINED = -4,
  ROCTRACER_STATUS_ERROR_DEFAULT_POOL_ALREADY_DEFINED = -5,
  ROCTRACER_STATUS_ERROR_MEMORY_ALLOCATION = -6,
  ROCTRACER_STATUS_ERROR_MISMATCHED_EXTERNAL_CORRELATION_ID = -7,
  ROCTRACER_STATUS_ERROR_NOT_IMPLEMENTED = -8,
  /* No function returns these. */
  ROCTRACER_STATUS_UNINIT = 2,
  ROCTRACER_STATUS_BREAK = 3,
  ROCTRACER_STATUS_HIP_API_ERR = 6,
  ROCTRACER_STATUS_HIP_OPS_ERR = 7,
  ROCTRACER_STATUS_HCC_OPS_ERR = ROCTRACER_STATUS_HIP_OPS_ERR,
  ROCTRACER_STATUS_HSA_ERR = 7,
  ROCTRACER_STATUS_ROCTX_ERR = 8,
  /* Older names. */
  ROCTRACER_STATUS_BAD_DOMAIN = ROCTRACER_STATUS_ERROR_INVALID_DOMAIN_ID,
  ROCTRACER_STATUS_BAD_PARAMETER = ROCTRACER_STATUS_ERROR_INVALID_ARGUMENT
} roctracer_status_t;

/* What the calling thread's last call that failed says went wrong; "" when none has. To be freed by the caller. */
ROCTRACER_API const char* roctracer_error_string(ROCTRACER_NO_ARGUMENTS);

/* ---- Domains and their operations ------------------------------------------------------------------------------- */

typedef activity_domain_t roctracer_domain_t;

/* Name of an operation: of HIP_OPS by `kind`, of the other domains by `op`. NULL when there is none. The library's own. */
ROCTRACER_API const char* roctracer_op_string(uint32_t domain, uint32_t op, uint32_t kind);
#define roctracer_id_string(domain, op) roctracer_op_string((domain), (op), 0) /* manual */

/* The operation of that name, for HSA_API and HIP_API; `kind` may be NULL.
 * INVALID_ARGUMENT: no such name, or NULL. INVALID_DOMAIN_ID: another domain. */
ROCTRACER_API roctracer_status_t roctracer_op_code(uint32_t domain, const char* str, uint32_t* op, uint32_t* kind);

/* Hands a domain its own properties: EXT_API takes a roctracer_ext_properties_t; the others take none and say so by
 * success. INVALID_DOMAIN_ID: ROCTX, or no domain. */
ROCTRACER_API roctracer_status_t roctracer_set_properties(roctracer_domain_t domain, void* properties);

/* ---- Callbacks -------------------------------------------------------------------------------------------------- */

typedef activity_rtapi_callback_t roctracer_rtapi_callback_t;

/* Manual. */
typedef activity_api_phase_t roctracer_api_phase_t;
#define ROCTRACER_API_PHASE_ENTER ACTIVITY_API_PHASE_ENTER
#define ROCTRACER_API_PHASE_EXIT ACTIVITY_API_PHASE_EXIT

/* Calls `callback` around every call of one operation, of all of a domain, of all domains; a second one takes the
 * first one's place. INVALID_DOMAIN_ID: no domain. INVALID_ARGUMENT: no such operation, or no callback.
 * NOT_IMPLEMENTED: a HIP release whose calls are told in a way that is not known. */
ROCTRACER_API roctracer_status_t roctracer_enable_op_callback(activity_domain_t domain, uint32_t op,
                                                              activity_rtapi_callback_t callback, void* arg);
ROCTRACER_API roctracer_status_t roctracer_enable_domain_callback(activity_domain_t domain,
                                                                  activity_rtapi_callback_t callback, void* arg);
ROCTRACER_API roctracer_status_t roctracer_enable_callback(activity_rtapi_callback_t callback, void* arg);

/* The reverse. It is no error when there was none. */
ROCTRACER_API roctracer_status_t roctracer_disable_op_callback(activity_domain_t domain, uint32_t op);
ROCTRACER_API roctracer_status_t roctracer_disable_domain_callback(activity_domain_t domain);
ROCTRACER_API roctracer_status_t roctracer_disable_callback(ROCTRACER_NO_ARGUMENTS);

/* ---- Records and pools ------------------------------------------------------------------------------------------ */

typedef activity_record_t roctracer_record_t;

/* The record behind `record`. */
ROCTRACER_API roctracer_status_t roctracer_next_record(const activity_record_t* record, const activity_record_t** next);

/* Gives memory: *ptr is NULL and size is not 0. Gives another size: neither is. Takes it back: size is 0. */
typedef void (*roctracer_allocator_t)(char** ptr, size_t size, void* arg);

/* Gets whole records, from `begin` to before `end`, on a thread of the pool's. They are valid until it returns. */
typedef void (*roctracer_buffer_callback_t)(const char* begin, const char* end, void* arg);

typedef struct {
  uint32_t mode;      /* not used */
  size_t buffer_size; /* bytes of each of a pool's two buffers; room for two records is the least */
  roctracer_allocator_t alloc_fun; /* NULL for malloc, realloc and free */
  void* alloc_arg;
  roctracer_buffer_callback_t buffer_callback_fun;
  void* buffer_callback_arg;
} roctracer_properties_t;

typedef void roctracer_pool_t;

/* Opens the default pool. DEFAULT_POOL_ALREADY_DEFINED; MEMORY_ALLOCATION; INVALID_ARGUMENT: no properties, or no
 * callback in them. */
ROCTRACER_API roctracer_status_t roctracer_open_pool(const roctracer_properties_t* properties);
/* Opens a pool for *pool, or the default one when `pool` is NULL. */
ROCTRACER_API roctracer_status_t roctracer_open_pool_expl(const roctracer_properties_t* properties,
                                                          roctracer_pool_t** pool);

/* Disables the activities that write to the pool, hands over its records, and gives its memory back. Success when
 * there is no default pool to close. INVALID_ARGUMENT: not an open pool. ERROR: from its own buffer callback. */
ROCTRACER_API roctracer_status_t roctracer_close_pool(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API roctracer_status_t roctracer_close_pool_expl(roctracer_pool_t* pool);

/* The default pool, or NULL; the second form sets another one, unless that is NULL, and returns the one before. */
ROCTRACER_API roctracer_pool_t* roctracer_default_pool(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API roctracer_pool_t* roctracer_default_pool_expl(roctracer_pool_t* pool);

/* Writes records of one operation, of all of a domain, of all domains, to the default pool or to `pool`.
 * DEFAULT_POOL_UNDEFINED; INVALID_DOMAIN_ID: no domain; INVALID_ARGUMENT: no such operation, or not an open pool. */
ROCTRACER_API roctracer_status_t roctracer_enable_op_activity(activity_domain_t domain, uint32_t op);
ROCTRACER_API roctracer_status_t roctracer_enable_op_activity_expl(activity_domain_t domain, uint32_t op,
                                                                   roctracer_pool_t* pool);
ROCTRACER_API roctracer_status_t roctracer_enable_domain_activity(activity_domain_t domain);
ROCTRACER_API roctracer_status_t roctracer_enable_domain_activity_expl(activity_domain_t domain,
                                                                       roctracer_pool_t* pool);
ROCTRACER_API roctracer_status_t roctracer_enable_activity(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API roctracer_status_t roctracer_enable_activity_expl(roctracer_pool_t* pool);

/* The reverse. It is no error when there was none. */
ROCTRACER_API roctracer_status_t roctracer_disable_op_activity(activity_domain_t domain, uint32_t op);
ROCTRACER_API roctracer_status_t roctracer_disable_domain_activity(activity_domain_t domain);
ROCTRACER_API roctracer_status_t roctracer_disable_activity(ROCTRACER_NO_ARGUMENTS);

/* Hands the pool's records to its callback and returns when that has. Success when there is no default pool. From the
 * pool's own callback it returns at once. INVALID_ARGUMENT: not an open pool. */
ROCTRACER_API roctracer_status_t roctracer_flush_activity(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API roctracer_status_t roctracer_flush_activity_expl(roctracer_pool_t* pool);

/* Now, ns of the clock that records have. INVALID_ARGUMENT: no room for it. */
ROCTRACER_API roctracer_status_t roctracer_get_timestamp(roctracer_timestamp_t* timestamp);

#ifdef __cplusplus
}
#endif
#undef ROCTRACER_NO_ARGUMENTS

#endif
