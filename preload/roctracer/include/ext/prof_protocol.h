/* Records, domains and callback types shared by ROCm's run-times and their tracers.
 *
 * Values and layouts are those of the shipped library (4.1), which numbers some domains differently from its manual:
 * HIP_OPS is 2 and HIP_API is 3. Use the names. It also has the manual's names.
 */
#ifndef EXT_PROF_PROTOCOL_H_
#define EXT_PROF_PROTOCOL_H_

#include <stdint.h>
#include <stdlib.h>

/* Domains. */
typedef enum {
  ACTIVITY_DOMAIN_HSA_API = 0,
  ACTIVITY_DOMAIN_HSA_OPS = 1,
  ACTIVITY_DOMAIN_HIP_OPS = 2,
  ACTIVITY_DOMAIN_HCC_OPS = ACTIVITY_DOMAIN_HIP_OPS,
  ACTIVITY_DOMAIN_HIP_VDI = ACTIVITY_DOMAIN_HIP_OPS,
  ACTIVITY_DOMAIN_HIP_API = 3,
  ACTIVITY_DOMAIN_KFD_API = 4, /* accepted, never reported */
  ACTIVITY_DOMAIN_EXT_API = 5, /* records with an external correlation id */
  ACTIVITY_DOMAIN_ROCTX = 6,
  ACTIVITY_DOMAIN_HSA_EVT = 7,
  ACTIVITY_DOMAIN_NUMBER
} activity_domain_t;

/* Phase of a callback: before the call, or after it. */
typedef enum {
  ACTIVITY_API_PHASE_ENTER = 0,
  ACTIVITY_API_PHASE_EXIT = 1
} activity_api_phase_t;

/* Receives a call: `data` is the domain's structure, `arg` the registered argument. */
typedef void (*activity_rtapi_callback_t)(uint32_t domain, uint32_t cid, const void* data, void* arg);

typedef uint32_t activity_kind_t;
typedef uint32_t activity_op_t;
/* Joins the record of a call with those of the work that it started; 0 for none. */
typedef uint64_t activity_correlation_id_t;
/* Nanoseconds of HSA's system clock. */
typedef uint64_t roctracer_timestamp_t;

/* One record, 64 bytes. */
typedef struct activity_record_s {
  uint32_t domain;
  activity_kind_t kind; /* for HIP_OPS: the kind of command */
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
    struct { /* for GPU work */
      int device_id;
      union {
        uint64_t queue_id;
        uint64_t stream_id; /* the manual's name */
      };
    };
    struct { /* for a call */
      uint32_t process_id;
      uint32_t thread_id;
    };
    struct { /* for domain EXT_API */
      activity_correlation_id_t external_id;
    };
  };
  union {
    size_t bytes;
    const char* kernel_name; /* for a dispatch; valid during the buffer callback; may be NULL */
    const char* mark_message;
  };
} activity_record_t;

/* Callbacks of run-times; not used by programs. */
typedef void (*activity_sync_callback_t)(uint32_t cid, activity_record_t* record, const void* data, void* arg);
typedef void (*activity_async_callback_t)(uint32_t op, void* record, void* arg);

#endif
