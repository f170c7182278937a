/* ROCTracer: callbacks for the calls of ROCm's run-times, and records of calls and of GPU work.
 *
 * Link with -lroctracer64. Names, values and layouts are those of the shipped library 4.1; the comments are ours. Where
 * its manual differs (names, status values, domain numbers), the library wins and the manual's names are aliases, marked
 * "manual" below: compile by name and both work.
 *
 * All functions may be called from any thread. If one with a status fails, roctracer_error_string returns a
 * message about it.
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
/* Wraps calls in the manual's samples; programs may define their own, before or after. */
#ifndef ROCTRACER_CALL
#define ROCTRACER_CALL
#endif
/* The version node of a symbol in the library. */
#define ROCTRACER_VERSION_4_1

#ifdef __cplusplus
extern "C" {
#define ROCTRACER_NO_ARGUMENTS
#else
#define ROCTRACER_NO_ARGUMENTS void
#endif

/* ---- Versions and errors ---------------------------------------------------------------------------------------- */

/* Version of the installed library. It serves programs compiled for the same major and no newer minor version. */
ROCTRACER_API uint32_t roctracer_version_major(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API uint32_t roctracer_version_minor(ROCTRACER_NO_ARGUMENTS);
#define roctracer_major_version roctracer_version_major /* manual */
#define roctracer_minor_version roctracer_version_minor /* manual */

/* Return value of a function. The manual has small positive numbers. */
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

/* Message of the calling thread's last failed call; "" if none failed. The caller frees it. */
ROCTRACER_API const char* roctracer_error_string(ROCTRACER_NO_ARGUMENTS);

/* ---- Domains and their operations ------------------------------------------------------------------------------- */

typedef activity_domain_t roctracer_domain_t;

/* Name of an operation: of HIP_OPS by `kind`, of the other domains by `op`. NULL if it does not exist. Owned by the library. */
ROCTRACER_API const char* roctracer_op_string(uint32_t domain, uint32_t op, uint32_t kind);
#define roctracer_id_string(domain, op) roctracer_op_string((domain), (op), 0) /* manual */

/* The operation with this name, for HSA_API and HIP_API; `kind` may be NULL.
 * INVALID_ARGUMENT: no such name, or NULL. INVALID_DOMAIN_ID: another domain. */
ROCTRACER_API roctracer_status_t roctracer_op_code(uint32_t domain, const char* str, uint32_t* op, uint32_t* kind);

/* Sets properties of a domain: EXT_API takes a roctracer_ext_properties_t; the others take none and return
 * success. INVALID_DOMAIN_ID: ROCTX, or no domain. */
ROCTRACER_API roctracer_status_t roctracer_set_properties(roctracer_domain_t domain, void* properties);

/* ---- Callbacks -------------------------------------------------------------------------------------------------- */

typedef activity_rtapi_callback_t roctracer_rtapi_callback_t;

/* Manual. */
typedef activity_api_phase_t roctracer_api_phase_t;
#define ROCTRACER_API_PHASE_ENTER ACTIVITY_API_PHASE_ENTER
#define ROCTRACER_API_PHASE_EXIT ACTIVITY_API_PHASE_EXIT

/* Calls `callback` around every call of one operation, of a domain, of all domains. A second callback replaces the
 * first. INVALID_DOMAIN_ID: no domain. INVALID_ARGUMENT: no such operation, or no callback.
 * NOT_IMPLEMENTED: a HIP release that reports its calls in an unknown way. */
ROCTRACER_API roctracer_status_t roctracer_enable_op_callback(activity_domain_t domain, uint32_t op,
                                                              activity_rtapi_callback_t callback, void* arg);
ROCTRACER_API roctracer_status_t roctracer_enable_domain_callback(activity_domain_t domain,
                                                                  activity_rtapi_callback_t callback, void* arg);
ROCTRACER_API roctracer_status_t roctracer_enable_callback(activity_rtapi_callback_t callback, void* arg);

/* Removes it. Not an error if there was none. */
ROCTRACER_API roctracer_status_t roctracer_disable_op_callback(activity_domain_t domain, uint32_t op);
ROCTRACER_API roctracer_status_t roctracer_disable_domain_callback(activity_domain_t domain);
ROCTRACER_API roctracer_status_t roctracer_disable_callback(ROCTRACER_NO_ARGUMENTS);

/* ---- Records and pools ------------------------------------------------------------------------------------------ */

typedef activity_record_t roctracer_record_t;

/* The record after `record`. */
ROCTRACER_API roctracer_status_t roctracer_next_record(const activity_record_t* record, const activity_record_t** next);

/* Allocates if *ptr is NULL, frees if size is 0, resizes otherwise. */
typedef void (*roctracer_allocator_t)(char** ptr, size_t size, void* arg);

/* Receives whole records, from `begin` to before `end`, on the pool's thread. They are valid until it returns. */
typedef void (*roctracer_buffer_callback_t)(const char* begin, const char* end, void* arg);

typedef struct {
  uint32_t mode;      /* not used */
  size_t buffer_size; /* bytes of each of a pool's two buffers; at least two records */
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

/* Disables the activities that write to the pool, delivers its records, and frees its memory. Success if
 * there is no default pool to close. INVALID_ARGUMENT: not an open pool. ERROR: from its own buffer callback. */
ROCTRACER_API roctracer_status_t roctracer_close_pool(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API roctracer_status_t roctracer_close_pool_expl(roctracer_pool_t* pool);

/* The default pool, or NULL. The second form replaces it unless `pool` is NULL, and returns the previous one. */
ROCTRACER_API roctracer_pool_t* roctracer_default_pool(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API roctracer_pool_t* roctracer_default_pool_expl(roctracer_pool_t* pool);

/* Writes records of one operation, of a domain, of all domains, to the default pool or to `pool`.
 * DEFAULT_POOL_UNDEFINED; INVALID_DOMAIN_ID: no domain; INVALID_ARGUMENT: no such operation, or not an open pool. */
ROCTRACER_API roctracer_status_t roctracer_enable_op_activity(activity_domain_t domain, uint32_t op);
ROCTRACER_API roctracer_status_t roctracer_enable_op_activity_expl(activity_domain_t domain, uint32_t op,
                                                                   roctracer_pool_t* pool);
ROCTRACER_API roctracer_status_t roctracer_enable_domain_activity(activity_domain_t domain);
ROCTRACER_API roctracer_status_t roctracer_enable_domain_activity_expl(activity_domain_t domain,
                                                                       roctracer_pool_t* pool);
ROCTRACER_API roctracer_status_t roctracer_enable_activity(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API roctracer_status_t roctracer_enable_activity_expl(roctracer_pool_t* pool);

/* Removes it. Not an error if there was none. */
ROCTRACER_API roctracer_status_t roctracer_disable_op_activity(activity_domain_t domain, uint32_t op);
ROCTRACER_API roctracer_status_t roctracer_disable_domain_activity(activity_domain_t domain);
ROCTRACER_API roctracer_status_t roctracer_disable_activity(ROCTRACER_NO_ARGUMENTS);

/* Passes the pool's records to its callback and waits for it. Success if there is no default pool. From the
 * pool's own callback it returns at once. INVALID_ARGUMENT: not an open pool. */
ROCTRACER_API roctracer_status_t roctracer_flush_activity(ROCTRACER_NO_ARGUMENTS);
ROCTRACER_API roctracer_status_t roctracer_flush_activity_expl(roctracer_pool_t* pool);

/* Current time of the records' clock, ns. INVALID_ARGUMENT: NULL. */
ROCTRACER_API roctracer_status_t roctracer_get_timestamp(roctracer_timestamp_t* timestamp);

#ifdef __cplusplus
}
#endif
#undef ROCTRACER_NO_ARGUMENTS

#endif
