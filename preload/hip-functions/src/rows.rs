//! The functions that libamdhip64 exports, of releases 5.2.3, 5.7.1, 6.4.3 and 7.2.4 and in the dispatch table of HIP
//! 10 (July 2026); those of librccl in the dispatch tables of releases 6.2 to 7.2; and functions of RCCL for ROCm 10
//! (`nccl.h` and `nccl_device/core.h`, NCCL 2.29) that no dispatch table has.
//!
//! A row, in this order:
//!
//! | column | meaning |
//! | --- | --- |
//! | index | position in this list, from 0 |
//! | operation | number in records, per API; never reused |
//! | API | a [`Domain`] |
//! | symbol | as exported |
//! | name | as displayed |
//! | entry | position in the API's dispatch table, `_` for none |
//! | stream | `given`: the first parameter of type `hipStream_t`, if any; `null`, `thread`: the null or the per-thread stream; `config`: in the launch configuration that the first argument points to; `none` |
//! | effect | an `Effect` of `hip_sys::function` |
//! | argument | the parameter that is recorded with every call, `none` for none |
//! | signature | in C; `out` marks the parameter through which a function returns a handle or an address |
//! | shown | names of the arguments in the viewer; `_` for one that is not shown; empty: none of this function |
//!
//! Excluded on purpose: functions that a tool itself calls (`hipApiName`, `hipKernelNameRef`, callback registration)
//! and hipRTC.

use crate::{Domain, Row};

