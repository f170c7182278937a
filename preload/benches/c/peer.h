// The peer's events: what a tracer of calls would define, entry and return.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER roctop_peer
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./peer.h"
#if !defined(PEER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PEER_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(roctop_peer, enter, LTTNG_UST_TP_ARGS(uint32_t, op, uint64_t, correlation, uint64_t, argument),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, op, op) lttng_ust_field_integer(uint64_t, correlation, correlation)
    lttng_ust_field_integer(uint64_t, argument, argument)))
LTTNG_UST_TRACEPOINT_EVENT(roctop_peer, leave, LTTNG_UST_TP_ARGS(uint32_t, op, uint64_t, correlation, int32_t, status),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, op, op) lttng_ust_field_integer(uint64_t, correlation, correlation)
    lttng_ust_field_integer(int32_t, status, status)))
#endif
#include <lttng/tracepoint-event.h>
