/* Records, domains and callback types that ROCm's run-times and their tracers share.
 *
 * Values and layouts are those of the shipped library (4.1), which numbers some domains differently from its manual:
 * HIP_OPS is 2 and HIP_API is 3. Use the names. Names that only the manual has are here too.
 */
#ifndef EXT_PROF_PROTOCOL_H_
#define EXT_PROF_PROTOCOL_H_

#include <stdint.h>
#include <stdlib.h>

/* What can be traced. */
typedef enum {
  ACTIVITY_DOMAIN_HSA_API = 0,
  ACTIVITY_DOMAIN_HSA_OPS = 1,
  ACTIVITY_DOMAIN_HIP_OPS = 2,
  ACTIVITY_DOMAIN_HCC_OPS = ACTIVITY_DOMAIN_HIP_OPS,
  ACTIVITY_DOMAIN_HIP_VDI = ACTIVITY_DOMAIN_HIP_OPS,
  ACTIVITY_DOMAIN_HIP_API = 3,
  ACTIVITY_DOMAIN_KFD_API = 4, /* accepted; nothing is ever reported of it */
  ACTIVITY_DOMAIN_EXT_API = 5, /* records with an external correlation id */
  ACTIVITY_DOMAIN_ROCTX = 6,
  ACTIVITY_DOMAIN_HSA_EVT = 7,
  ACTIVITY_DOMAIN_NUMBER
} activity_domain_t;

/* When a callback comes: before the call, and after it. */
typedef enum {
  ACTIVITY_API_PHASE_ENTER = 0,
  ACTIVITY_API_PHASE_EXIT = 1
} activity_api_phase_t;

/* Gets a call: `data` is the domain's own structure, `arg` what was registered with the callback. */
typedef void (*activity_rtapi_callback_t)(uint32_t domain, uint32_t cid, const void* data, void* arg);

typedef uint32_t activity_kind_t;
typedef uint32_t activity_op_t;
/* Joins the record of a call with those of the work that it started; 0 is none. */
typedef uint64_t activity_correlation_id_t;
/* Nanoseconds of HSA's system clock. */
typedef uint64_t roctracer_timestamp_t;

/* One record, 64 bytes. */
typedef struct activity_record_s {
  uint32_t domain;
  activity_kind_t kind; /* of HIP_OPS: the kind of command */
  union {
    activity_op_t op;
    activity_op_t activity_id; /* the manual's name */
  };
  union {
    struct {
      activity_correlation_id_t correlation_id;
      roctracer_timestamp_t begin_ns;
      roctracer_timestamp_t end_ns;
    };
    struct {
      uint32_t se;
      uint64_t cycle;
      uint64_t pc;
    } pc_sample; /* not reported */
  };
  union {
    struct { /* of work on a GPU */
      int device_id;
      union {
        uint64_t queue_id;
        uint64_t stream_id; /* the manual's name */
      };
    };
    struct { /* of a call */
      uint32_t process_id;
      uint32_t thread_id;
    };
    struct { /* of domain EXT_API */
      activity_correlation_id_t external_id;
    };
  };
  union {
    size_t bytes;
    const char* kernel_name; /* of a dispatch; valid during the buffer callback; may be NULL */
    const char* mark_message;
  };
} activity_record_t;

/* Callbacks of run-times; not used by programs. */
typedef void (*activity_sync_callback_t)(uint32_t cid, activity_record_t* record, const void* data, void* arg);
typedef void (*activity_async_callback_t)(uint32_t op, void* record, void* arg);

#endif