/// Passes all rows to the macro `$do`.
#[macro_export]
macro_rules! functions {
    ($do:ident) => {
        $do! {
            0 0 Hip hipArray3DCreate "hipArray3DCreate" 1 given None none "hipError_t(hipArray_t* array, const HIP_ARRAY3D_DESCRIPTOR* pAllocateArray)" "";
            1 1 Hip hipArray3DGetDescriptor "hipArray3DGetDescriptor" 2 given None none "hipError_t(HIP_ARRAY3D_DESCRIPTOR* pArrayDescriptor, hipArray_t array)" "";
            2 2 Hip hipArrayCreate "hipArrayCreate" 3 given None none "hipError_t(hipArray_t* pHandle, const HIP_ARRAY_DESCRIPTOR* pAllocateArray)" "";
            3 3 Hip hipArrayDestroy "hipArrayDestroy" 4 given None none "hipError_t(hipArray_t array)" "";
            4 4 Hip hipArrayGetDescriptor "hipArrayGetDescriptor" 5 given None none "hipError_t(HIP_ARRAY_DESCRIPTOR* pArrayDescriptor, hipArray_t array)" "";
            5 5 Hip hipArrayGetInfo "hipArrayGetInfo" 6 given None none "hipError_t(hipChannelFormatDesc* desc, hipExtent* extent, unsigned int* flags, hipArray_t array)" "";
            6 6 Hip hipBindTexture "hipBindTexture" 7 given None size "hipError_t(size_t* offset, const textureReference* tex, const void* devPtr, const hipChannelFormatDesc* desc, size_t size)" "";
            7 7 Hip hipBindTexture2D "hipBindTexture2D" 8 given None devPtr "hipError_t(size_t* offset, const textureReference* tex, const void* devPtr, const hipChannelFormatDesc* desc, size_t width, size_t height, size_t pitch)" "";
            8 8 Hip hipBindTextureToArray "hipBindTextureToArray" 9 given None none "hipError_t(const textureReference* tex, hipArray_const_t array, const hipChannelFormatDesc* desc)" "";
            9 9 Hip hipBindTextureToMipmappedArray "hipBindTextureToMipmappedArray" 10 given None none "hipError_t(const textureReference* tex, hipMipmappedArray_const_t mipmappedArray, const hipChannelFormatDesc* desc)" "";
            10 10 Hip hipChooseDevice "hipChooseDevice" 11 given None device "hipError_t(int* device, const hipDeviceProp_t* prop)" "";
            11 11 Hip hipConfigureCall "hipConfigureCall" 13 given None stream "hipError_t(dim3 gridDim, dim3 blockDim, size_t sharedMem, hipStream_t stream)" "";
            12 12 Hip hipCreateChannelDesc "hipCreateChannelDesc" 387 given None none "hipChannelFormatDesc(int x, int y, int z, int w, hipChannelFormatKind f)" "";
            13 13 Hip _Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc "hipCreateSurfaceObject" _ given None none "hipError_t(hipSurfaceObject_t* pSurfObject, const hipResourceDesc* pResDesc)" "";
            14 13 Hip hipCreateSurfaceObject "hipCreateSurfaceObject" 14 given None none "hipError_t(hipSurfaceObject_t* pSurfObject, const hipResourceDesc* pResDesc)" "";
            15 14 Hip hipCreateTextureObject "hipCreateTextureObject" 15 given None none "hipError_t(hipTextureObject_t* pTexObject, const hipResourceDesc* pResDesc, const hipTextureDesc* pTexDesc, const hipResourceViewDesc* pResViewDesc)" "";
            16 15 Hip hipCtxCreate "hipCtxCreate" 16 given None device "hipError_t(hipCtx_t* ctx, unsigned int flags, hipDevice_t device)" "";
            17 16 Hip hipCtxDestroy "hipCtxDestroy" 17 given None none "hipError_t(hipCtx_t ctx)" "";
            18 17 Hip hipCtxDisablePeerAccess "hipCtxDisablePeerAccess" 18 given None none "hipError_t(hipCtx_t peerCtx)" "";
            19 18 Hip hipCtxEnablePeerAccess "hipCtxEnablePeerAccess" 19 given None none "hipError_t(hipCtx_t peerCtx, unsigned int flags)" "";
            20 19 Hip hipCtxGetApiVersion "hipCtxGetApiVersion" 20 given None none "hipError_t(hipCtx_t ctx, unsigned int* apiVersion)" "";
            21 20 Hip hipCtxGetCacheConfig "hipCtxGetCacheConfig" 21 given None none "hipError_t(hipFuncCache_t* cacheConfig)" "";
            22 21 Hip hipCtxGetCurrent "hipCtxGetCurrent" 22 given None none "hipError_t(hipCtx_t* ctx)" "";
            23 22 Hip hipCtxGetDevice "hipCtxGetDevice" 23 given None device "hipError_t(hipDevice_t* device)" "";
            24 23 Hip hipCtxGetFlags "hipCtxGetFlags" 24 given None none "hipError_t(unsigned int* flags)" "";
            25 24 Hip hipCtxGetSharedMemConfig "hipCtxGetSharedMemConfig" 25 given None none "hipError_t(hipSharedMemConfig* pConfig)" "";
            26 25 Hip hipCtxPopCurrent "hipCtxPopCurrent" 26 given None none "hipError_t(hipCtx_t* ctx)" "";
            27 26 Hip hipCtxPushCurrent "hipCtxPushCurrent" 27 given None none "hipError_t(hipCtx_t ctx)" "";
            28 27 Hip hipCtxSetCacheConfig "hipCtxSetCacheConfig" 28 given None none "hipError_t(hipFuncCache_t cacheConfig)" "";
            29 28 Hip hipCtxSetCurrent "hipCtxSetCurrent" 29 given None none "hipError_t(hipCtx_t ctx)" "";
            30 29 Hip hipCtxSetSharedMemConfig "hipCtxSetSharedMemConfig" 30 given None none "hipError_t(hipSharedMemConfig config)" "";
            31 30 Hip hipCtxSynchronize "hipCtxSynchronize" 31 given Wait none "hipError_t()" "";
            32 31 Hip hipDestroyExternalMemory "hipDestroyExternalMemory" 32 given None none "hipError_t(hipExternalMemory_t extMem)" "";
            33 32 Hip hipDestroyExternalSemaphore "hipDestroyExternalSemaphore" 33 given None none "hipError_t(hipExternalSemaphore_t extSem)" "";
            34 33 Hip _Z23hipDestroySurfaceObjectP13__hip_surface "hipDestroySurfaceObject" _ given None none "hipError_t(hipSurfaceObject_t surfaceObject)" "";
            35 33 Hip hipDestroySurfaceObject "hipDestroySurfaceObject" 34 given None none "hipError_t(hipSurfaceObject_t surfaceObject)" "";
            36 34 Hip hipDestroyTextureObject "hipDestroyTextureObject" 35 given None none "hipError_t(hipTextureObject_t textureObject)" "";
            37 35 Hip hipDeviceCanAccessPeer "hipDeviceCanAccessPeer" 36 given None deviceId "hipError_t(int* canAccessPeer, int deviceId, int peerDeviceId)" "";
            38 36 Hip hipDeviceComputeCapability "hipDeviceComputeCapability" 37 given None device "hipError_t(int* major, int* minor, hipDevice_t device)" "";
            39 37 Hip hipDeviceDisablePeerAccess "hipDeviceDisablePeerAccess" 38 given None none "hipError_t(int peerDeviceId)" "";
            40 38 Hip hipDeviceEnablePeerAccess "hipDeviceEnablePeerAccess" 39 given None none "hipError_t(int peerDeviceId, unsigned int flags)" "";
            41 39 Hip hipDeviceGet "hipDeviceGet" 40 given None device "hipError_t(hipDevice_t* device, int ordinal)" "";
            42 40 Hip hipDeviceGetAttribute "hipDeviceGetAttribute" 41 given None deviceId "hipError_t(int* pi, hipDeviceAttribute_t attr, int deviceId)" "value attribute device";
            43 41 Hip hipDeviceGetByPCIBusId "hipDeviceGetByPCIBusId" 42 given None device "hipError_t(int* device, const char* pciBusId)" "";
            44 42 Hip hipDeviceGetCacheConfig "hipDeviceGetCacheConfig" 43 given None none "hipError_t(hipFuncCache_t* cacheConfig)" "";
            45 43 Hip hipDeviceGetDefaultMemPool "hipDeviceGetDefaultMemPool" 44 given None device "hipError_t(hipMemPool_t* mem_pool, int device)" "";
            46 44 Hip hipDeviceGetGraphMemAttribute "hipDeviceGetGraphMemAttribute" 45 given None device "hipError_t(int device, hipGraphMemAttributeType attr, void* value)" "";
            47 45 Hip hipDeviceGetLimit "hipDeviceGetLimit" 46 given None none "hipError_t(size_t* pValue, hipLimit_t limit)" "";
            48 46 Hip hipDeviceGetMemPool "hipDeviceGetMemPool" 47 given None device "hipError_t(hipMemPool_t* mem_pool, int device)" "";
            49 47 Hip hipDeviceGetName "hipDeviceGetName" 48 given None device "hipError_t(char* name, int len, hipDevice_t device)" "";
            50 48 Hip hipDeviceGetP2PAttribute "hipDeviceGetP2PAttribute" 49 given None none "hipError_t(int* value, hipDeviceP2PAttr attr, int srcDevice, int dstDevice)" "";
            51 49 Hip hipDeviceGetPCIBusId "hipDeviceGetPCIBusId" 50 given None device "hipError_t(char* pciBusId, int len, int device)" "";
            52 50 Hip hipDeviceGetSharedMemConfig "hipDeviceGetSharedMemConfig" 51 given None none "hipError_t(hipSharedMemConfig* pConfig)" "";
            53 51 Hip hipDeviceGetStreamPriorityRange "hipDeviceGetStreamPriorityRange" 52 given None none "hipError_t(int* leastPriority, int* greatestPriority)" "";
            54 52 Hip hipDeviceGetUuid "hipDeviceGetUuid" 53 given None device "hipError_t(hipUUID* uuid, hipDevice_t device)" "";
            55 53 Hip hipDeviceGraphMemTrim "hipDeviceGraphMemTrim" 54 given None device "hipError_t(int device)" "";
            56 54 Hip hipDevicePrimaryCtxGetState "hipDevicePrimaryCtxGetState" 55 given None none "hipError_t(hipDevice_t dev, unsigned int* flags, int* active)" "";
            57 55 Hip hipDevicePrimaryCtxRelease "hipDevicePrimaryCtxRelease" 56 given None none "hipError_t(hipDevice_t dev)" "";
            58 56 Hip hipDevicePrimaryCtxReset "hipDevicePrimaryCtxReset" 57 given None none "hipError_t(hipDevice_t dev)" "";
            59 57 Hip hipDevicePrimaryCtxRetain "hipDevicePrimaryCtxRetain" 58 given None none "hipError_t(hipCtx_t* pctx, hipDevice_t dev)" "";
            60 58 Hip hipDevicePrimaryCtxSetFlags "hipDevicePrimaryCtxSetFlags" 59 given None none "hipError_t(hipDevice_t dev, unsigned int flags)" "";
            61 59 Hip hipDeviceReset "hipDeviceReset" 60 given Wait none "hipError_t()" "";
            62 60 Hip hipDeviceSetCacheConfig "hipDeviceSetCacheConfig" 61 given None none "hipError_t(hipFuncCache_t cacheConfig)" "";
            63 61 Hip hipDeviceSetGraphMemAttribute "hipDeviceSetGraphMemAttribute" 62 given None device "hipError_t(int device, hipGraphMemAttributeType attr, void* value)" "";
            64 62 Hip hipDeviceSetLimit "hipDeviceSetLimit" 63 given None none "hipError_t(hipLimit_t limit, size_t value)" "";
            65 63 Hip hipDeviceSetMemPool "hipDeviceSetMemPool" 64 given None device "hipError_t(int device, hipMemPool_t mem_pool)" "";
            66 64 Hip hipDeviceSetSharedMemConfig "hipDeviceSetSharedMemConfig" 65 given None none "hipError_t(hipSharedMemConfig config)" "";
            67 65 Hip hipDeviceSynchronize "hipDeviceSynchronize" 66 given Wait none "hipError_t()" "";
            68 66 Hip hipDeviceTotalMem "hipDeviceTotalMem" 67 given None device "hipError_t(size_t* bytes, hipDevice_t device)" "";
            69 67 Hip hipDriverGetVersion "hipDriverGetVersion" 68 given None none "hipError_t(int* driverVersion)" "";
            70 68 Hip hipDrvGetErrorName "hipDrvGetErrorName" 69 given None none "hipError_t(hipError_t hipError, const char** errorString)" "";
            71 69 Hip hipDrvGetErrorString "hipDrvGetErrorString" 70 given None none "hipError_t(hipError_t hipError, const char** errorString)" "";
            72 70 Hip hipDrvMemcpy2DUnaligned "hipDrvMemcpy2DUnaligned" 72 given None none "hipError_t(const hip_Memcpy2D* pCopy)" "";
            73 71 Hip hipDrvMemcpy3D "hipDrvMemcpy3D" 73 given None none "hipError_t(const HIP_MEMCPY3D* pCopy)" "";
            74 72 Hip hipDrvMemcpy3DAsync "hipDrvMemcpy3DAsync" 74 given None stream "hipError_t(const HIP_MEMCPY3D* pCopy, hipStream_t stream)" "";
            75 73 Hip hipDrvPointerGetAttributes "hipDrvPointerGetAttributes" 75 given None ptr "hipError_t(unsigned int numAttributes, hipPointer_attribute* attributes, void** data, hipDeviceptr_t ptr)" "";
            76 74 Hip hipEventCreate "hipEventCreate" 76 given None event "hipError_t(out hipEvent_t* event)" "event";
            77 75 Hip hipEventCreateWithFlags "hipEventCreateWithFlags" 77 given None event "hipError_t(out hipEvent_t* event, unsigned int flags)" "event flags";
            78 76 Hip hipEventDestroy "hipEventDestroy" 78 given None event "hipError_t(hipEvent_t event)" "event";
            79 77 Hip hipEventElapsedTime "hipEventElapsedTime" 79 given None none "hipError_t(float* ms, hipEvent_t start, hipEvent_t stop)" "ms start stop";
            80 78 Hip hipEventQuery "hipEventQuery" 80 given Wait event "hipError_t(hipEvent_t event)" "event";
            81 79 Hip hipEventRecord "hipEventRecord" 81 given None event "hipError_t(hipEvent_t event, hipStream_t stream)" "event stream";
            82 80 Hip hipEventRecord_spt "hipEventRecord_spt" 417 given None event "hipError_t(hipEvent_t event, hipStream_t stream)" "";
            83 81 Hip hipEventSynchronize "hipEventSynchronize" 82 given Wait event "hipError_t(hipEvent_t event)" "event";
            84 82 Hip hipExtGetLinkTypeAndHopCount "hipExtGetLinkTypeAndHopCount" 83 given None none "hipError_t(int device1, int device2, uint32_t* linktype, uint32_t* hopcount)" "";
            85 83 Hip hipExtLaunchKernel "hipExtLaunchKernel" 84 given Launch function_address "hipError_t(const void* function_address, dim3 numBlocks, dim3 dimBlocks, void** args, size_t sharedMemBytes, hipStream_t stream, hipEvent_t startEvent, hipEvent_t stopEvent, int flags)" "kernel grid block args shared stream start stop flags";
            86 84 Hip hipExtLaunchMultiKernelMultiDevice "hipExtLaunchMultiKernelMultiDevice" 85 given None none "hipError_t(hipLaunchParams* launchParamsList, int numDevices, unsigned int flags)" "";
            87 85 Hip hipExtMallocWithFlags "hipExtMallocWithFlags" 86 given None sizeBytes "hipError_t(out void** ptr, size_t sizeBytes, unsigned int flags)" "ptr size flags";
            88 86 Hip _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j "hipExtModuleLaunchKernel" _ given Launch func "hipError_t(hipFunction_t func, uint32_t globalWorkSizeX, uint32_t globalWorkSizeY, uint32_t globalWorkSizeZ, uint32_t localWorkSizeX, uint32_t localWorkSizeY, uint32_t localWorkSizeZ, size_t sharedMemBytes, hipStream_t stream, void** kernelParams, void** extra, hipEvent_t startEvent, hipEvent_t stopEvent, uint32_t flags)" "kernel grid_x grid_y grid_z block_x block_y block_z shared stream params extra start stop flags";
            89 87 Hip hipExtStreamCreateWithCUMask "hipExtStreamCreateWithCUMask" 87 given StreamCreate stream "hipError_t(out hipStream_t* stream, uint32_t cuMaskSize, const uint32_t* cuMask)" "";
            90 88 Hip hipExtStreamGetCUMask "hipExtStreamGetCUMask" 88 given None stream "hipError_t(hipStream_t stream, uint32_t cuMaskSize, uint32_t* cuMask)" "";
            91 89 Hip hipExternalMemoryGetMappedBuffer "hipExternalMemoryGetMappedBuffer" 89 given None devPtr "hipError_t(void** devPtr, hipExternalMemory_t extMem, const hipExternalMemoryBufferDesc* bufferDesc)" "";
            92 90 Hip hipFree "hipFree" 90 given Wait ptr "hipError_t(void* ptr)" "ptr";
            93 91 Hip hipFreeArray "hipFreeArray" 91 given None none "hipError_t(hipArray_t array)" "";
            94 92 Hip hipFreeAsync "hipFreeAsync" 92 given None dev_ptr "hipError_t(void* dev_ptr, hipStream_t stream)" "ptr stream";
            95 93 Hip hipFreeHost "hipFreeHost" 93 given None ptr "hipError_t(void* ptr)" "ptr";
            96 94 Hip hipFreeMipmappedArray "hipFreeMipmappedArray" 94 given None none "hipError_t(hipMipmappedArray_t mipmappedArray)" "";
            97 95 Hip hipFuncGetAttribute "hipFuncGetAttribute" 95 given None none "hipError_t(int* value, hipFunction_attribute attrib, hipFunction_t hfunc)" "";
            98 96 Hip hipFuncGetAttributes "hipFuncGetAttributes" 96 given None none "hipError_t(hipFuncAttributes* attr, const void* func)" "";
            99 97 Hip hipFuncSetAttribute "hipFuncSetAttribute" 97 given None none "hipError_t(const void* func, hipFuncAttribute attr, int value)" "";
            100 98 Hip hipFuncSetCacheConfig "hipFuncSetCacheConfig" 98 given None none "hipError_t(const void* func, hipFuncCache_t config)" "";
            101 99 Hip hipFuncSetSharedMemConfig "hipFuncSetSharedMemConfig" 99 given None none "hipError_t(const void* func, hipSharedMemConfig config)" "";
            102 100 Hip hipGLGetDevices "hipGLGetDevices" 100 given None none "hipError_t(unsigned int* pHipDeviceCount, int* pHipDevices, unsigned int hipDeviceCount, hipGLDeviceList deviceList)" "";
            103 101 Hip hipGetChannelDesc "hipGetChannelDesc" 101 given None none "hipError_t(hipChannelFormatDesc* desc, hipArray_const_t array)" "";
            104 102 Hip hipGetDevice "hipGetDevice" 102 given None deviceId "hipError_t(int* deviceId)" "device";
            105 103 Hip hipGetDeviceCount "hipGetDeviceCount" 103 given None none "hipError_t(int* count)" "count";
            106 104 Hip hipGetDeviceFlags "hipGetDeviceFlags" 104 given None none "hipError_t(unsigned int* flags)" "";
            107 105 Hip hipGetDeviceProperties "hipGetDeviceProperties" _ given None deviceId "hipError_t(hipDeviceProp_t* prop, int deviceId)" "";
            108 106 Hip hipGetErrorName "hipGetErrorName" 107 given Shared none "const char*(hipError_t hip_error)" "";
            109 107 Hip hipGetErrorString "hipGetErrorString" 108 given Shared none "const char*(hipError_t hipError)" "";
            110 108 Hip hipGetLastError "hipGetLastError" 109 given None none "hipError_t()" "";
            111 109 Hip hipGetMipmappedArrayLevel "hipGetMipmappedArrayLevel" 110 given None none "hipError_t(hipArray_t* levelArray, hipMipmappedArray_const_t mipmappedArray, unsigned int level)" "";
            112 110 Hip hipGetSymbolAddress "hipGetSymbolAddress" 111 given None devPtr "hipError_t(void** devPtr, const void* symbol)" "";
            113 111 Hip hipGetSymbolSize "hipGetSymbolSize" 112 given None none "hipError_t(size_t* size, const void* symbol)" "";
            114 112 Hip hipGetTextureAlignmentOffset "hipGetTextureAlignmentOffset" 113 given None none "hipError_t(size_t* offset, const textureReference* texref)" "";
            115 113 Hip hipGetTextureObjectResourceDesc "hipGetTextureObjectResourceDesc" 114 given None none "hipError_t(hipResourceDesc* pResDesc, hipTextureObject_t textureObject)" "";
            116 114 Hip hipGetTextureObjectResourceViewDesc "hipGetTextureObjectResourceViewDesc" 115 given None none "hipError_t(hipResourceViewDesc* pResViewDesc, hipTextureObject_t textureObject)" "";
            117 115 Hip hipGetTextureObjectTextureDesc "hipGetTextureObjectTextureDesc" 116 given None none "hipError_t(hipTextureDesc* pTexDesc, hipTextureObject_t textureObject)" "";
            118 116 Hip hipGetTextureReference "hipGetTextureReference" 117 given None none "hipError_t(const textureReference** texref, const void* symbol)" "";
            119 117 Hip hipGraphAddChildGraphNode "hipGraphAddChildGraphNode" 118 given Nodes none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, hipGraph_t childGraph)" "";
            120 118 Hip hipGraphAddDependencies "hipGraphAddDependencies" 119 given None none "hipError_t(hipGraph_t graph, const hipGraphNode_t* from, const hipGraphNode_t* to, size_t numDependencies)" "";
            121 119 Hip hipGraphAddEmptyNode "hipGraphAddEmptyNode" 120 given None none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies)" "";
            122 120 Hip hipGraphAddEventRecordNode "hipGraphAddEventRecordNode" 121 given None event "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, hipEvent_t event)" "";
            123 121 Hip hipGraphAddEventWaitNode "hipGraphAddEventWaitNode" 122 given None event "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, hipEvent_t event)" "";
            124 122 Hip hipGraphAddHostNode "hipGraphAddHostNode" 123 given None none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, const hipHostNodeParams* pNodeParams)" "";
            125 123 Hip hipGraphAddKernelNode "hipGraphAddKernelNode" 124 given Nodes none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, const hipKernelNodeParams* pNodeParams)" "";
            126 124 Hip hipGraphAddMemAllocNode "hipGraphAddMemAllocNode" 125 given None none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, hipMemAllocNodeParams* pNodeParams)" "";
            127 125 Hip hipGraphAddMemFreeNode "hipGraphAddMemFreeNode" 126 given None dev_ptr "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, void* dev_ptr)" "";
            128 126 Hip hipGraphAddMemcpyNode "hipGraphAddMemcpyNode" 127 given Nodes none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, const hipMemcpy3DParms* pCopyParams)" "";
            129 127 Hip hipGraphAddMemcpyNode1D "hipGraphAddMemcpyNode1D" 128 given Nodes count "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, void* dst, const void* src, size_t count, hipMemcpyKind kind)" "";
            130 128 Hip hipGraphAddMemcpyNodeFromSymbol "hipGraphAddMemcpyNodeFromSymbol" 129 given Nodes count "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, void* dst, const void* symbol, size_t count, size_t offset, hipMemcpyKind kind)" "";
            131 129 Hip hipGraphAddMemcpyNodeToSymbol "hipGraphAddMemcpyNodeToSymbol" 130 given Nodes count "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, const void* symbol, const void* src, size_t count, size_t offset, hipMemcpyKind kind)" "";
            132 130 Hip hipGraphAddMemsetNode "hipGraphAddMemsetNode" 131 given Nodes none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, const hipMemsetParams* pMemsetParams)" "";
            133 131 Hip hipGraphChildGraphNodeGetGraph "hipGraphChildGraphNodeGetGraph" 132 given None none "hipError_t(hipGraphNode_t node, hipGraph_t* pGraph)" "";
            134 132 Hip hipGraphClone "hipGraphClone" 133 given Nodes none "hipError_t(hipGraph_t* pGraphClone, hipGraph_t originalGraph)" "";
            135 133 Hip hipGraphCreate "hipGraphCreate" 134 given None none "hipError_t(hipGraph_t* pGraph, unsigned int flags)" "";
            136 134 Hip hipGraphDebugDotPrint "hipGraphDebugDotPrint" 135 given None none "hipError_t(hipGraph_t graph, const char* path, unsigned int flags)" "";
            137 135 Hip hipGraphDestroy "hipGraphDestroy" 136 given Nodes none "hipError_t(hipGraph_t graph)" "";
            138 136 Hip hipGraphDestroyNode "hipGraphDestroyNode" 137 given Nodes none "hipError_t(hipGraphNode_t node)" "";
            139 137 Hip hipGraphEventRecordNodeGetEvent "hipGraphEventRecordNodeGetEvent" 138 given None none "hipError_t(hipGraphNode_t node, hipEvent_t* event_out)" "";
            140 138 Hip hipGraphEventRecordNodeSetEvent "hipGraphEventRecordNodeSetEvent" 139 given None event "hipError_t(hipGraphNode_t node, hipEvent_t event)" "";
            141 139 Hip hipGraphEventWaitNodeGetEvent "hipGraphEventWaitNodeGetEvent" 140 given None none "hipError_t(hipGraphNode_t node, hipEvent_t* event_out)" "";
            142 140 Hip hipGraphEventWaitNodeSetEvent "hipGraphEventWaitNodeSetEvent" 141 given None event "hipError_t(hipGraphNode_t node, hipEvent_t event)" "";
            143 141 Hip hipGraphExecChildGraphNodeSetParams "hipGraphExecChildGraphNodeSetParams" 142 given Nodes none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t node, hipGraph_t childGraph)" "";
            144 142 Hip hipGraphExecDestroy "hipGraphExecDestroy" 143 given Nodes graphExec "hipError_t(hipGraphExec_t graphExec)" "";
            145 143 Hip hipGraphExecEventRecordNodeSetEvent "hipGraphExecEventRecordNodeSetEvent" 144 given None event "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t hNode, hipEvent_t event)" "";
            146 144 Hip hipGraphExecEventWaitNodeSetEvent "hipGraphExecEventWaitNodeSetEvent" 145 given None event "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t hNode, hipEvent_t event)" "";
            147 145 Hip hipGraphExecHostNodeSetParams "hipGraphExecHostNodeSetParams" 146 given None none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t node, const hipHostNodeParams* pNodeParams)" "";
            148 146 Hip hipGraphExecKernelNodeSetParams "hipGraphExecKernelNodeSetParams" 147 given Nodes none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t node, const hipKernelNodeParams* pNodeParams)" "";
            149 147 Hip hipGraphExecMemcpyNodeSetParams "hipGraphExecMemcpyNodeSetParams" 148 given None none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t node, hipMemcpy3DParms* pNodeParams)" "";
            150 148 Hip hipGraphExecMemcpyNodeSetParams1D "hipGraphExecMemcpyNodeSetParams1D" 149 given None count "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t node, void* dst, const void* src, size_t count, hipMemcpyKind kind)" "";
            151 149 Hip hipGraphExecMemcpyNodeSetParamsFromSymbol "hipGraphExecMemcpyNodeSetParamsFromSymbol" 150 given None count "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t node, void* dst, const void* symbol, size_t count, size_t offset, hipMemcpyKind kind)" "";
            152 150 Hip hipGraphExecMemcpyNodeSetParamsToSymbol "hipGraphExecMemcpyNodeSetParamsToSymbol" 151 given None count "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t node, const void* symbol, const void* src, size_t count, size_t offset, hipMemcpyKind kind)" "";
            153 151 Hip hipGraphExecMemsetNodeSetParams "hipGraphExecMemsetNodeSetParams" 152 given None none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t node, const hipMemsetParams* pNodeParams)" "";
            154 152 Hip hipGraphExecUpdate "hipGraphExecUpdate" 153 given Nodes none "hipError_t(hipGraphExec_t hGraphExec, hipGraph_t hGraph, hipGraphNode_t* hErrorNode_out, hipGraphExecUpdateResult* updateResult_out)" "";
            155 153 Hip hipGraphGetEdges "hipGraphGetEdges" 154 given None none "hipError_t(hipGraph_t graph, hipGraphNode_t* from, hipGraphNode_t* to, size_t* numEdges)" "";
            156 154 Hip hipGraphGetNodes "hipGraphGetNodes" 155 given None none "hipError_t(hipGraph_t graph, hipGraphNode_t* nodes, size_t* numNodes)" "";
            157 155 Hip hipGraphGetRootNodes "hipGraphGetRootNodes" 156 given None none "hipError_t(hipGraph_t graph, hipGraphNode_t* pRootNodes, size_t* pNumRootNodes)" "";
            158 156 Hip hipGraphHostNodeGetParams "hipGraphHostNodeGetParams" 157 given None none "hipError_t(hipGraphNode_t node, hipHostNodeParams* pNodeParams)" "";
            159 157 Hip hipGraphHostNodeSetParams "hipGraphHostNodeSetParams" 158 given None none "hipError_t(hipGraphNode_t node, const hipHostNodeParams* pNodeParams)" "";
            160 158 Hip hipGraphInstantiate "hipGraphInstantiate" 159 given Nodes none "hipError_t(out hipGraphExec_t* pGraphExec, hipGraph_t graph, hipGraphNode_t* pErrorNode, char* pLogBuffer, size_t bufferSize)" "exec graph";
            161 159 Hip hipGraphInstantiateWithFlags "hipGraphInstantiateWithFlags" 160 given Nodes none "hipError_t(hipGraphExec_t* pGraphExec, hipGraph_t graph, unsigned long long flags)" "";
            162 160 Hip hipGraphKernelNodeCopyAttributes "hipGraphKernelNodeCopyAttributes" 161 given None none "hipError_t(hipGraphNode_t hSrc, hipGraphNode_t hDst)" "";
            163 161 Hip hipGraphKernelNodeGetAttribute "hipGraphKernelNodeGetAttribute" 162 given None none "hipError_t(hipGraphNode_t hNode, hipKernelNodeAttrID attr, hipKernelNodeAttrValue* value)" "";
            164 162 Hip hipGraphKernelNodeGetParams "hipGraphKernelNodeGetParams" 163 given None none "hipError_t(hipGraphNode_t node, hipKernelNodeParams* pNodeParams)" "";
            165 163 Hip hipGraphKernelNodeSetAttribute "hipGraphKernelNodeSetAttribute" 164 given NodeAttribute none "hipError_t(hipGraphNode_t hNode, hipKernelNodeAttrID attr, const hipKernelNodeAttrValue* value)" "";
            166 164 Hip hipGraphKernelNodeSetParams "hipGraphKernelNodeSetParams" 165 given Nodes none "hipError_t(hipGraphNode_t node, const hipKernelNodeParams* pNodeParams)" "";
            167 165 Hip hipGraphLaunch "hipGraphLaunch" 166 given Graph graphExec "hipError_t(hipGraphExec_t graphExec, hipStream_t stream)" "exec stream";
            168 166 Hip hipGraphLaunch_spt "hipGraphLaunch_spt" 420 given Graph graphExec "hipError_t(hipGraphExec_t graphExec, hipStream_t stream)" "";
            169 167 Hip hipGraphMemAllocNodeGetParams "hipGraphMemAllocNodeGetParams" 167 given None none "hipError_t(hipGraphNode_t node, hipMemAllocNodeParams* pNodeParams)" "";
            170 168 Hip hipGraphMemFreeNodeGetParams "hipGraphMemFreeNodeGetParams" 168 given None dev_ptr "hipError_t(hipGraphNode_t node, void* dev_ptr)" "";
            171 169 Hip hipGraphMemcpyNodeGetParams "hipGraphMemcpyNodeGetParams" 169 given None none "hipError_t(hipGraphNode_t node, hipMemcpy3DParms* pNodeParams)" "";
            172 170 Hip hipGraphMemcpyNodeSetParams "hipGraphMemcpyNodeSetParams" 170 given None none "hipError_t(hipGraphNode_t node, const hipMemcpy3DParms* pNodeParams)" "";
            173 171 Hip hipGraphMemcpyNodeSetParams1D "hipGraphMemcpyNodeSetParams1D" 171 given None count "hipError_t(hipGraphNode_t node, void* dst, const void* src, size_t count, hipMemcpyKind kind)" "";
            174 172 Hip hipGraphMemcpyNodeSetParamsFromSymbol "hipGraphMemcpyNodeSetParamsFromSymbol" 172 given None count "hipError_t(hipGraphNode_t node, void* dst, const void* symbol, size_t count, size_t offset, hipMemcpyKind kind)" "";
            175 173 Hip hipGraphMemcpyNodeSetParamsToSymbol "hipGraphMemcpyNodeSetParamsToSymbol" 173 given None count "hipError_t(hipGraphNode_t node, const void* symbol, const void* src, size_t count, size_t offset, hipMemcpyKind kind)" "";
            176 174 Hip hipGraphMemsetNodeGetParams "hipGraphMemsetNodeGetParams" 174 given None none "hipError_t(hipGraphNode_t node, hipMemsetParams* pNodeParams)" "";
            177 175 Hip hipGraphMemsetNodeSetParams "hipGraphMemsetNodeSetParams" 175 given None none "hipError_t(hipGraphNode_t node, const hipMemsetParams* pNodeParams)" "";
            178 176 Hip hipGraphNodeFindInClone "hipGraphNodeFindInClone" 176 given None none "hipError_t(hipGraphNode_t* pNode, hipGraphNode_t originalNode, hipGraph_t clonedGraph)" "";
            179 177 Hip hipGraphNodeGetDependencies "hipGraphNodeGetDependencies" 177 given None none "hipError_t(hipGraphNode_t node, hipGraphNode_t* pDependencies, size_t* pNumDependencies)" "";
            180 178 Hip hipGraphNodeGetDependentNodes "hipGraphNodeGetDependentNodes" 178 given None none "hipError_t(hipGraphNode_t node, hipGraphNode_t* pDependentNodes, size_t* pNumDependentNodes)" "";
            181 179 Hip hipGraphNodeGetEnabled "hipGraphNodeGetEnabled" 179 given None none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t hNode, unsigned int* isEnabled)" "";
            182 180 Hip hipGraphNodeGetType "hipGraphNodeGetType" 180 given None none "hipError_t(hipGraphNode_t node, hipGraphNodeType* pType)" "";
            183 181 Hip hipGraphNodeSetEnabled "hipGraphNodeSetEnabled" 181 given Nodes none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t hNode, unsigned int isEnabled)" "";
            184 182 Hip hipGraphReleaseUserObject "hipGraphReleaseUserObject" 182 given None none "hipError_t(hipGraph_t graph, hipUserObject_t object, unsigned int count)" "";
            185 183 Hip hipGraphRemoveDependencies "hipGraphRemoveDependencies" 183 given None none "hipError_t(hipGraph_t graph, const hipGraphNode_t* from, const hipGraphNode_t* to, size_t numDependencies)" "";
            186 184 Hip hipGraphRetainUserObject "hipGraphRetainUserObject" 184 given None none "hipError_t(hipGraph_t graph, hipUserObject_t object, unsigned int count, unsigned int flags)" "";
            187 185 Hip hipGraphUpload "hipGraphUpload" 185 given None graphExec "hipError_t(hipGraphExec_t graphExec, hipStream_t stream)" "";
            188 186 Hip hipGraphicsGLRegisterBuffer "hipGraphicsGLRegisterBuffer" 186 given None none "hipError_t(hipGraphicsResource** resource, GLuint buffer, unsigned int flags)" "";
            189 187 Hip hipGraphicsGLRegisterImage "hipGraphicsGLRegisterImage" 187 given None none "hipError_t(hipGraphicsResource** resource, GLuint image, GLenum target, unsigned int flags)" "";
            190 188 Hip hipGraphicsMapResources "hipGraphicsMapResources" 188 given None stream "hipError_t(int count, hipGraphicsResource_t* resources, hipStream_t stream)" "";
            191 189 Hip hipGraphicsResourceGetMappedPointer "hipGraphicsResourceGetMappedPointer" 189 given None devPtr "hipError_t(void** devPtr, size_t* size, hipGraphicsResource_t resource)" "";
            192 190 Hip hipGraphicsSubResourceGetMappedArray "hipGraphicsSubResourceGetMappedArray" 190 given None none "hipError_t(hipArray_t* array, hipGraphicsResource_t resource, unsigned int arrayIndex, unsigned int mipLevel)" "";
            193 191 Hip hipGraphicsUnmapResources "hipGraphicsUnmapResources" 191 given None stream "hipError_t(int count, hipGraphicsResource_t* resources, hipStream_t stream)" "";
            194 192 Hip hipGraphicsUnregisterResource "hipGraphicsUnregisterResource" 192 given None none "hipError_t(hipGraphicsResource_t resource)" "";
            195 193 Hip _Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_ "hipHccModuleLaunchKernel" _ given Launch f "hipError_t(hipFunction_t f, uint32_t globalWorkSizeX, uint32_t globalWorkSizeY, uint32_t globalWorkSizeZ, uint32_t localWorkSizeX, uint32_t localWorkSizeY, uint32_t localWorkSizeZ, size_t sharedMemBytes, hipStream_t hStream, void** kernelParams, void** extra, hipEvent_t startEvent, hipEvent_t stopEvent)" "";
            196 194 Hip hipHostAlloc "hipHostAlloc" 193 given None size "hipError_t(out void** ptr, size_t size, unsigned int flags)" "";
            197 195 Hip hipHostFree "hipHostFree" 194 given Wait ptr "hipError_t(void* ptr)" "ptr";
            198 196 Hip hipHostGetDevicePointer "hipHostGetDevicePointer" 195 given None devPtr "hipError_t(void** devPtr, void* hstPtr, unsigned int flags)" "";
            199 197 Hip hipHostGetFlags "hipHostGetFlags" 196 given None hostPtr "hipError_t(unsigned int* flagsPtr, void* hostPtr)" "";
            200 198 Hip hipHostMalloc "hipHostMalloc" 197 given None size "hipError_t(out void** ptr, size_t size, unsigned int flags)" "ptr size flags";
            201 199 Hip hipHostRegister "hipHostRegister" 198 given None sizeBytes "hipError_t(void* hostPtr, size_t sizeBytes, unsigned int flags)" "ptr size flags";
            202 200 Hip hipHostUnregister "hipHostUnregister" 199 given None hostPtr "hipError_t(void* hostPtr)" "ptr";
            203 201 Hip hipImportExternalMemory "hipImportExternalMemory" 200 given None none "hipError_t(hipExternalMemory_t* extMem_out, const hipExternalMemoryHandleDesc* memHandleDesc)" "";
            204 202 Hip hipImportExternalSemaphore "hipImportExternalSemaphore" 201 given None none "hipError_t(hipExternalSemaphore_t* extSem_out, const hipExternalSemaphoreHandleDesc* semHandleDesc)" "";
            205 203 Hip hipInit "hipInit" 202 given None none "hipError_t(unsigned int flags)" "";
            206 204 Hip hipIpcCloseMemHandle "hipIpcCloseMemHandle" 203 given None devPtr "hipError_t(void* devPtr)" "";
            207 205 Hip hipIpcGetEventHandle "hipIpcGetEventHandle" 204 given None event "hipError_t(hipIpcEventHandle_t* handle, hipEvent_t event)" "";
            208 206 Hip hipIpcGetMemHandle "hipIpcGetMemHandle" 205 given None devPtr "hipError_t(hipIpcMemHandle_t* handle, void* devPtr)" "";
            209 207 Hip hipIpcOpenEventHandle "hipIpcOpenEventHandle" 206 given None event "hipError_t(hipEvent_t* event, hipIpcEventHandle_t handle)" "";
            210 208 Hip hipIpcOpenMemHandle "hipIpcOpenMemHandle" 207 given None devPtr "hipError_t(void** devPtr, hipIpcMemHandle_t handle, unsigned int flags)" "";
            211 209 Hip hipLaunchByPtr "hipLaunchByPtr" 210 given None none "hipError_t(const void* func)" "";
            212 210 Hip hipLaunchCooperativeKernel "hipLaunchCooperativeKernel" 211 given Cooperative func "hipError_t(const void* func, dim3 gridDim, dim3 blockDimX, void** kernelParams, unsigned int sharedMemBytes, hipStream_t stream)" "kernel grid block params shared stream";
            213 211 Hip hipLaunchCooperativeKernelMultiDevice "hipLaunchCooperativeKernelMultiDevice" 212 given Cooperative none "hipError_t(hipLaunchParams* launchParamsList, int numDevices, unsigned int flags)" "";
            214 212 Hip hipLaunchCooperativeKernel_spt "hipLaunchCooperativeKernel_spt" 418 given Cooperative f "hipError_t(const void* f, dim3 gridDim, dim3 blockDim, void** kernelParams, uint32_t sharedMemBytes, hipStream_t hStream)" "";
            215 213 Hip hipLaunchHostFunc "hipLaunchHostFunc" 213 given None stream "hipError_t(hipStream_t stream, hipHostFn_t fn, void* userData)" "";
            216 214 Hip hipLaunchHostFunc_spt "hipLaunchHostFunc_spt" 426 given None stream "hipError_t(hipStream_t stream, hipHostFn_t fn, void* userData)" "";
            217 215 Hip hipLaunchKernel "hipLaunchKernel" 214 given Launch function_address "hipError_t(const void* function_address, dim3 numBlocks, dim3 dimBlocks, void** args, size_t sharedMemBytes, hipStream_t stream)" "kernel grid block args shared stream";
            218 216 Hip _ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv "hipLaunchKernelGGLImpl" _ given None function_address "void(uintptr_t function_address, const dim3& numBlocks, const dim3& dimBlocks, uint32_t sharedMemBytes, hipStream_t stream, void** kernarg)" "";
            219 217 Hip hipLaunchKernel_spt "hipLaunchKernel_spt" 419 given Launch function_address "hipError_t(const void* function_address, dim3 numBlocks, dim3 dimBlocks, void** args, size_t sharedMemBytes, hipStream_t stream)" "";
            220 218 Hip hipMalloc "hipMalloc" 215 given None size "hipError_t(out void** ptr, size_t size)" "ptr size";
            221 219 Hip hipMalloc3D "hipMalloc3D" 216 given None none "hipError_t(hipPitchedPtr* pitchedDevPtr, hipExtent extent)" "";
            222 220 Hip hipMalloc3DArray "hipMalloc3DArray" 217 given None none "hipError_t(hipArray_t* array, const hipChannelFormatDesc* desc, hipExtent extent, unsigned int flags)" "";
            223 221 Hip hipMallocArray "hipMallocArray" 218 given None none "hipError_t(hipArray_t* array, const hipChannelFormatDesc* desc, size_t width, size_t height, unsigned int flags)" "";
            224 222 Hip hipMallocAsync "hipMallocAsync" 219 given None size "hipError_t(out void** dev_ptr, size_t size, hipStream_t stream)" "ptr size stream";
            225 223 Hip hipMallocFromPoolAsync "hipMallocFromPoolAsync" 220 given None size "hipError_t(out void** dev_ptr, size_t size, hipMemPool_t mem_pool, hipStream_t stream)" "ptr size pool stream";
            226 224 Hip hipMallocHost "hipMallocHost" 221 given None size "hipError_t(out void** ptr, size_t size)" "ptr size";
            227 225 Hip hipMallocManaged "hipMallocManaged" 222 given None size "hipError_t(out void** dev_ptr, size_t size, unsigned int flags)" "ptr size flags";
            228 226 Hip hipMallocMipmappedArray "hipMallocMipmappedArray" 223 given None none "hipError_t(hipMipmappedArray_t* mipmappedArray, const hipChannelFormatDesc* desc, hipExtent extent, unsigned int numLevels, unsigned int flags)" "";
            229 227 Hip hipMallocPitch "hipMallocPitch" 224 given None ptr "hipError_t(out void** ptr, size_t* pitch, size_t width, size_t height)" "ptr pitch width height";
            230 228 Hip hipMemAddressFree "hipMemAddressFree" 225 given None size "hipError_t(void* devPtr, size_t size)" "";
            231 229 Hip hipMemAddressReserve "hipMemAddressReserve" 226 given None size "hipError_t(out void** ptr, size_t size, size_t alignment, void* addr, unsigned long long flags)" "";
            232 230 Hip hipMemAdvise "hipMemAdvise" 227 given None count "hipError_t(const void* dev_ptr, size_t count, hipMemoryAdvise advice, int device)" "ptr count advice device";
            233 231 Hip hipMemAllocHost "hipMemAllocHost" 228 given None size "hipError_t(out void** ptr, size_t size)" "";
            234 232 Hip hipMemAllocPitch "hipMemAllocPitch" 229 given None none "hipError_t(hipDeviceptr_t* dptr, size_t* pitch, size_t widthInBytes, size_t height, unsigned int elementSizeBytes)" "";
            235 233 Hip hipMemCreate "hipMemCreate" 230 given None size "hipError_t(hipMemGenericAllocationHandle_t* handle, size_t size, const hipMemAllocationProp* prop, unsigned long long flags)" "";
            236 234 Hip hipMemExportToShareableHandle "hipMemExportToShareableHandle" 231 given None none "hipError_t(void* shareableHandle, hipMemGenericAllocationHandle_t handle, hipMemAllocationHandleType handleType, unsigned long long flags)" "";
            237 235 Hip hipMemGetAccess "hipMemGetAccess" 232 given None ptr "hipError_t(unsigned long long* flags, const hipMemLocation* location, void* ptr)" "";
            238 236 Hip hipMemGetAddressRange "hipMemGetAddressRange" 233 given None none "hipError_t(hipDeviceptr_t* pbase, size_t* psize, hipDeviceptr_t dptr)" "";
            239 237 Hip hipMemGetAllocationGranularity "hipMemGetAllocationGranularity" 234 given None none "hipError_t(size_t* granularity, const hipMemAllocationProp* prop, hipMemAllocationGranularity_flags option)" "";
            240 238 Hip hipMemGetAllocationPropertiesFromHandle "hipMemGetAllocationPropertiesFromHandle" 235 given None none "hipError_t(hipMemAllocationProp* prop, hipMemGenericAllocationHandle_t handle)" "";
            241 239 Hip hipMemGetInfo "hipMemGetInfo" 236 given None none "hipError_t(size_t* free, size_t* total)" "";
            242 240 Hip hipMemImportFromShareableHandle "hipMemImportFromShareableHandle" 237 given None none "hipError_t(hipMemGenericAllocationHandle_t* handle, void* osHandle, hipMemAllocationHandleType shHandleType)" "";
            243 241 Hip hipMemMap "hipMemMap" 238 given None size "hipError_t(void* ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle, unsigned long long flags)" "";
            244 242 Hip hipMemMapArrayAsync "hipMemMapArrayAsync" 239 given None stream "hipError_t(hipArrayMapInfo* mapInfoList, unsigned int count, hipStream_t stream)" "";
            245 243 Hip hipMemPoolCreate "hipMemPoolCreate" 240 given None none "hipError_t(hipMemPool_t* mem_pool, const hipMemPoolProps* pool_props)" "";
            246 244 Hip hipMemPoolDestroy "hipMemPoolDestroy" 241 given None none "hipError_t(hipMemPool_t mem_pool)" "";
            247 245 Hip hipMemPoolExportPointer "hipMemPoolExportPointer" 242 given None dev_ptr "hipError_t(hipMemPoolPtrExportData* export_data, void* dev_ptr)" "";
            248 246 Hip hipMemPoolExportToShareableHandle "hipMemPoolExportToShareableHandle" 243 given None none "hipError_t(void* shared_handle, hipMemPool_t mem_pool, hipMemAllocationHandleType handle_type, unsigned int flags)" "";
            249 247 Hip hipMemPoolGetAccess "hipMemPoolGetAccess" 244 given None none "hipError_t(hipMemAccessFlags* flags, hipMemPool_t mem_pool, hipMemLocation* location)" "";
            250 248 Hip hipMemPoolGetAttribute "hipMemPoolGetAttribute" 245 given None none "hipError_t(hipMemPool_t mem_pool, hipMemPoolAttr attr, void* value)" "";
            251 249 Hip hipMemPoolImportFromShareableHandle "hipMemPoolImportFromShareableHandle" 246 given None none "hipError_t(hipMemPool_t* mem_pool, void* shared_handle, hipMemAllocationHandleType handle_type, unsigned int flags)" "";
            252 250 Hip hipMemPoolImportPointer "hipMemPoolImportPointer" 247 given None dev_ptr "hipError_t(void** dev_ptr, hipMemPool_t mem_pool, hipMemPoolPtrExportData* export_data)" "";
            253 251 Hip hipMemPoolSetAccess "hipMemPoolSetAccess" 248 given None count "hipError_t(hipMemPool_t mem_pool, const hipMemAccessDesc* desc_list, size_t count)" "";
            254 252 Hip hipMemPoolSetAttribute "hipMemPoolSetAttribute" 249 given None none "hipError_t(hipMemPool_t mem_pool, hipMemPoolAttr attr, void* value)" "";
            255 253 Hip hipMemPoolTrimTo "hipMemPoolTrimTo" 250 given None none "hipError_t(hipMemPool_t mem_pool, size_t min_bytes_to_hold)" "";
            256 254 Hip hipMemPrefetchAsync "hipMemPrefetchAsync" 251 given None count "hipError_t(const void* dev_ptr, size_t count, int device, hipStream_t stream)" "ptr count device stream";
            257 255 Hip hipMemPtrGetInfo "hipMemPtrGetInfo" 252 given None ptr "hipError_t(void* ptr, size_t* size)" "";
            258 256 Hip hipMemRangeGetAttribute "hipMemRangeGetAttribute" 253 given None count "hipError_t(void* data, size_t data_size, hipMemRangeAttribute attribute, const void* dev_ptr, size_t count)" "";
            259 257 Hip hipMemRangeGetAttributes "hipMemRangeGetAttributes" 254 given None count "hipError_t(void** data, size_t* data_sizes, hipMemRangeAttribute* attributes, size_t num_attributes, const void* dev_ptr, size_t count)" "";
            260 258 Hip hipMemRelease "hipMemRelease" 255 given None none "hipError_t(hipMemGenericAllocationHandle_t handle)" "";
            261 259 Hip hipMemRetainAllocationHandle "hipMemRetainAllocationHandle" 256 given None none "hipError_t(hipMemGenericAllocationHandle_t* handle, void* addr)" "";
            262 260 Hip hipMemSetAccess "hipMemSetAccess" 257 given None count "hipError_t(void* ptr, size_t size, const hipMemAccessDesc* desc, size_t count)" "";
            263 261 Hip hipMemUnmap "hipMemUnmap" 258 given None size "hipError_t(void* ptr, size_t size)" "";
            264 262 Hip hipMemcpy "hipMemcpy" 259 null Wait sizeBytes "hipError_t(void* dst, const void* src, size_t sizeBytes, hipMemcpyKind kind)" "dst src size kind";
            265 263 Hip hipMemcpy2D "hipMemcpy2D" 260 null Wait dst "hipError_t(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, hipMemcpyKind kind)" "dst dpitch src spitch width height kind";
            266 264 Hip hipMemcpy2DAsync "hipMemcpy2DAsync" 261 given None dst "hipError_t(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream)" "dst dpitch src spitch width height kind stream";
            267 265 Hip hipMemcpy2DAsync_spt "hipMemcpy2DAsync_spt" 404 given None dst "hipError_t(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream)" "";
            268 266 Hip hipMemcpy2DFromArray "hipMemcpy2DFromArray" 262 null Wait dst "hipError_t(void* dst, size_t dpitch, hipArray_const_t src, size_t wOffset, size_t hOffset, size_t width, size_t height, hipMemcpyKind kind)" "";
            269 267 Hip hipMemcpy2DFromArrayAsync "hipMemcpy2DFromArrayAsync" 263 given None dst "hipError_t(void* dst, size_t dpitch, hipArray_const_t src, size_t wOffset, size_t hOffset, size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream)" "";
            270 268 Hip hipMemcpy2DFromArrayAsync_spt "hipMemcpy2DFromArrayAsync_spt" 409 given None dst "hipError_t(void* dst, size_t dpitch, hipArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream)" "";
            271 269 Hip hipMemcpy2DFromArray_spt "hipMemcpy2DFromArray_spt" 394 thread Wait dst "hipError_t(void* dst, size_t dpitch, hipArray_const_t src, size_t wOffset, size_t hOffset, size_t width, size_t height, hipMemcpyKind kind)" "";
            272 270 Hip hipMemcpy2DToArray "hipMemcpy2DToArray" 264 null Wait dst "hipError_t(hipArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch, size_t width, size_t height, hipMemcpyKind kind)" "";
            273 271 Hip hipMemcpy2DToArrayAsync "hipMemcpy2DToArrayAsync" 265 given None dst "hipError_t(hipArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch, size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream)" "";
            274 272 Hip hipMemcpy2DToArrayAsync_spt "hipMemcpy2DToArrayAsync_spt" 410 given None dst "hipError_t(hipArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch, size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream)" "";
            275 273 Hip hipMemcpy2DToArray_spt "hipMemcpy2DToArray_spt" 408 thread Wait dst "hipError_t(hipArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch, size_t width, size_t height, hipMemcpyKind kind)" "";
            276 274 Hip hipMemcpy2D_spt "hipMemcpy2D_spt" 393 thread Wait dst "hipError_t(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, hipMemcpyKind kind)" "";
            277 275 Hip hipMemcpy3D "hipMemcpy3D" 266 null Wait none "hipError_t(const hipMemcpy3DParms* p)" "";
            278 276 Hip hipMemcpy3DAsync "hipMemcpy3DAsync" 267 given None stream "hipError_t(const hipMemcpy3DParms* p, hipStream_t stream)" "";
            279 277 Hip hipMemcpy3DAsync_spt "hipMemcpy3DAsync_spt" 403 given None stream "hipError_t(const hipMemcpy3DParms* p, hipStream_t stream)" "";
            280 278 Hip hipMemcpy3D_spt "hipMemcpy3D_spt" 395 thread Wait none "hipError_t(const hipMemcpy3DParms* p)" "";
            281 279 Hip hipMemcpyAsync "hipMemcpyAsync" 268 given None sizeBytes "hipError_t(void* dst, const void* src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t stream)" "dst src size kind stream";
            282 280 Hip hipMemcpyAsync_spt "hipMemcpyAsync_spt" 402 given None sizeBytes "hipError_t(void* dst, const void* src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t stream)" "";
            283 281 Hip hipMemcpyAtoH "hipMemcpyAtoH" 269 null Wait count "hipError_t(void* dst, hipArray_t srcArray, size_t srcOffset, size_t count)" "";
            284 282 Hip hipMemcpyDtoD "hipMemcpyDtoD" 270 null Wait sizeBytes "hipError_t(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes)" "dst src size";
            285 283 Hip hipMemcpyDtoDAsync "hipMemcpyDtoDAsync" 271 given None sizeBytes "hipError_t(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream)" "dst src size stream";
            286 284 Hip hipMemcpyDtoH "hipMemcpyDtoH" 272 null Wait sizeBytes "hipError_t(void* dst, hipDeviceptr_t src, size_t sizeBytes)" "dst src size";
            287 285 Hip hipMemcpyDtoHAsync "hipMemcpyDtoHAsync" 273 given None sizeBytes "hipError_t(void* dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream)" "dst src size stream";
            288 286 Hip hipMemcpyFromArray "hipMemcpyFromArray" 274 null Wait count "hipError_t(void* dst, hipArray_const_t srcArray, size_t wOffset, size_t hOffset, size_t count, hipMemcpyKind kind)" "";
            289 287 Hip hipMemcpyFromArray_spt "hipMemcpyFromArray_spt" 407 thread Wait count "hipError_t(void* dst, hipArray_const_t src, size_t wOffsetSrc, size_t hOffset, size_t count, hipMemcpyKind kind)" "";
            290 288 Hip hipMemcpyFromSymbol "hipMemcpyFromSymbol" 275 null Wait sizeBytes "hipError_t(void* dst, const void* symbol, size_t sizeBytes, size_t offset, hipMemcpyKind kind)" "";
            291 289 Hip hipMemcpyFromSymbolAsync "hipMemcpyFromSymbolAsync" 276 given None sizeBytes "hipError_t(void* dst, const void* symbol, size_t sizeBytes, size_t offset, hipMemcpyKind kind, hipStream_t stream)" "";
            292 290 Hip hipMemcpyFromSymbolAsync_spt "hipMemcpyFromSymbolAsync_spt" 405 given None sizeBytes "hipError_t(void* dst, const void* symbol, size_t sizeBytes, size_t offset, hipMemcpyKind kind, hipStream_t stream)" "";
            293 291 Hip hipMemcpyFromSymbol_spt "hipMemcpyFromSymbol_spt" 392 thread Wait sizeBytes "hipError_t(void* dst, const void* symbol, size_t sizeBytes, size_t offset, hipMemcpyKind kind)" "";
            294 292 Hip hipMemcpyHtoA "hipMemcpyHtoA" 277 null Wait count "hipError_t(hipArray_t dstArray, size_t dstOffset, const void* srcHost, size_t count)" "";
            295 293 Hip hipMemcpyHtoD "hipMemcpyHtoD" 278 null Wait sizeBytes "hipError_t(hipDeviceptr_t dst, const void* src, size_t sizeBytes)" "dst src size";
            296 294 Hip hipMemcpyHtoDAsync "hipMemcpyHtoDAsync" 279 given None sizeBytes "hipError_t(hipDeviceptr_t dst, const void* src, size_t sizeBytes, hipStream_t stream)" "dst src size stream";
            297 295 Hip hipMemcpyParam2D "hipMemcpyParam2D" 280 null Wait none "hipError_t(const hip_Memcpy2D* pCopy)" "";
            298 296 Hip hipMemcpyParam2DAsync "hipMemcpyParam2DAsync" 281 given None stream "hipError_t(const hip_Memcpy2D* pCopy, hipStream_t stream)" "";
            299 297 Hip hipMemcpyPeer "hipMemcpyPeer" 282 null Wait sizeBytes "hipError_t(void* dst, int dstDeviceId, const void* src, int srcDeviceId, size_t sizeBytes)" "dst dst_device src src_device size";
            300 298 Hip hipMemcpyPeerAsync "hipMemcpyPeerAsync" 283 given None sizeBytes "hipError_t(void* dst, int dstDeviceId, const void* src, int srcDevice, size_t sizeBytes, hipStream_t stream)" "dst dst_device src src_device size stream";
            301 299 Hip hipMemcpyToArray "hipMemcpyToArray" 284 null Wait count "hipError_t(hipArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count, hipMemcpyKind kind)" "";
            302 300 Hip hipMemcpyToSymbol "hipMemcpyToSymbol" 285 null Wait sizeBytes "hipError_t(const void* symbol, const void* src, size_t sizeBytes, size_t offset, hipMemcpyKind kind)" "";
            303 301 Hip hipMemcpyToSymbolAsync "hipMemcpyToSymbolAsync" 286 given None sizeBytes "hipError_t(const void* symbol, const void* src, size_t sizeBytes, size_t offset, hipMemcpyKind kind, hipStream_t stream)" "";
            304 302 Hip hipMemcpyToSymbolAsync_spt "hipMemcpyToSymbolAsync_spt" 406 given None sizeBytes "hipError_t(const void* symbol, const void* src, size_t sizeBytes, size_t offset, hipMemcpyKind kind, hipStream_t stream)" "";
            305 303 Hip hipMemcpyToSymbol_spt "hipMemcpyToSymbol_spt" 391 thread Wait sizeBytes "hipError_t(const void* symbol, const void* src, size_t sizeBytes, size_t offset, hipMemcpyKind kind)" "";
            306 304 Hip hipMemcpyWithStream "hipMemcpyWithStream" 287 given Wait sizeBytes "hipError_t(void* dst, const void* src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t stream)" "dst src size kind stream";
            307 305 Hip hipMemcpy_spt "hipMemcpy_spt" 390 thread Wait sizeBytes "hipError_t(void* dst, const void* src, size_t sizeBytes, hipMemcpyKind kind)" "";
            308 306 Hip hipMemset "hipMemset" 288 null Wait sizeBytes "hipError_t(void* dst, int value, size_t sizeBytes)" "dst value size";
            309 307 Hip hipMemset2D "hipMemset2D" 289 null Wait dst "hipError_t(void* dst, size_t pitch, int value, size_t width, size_t height)" "dst pitch value width height";
            310 308 Hip hipMemset2DAsync "hipMemset2DAsync" 290 given None dst "hipError_t(void* dst, size_t pitch, int value, size_t width, size_t height, hipStream_t stream)" "";
            311 309 Hip hipMemset2DAsync_spt "hipMemset2DAsync_spt" 399 given None dst "hipError_t(void* dst, size_t pitch, int value, size_t width, size_t height, hipStream_t stream)" "";
            312 310 Hip hipMemset2D_spt "hipMemset2D_spt" 398 thread Wait dst "hipError_t(void* dst, size_t pitch, int value, size_t width, size_t height)" "";
            313 311 Hip hipMemset3D "hipMemset3D" 291 null Wait none "hipError_t(hipPitchedPtr pitchedDevPtr, int value, hipExtent extent)" "";
            314 312 Hip hipMemset3DAsync "hipMemset3DAsync" 292 given None stream "hipError_t(hipPitchedPtr pitchedDevPtr, int value, hipExtent extent, hipStream_t stream)" "";
            315 313 Hip hipMemset3DAsync_spt "hipMemset3DAsync_spt" 400 given None stream "hipError_t(hipPitchedPtr pitchedDevPtr, int value, hipExtent extent, hipStream_t stream)" "";
            316 314 Hip hipMemset3D_spt "hipMemset3D_spt" 401 thread Wait none "hipError_t(hipPitchedPtr pitchedDevPtr, int value, hipExtent extent)" "";
            317 315 Hip hipMemsetAsync "hipMemsetAsync" 293 given None sizeBytes "hipError_t(void* dst, int value, size_t sizeBytes, hipStream_t stream)" "dst value size stream";
            318 316 Hip hipMemsetAsync_spt "hipMemsetAsync_spt" 397 given None sizeBytes "hipError_t(void* dst, int value, size_t sizeBytes, hipStream_t stream)" "";
            319 317 Hip hipMemsetD16 "hipMemsetD16" 294 null Wait count "hipError_t(hipDeviceptr_t dest, unsigned short value, size_t count)" "";
            320 318 Hip hipMemsetD16Async "hipMemsetD16Async" 295 given None count "hipError_t(hipDeviceptr_t dest, unsigned short value, size_t count, hipStream_t stream)" "";
            321 319 Hip hipMemsetD32 "hipMemsetD32" 296 null Wait count "hipError_t(hipDeviceptr_t dest, int value, size_t count)" "";
            322 320 Hip hipMemsetD32Async "hipMemsetD32Async" 297 given None count "hipError_t(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream)" "dst value count stream";
            323 321 Hip hipMemsetD8 "hipMemsetD8" 298 null Wait count "hipError_t(hipDeviceptr_t dest, unsigned char value, size_t count)" "";
            324 322 Hip hipMemsetD8Async "hipMemsetD8Async" 299 given None count "hipError_t(hipDeviceptr_t dest, unsigned char value, size_t count, hipStream_t stream)" "";
            325 323 Hip hipMemset_spt "hipMemset_spt" 396 thread Wait sizeBytes "hipError_t(void* dst, int value, size_t sizeBytes)" "";
            326 324 Hip hipMipmappedArrayCreate "hipMipmappedArrayCreate" 300 given None none "hipError_t(hipMipmappedArray_t* pHandle, HIP_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc, unsigned int numMipmapLevels)" "";
            327 325 Hip hipMipmappedArrayDestroy "hipMipmappedArrayDestroy" 301 given None none "hipError_t(hipMipmappedArray_t hMipmappedArray)" "";
            328 326 Hip hipMipmappedArrayGetLevel "hipMipmappedArrayGetLevel" 302 given None none "hipError_t(hipArray_t* pLevelArray, hipMipmappedArray_t hMipMappedArray, unsigned int level)" "";
            329 327 Hip hipModuleGetFunction "hipModuleGetFunction" 303 given None none "hipError_t(out hipFunction_t* function, hipModule_t module, const char* kname)" "function module name";
            330 328 Hip hipModuleGetGlobal "hipModuleGetGlobal" 304 given None none "hipError_t(hipDeviceptr_t* dptr, size_t* bytes, hipModule_t hmod, const char* name)" "";
            331 329 Hip hipModuleGetTexRef "hipModuleGetTexRef" 305 given None none "hipError_t(textureReference** texRef, hipModule_t hmod, const char* name)" "";
            332 330 Hip hipModuleLaunchCooperativeKernel "hipModuleLaunchCooperativeKernel" 306 given Cooperative f "hipError_t(hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, hipStream_t stream, void** kernelParams)" "";
            333 331 Hip hipModuleLaunchCooperativeKernelMultiDevice "hipModuleLaunchCooperativeKernelMultiDevice" 307 given Cooperative none "hipError_t(hipFunctionLaunchParams* launchParamsList, unsigned int numDevices, unsigned int flags)" "";
            334 332 Hip hipModuleLaunchKernel "hipModuleLaunchKernel" 308 given Launch func "hipError_t(hipFunction_t func, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, hipStream_t stream, void** kernelParams, void** extra)" "kernel grid_x grid_y grid_z block_x block_y block_z shared stream params extra";
            335 333 Hip hipModuleLoad "hipModuleLoad" 309 given None none "hipError_t(out hipModule_t* module, const char* fname)" "module file";
            336 334 Hip hipModuleLoadData "hipModuleLoadData" 310 given None none "hipError_t(out hipModule_t* module, const void* image)" "module image";
            337 335 Hip hipModuleLoadDataEx "hipModuleLoadDataEx" 311 given None none "hipError_t(hipModule_t* module, const void* image, unsigned int numOptions, hipJitOption* options, void** optionValues)" "";
            338 336 Hip hipModuleOccupancyMaxActiveBlocksPerMultiprocessor "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor" 312 given None f "hipError_t(int* numBlocks, hipFunction_t f, int blockSize, size_t dynSharedMemPerBlk)" "";
            339 337 Hip hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags "hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" 313 given None f "hipError_t(int* numBlocks, hipFunction_t f, int blockSize, size_t dynSharedMemPerBlk, unsigned int flags)" "";
            340 338 Hip hipModuleOccupancyMaxPotentialBlockSize "hipModuleOccupancyMaxPotentialBlockSize" 314 given None f "hipError_t(int* gridSize, int* blockSize, hipFunction_t f, size_t dynSharedMemPerBlk, int blockSizeLimit)" "";
            341 339 Hip hipModuleOccupancyMaxPotentialBlockSizeWithFlags "hipModuleOccupancyMaxPotentialBlockSizeWithFlags" 315 given None f "hipError_t(int* gridSize, int* blockSize, hipFunction_t f, size_t dynSharedMemPerBlk, int blockSizeLimit, unsigned int flags)" "";
            342 340 Hip hipModuleUnload "hipModuleUnload" 316 given Wait none "hipError_t(hipModule_t module)" "";
            343 341 Hip hipOccupancyMaxActiveBlocksPerMultiprocessor "hipOccupancyMaxActiveBlocksPerMultiprocessor" 317 given None f "hipError_t(int* numBlocks, const void* f, int blockSize, size_t dynSharedMemPerBlk)" "";
            344 342 Hip hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags "hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" 318 given None f "hipError_t(int* numBlocks, const void* f, int blockSize, size_t dynSharedMemPerBlk, unsigned int flags)" "";
            345 343 Hip hipOccupancyMaxPotentialBlockSize "hipOccupancyMaxPotentialBlockSize" 319 given None f "hipError_t(int* gridSize, int* blockSize, const void* f, size_t dynSharedMemPerBlk, int blockSizeLimit)" "";
            346 344 Hip hipPeekAtLastError "hipPeekAtLastError" 320 given None none "hipError_t()" "";
            347 345 Hip hipPointerGetAttribute "hipPointerGetAttribute" 321 given None ptr "hipError_t(void* data, hipPointer_attribute attribute, hipDeviceptr_t ptr)" "";
            348 346 Hip hipPointerGetAttributes "hipPointerGetAttributes" 322 given None ptr "hipError_t(hipPointerAttribute_t* attributes, const void* ptr)" "";
            349 347 Hip hipPointerSetAttribute "hipPointerSetAttribute" 323 given None ptr "hipError_t(const void* value, hipPointer_attribute attribute, hipDeviceptr_t ptr)" "";
            350 348 Hip hipProfilerStart "hipProfilerStart" 324 given Start none "hipError_t()" "";
            351 349 Hip hipProfilerStop "hipProfilerStop" 325 given Stop none "hipError_t()" "";
            352 350 Hip hipRuntimeGetVersion "hipRuntimeGetVersion" 326 given None none "hipError_t(int* runtimeVersion)" "";
            353 351 Hip hipSetDevice "hipSetDevice" 327 given None deviceId "hipError_t(int deviceId)" "device";
            354 352 Hip hipSetDeviceFlags "hipSetDeviceFlags" 328 given None none "hipError_t(unsigned int flags)" "";
            355 353 Hip hipSetupArgument "hipSetupArgument" 329 given None size "hipError_t(const void* arg, size_t size, size_t offset)" "";
            356 354 Hip hipSignalExternalSemaphoresAsync "hipSignalExternalSemaphoresAsync" 330 given None stream "hipError_t(const hipExternalSemaphore_t* extSemArray, const hipExternalSemaphoreSignalParams* paramsArray, unsigned int numExtSems, hipStream_t stream)" "";
            357 355 Hip hipStreamAddCallback "hipStreamAddCallback" 331 given None stream "hipError_t(hipStream_t stream, hipStreamCallback_t callback, void* userData, unsigned int flags)" "stream callback data flags";
            358 356 Hip hipStreamAddCallback_spt "hipStreamAddCallback_spt" 416 given None stream "hipError_t(hipStream_t stream, hipStreamCallback_t callback, void* userData, unsigned int flags)" "";
            359 357 Hip hipStreamAttachMemAsync "hipStreamAttachMemAsync" 332 given None stream "hipError_t(hipStream_t stream, void* dev_ptr, size_t length, unsigned int flags)" "";
            360 358 Hip hipStreamBeginCapture "hipStreamBeginCapture" 333 given CaptureBegin stream "hipError_t(hipStream_t stream, hipStreamCaptureMode mode)" "stream mode";
            361 359 Hip hipStreamBeginCapture_spt "hipStreamBeginCapture_spt" 421 given CaptureBegin stream "hipError_t(hipStream_t stream, hipStreamCaptureMode mode)" "";
            362 360 Hip hipStreamCreate "hipStreamCreate" 334 given StreamCreate stream "hipError_t(out hipStream_t* stream)" "stream";
            363 361 Hip hipStreamCreateWithFlags "hipStreamCreateWithFlags" 335 given StreamCreate stream "hipError_t(out hipStream_t* stream, unsigned int flags)" "stream flags";
            364 362 Hip hipStreamCreateWithPriority "hipStreamCreateWithPriority" 336 given StreamCreate stream "hipError_t(out hipStream_t* stream, unsigned int flags, int priority)" "stream flags priority";
            365 363 Hip hipStreamDestroy "hipStreamDestroy" 337 given StreamDestroy stream "hipError_t(hipStream_t stream)" "stream";
            366 364 Hip hipStreamEndCapture "hipStreamEndCapture" 338 given CaptureEnd stream "hipError_t(hipStream_t stream, hipGraph_t* pGraph)" "";
            367 365 Hip hipStreamEndCapture_spt "hipStreamEndCapture_spt" 422 given CaptureEnd stream "hipError_t(hipStream_t stream, hipGraph_t* pGraph)" "";
            368 366 Hip hipStreamGetCaptureInfo "hipStreamGetCaptureInfo" 339 given None stream "hipError_t(hipStream_t stream, hipStreamCaptureStatus* pCaptureStatus, unsigned long long* pId)" "";
            369 367 Hip hipStreamGetCaptureInfo_spt "hipStreamGetCaptureInfo_spt" 424 given None stream "hipError_t(hipStream_t stream, hipStreamCaptureStatus* pCaptureStatus, unsigned long long* pId)" "";
            370 368 Hip hipStreamGetCaptureInfo_v2 "hipStreamGetCaptureInfo_v2" 340 given None stream "hipError_t(hipStream_t stream, hipStreamCaptureStatus* captureStatus_out, unsigned long long* id_out, hipGraph_t* graph_out, const hipGraphNode_t** dependencies_out, size_t* numDependencies_out)" "";
            371 369 Hip hipStreamGetCaptureInfo_v2_spt "hipStreamGetCaptureInfo_v2_spt" 425 given None stream "hipError_t(hipStream_t stream, hipStreamCaptureStatus* captureStatus_out, unsigned long long* id_out, hipGraph_t* graph_out, const hipGraphNode_t** dependencies_out, size_t* numDependencies_out)" "";
            372 370 Hip hipStreamGetDevice "hipStreamGetDevice" 341 given None stream "hipError_t(hipStream_t stream, hipDevice_t* device)" "";
            373 371 Hip hipStreamGetFlags "hipStreamGetFlags" 342 given None stream "hipError_t(hipStream_t stream, unsigned int* flags)" "";
            374 372 Hip hipStreamGetFlags_spt "hipStreamGetFlags_spt" 415 given None stream "hipError_t(hipStream_t stream, unsigned int* flags)" "";
            375 373 Hip hipStreamGetPriority "hipStreamGetPriority" 343 given None stream "hipError_t(hipStream_t stream, int* priority)" "";
            376 374 Hip hipStreamGetPriority_spt "hipStreamGetPriority_spt" 413 given None stream "hipError_t(hipStream_t stream, int* priority)" "";
            377 375 Hip hipStreamIsCapturing "hipStreamIsCapturing" 344 given None stream "hipError_t(hipStream_t stream, hipStreamCaptureStatus* pCaptureStatus)" "";
            378 376 Hip hipStreamIsCapturing_spt "hipStreamIsCapturing_spt" 423 given None stream "hipError_t(hipStream_t stream, hipStreamCaptureStatus* pCaptureStatus)" "";
            379 377 Hip hipStreamQuery "hipStreamQuery" 345 given Wait stream "hipError_t(hipStream_t stream)" "stream";
            380 378 Hip hipStreamQuery_spt "hipStreamQuery_spt" 411 given Wait stream "hipError_t(hipStream_t stream)" "";
            381 379 Hip hipStreamSynchronize "hipStreamSynchronize" 346 given Wait stream "hipError_t(hipStream_t stream)" "stream";
            382 380 Hip hipStreamSynchronize_spt "hipStreamSynchronize_spt" 412 given Wait stream "hipError_t(hipStream_t stream)" "";
            383 381 Hip hipStreamUpdateCaptureDependencies "hipStreamUpdateCaptureDependencies" 347 given None stream "hipError_t(hipStream_t stream, hipGraphNode_t* dependencies, size_t numDependencies, unsigned int flags)" "";
            384 382 Hip hipStreamWaitEvent "hipStreamWaitEvent" 348 given None event "hipError_t(hipStream_t stream, hipEvent_t event, unsigned int flags)" "stream event flags";
            385 383 Hip hipStreamWaitEvent_spt "hipStreamWaitEvent_spt" 414 given None event "hipError_t(hipStream_t stream, hipEvent_t event, unsigned int flags)" "";
            386 384 Hip hipStreamWaitValue32 "hipStreamWaitValue32" 349 given None stream "hipError_t(hipStream_t stream, void* ptr, uint32_t value, unsigned int flags, uint32_t mask)" "";
            387 385 Hip hipStreamWaitValue64 "hipStreamWaitValue64" 350 given None stream "hipError_t(hipStream_t stream, void* ptr, uint64_t value, unsigned int flags, uint64_t mask)" "";
            388 386 Hip hipStreamWriteValue32 "hipStreamWriteValue32" 351 given None stream "hipError_t(hipStream_t stream, void* ptr, uint32_t value, unsigned int flags)" "";
            389 387 Hip hipStreamWriteValue64 "hipStreamWriteValue64" 352 given None stream "hipError_t(hipStream_t stream, void* ptr, uint64_t value, unsigned int flags)" "";
            390 388 Hip hipTexObjectCreate "hipTexObjectCreate" 353 given None none "hipError_t(hipTextureObject_t* pTexObject, const HIP_RESOURCE_DESC* pResDesc, const HIP_TEXTURE_DESC* pTexDesc, const HIP_RESOURCE_VIEW_DESC* pResViewDesc)" "";
            391 389 Hip hipTexObjectDestroy "hipTexObjectDestroy" 354 given None none "hipError_t(hipTextureObject_t texObject)" "";
            392 390 Hip hipTexObjectGetResourceDesc "hipTexObjectGetResourceDesc" 355 given None none "hipError_t(HIP_RESOURCE_DESC* pResDesc, hipTextureObject_t texObject)" "";
            393 391 Hip hipTexObjectGetResourceViewDesc "hipTexObjectGetResourceViewDesc" 356 given None none "hipError_t(HIP_RESOURCE_VIEW_DESC* pResViewDesc, hipTextureObject_t texObject)" "";
            394 392 Hip hipTexObjectGetTextureDesc "hipTexObjectGetTextureDesc" 357 given None none "hipError_t(HIP_TEXTURE_DESC* pTexDesc, hipTextureObject_t texObject)" "";
            395 393 Hip hipTexRefGetAddress "hipTexRefGetAddress" 358 given None dev_ptr "hipError_t(hipDeviceptr_t* dev_ptr, const textureReference* texRef)" "";
            396 394 Hip hipTexRefGetAddressMode "hipTexRefGetAddressMode" 359 given None none "hipError_t(hipTextureAddressMode* pam, const textureReference* texRef, int dim)" "";
            397 395 Hip hipTexRefGetFilterMode "hipTexRefGetFilterMode" 360 given None none "hipError_t(hipTextureFilterMode* pfm, const textureReference* texRef)" "";
            398 396 Hip hipTexRefGetFlags "hipTexRefGetFlags" 361 given None none "hipError_t(unsigned int* pFlags, const textureReference* texRef)" "";
            399 397 Hip hipTexRefGetFormat "hipTexRefGetFormat" 362 given None none "hipError_t(hipArray_Format* pFormat, int* pNumChannels, const textureReference* texRef)" "";
            400 398 Hip hipTexRefGetMaxAnisotropy "hipTexRefGetMaxAnisotropy" 363 given None none "hipError_t(int* pmaxAnsio, const textureReference* texRef)" "";
            401 399 Hip hipTexRefGetMipmapFilterMode "hipTexRefGetMipmapFilterMode" 365 given None none "hipError_t(hipTextureFilterMode* pfm, const textureReference* texRef)" "";
            402 400 Hip hipTexRefGetMipmapLevelBias "hipTexRefGetMipmapLevelBias" 366 given None none "hipError_t(float* pbias, const textureReference* texRef)" "";
            403 401 Hip hipTexRefGetMipmapLevelClamp "hipTexRefGetMipmapLevelClamp" 367 given None none "hipError_t(float* pminMipmapLevelClamp, float* pmaxMipmapLevelClamp, const textureReference* texRef)" "";
            404 402 Hip hipTexRefSetAddress "hipTexRefSetAddress" 368 given None bytes "hipError_t(size_t* ByteOffset, textureReference* texRef, hipDeviceptr_t dptr, size_t bytes)" "";
            405 403 Hip hipTexRefSetAddress2D "hipTexRefSetAddress2D" 369 given None none "hipError_t(textureReference* texRef, const HIP_ARRAY_DESCRIPTOR* desc, hipDeviceptr_t dptr, size_t Pitch)" "";
            406 404 Hip hipTexRefSetAddressMode "hipTexRefSetAddressMode" 370 given None none "hipError_t(textureReference* texRef, int dim, hipTextureAddressMode am)" "";
            407 405 Hip hipTexRefSetArray "hipTexRefSetArray" 371 given None none "hipError_t(textureReference* tex, hipArray_const_t array, unsigned int flags)" "";
            408 406 Hip hipTexRefSetBorderColor "hipTexRefSetBorderColor" 372 given None none "hipError_t(textureReference* texRef, float* pBorderColor)" "";
            409 407 Hip hipTexRefSetFilterMode "hipTexRefSetFilterMode" 373 given None none "hipError_t(textureReference* texRef, hipTextureFilterMode fm)" "";
            410 408 Hip hipTexRefSetFlags "hipTexRefSetFlags" 374 given None none "hipError_t(textureReference* texRef, unsigned int Flags)" "";
            411 409 Hip hipTexRefSetFormat "hipTexRefSetFormat" 375 given None none "hipError_t(textureReference* texRef, hipArray_Format fmt, int NumPackedComponents)" "";
            412 410 Hip hipTexRefSetMaxAnisotropy "hipTexRefSetMaxAnisotropy" 376 given None none "hipError_t(textureReference* texRef, unsigned int maxAniso)" "";
            413 411 Hip hipTexRefSetMipmapFilterMode "hipTexRefSetMipmapFilterMode" 377 given None none "hipError_t(textureReference* texRef, hipTextureFilterMode fm)" "";
            414 412 Hip hipTexRefSetMipmapLevelBias "hipTexRefSetMipmapLevelBias" 378 given None none "hipError_t(textureReference* texRef, float bias)" "";
            415 413 Hip hipTexRefSetMipmapLevelClamp "hipTexRefSetMipmapLevelClamp" 379 given None none "hipError_t(textureReference* texRef, float minMipMapLevelClamp, float maxMipMapLevelClamp)" "";
            416 414 Hip hipTexRefSetMipmappedArray "hipTexRefSetMipmappedArray" 380 given None none "hipError_t(textureReference* texRef, hipMipmappedArray* mipmappedArray, unsigned int Flags)" "";
            417 415 Hip hipThreadExchangeStreamCaptureMode "hipThreadExchangeStreamCaptureMode" 381 given None none "hipError_t(hipStreamCaptureMode* mode)" "";
            418 416 Hip hipUnbindTexture "hipUnbindTexture" 382 given None none "hipError_t(const textureReference* tex)" "";
            419 417 Hip hipUserObjectCreate "hipUserObjectCreate" 383 given None ptr "hipError_t(hipUserObject_t* object_out, void* ptr, hipHostFn_t destroy, unsigned int initialRefcount, unsigned int flags)" "";
            420 418 Hip hipUserObjectRelease "hipUserObjectRelease" 384 given None none "hipError_t(hipUserObject_t object, unsigned int count)" "";
            421 419 Hip hipUserObjectRetain "hipUserObjectRetain" 385 given None none "hipError_t(hipUserObject_t object, unsigned int count)" "";
            422 420 Hip hipWaitExternalSemaphoresAsync "hipWaitExternalSemaphoresAsync" 386 given None stream "hipError_t(const hipExternalSemaphore_t* extSemArray, const hipExternalSemaphoreWaitParams* paramsArray, unsigned int numExtSems, hipStream_t stream)" "";
            423 421 Hip hipChooseDeviceR0000 "hipChooseDeviceR0000" 12 given None none "hipError_t(int* device, const hipDeviceProp_tR0000* properties)" "";
            424 422 Hip hipChooseDeviceR0600 "hipChooseDeviceR0600" _ given None none "hipError_t(int* device, const hipDeviceProp_tR0600* prop)" "";
            425 423 Hip hipDeviceGetTexture1DLinearMaxWidth "hipDeviceGetTexture1DLinearMaxWidth" 462 given None fmtDesc "hipError_t(size_t* maxWidthInElements, const hipChannelFormatDesc* fmtDesc, int device)" "";
            426 424 Hip hipDrvGraphAddMemFreeNode "hipDrvGraphAddMemFreeNode" 452 given None none "hipError_t(hipGraphNode_t* phGraphNode, hipGraph_t hGraph, const hipGraphNode_t* dependencies, size_t numDependencies, hipDeviceptr_t dptr)" "";
            427 425 Hip hipDrvGraphAddMemcpyNode "hipDrvGraphAddMemcpyNode" 71 given Nodes none "hipError_t(hipGraphNode_t* phGraphNode, hipGraph_t hGraph, const hipGraphNode_t* dependencies, size_t numDependencies, const HIP_MEMCPY3D* copyParams, hipCtx_t ctx)" "";
            428 426 Hip hipDrvGraphAddMemsetNode "hipDrvGraphAddMemsetNode" 428 given Nodes none "hipError_t(hipGraphNode_t* phGraphNode, hipGraph_t hGraph, const hipGraphNode_t* dependencies, size_t numDependencies, const hipMemsetParams* memsetParams, hipCtx_t ctx)" "";
            429 427 Hip hipDrvGraphExecMemcpyNodeSetParams "hipDrvGraphExecMemcpyNodeSetParams" 453 given None none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t hNode, const HIP_MEMCPY3D* copyParams, hipCtx_t ctx)" "";
            430 428 Hip hipDrvGraphExecMemsetNodeSetParams "hipDrvGraphExecMemsetNodeSetParams" 454 given None none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t hNode, const hipMemsetParams* memsetParams, hipCtx_t ctx)" "";
            431 429 Hip hipDrvGraphMemcpyNodeGetParams "hipDrvGraphMemcpyNodeGetParams" 459 given None none "hipError_t(hipGraphNode_t hNode, HIP_MEMCPY3D* nodeParams)" "";
            432 430 Hip hipDrvGraphMemcpyNodeSetParams "hipDrvGraphMemcpyNodeSetParams" 460 given None none "hipError_t(hipGraphNode_t hNode, const HIP_MEMCPY3D* nodeParams)" "";
            433 431 Hip hipDrvLaunchKernelEx "hipDrvLaunchKernelEx" 475 config Configured f "hipError_t(const HIP_LAUNCH_CONFIG* config, hipFunction_t f, void** params, void** extra)" "";
            434 432 Hip hipEventRecordWithFlags "hipEventRecordWithFlags" 473 given None event "hipError_t(hipEvent_t event, hipStream_t stream, unsigned int flags)" "";
            435 433 Hip hipExtGetLastError "hipExtGetLastError" 439 given None none "hipError_t()" "";
            436 86 Hip hipExtModuleLaunchKernel "hipExtModuleLaunchKernel" 388 given Launch func "hipError_t(hipFunction_t func, uint32_t globalWorkSizeX, uint32_t globalWorkSizeY, uint32_t globalWorkSizeZ, uint32_t localWorkSizeX, uint32_t localWorkSizeY, uint32_t localWorkSizeZ, size_t sharedMemBytes, hipStream_t stream, void** kernelParams, void** extra, hipEvent_t startEvent, hipEvent_t stopEvent, uint32_t flags)" "kernel grid_x grid_y grid_z block_x block_y block_z shared stream params extra start stop flags";
            437 434 Hip hipGetDevicePropertiesR0000 "hipGetDevicePropertiesR0000" 106 given None none "hipError_t(hipDeviceProp_tR0000* prop, int device)" "";
            438 435 Hip hipGetDevicePropertiesR0600 "hipGetDevicePropertiesR0600" 105 given None none "hipError_t(hipDeviceProp_tR0600* prop, int device)" "";
            439 436 Hip hipGetDriverEntryPoint "hipGetDriverEntryPoint" 491 given Lookup none "hipError_t(const char* symbol, void** funcPtr, unsigned long long flags, hipDriverEntryPointQueryResult* status)" "";
            440 437 Hip hipGetDriverEntryPoint_spt "hipGetDriverEntryPoint_spt" 492 given Lookup none "hipError_t(const char* symbol, void** funcPtr, unsigned long long flags, hipDriverEntryPointQueryResult* status)" "";
            441 438 Hip hipGetFuncBySymbol "hipGetFuncBySymbol" 444 given None none "hipError_t(hipFunction_t* functionPtr, const void* symbolPtr)" "";
            442 439 Hip hipGetProcAddress "hipGetProcAddress" 442 given Lookup none "hipError_t(const char* symbol, void** pfn, int hipVersion, uint64_t flags, hipDriverProcAddressQueryResult* symbolStatus)" "";
            443 440 Hip hipGraphAddBatchMemOpNode "hipGraphAddBatchMemOpNode" 464 given None none "hipError_t(hipGraphNode_t* phGraphNode, hipGraph_t hGraph, const hipGraphNode_t* dependencies, size_t numDependencies, const hipBatchMemOpNodeParams* nodeParams)" "";
            444 441 Hip hipGraphAddExternalSemaphoresSignalNode "hipGraphAddExternalSemaphoresSignalNode" 430 given None none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, const hipExternalSemaphoreSignalNodeParams* nodeParams)" "";
            445 442 Hip hipGraphAddExternalSemaphoresWaitNode "hipGraphAddExternalSemaphoresWaitNode" 429 given None none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, const hipExternalSemaphoreWaitNodeParams* nodeParams)" "";
            446 443 Hip hipGraphAddNode "hipGraphAddNode" 437 given Nodes none "hipError_t(hipGraphNode_t* pGraphNode, hipGraph_t graph, const hipGraphNode_t* pDependencies, size_t numDependencies, hipGraphNodeParams* nodeParams)" "";
            447 444 Hip hipGraphBatchMemOpNodeGetParams "hipGraphBatchMemOpNodeGetParams" 465 given None none "hipError_t(hipGraphNode_t hNode, hipBatchMemOpNodeParams* nodeParams_out)" "";
            448 445 Hip hipGraphBatchMemOpNodeSetParams "hipGraphBatchMemOpNodeSetParams" 466 given None none "hipError_t(hipGraphNode_t hNode, hipBatchMemOpNodeParams* nodeParams)" "";
            449 446 Hip hipGraphExecBatchMemOpNodeSetParams "hipGraphExecBatchMemOpNodeSetParams" 467 given None none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t hNode, const hipBatchMemOpNodeParams* nodeParams)" "";
            450 447 Hip hipGraphExecExternalSemaphoresSignalNodeSetParams "hipGraphExecExternalSemaphoresSignalNodeSetParams" 435 given None none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t hNode, const hipExternalSemaphoreSignalNodeParams* nodeParams)" "";
            451 448 Hip hipGraphExecExternalSemaphoresWaitNodeSetParams "hipGraphExecExternalSemaphoresWaitNodeSetParams" 436 given None none "hipError_t(hipGraphExec_t hGraphExec, hipGraphNode_t hNode, const hipExternalSemaphoreWaitNodeParams* nodeParams)" "";
            452 449 Hip hipGraphExecGetFlags "hipGraphExecGetFlags" 455 given None graphExec "hipError_t(hipGraphExec_t graphExec, unsigned long long* flags)" "";
            453 450 Hip hipGraphExecNodeSetParams "hipGraphExecNodeSetParams" 457 given Nodes graphExec "hipError_t(hipGraphExec_t graphExec, hipGraphNode_t node, hipGraphNodeParams* nodeParams)" "";
            454 451 Hip hipGraphExternalSemaphoresSignalNodeGetParams "hipGraphExternalSemaphoresSignalNodeGetParams" 433 given None none "hipError_t(hipGraphNode_t hNode, hipExternalSemaphoreSignalNodeParams* params_out)" "";
            455 452 Hip hipGraphExternalSemaphoresSignalNodeSetParams "hipGraphExternalSemaphoresSignalNodeSetParams" 431 given None none "hipError_t(hipGraphNode_t hNode, const hipExternalSemaphoreSignalNodeParams* nodeParams)" "";
            456 453 Hip hipGraphExternalSemaphoresWaitNodeGetParams "hipGraphExternalSemaphoresWaitNodeGetParams" 434 given None none "hipError_t(hipGraphNode_t hNode, hipExternalSemaphoreWaitNodeParams* params_out)" "";
            457 454 Hip hipGraphExternalSemaphoresWaitNodeSetParams "hipGraphExternalSemaphoresWaitNodeSetParams" 432 given None none "hipError_t(hipGraphNode_t hNode, const hipExternalSemaphoreWaitNodeParams* nodeParams)" "";
            458 455 Hip hipGraphInstantiateWithParams "hipGraphInstantiateWithParams" 438 given Nodes none "hipError_t(hipGraphExec_t* pGraphExec, hipGraph_t graph, hipGraphInstantiateParams* instantiateParams)" "";
            459 456 Hip hipGraphNodeSetParams "hipGraphNodeSetParams" 456 given Nodes none "hipError_t(hipGraphNode_t node, hipGraphNodeParams* nodeParams)" "";
            460 193 Hip hipHccModuleLaunchKernel "hipHccModuleLaunchKernel" 389 given Launch f "hipError_t(hipFunction_t f, uint32_t globalWorkSizeX, uint32_t globalWorkSizeY, uint32_t globalWorkSizeZ, uint32_t localWorkSizeX, uint32_t localWorkSizeY, uint32_t localWorkSizeZ, size_t sharedMemBytes, hipStream_t hStream, void** kernelParams, void** extra, hipEvent_t startEvent, hipEvent_t stopEvent)" "";
            461 457 Hip hipKernelGetLibrary "hipKernelGetLibrary" 503 given None none "hipError_t(hipLibrary_t* library, hipKernel_t kernel)" "";
            462 458 Hip hipKernelGetName "hipKernelGetName" 504 given None none "hipError_t(const char** name, hipKernel_t kernel)" "";
            463 459 Hip hipLaunchKernelExC "hipLaunchKernelExC" 474 config Configured fPtr "hipError_t(const hipLaunchConfig_t* config, const void* fPtr, void** args)" "";
            464 460 Hip hipLibraryEnumerateKernels "hipLibraryEnumerateKernels" 502 given None none "hipError_t(hipKernel_t* kernels, unsigned int numKernels, hipLibrary_t library)" "";
            465 461 Hip hipLibraryGetKernel "hipLibraryGetKernel" 499 given None none "hipError_t(hipKernel_t* pKernel, hipLibrary_t library, const char* name)" "";
            466 462 Hip hipLibraryGetKernelCount "hipLibraryGetKernelCount" 500 given None none "hipError_t(unsigned int* count, hipLibrary_t library)" "";
            467 463 Hip hipLibraryLoadData "hipLibraryLoadData" 496 given None none "hipError_t(hipLibrary_t* library, const void* code, hipJitOption* jitOptions, void** jitOptionsValues, unsigned int numJitOptions, hipLibraryOption* libraryOptions, void** libraryOptionValues, unsigned int numLibraryOptions)" "";
            468 464 Hip hipLibraryLoadFromFile "hipLibraryLoadFromFile" 497 given None none "hipError_t(hipLibrary_t* library, const char* fileName, hipJitOption* jitOptions, void** jitOptionsValues, unsigned int numJitOptions, hipLibraryOption* libraryOptions, void** libraryOptionValues, unsigned int numLibraryOptions)" "";
            469 465 Hip hipLibraryUnload "hipLibraryUnload" 498 given None none "hipError_t(hipLibrary_t library)" "";
            470 466 Hip hipLinkAddData "hipLinkAddData" 468 given None size "hipError_t(hipLinkState_t state, hipJitInputType type, void* data, size_t size, const char* name, unsigned int numOptions, hipJitOption* options, void** optionValues)" "";
            471 467 Hip hipLinkAddFile "hipLinkAddFile" 469 given None none "hipError_t(hipLinkState_t state, hipJitInputType type, const char* path, unsigned int numOptions, hipJitOption* options, void** optionValues)" "";
            472 468 Hip hipLinkComplete "hipLinkComplete" 470 given None none "hipError_t(hipLinkState_t state, void** hipBinOut, size_t* sizeOut)" "";
            473 469 Hip hipLinkCreate "hipLinkCreate" 471 given None none "hipError_t(unsigned int numOptions, hipJitOption* options, void** optionValues, hipLinkState_t* stateOut)" "";
            474 470 Hip hipLinkDestroy "hipLinkDestroy" 472 given None none "hipError_t(hipLinkState_t state)" "";
            475 471 Hip hipMemAdvise_v2 "hipMemAdvise_v2" 494 given None count "hipError_t(const void* dev_ptr, size_t count, hipMemoryAdvise advice, hipMemLocation device)" "";
            476 472 Hip hipMemGetHandleForAddressRange "hipMemGetHandleForAddressRange" 476 given None size "hipError_t(void* handle, hipDeviceptr_t dptr, size_t size, hipMemRangeHandleType handleType, unsigned long long flags)" "";
            477 473 Hip hipMemPrefetchAsync_v2 "hipMemPrefetchAsync_v2" 493 given None count "hipError_t(const void* dev_ptr, size_t count, hipMemLocation location, unsigned int flags, hipStream_t stream)" "";
            478 474 Hip hipMemcpy2DArrayToArray "hipMemcpy2DArrayToArray" 451 null Wait dst "hipError_t(hipArray_t dst, size_t wOffsetDst, size_t hOffsetDst, hipArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height, hipMemcpyKind kind)" "";
            479 475 Hip hipMemcpy3DBatchAsync "hipMemcpy3DBatchAsync" 488 given None stream "hipError_t(size_t numOps, hipMemcpy3DBatchOp* opList, size_t* failIdx, unsigned long long flags, hipStream_t stream)" "";
            480 476 Hip hipMemcpy3DPeer "hipMemcpy3DPeer" 489 null Wait none "hipError_t(hipMemcpy3DPeerParms* p)" "";
            481 477 Hip hipMemcpy3DPeerAsync "hipMemcpy3DPeerAsync" 490 given None stream "hipError_t(hipMemcpy3DPeerParms* p, hipStream_t stream)" "";
            482 478 Hip hipMemcpyAtoA "hipMemcpyAtoA" 448 null Wait ByteCount "hipError_t(hipArray_t dstArray, size_t dstOffset, hipArray_t srcArray, size_t srcOffset, size_t ByteCount)" "";
            483 479 Hip hipMemcpyAtoD "hipMemcpyAtoD" 446 null Wait ByteCount "hipError_t(hipDeviceptr_t dstDevice, hipArray_t srcArray, size_t srcOffset, size_t ByteCount)" "";
            484 480 Hip hipMemcpyAtoHAsync "hipMemcpyAtoHAsync" 449 given None ByteCount "hipError_t(void* dstHost, hipArray_t srcArray, size_t srcOffset, size_t ByteCount, hipStream_t stream)" "";
            485 481 Hip hipMemcpyBatchAsync "hipMemcpyBatchAsync" 487 given None count "hipError_t(void** dsts, void** srcs, size_t* sizes, size_t count, hipMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs, size_t* failIdx, hipStream_t stream)" "";
            486 482 Hip hipMemcpyDtoA "hipMemcpyDtoA" 447 null Wait ByteCount "hipError_t(hipArray_t dstArray, size_t dstOffset, hipDeviceptr_t srcDevice, size_t ByteCount)" "";
            487 483 Hip hipMemcpyHtoAAsync "hipMemcpyHtoAAsync" 450 given None ByteCount "hipError_t(hipArray_t dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount, hipStream_t stream)" "";
            488 484 Hip hipMemsetD2D16 "hipMemsetD2D16" 480 null Wait dst "hipError_t(hipDeviceptr_t dst, size_t dstPitch, unsigned short value, size_t width, size_t height)" "";
            489 485 Hip hipMemsetD2D16Async "hipMemsetD2D16Async" 481 given None dst "hipError_t(hipDeviceptr_t dst, size_t dstPitch, unsigned short value, size_t width, size_t height, hipStream_t stream)" "";
            490 486 Hip hipMemsetD2D32 "hipMemsetD2D32" 482 null Wait dst "hipError_t(hipDeviceptr_t dst, size_t dstPitch, unsigned int value, size_t width, size_t height)" "";
            491 487 Hip hipMemsetD2D32Async "hipMemsetD2D32Async" 483 given None dst "hipError_t(hipDeviceptr_t dst, size_t dstPitch, unsigned int value, size_t width, size_t height, hipStream_t stream)" "";
            492 488 Hip hipMemsetD2D8 "hipMemsetD2D8" 478 null Wait dst "hipError_t(hipDeviceptr_t dst, size_t dstPitch, unsigned char value, size_t width, size_t height)" "";
            493 489 Hip hipMemsetD2D8Async "hipMemsetD2D8Async" 479 given None dst "hipError_t(hipDeviceptr_t dst, size_t dstPitch, unsigned char value, size_t width, size_t height, hipStream_t stream)" "";
            494 490 Hip hipModuleGetFunctionCount "hipModuleGetFunctionCount" 477 given None none "hipError_t(unsigned int* count, hipModule_t module)" "";
            495 491 Hip hipModuleLoadFatBinary "hipModuleLoadFatBinary" 486 given None none "hipError_t(hipModule_t* module, const void* fatbin)" "";
            496 492 Hip hipOccupancyAvailableDynamicSMemPerBlock "hipOccupancyAvailableDynamicSMemPerBlock" 505 given None f "hipError_t(size_t* dynamicSmemSize, const void* f, int numBlocks, int blockSize)" "";
            497 493 Hip hipSetValidDevices "hipSetValidDevices" 445 given None none "hipError_t(int* device_arr, int len)" "";
            498 494 Hip hipStreamBatchMemOp "hipStreamBatchMemOp" 463 given None stream "hipError_t(hipStream_t stream, unsigned int count, hipStreamBatchMemOpParams* paramArray, unsigned int flags)" "";
            499 495 Hip hipStreamBeginCaptureToGraph "hipStreamBeginCaptureToGraph" 443 given CaptureBegin stream "hipError_t(hipStream_t stream, hipGraph_t graph, const hipGraphNode_t* dependencies, const hipGraphEdgeData* dependencyData, size_t numDependencies, hipStreamCaptureMode mode)" "";
            500 496 Hip hipStreamCopyAttributes "hipStreamCopyAttributes" 501 given None dst "hipError_t(hipStream_t dst, hipStream_t src)" "";
            501 497 Hip hipStreamGetAttribute "hipStreamGetAttribute" 484 given None stream "hipError_t(hipStream_t stream, hipStreamAttrID attr, hipStreamAttrValue* value_out)" "";
            502 498 Hip hipStreamGetId "hipStreamGetId" 495 given None stream "hipError_t(hipStream_t stream, unsigned long long* streamId)" "";
            503 499 Hip hipStreamSetAttribute "hipStreamSetAttribute" 485 given None stream "hipError_t(hipStream_t stream, hipStreamAttrID attr, const hipStreamAttrValue* value)" "";
            504 500 Hip hipTexRefGetArray "hipTexRefGetArray" 441 given None none "hipError_t(hipArray_t* pArray, const textureReference* texRef)" "";
            505 501 Hip hipTexRefGetBorderColor "hipTexRefGetBorderColor" 440 given None none "hipError_t(float* pBorderColor, const textureReference* texRef)" "";
            506 502 Hip hipTexRefGetMipMappedArray "hipTexRefGetMipMappedArray" 364 given None none "hipError_t(hipMipmappedArray_t* pArray, const textureReference* texRef)" "";
            507 0 Compiler __hipPopCallConfiguration "__hipPopCallConfiguration" 0 given None none "hipError_t(dim3* gridDim, dim3* blockDim, size_t* sharedMem, hipStream_t* stream)" "";
            508 1 Compiler __hipPushCallConfiguration "__hipPushCallConfiguration" 1 none None none "hipError_t(dim3 gridDim, dim3 blockDim, size_t sharedMem, hipStream_t stream)" "grid block shared stream";
            509 2 Compiler __hipRegisterFatBinary "__hipRegisterFatBinary" 2 given None none "void**(const void* data)" "";
            510 3 Compiler __hipRegisterFunction "__hipRegisterFunction" 3 given None none "void(void** modules, const void* hostFunction, char* deviceFunction, const char* deviceName, unsigned int threadLimit, uint3* tid, uint3* bid, dim3* blockDim, dim3* gridDim, int* wSize)" "";
            511 4 Compiler __hipRegisterManagedVar "__hipRegisterManagedVar" 4 given None none "void(void* hipModule, void** pointer, void* init_value, const char* name, size_t size, unsigned int align)" "";
            512 5 Compiler __hipRegisterSurface "__hipRegisterSurface" 5 given None none "void(void** modules, void* var, char* hostVar, char* deviceVar, int type, int ext)" "";
            513 6 Compiler __hipRegisterTexture "__hipRegisterTexture" 6 given None none "void(void** modules, void* var, char* hostVar, char* deviceVar, int type, int norm, int ext)" "";
            514 7 Compiler __hipRegisterVar "__hipRegisterVar" 7 given None none "void(void** modules, void* var, char* hostVar, char* deviceVar, int ext, size_t size, int constant, int global)" "";
            515 8 Compiler __hipUnregisterFatBinary "__hipUnregisterFatBinary" 8 given None none "void(void** modules)" "";
            516 0 Rccl ncclAllGather "ncclAllGather" 0 given None sendcount "ncclResult_t(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm, hipStream_t stream)" "send recv count type comm stream";
            517 1 Rccl ncclAllReduce "ncclAllReduce" 1 given None count "ncclResult_t(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm* comm, hipStream_t stream)" "send recv count type op comm stream";
            518 2 Rccl ncclAllToAll "ncclAllToAll" 2 given None count "ncclResult_t(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, hipStream_t stream)" "send recv count type comm stream";
            519 3 Rccl ncclAllToAllv "ncclAllToAllv" 3 given None none "ncclResult_t(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts, const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm, hipStream_t stream)" "";
            520 4 Rccl ncclBroadcast "ncclBroadcast" 4 given None count "ncclResult_t(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, hipStream_t stream)" "send recv count type root comm stream";
            521 5 Rccl ncclGather "ncclGather" 5 given None sendcount "ncclResult_t(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, int root, ncclComm_t comm, hipStream_t stream)" "send recv count type root comm stream";
            522 6 Rccl ncclReduce "ncclReduce" 6 given None count "ncclResult_t(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, hipStream_t stream)" "send recv count type op root comm stream";
            523 7 Rccl ncclReduceScatter "ncclReduceScatter" 7 given None recvcount "ncclResult_t(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm* comm, hipStream_t stream)" "send recv count type op comm stream";
            524 8 Rccl ncclScatter "ncclScatter" 8 given None recvcount "ncclResult_t(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, int root, ncclComm_t comm, hipStream_t stream)" "send recv count type root comm stream";
            525 9 Rccl ncclSend "ncclSend" 9 given None count "ncclResult_t(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, hipStream_t stream)" "send count type peer comm stream";
            526 10 Rccl ncclRecv "ncclRecv" 10 given None count "ncclResult_t(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, hipStream_t stream)" "recv count type peer comm stream";
            527 11 Rccl ncclRedOpCreatePreMulSum "ncclRedOpCreatePreMulSum" 11 given None none "ncclResult_t(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm)" "";
            528 12 Rccl ncclRedOpDestroy "ncclRedOpDestroy" 12 given None none "ncclResult_t(ncclRedOp_t op, ncclComm_t comm)" "";
            529 13 Rccl ncclGroupStart "ncclGroupStart" 13 given None none "ncclResult_t()" "";
            530 14 Rccl ncclGroupEnd "ncclGroupEnd" 14 given GroupEnd none "ncclResult_t()" "";
            531 15 Rccl ncclGetVersion "ncclGetVersion" 15 given None none "ncclResult_t(int* version)" "";
            532 16 Rccl ncclGetUniqueId "ncclGetUniqueId" 16 given None none "ncclResult_t(ncclUniqueId* out)" "";
            533 17 Rccl ncclCommInitRank "ncclCommInitRank" 17 given Communicator nranks "ncclResult_t(out ncclComm_t* newcomm, int nranks, ncclUniqueId commId, int myrank)" "comm ranks _ rank";
            534 18 Rccl ncclCommInitAll "ncclCommInitAll" 18 given Communicator ndev "ncclResult_t(ncclComm_t* comms, int ndev, const int* devlist)" "";
            535 19 Rccl ncclCommInitRankConfig "ncclCommInitRankConfig" 19 given Communicator nranks "ncclResult_t(ncclComm_t* comm, int nranks, ncclUniqueId commId, int myrank, ncclConfig_t* config)" "";
            536 20 Rccl ncclCommFinalize "ncclCommFinalize" 20 given None comm "ncclResult_t(ncclComm_t comm)" "";
            537 21 Rccl ncclCommDestroy "ncclCommDestroy" 21 given None comm "ncclResult_t(ncclComm_t comm)" "";
            538 22 Rccl ncclCommAbort "ncclCommAbort" 22 given None comm "ncclResult_t(ncclComm_t comm)" "";
            539 23 Rccl ncclCommSplit "ncclCommSplit" 23 given Communicator comm "ncclResult_t(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config)" "";
            540 24 Rccl ncclGetErrorString "ncclGetErrorString" 24 given None none "const char*(ncclResult_t code)" "";
            541 25 Rccl ncclGetLastError "ncclGetLastError" 25 given None none "const char*(const ncclComm_t comm)" "";
            542 26 Rccl ncclCommGetAsyncError "ncclCommGetAsyncError" 26 given None comm "ncclResult_t(ncclComm_t comm, ncclResult_t* asyncError)" "";
            543 27 Rccl ncclCommCount "ncclCommCount" 27 given None comm "ncclResult_t(const ncclComm_t comm, int* count)" "";
            544 28 Rccl ncclCommCuDevice "ncclCommCuDevice" 28 given None comm "ncclResult_t(const ncclComm_t comm, int* devid)" "";
            545 29 Rccl ncclCommUserRank "ncclCommUserRank" 29 given None comm "ncclResult_t(const ncclComm_t comm, int* rank)" "";
            546 30 Rccl ncclMemAlloc "ncclMemAlloc" 30 given None size "ncclResult_t(out void** ptr, size_t size)" "";
            547 31 Rccl ncclMemFree "ncclMemFree" 31 given None ptr "ncclResult_t(void* ptr)" "";
            548 32 Rccl mscclLoadAlgo "mscclLoadAlgo" 32 given None none "ncclResult_t(const char* mscclAlgoFilePath, mscclAlgoHandle_t* mscclAlgoHandle, int rank)" "";
            549 33 Rccl mscclRunAlgo "mscclRunAlgo" 33 given None count "ncclResult_t(const void* sendBuff, const size_t* sendCounts, const size_t* sDisPls, void* recvBuff, const size_t* recvCounts, const size_t* rDisPls, size_t count, ncclDataType_t dataType, int root, int peer, ncclRedOp_t op, mscclAlgoHandle_t mscclAlgoHandle, ncclComm_t comm, hipStream_t stream)" "";
            550 34 Rccl mscclUnloadAlgo "mscclUnloadAlgo" 34 given None none "ncclResult_t(mscclAlgoHandle_t mscclAlgoHandle)" "";
            551 35 Rccl ncclCommRegister "ncclCommRegister" 35 given None size "ncclResult_t(const ncclComm_t comm, void* buff, size_t size, void** handle)" "";
            552 36 Rccl ncclCommDeregister "ncclCommDeregister" 36 given None comm "ncclResult_t(const ncclComm_t comm, void* handle)" "";
            553 37 Rccl ncclAllReduceWithBias "ncclAllReduceWithBias" 37 given None count "ncclResult_t(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm* comm, hipStream_t stream, const void* acc)" "";
            554 38 Rccl ncclBcast "ncclBcast" _ given None count "ncclResult_t(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, hipStream_t stream)" "buffer count type root comm stream";
            555 503 Hip hipGetProcAddress_spt "hipGetProcAddress_spt" 506 given Lookup none "hipError_t(const char* symbol, void** pfn, int hipVersion, uint64_t flags, hipDriverProcAddressQueryResult* symbolStatus)" "";
            556 504 Hip hipKernelGetParamInfo "hipKernelGetParamInfo" 507 given None none "hipError_t(hipKernel_t kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize)" "";
            557 505 Hip hipExtDisableLogging "hipExtDisableLogging" 508 given None none "hipError_t()" "";
            558 506 Hip hipExtEnableLogging "hipExtEnableLogging" 509 given None none "hipError_t()" "";
            559 507 Hip hipExtSetLoggingParams "hipExtSetLoggingParams" 510 given None none "hipError_t(size_t log_level, size_t log_size, size_t log_mask)" "";
            560 508 Hip hipMemSetMemPool "hipMemSetMemPool" 511 given None none "hipError_t(hipMemLocation* location, hipMemAllocationType type, hipMemPool_t pool)" "";
            561 509 Hip hipMemGetMemPool "hipMemGetMemPool" 512 given None none "hipError_t(hipMemPool_t* pool, hipMemLocation* location, hipMemAllocationType type)" "";
            562 510 Hip hipMipmappedArrayGetMemoryRequirements "hipMipmappedArrayGetMemoryRequirements" 513 given None none "hipError_t(hipArrayMemoryRequirements* memoryRequirements, hipMipmappedArray_t mipmap, hipDevice_t device)" "";
            563 511 Hip hipKernelGetAttribute "hipKernelGetAttribute" 514 given None none "hipError_t(int* pi, hipFunction_attribute attrib, hipKernel_t kernel, hipDevice_t dev)" "";
            564 512 Hip hipKernelSetAttribute "hipKernelSetAttribute" 515 given None none "hipError_t(hipFunction_attribute attrib, int value, hipKernel_t kernel, hipDevice_t dev)" "";
            565 513 Hip hipKernelGetFunction "hipKernelGetFunction" 516 given None none "hipError_t(hipFunction_t* pFunc, hipKernel_t kernel)" "";
            566 514 Hip hipMemPrefetchBatchAsync "hipMemPrefetchBatchAsync" 517 given None count "hipError_t(void** dev_ptrs, size_t* sizes, size_t count, hipMemLocation* prefetch_locs, size_t* prefetch_loc_idxs, size_t num_prefetch_locs, unsigned long long flags, hipStream_t stream)" "";
            567 515 Hip hipOccupancyMaxPotentialClusterSize "hipOccupancyMaxPotentialClusterSize" 518 given None f "hipError_t(int* clusterSize, const void* f, const hipLaunchConfig_t* config)" "";
            568 516 Hip hipOccupancyMaxActiveClusters "hipOccupancyMaxActiveClusters" 519 given None f "hipError_t(int* numClusters, const void* f, const hipLaunchConfig_t* launchConfig)" "";
            569 517 Hip hipGreenCtxCreate "hipGreenCtxCreate" 520 given None none "hipError_t(hipExecutionCtx_t* ctx, hipDevResourceDesc_t desc, int device, unsigned int flags)" "";
            570 518 Hip hipExecutionCtxDestroy "hipExecutionCtxDestroy" 521 given None none "hipError_t(hipExecutionCtx_t ctx)" "";
            571 519 Hip hipExecutionCtxStreamCreate "hipExecutionCtxStreamCreate" 522 given StreamCreate none "hipError_t(hipStream_t* stream, hipExecutionCtx_t greenctx, unsigned int flags, int priority)" "";
            572 520 Hip hipDeviceGetDevResource "hipDeviceGetDevResource" 523 given None device "hipError_t(hipDevice_t device, hipDevResource* resource, hipDevResourceType type)" "";
            573 521 Hip hipDevSmResourceSplitByCount "hipDevSmResourceSplitByCount" 524 given None none "hipError_t(hipDevResource* result, unsigned int* nbGroups, const hipDevResource* input, hipDevResource* remainder, unsigned int flags, unsigned int minCount)" "";
            574 522 Hip hipDevSmResourceSplit "hipDevSmResourceSplit" 525 given None none "hipError_t(hipDevResource* result, unsigned int nbGroups, const hipDevResource* input, hipDevResource* remainder, unsigned int flags, hipDevSmResourceGroupParams* groupParams)" "";
            575 523 Hip hipDevResourceGenerateDesc "hipDevResourceGenerateDesc" 526 given None none "hipError_t(hipDevResourceDesc_t* phDesc, hipDevResource* resources, unsigned int nbResources)" "";
            576 524 Hip hipDeviceGetExecutionCtx "hipDeviceGetExecutionCtx" 527 given None device "hipError_t(hipExecutionCtx_t* ctx, int device)" "";
            577 525 Hip hipExecutionCtxGetDevResource "hipExecutionCtxGetDevResource" 528 given None none "hipError_t(hipExecutionCtx_t ctx, hipDevResource* resource, hipDevResourceType type)" "";
            578 526 Hip hipExecutionCtxGetDevice "hipExecutionCtxGetDevice" 529 given None none "hipError_t(int* device, hipExecutionCtx_t ctx)" "";
            579 527 Hip hipExecutionCtxGetId "hipExecutionCtxGetId" 530 given None none "hipError_t(hipExecutionCtx_t ctx, unsigned long long* ctxId)" "";
            580 528 Hip hipStreamGetDevResource "hipStreamGetDevResource" 531 given None hStream "hipError_t(hipStream_t hStream, hipDevResource* resource, hipDevResourceType type)" "";
            581 529 Hip hipExecutionCtxRecordEvent "hipExecutionCtxRecordEvent" 532 given None event "hipError_t(hipExecutionCtx_t ctx, hipEvent_t event)" "";
            582 530 Hip hipExecutionCtxSynchronize "hipExecutionCtxSynchronize" 533 given Wait none "hipError_t(hipExecutionCtx_t ctx)" "";
            583 531 Hip hipExecutionCtxWaitEvent "hipExecutionCtxWaitEvent" 534 given None event "hipError_t(hipExecutionCtx_t ctx, hipEvent_t event)" "";
            584 532 Hip hipLibraryGetGlobal "hipLibraryGetGlobal" 535 given None none "hipError_t(void** dptr, size_t* bytes, hipLibrary_t library, const char* name)" "";
            585 533 Hip hipLibraryGetManaged "hipLibraryGetManaged" 536 given None none "hipError_t(void** dptr, size_t* bytes, hipLibrary_t library, const char* name)" "";
            586 534 Hip hipMemDiscardBatchAsync "hipMemDiscardBatchAsync" 537 given None count "hipError_t(void** dev_ptrs, size_t* sizes, size_t count, unsigned long long flags, hipStream_t stream)" "";
            587 535 Hip hipDrvMemDiscardBatchAsync "hipDrvMemDiscardBatchAsync" 538 given None count "hipError_t(hipDeviceptr_t* dptrs, size_t* sizes, size_t count, unsigned long long flags, hipStream_t stream)" "";
            588 536 Hip hipMemDiscardAndPrefetchBatchAsync "hipMemDiscardAndPrefetchBatchAsync" 539 given None count "hipError_t(void** dptrs, size_t* sizes, size_t count, hipMemLocation* prefetchLocs, size_t* prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, hipStream_t stream)" "";
            589 537 Hip hipDrvMemDiscardAndPrefetchBatchAsync "hipDrvMemDiscardAndPrefetchBatchAsync" 540 given None count "hipError_t(hipDeviceptr_t* dptrs, size_t* sizes, size_t count, hipMemLocation* prefetchLocs, size_t* prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, hipStream_t stream)" "";
            590 39 Rccl ncclAlltoAll "ncclAlltoAll" _ given None count "ncclResult_t(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, hipStream_t stream)" "send recv count type comm stream";
            591 40 Rccl ncclAlltoAllv "ncclAlltoAllv" _ given None none "ncclResult_t(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts, const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm, hipStream_t stream)" "";
            592 41 Rccl ncclCommInitRankScalable "ncclCommInitRankScalable" _ given Communicator nranks "ncclResult_t(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds, ncclConfig_t* config)" "";
            593 42 Rccl ncclCommShrink "ncclCommShrink" _ given Communicator comm "ncclResult_t(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags)" "";
            594 43 Rccl ncclCommGrow "ncclCommGrow" _ given None comm "ncclResult_t(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm, ncclConfig_t* config)" "";
            595 44 Rccl ncclCommGetUniqueId "ncclCommGetUniqueId" _ given None comm "ncclResult_t(ncclComm_t comm, ncclUniqueId* uniqueId)" "";
            596 45 Rccl ncclCommRevoke "ncclCommRevoke" _ given None comm "ncclResult_t(ncclComm_t comm, int revokeFlags)" "";
            597 46 Rccl ncclCommSuspend "ncclCommSuspend" _ given None comm "ncclResult_t(ncclComm_t comm, int flags)" "";
            598 47 Rccl ncclCommResume "ncclCommResume" _ given None comm "ncclResult_t(ncclComm_t comm)" "";
            599 48 Rccl ncclCommMemStats "ncclCommMemStats" _ given None comm "ncclResult_t(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value)" "";
            600 49 Rccl ncclCommWindowRegister "ncclCommWindowRegister" _ given None size "ncclResult_t(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags)" "";
            601 50 Rccl ncclCommWindowDeregister "ncclCommWindowDeregister" _ given None comm "ncclResult_t(ncclComm_t comm, ncclWindow_t win)" "";
            602 51 Rccl ncclWinGetUserPtr "ncclWinGetUserPtr" _ given None comm "ncclResult_t(ncclComm_t comm, ncclWindow_t win, void** outUserPtr)" "";
            603 52 Rccl ncclPutSignal "ncclPutSignal" _ given None count "ncclResult_t(const void* localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, hipStream_t stream)" "";
            604 53 Rccl ncclSignal "ncclSignal" _ given None comm "ncclResult_t(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, hipStream_t stream)" "";
            605 54 Rccl ncclWaitSignal "ncclWaitSignal" _ given None comm "ncclResult_t(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, hipStream_t stream)" "";
            606 55 Rccl ncclGroupSimulateEnd "ncclGroupSimulateEnd" _ given None none "ncclResult_t(ncclSimInfo_t* simInfo)" "";
            607 56 Rccl ncclResetDebugInit "ncclResetDebugInit" _ given None none "void()" "";
            608 57 Rccl ncclCommQueryProperties "ncclCommQueryProperties" _ given None comm "ncclResult_t(ncclComm_t comm, ncclCommProperties_t* props)" "";
            609 58 Rccl ncclDevCommCreate "ncclDevCommCreate" _ given None comm "ncclResult_t(ncclComm_t comm, const ncclDevCommRequirements_t* reqs, ncclDevComm_t* outDevComm)" "";
            610 59 Rccl ncclDevCommDestroy "ncclDevCommDestroy" _ given None comm "ncclResult_t(ncclComm_t comm, const ncclDevComm_t* devComm)" "";
        }
    };
}

