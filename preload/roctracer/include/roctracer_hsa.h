/* Data of HSA_API callbacks (hsa_api_data_t, in hsa_prof_str.h) and HSA_EVT callbacks. */
#ifndef ROCTRACER_HSA_H_
#define ROCTRACER_HSA_H_

#include "roctracer.h"

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include "hsa_prof_str.h"

/* Operations of HSA_OPS. Only copies are reported. */
enum hsa_op_id_t {
  HSA_OP_ID_DISPATCH = 0,
  HSA_OP_ID_COPY = 1,
  HSA_OP_ID_BARRIER = 2,
  HSA_OP_ID_RESERVED1 = 3,
  HSA_OP_ID_NUMBER
};

/* Operations of HSA_EVT. SUBMIT and KSYMBOL are never reported. */
enum hsa_evt_id_t {
  HSA_EVT_ID_ALLOCATE = 0,
  HSA_EVT_ID_DEVICE = 1,
  HSA_EVT_ID_MEMCOPY = 2,
  HSA_EVT_ID_SUBMIT = 3,
  HSA_EVT_ID_KSYMBOL = 4,
  HSA_EVT_ID_CODEOBJ = 5,
  HSA_EVT_ID_NUMBER
};

struct hsa_ops_properties_t {
  void* reserved1[4];
};

typedef struct {
  union {
    struct { /* memory is allocated, or freed if the size is 0 */
      const void* ptr;
      size_t size;
      hsa_amd_segment_t segment;
      hsa_amd_memory_pool_global_flag_t global_flag;
      int is_code; /* unknown: always 0 */
    } allocate;
    struct { /* a device may use the memory; GPUs have the driver's node as id */
      hsa_device_type_t type;
      uint32_t id;
      hsa_agent_t agent;
      const void* ptr;
    } device;
    struct {
      const void* dst;
      const void* src;
      size_t size;
    } memcopy;
    struct {
      const void* packet;
      const char* kernel_name;
      hsa_queue_t* queue;
      uint32_t device_type;
      uint32_t device_id;
    } submit;
    struct {
      uint64_t object;
      const char* name;
      uint32_t name_length;
      int unload;
    } ksymbol;
    struct { /* a code object is loaded, or about to be unloaded */
      uint32_t storage_type; /* hsa_ven_amd_loader_code_object_storage_type_t */
      int storage_file;      /* -1 unless it came from a file */
      uint64_t memory_base;  /* 0 unless it came from memory */
      uint64_t memory_size;
      uint64_t load_base;
      uint64_t load_size;
      uint64_t load_delta;
      uint32_t uri_length; /* without the zero at its end */
      const char* uri;
      int unload;
    } codeobj;
  };
} hsa_evt_data_t;

#endif