macro_rules! entry {
    (_) => {
        None
    };
    ($entry:literal) => {
        Some($entry)
    };
}

macro_rules! rows {
    ($($index:literal $op:literal $domain:ident $symbol:ident $name:literal $entry:tt $stream:ident $effect:ident $argument:ident $signature:literal $shown:literal;)*) => {
        /// All rows, by index.
        pub const ROWS: &[Row] = &[$(
            Row {
                domain: Domain::$domain,
                symbol: stringify!($symbol),
                name: $name,
                entry: entry!($entry),
                signature: $signature,
                shown: $shown,
            },
        )*];

        #[cfg(test)]
        const NUMBERS: &[(usize, u16)] = &[$(($index, $op)),*];
    };
}

functions!(rows);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature;

    #[test]
    fn rows_are_numbered_in_order() {
        assert!(NUMBERS.iter().map(|(index, _)| *index).eq(0..ROWS.len()));
    }

    #[test]
    fn an_operation_has_one_name() {
        for (one, (_, op)) in ROWS.iter().zip(NUMBERS) {
            for (other, (_, other_op)) in ROWS.iter().zip(NUMBERS).filter(|(row, _)| row.domain == one.domain) {
                assert_eq!(op == other_op, one.name == other.name, "{} {}", one.name, other.name);
            }
        }
    }

    #[test]
    fn rows_of_one_name_have_one_signature() {
        for row in ROWS {
            let first = crate::find(row.name).map(|row| (row.signature, row.shown));
            assert_eq!(first, Some((row.signature, row.shown)), "{}", row.name);
        }
    }

    #[test]
    fn no_two_rows_have_the_same_entry() {
        for (at, one) in ROWS.iter().enumerate().filter(|(_, row)| row.entry.is_some()) {
            let same = |other: &Row| (one.domain, one.entry) == (other.domain, other.entry);
            assert_eq!(ROWS.iter().position(same), Some(at), "{}", one.name);
        }
    }

    #[test]
    fn shown_arguments_are_parameters() {
        for row in ROWS {
            let parameters = signature::parameters(row.signature).count();
            assert!(row.shown.split_whitespace().count() <= parameters, "{}", row.name);
        }
    }
}
