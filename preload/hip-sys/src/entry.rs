//! Names of the entries of the dispatch tables that libraries hand to rocprofiler-register (ROCm 6.2 to 10).
//!
//! A table begins with its size in bytes, followed by one pointer per function; releases only append. Source:
//! `hip_api_trace.hpp`, `rccl/api_trace.h`, `rocdecode_api_trace.h`, `rocjpeg_api_trace.h` of these releases. The end
//! of HIP's table differs between branches: from [`HIP_STABLE`] on, [`hip`] names an entry only in a table of a known
//! size.

/// Entries of HIP's table with the same meaning in every release.
pub const HIP_STABLE: usize = 502;
/// Sizes of fully known tables in entries: HIP 7.2.4, and HIP 10 as of July 2026 (step 30).
const HIP_KNOWN: [usize; 2] = [506, 541];

/// The name of an entry of HIP's table of `bytes` bytes; `None` if no known release names it.
pub fn hip(index: usize, bytes: usize) -> Option<&'static str> {
    let is_known = HIP_KNOWN.iter().any(|entries| bytes == 8 + 8 * entries);
    if index >= HIP_STABLE && !is_known {
        return None;
    }
    HIP.get(index).copied()
}

/// Run-time API.
#[rustfmt::skip]
pub static HIP: [&str; 541] = [
    "hipApiName", "hipArray3DCreate", "hipArray3DGetDescriptor",
    "hipArrayCreate", "hipArrayDestroy", "hipArrayGetDescriptor",
    "hipArrayGetInfo", "hipBindTexture", "hipBindTexture2D",
    "hipBindTextureToArray", "hipBindTextureToMipmappedArray", "hipChooseDevice",
    "hipChooseDeviceR0000", "hipConfigureCall", "hipCreateSurfaceObject",
    "hipCreateTextureObject", "hipCtxCreate", "hipCtxDestroy",
    "hipCtxDisablePeerAccess", "hipCtxEnablePeerAccess", "hipCtxGetApiVersion",
    "hipCtxGetCacheConfig", "hipCtxGetCurrent", "hipCtxGetDevice",
    "hipCtxGetFlags", "hipCtxGetSharedMemConfig", "hipCtxPopCurrent",
    "hipCtxPushCurrent", "hipCtxSetCacheConfig", "hipCtxSetCurrent",
    "hipCtxSetSharedMemConfig", "hipCtxSynchronize", "hipDestroyExternalMemory",
    "hipDestroyExternalSemaphore", "hipDestroySurfaceObject", "hipDestroyTextureObject",
    "hipDeviceCanAccessPeer", "hipDeviceComputeCapability", "hipDeviceDisablePeerAccess",
    "hipDeviceEnablePeerAccess", "hipDeviceGet", "hipDeviceGetAttribute",
    "hipDeviceGetByPCIBusId", "hipDeviceGetCacheConfig", "hipDeviceGetDefaultMemPool",
    "hipDeviceGetGraphMemAttribute", "hipDeviceGetLimit", "hipDeviceGetMemPool",
    "hipDeviceGetName", "hipDeviceGetP2PAttribute", "hipDeviceGetPCIBusId",
    "hipDeviceGetSharedMemConfig", "hipDeviceGetStreamPriorityRange", "hipDeviceGetUuid",
    "hipDeviceGraphMemTrim", "hipDevicePrimaryCtxGetState", "hipDevicePrimaryCtxRelease",
    "hipDevicePrimaryCtxReset", "hipDevicePrimaryCtxRetain", "hipDevicePrimaryCtxSetFlags",
    "hipDeviceReset", "hipDeviceSetCacheConfig", "hipDeviceSetGraphMemAttribute",
    "hipDeviceSetLimit", "hipDeviceSetMemPool", "hipDeviceSetSharedMemConfig",
    "hipDeviceSynchronize", "hipDeviceTotalMem", "hipDriverGetVersion",
    "hipDrvGetErrorName", "hipDrvGetErrorString", "hipDrvGraphAddMemcpyNode",
    "hipDrvMemcpy2DUnaligned", "hipDrvMemcpy3D", "hipDrvMemcpy3DAsync",
    "hipDrvPointerGetAttributes", "hipEventCreate", "hipEventCreateWithFlags",
    "hipEventDestroy", "hipEventElapsedTime", "hipEventQuery",
    "hipEventRecord", "hipEventSynchronize", "hipExtGetLinkTypeAndHopCount",
    "hipExtLaunchKernel", "hipExtLaunchMultiKernelMultiDevice", "hipExtMallocWithFlags",
    "hipExtStreamCreateWithCUMask", "hipExtStreamGetCUMask", "hipExternalMemoryGetMappedBuffer",
    "hipFree", "hipFreeArray", "hipFreeAsync",
    "hipFreeHost", "hipFreeMipmappedArray", "hipFuncGetAttribute",
    "hipFuncGetAttributes", "hipFuncSetAttribute", "hipFuncSetCacheConfig",
    "hipFuncSetSharedMemConfig", "hipGLGetDevices", "hipGetChannelDesc",
    "hipGetDevice", "hipGetDeviceCount", "hipGetDeviceFlags",
    "hipGetDevicePropertiesR0600", "hipGetDevicePropertiesR0000", "hipGetErrorName",
    "hipGetErrorString", "hipGetLastError", "hipGetMipmappedArrayLevel",
    "hipGetSymbolAddress", "hipGetSymbolSize", "hipGetTextureAlignmentOffset",
    "hipGetTextureObjectResourceDesc", "hipGetTextureObjectResourceViewDesc", "hipGetTextureObjectTextureDesc",
    "hipGetTextureReference", "hipGraphAddChildGraphNode", "hipGraphAddDependencies",
    "hipGraphAddEmptyNode", "hipGraphAddEventRecordNode", "hipGraphAddEventWaitNode",
    "hipGraphAddHostNode", "hipGraphAddKernelNode", "hipGraphAddMemAllocNode",
    "hipGraphAddMemFreeNode", "hipGraphAddMemcpyNode", "hipGraphAddMemcpyNode1D",
    "hipGraphAddMemcpyNodeFromSymbol", "hipGraphAddMemcpyNodeToSymbol", "hipGraphAddMemsetNode",
    "hipGraphChildGraphNodeGetGraph", "hipGraphClone", "hipGraphCreate",
    "hipGraphDebugDotPrint", "hipGraphDestroy", "hipGraphDestroyNode",
    "hipGraphEventRecordNodeGetEvent", "hipGraphEventRecordNodeSetEvent", "hipGraphEventWaitNodeGetEvent",
    "hipGraphEventWaitNodeSetEvent", "hipGraphExecChildGraphNodeSetParams", "hipGraphExecDestroy",
    "hipGraphExecEventRecordNodeSetEvent", "hipGraphExecEventWaitNodeSetEvent", "hipGraphExecHostNodeSetParams",
    "hipGraphExecKernelNodeSetParams", "hipGraphExecMemcpyNodeSetParams", "hipGraphExecMemcpyNodeSetParams1D",
    "hipGraphExecMemcpyNodeSetParamsFromSymbol", "hipGraphExecMemcpyNodeSetParamsToSymbol", "hipGraphExecMemsetNodeSetParams",
    "hipGraphExecUpdate", "hipGraphGetEdges", "hipGraphGetNodes",
    "hipGraphGetRootNodes", "hipGraphHostNodeGetParams", "hipGraphHostNodeSetParams",
    "hipGraphInstantiate", "hipGraphInstantiateWithFlags", "hipGraphKernelNodeCopyAttributes",
    "hipGraphKernelNodeGetAttribute", "hipGraphKernelNodeGetParams", "hipGraphKernelNodeSetAttribute",
    "hipGraphKernelNodeSetParams", "hipGraphLaunch", "hipGraphMemAllocNodeGetParams",
    "hipGraphMemFreeNodeGetParams", "hipGraphMemcpyNodeGetParams", "hipGraphMemcpyNodeSetParams",
    "hipGraphMemcpyNodeSetParams1D", "hipGraphMemcpyNodeSetParamsFromSymbol", "hipGraphMemcpyNodeSetParamsToSymbol",
    "hipGraphMemsetNodeGetParams", "hipGraphMemsetNodeSetParams", "hipGraphNodeFindInClone",
    "hipGraphNodeGetDependencies", "hipGraphNodeGetDependentNodes", "hipGraphNodeGetEnabled",
    "hipGraphNodeGetType", "hipGraphNodeSetEnabled", "hipGraphReleaseUserObject",
    "hipGraphRemoveDependencies", "hipGraphRetainUserObject", "hipGraphUpload",
    "hipGraphicsGLRegisterBuffer", "hipGraphicsGLRegisterImage", "hipGraphicsMapResources",
    "hipGraphicsResourceGetMappedPointer", "hipGraphicsSubResourceGetMappedArray", "hipGraphicsUnmapResources",
    "hipGraphicsUnregisterResource", "hipHostAlloc", "hipHostFree",
    "hipHostGetDevicePointer", "hipHostGetFlags", "hipHostMalloc",
    "hipHostRegister", "hipHostUnregister", "hipImportExternalMemory",
    "hipImportExternalSemaphore", "hipInit", "hipIpcCloseMemHandle",
    "hipIpcGetEventHandle", "hipIpcGetMemHandle", "hipIpcOpenEventHandle",
    "hipIpcOpenMemHandle", "hipKernelNameRef", "hipKernelNameRefByPtr",
    "hipLaunchByPtr", "hipLaunchCooperativeKernel", "hipLaunchCooperativeKernelMultiDevice",
    "hipLaunchHostFunc", "hipLaunchKernel", "hipMalloc",
    "hipMalloc3D", "hipMalloc3DArray", "hipMallocArray",
    "hipMallocAsync", "hipMallocFromPoolAsync", "hipMallocHost",
    "hipMallocManaged", "hipMallocMipmappedArray", "hipMallocPitch",
    "hipMemAddressFree", "hipMemAddressReserve", "hipMemAdvise",
    "hipMemAllocHost", "hipMemAllocPitch", "hipMemCreate",
    "hipMemExportToShareableHandle", "hipMemGetAccess", "hipMemGetAddressRange",
    "hipMemGetAllocationGranularity", "hipMemGetAllocationPropertiesFromHandle", "hipMemGetInfo",
    "hipMemImportFromShareableHandle", "hipMemMap", "hipMemMapArrayAsync",
    "hipMemPoolCreate", "hipMemPoolDestroy", "hipMemPoolExportPointer",
    "hipMemPoolExportToShareableHandle", "hipMemPoolGetAccess", "hipMemPoolGetAttribute",
    "hipMemPoolImportFromShareableHandle", "hipMemPoolImportPointer", "hipMemPoolSetAccess",
    "hipMemPoolSetAttribute", "hipMemPoolTrimTo", "hipMemPrefetchAsync",
    "hipMemPtrGetInfo", "hipMemRangeGetAttribute", "hipMemRangeGetAttributes",
    "hipMemRelease", "hipMemRetainAllocationHandle", "hipMemSetAccess",
    "hipMemUnmap", "hipMemcpy", "hipMemcpy2D",
    "hipMemcpy2DAsync", "hipMemcpy2DFromArray", "hipMemcpy2DFromArrayAsync",
    "hipMemcpy2DToArray", "hipMemcpy2DToArrayAsync", "hipMemcpy3D",
    "hipMemcpy3DAsync", "hipMemcpyAsync", "hipMemcpyAtoH",
    "hipMemcpyDtoD", "hipMemcpyDtoDAsync", "hipMemcpyDtoH",
    "hipMemcpyDtoHAsync", "hipMemcpyFromArray", "hipMemcpyFromSymbol",
    "hipMemcpyFromSymbolAsync", "hipMemcpyHtoA", "hipMemcpyHtoD",
    "hipMemcpyHtoDAsync", "hipMemcpyParam2D", "hipMemcpyParam2DAsync",
    "hipMemcpyPeer", "hipMemcpyPeerAsync", "hipMemcpyToArray",
    "hipMemcpyToSymbol", "hipMemcpyToSymbolAsync", "hipMemcpyWithStream",
    "hipMemset", "hipMemset2D", "hipMemset2DAsync",
    "hipMemset3D", "hipMemset3DAsync", "hipMemsetAsync",
    "hipMemsetD16", "hipMemsetD16Async", "hipMemsetD32",
    "hipMemsetD32Async", "hipMemsetD8", "hipMemsetD8Async",
    "hipMipmappedArrayCreate", "hipMipmappedArrayDestroy", "hipMipmappedArrayGetLevel",
    "hipModuleGetFunction", "hipModuleGetGlobal", "hipModuleGetTexRef",
    "hipModuleLaunchCooperativeKernel", "hipModuleLaunchCooperativeKernelMultiDevice", "hipModuleLaunchKernel",
    "hipModuleLoad", "hipModuleLoadData", "hipModuleLoadDataEx",
    "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", "hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "hipModuleOccupancyMaxPotentialBlockSize",
    "hipModuleOccupancyMaxPotentialBlockSizeWithFlags", "hipModuleUnload", "hipOccupancyMaxActiveBlocksPerMultiprocessor",
    "hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "hipOccupancyMaxPotentialBlockSize", "hipPeekAtLastError",
    "hipPointerGetAttribute", "hipPointerGetAttributes", "hipPointerSetAttribute",
    "hipProfilerStart", "hipProfilerStop", "hipRuntimeGetVersion",
    "hipSetDevice", "hipSetDeviceFlags", "hipSetupArgument",
    "hipSignalExternalSemaphoresAsync", "hipStreamAddCallback", "hipStreamAttachMemAsync",
    "hipStreamBeginCapture", "hipStreamCreate", "hipStreamCreateWithFlags",
    "hipStreamCreateWithPriority", "hipStreamDestroy", "hipStreamEndCapture",
    "hipStreamGetCaptureInfo", "hipStreamGetCaptureInfo_v2", "hipStreamGetDevice",
    "hipStreamGetFlags", "hipStreamGetPriority", "hipStreamIsCapturing",
    "hipStreamQuery", "hipStreamSynchronize", "hipStreamUpdateCaptureDependencies",
    "hipStreamWaitEvent", "hipStreamWaitValue32", "hipStreamWaitValue64",
    "hipStreamWriteValue32", "hipStreamWriteValue64", "hipTexObjectCreate",
    "hipTexObjectDestroy", "hipTexObjectGetResourceDesc", "hipTexObjectGetResourceViewDesc",
    "hipTexObjectGetTextureDesc", "hipTexRefGetAddress", "hipTexRefGetAddressMode",
    "hipTexRefGetFilterMode", "hipTexRefGetFlags", "hipTexRefGetFormat",
    "hipTexRefGetMaxAnisotropy", "hipTexRefGetMipMappedArray", "hipTexRefGetMipmapFilterMode",
    "hipTexRefGetMipmapLevelBias", "hipTexRefGetMipmapLevelClamp", "hipTexRefSetAddress",
    "hipTexRefSetAddress2D", "hipTexRefSetAddressMode", "hipTexRefSetArray",
    "hipTexRefSetBorderColor", "hipTexRefSetFilterMode", "hipTexRefSetFlags",
    "hipTexRefSetFormat", "hipTexRefSetMaxAnisotropy", "hipTexRefSetMipmapFilterMode",
    "hipTexRefSetMipmapLevelBias", "hipTexRefSetMipmapLevelClamp", "hipTexRefSetMipmappedArray",
    "hipThreadExchangeStreamCaptureMode", "hipUnbindTexture", "hipUserObjectCreate",
    "hipUserObjectRelease", "hipUserObjectRetain", "hipWaitExternalSemaphoresAsync",
    "hipCreateChannelDesc", "hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel",
    "hipMemcpy_spt", "hipMemcpyToSymbol_spt", "hipMemcpyFromSymbol_spt",
    "hipMemcpy2D_spt", "hipMemcpy2DFromArray_spt", "hipMemcpy3D_spt",
    "hipMemset_spt", "hipMemsetAsync_spt", "hipMemset2D_spt",
    "hipMemset2DAsync_spt", "hipMemset3DAsync_spt", "hipMemset3D_spt",
    "hipMemcpyAsync_spt", "hipMemcpy3DAsync_spt", "hipMemcpy2DAsync_spt",
    "hipMemcpyFromSymbolAsync_spt", "hipMemcpyToSymbolAsync_spt", "hipMemcpyFromArray_spt",
    "hipMemcpy2DToArray_spt", "hipMemcpy2DFromArrayAsync_spt", "hipMemcpy2DToArrayAsync_spt",
    "hipStreamQuery_spt", "hipStreamSynchronize_spt", "hipStreamGetPriority_spt",
    "hipStreamWaitEvent_spt", "hipStreamGetFlags_spt", "hipStreamAddCallback_spt",
    "hipEventRecord_spt", "hipLaunchCooperativeKernel_spt", "hipLaunchKernel_spt",
    "hipGraphLaunch_spt", "hipStreamBeginCapture_spt", "hipStreamEndCapture_spt",
    "hipStreamIsCapturing_spt", "hipStreamGetCaptureInfo_spt", "hipStreamGetCaptureInfo_v2_spt",
    "hipLaunchHostFunc_spt", "hipGetStreamDeviceId", "hipDrvGraphAddMemsetNode",
    "hipGraphAddExternalSemaphoresWaitNode", "hipGraphAddExternalSemaphoresSignalNode", "hipGraphExternalSemaphoresSignalNodeSetParams",
    "hipGraphExternalSemaphoresWaitNodeSetParams", "hipGraphExternalSemaphoresSignalNodeGetParams", "hipGraphExternalSemaphoresWaitNodeGetParams",
    "hipGraphExecExternalSemaphoresSignalNodeSetParams", "hipGraphExecExternalSemaphoresWaitNodeSetParams", "hipGraphAddNode",
    "hipGraphInstantiateWithParams", "hipExtGetLastError", "hipTexRefGetBorderColor",
    "hipTexRefGetArray", "hipGetProcAddress", "hipStreamBeginCaptureToGraph",
    "hipGetFuncBySymbol", "hipSetValidDevices", "hipMemcpyAtoD",
    "hipMemcpyDtoA", "hipMemcpyAtoA", "hipMemcpyAtoHAsync",
    "hipMemcpyHtoAAsync", "hipMemcpy2DArrayToArray", "hipDrvGraphAddMemFreeNode",
    "hipDrvGraphExecMemcpyNodeSetParams", "hipDrvGraphExecMemsetNodeSetParams", "hipGraphExecGetFlags",
    "hipGraphNodeSetParams", "hipGraphExecNodeSetParams", "hipExternalMemoryGetMappedMipmappedArray",
    "hipDrvGraphMemcpyNodeGetParams", "hipDrvGraphMemcpyNodeSetParams", "hipExtHostAlloc",
    "hipDeviceGetTexture1DLinearMaxWidth", "hipStreamBatchMemOp", "hipGraphAddBatchMemOpNode",
    "hipGraphBatchMemOpNodeGetParams", "hipGraphBatchMemOpNodeSetParams", "hipGraphExecBatchMemOpNodeSetParams",
    "hipLinkAddData", "hipLinkAddFile", "hipLinkComplete",
    "hipLinkCreate", "hipLinkDestroy", "hipEventRecordWithFlags",
    "hipLaunchKernelExC", "hipDrvLaunchKernelEx", "hipMemGetHandleForAddressRange",
    "hipModuleGetFunctionCount", "hipMemsetD2D8", "hipMemsetD2D8Async",
    "hipMemsetD2D16", "hipMemsetD2D16Async", "hipMemsetD2D32",
    "hipMemsetD2D32Async", "hipStreamGetAttribute", "hipStreamSetAttribute",
    "hipModuleLoadFatBinary", "hipMemcpyBatchAsync", "hipMemcpy3DBatchAsync",
    "hipMemcpy3DPeer", "hipMemcpy3DPeerAsync", "hipGetDriverEntryPoint",
    "hipGetDriverEntryPoint_spt", "hipMemPrefetchAsync_v2", "hipMemAdvise_v2",
    "hipStreamGetId", "hipLibraryLoadData", "hipLibraryLoadFromFile",
    "hipLibraryUnload", "hipLibraryGetKernel", "hipLibraryGetKernelCount",
    "hipStreamCopyAttributes", "hipLibraryEnumerateKernels", "hipKernelGetLibrary",
    "hipKernelGetName", "hipOccupancyAvailableDynamicSMemPerBlock",
    "hipGetProcAddress_spt", "hipKernelGetParamInfo", "hipExtDisableLogging",
    "hipExtEnableLogging", "hipExtSetLoggingParams", "hipMemSetMemPool",
    "hipMemGetMemPool", "hipMipmappedArrayGetMemoryRequirements", "hipKernelGetAttribute",
    "hipKernelSetAttribute", "hipKernelGetFunction", "hipMemPrefetchBatchAsync",
    "hipOccupancyMaxPotentialClusterSize", "hipOccupancyMaxActiveClusters", "hipGreenCtxCreate",
    "hipExecutionCtxDestroy", "hipExecutionCtxStreamCreate", "hipDeviceGetDevResource",
    "hipDevSmResourceSplitByCount", "hipDevSmResourceSplit", "hipDevResourceGenerateDesc",
    "hipDeviceGetExecutionCtx", "hipExecutionCtxGetDevResource", "hipExecutionCtxGetDevice",
    "hipExecutionCtxGetId", "hipStreamGetDevResource", "hipExecutionCtxRecordEvent",
    "hipExecutionCtxSynchronize", "hipExecutionCtxWaitEvent", "hipLibraryGetGlobal",
    "hipLibraryGetManaged", "hipMemDiscardBatchAsync", "hipDrvMemDiscardBatchAsync",
    "hipMemDiscardAndPrefetchBatchAsync", "hipDrvMemDiscardAndPrefetchBatchAsync",
];

/// Compiler API.
#[rustfmt::skip]
pub static COMPILER: [&str; 9] = [
    "__hipPopCallConfiguration", "__hipPushCallConfiguration", "__hipRegisterFatBinary",
    "__hipRegisterFunction", "__hipRegisterManagedVar", "__hipRegisterSurface",
    "__hipRegisterTexture", "__hipRegisterVar", "__hipUnregisterFatBinary",
];

/// RCCL.
#[rustfmt::skip]
pub static RCCL: [&str; 38] = [
    "ncclAllGather", "ncclAllReduce", "ncclAllToAll",
    "ncclAllToAllv", "ncclBroadcast", "ncclGather",
    "ncclReduce", "ncclReduceScatter", "ncclScatter",
    "ncclSend", "ncclRecv", "ncclRedOpCreatePreMulSum",
    "ncclRedOpDestroy", "ncclGroupStart", "ncclGroupEnd",
    "ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank",
    "ncclCommInitAll", "ncclCommInitRankConfig", "ncclCommFinalize",
    "ncclCommDestroy", "ncclCommAbort", "ncclCommSplit",
    "ncclGetErrorString", "ncclGetLastError", "ncclCommGetAsyncError",
    "ncclCommCount", "ncclCommCuDevice", "ncclCommUserRank",
    "ncclMemAlloc", "ncclMemFree", "mscclLoadAlgo",
    "mscclRunAlgo", "mscclUnloadAlgo", "ncclCommRegister",
    "ncclCommDeregister", "ncclAllReduceWithBias",
];

/// rocDecode.
#[rustfmt::skip]
pub static ROCDECODE: [&str; 16] = [
    "rocDecCreateVideoParser", "rocDecParseVideoData", "rocDecDestroyVideoParser",
    "rocDecCreateDecoder", "rocDecDestroyDecoder", "rocDecGetDecoderCaps",
    "rocDecDecodeFrame", "rocDecGetDecodeStatus", "rocDecReconfigureDecoder",
    "rocDecGetVideoFrame", "rocDecGetErrorName", "rocDecCreateBitstreamReader",
    "rocDecGetBitstreamCodecType", "rocDecGetBitstreamBitDepth", "rocDecGetBitstreamPicData",
    "rocDecDestroyBitstreamReader",
];

/// rocJPEG.
#[rustfmt::skip]
pub static ROCJPEG: [&str; 9] = [
    "rocJpegStreamCreate", "rocJpegStreamParse", "rocJpegStreamDestroy",
    "rocJpegCreate", "rocJpegDestroy", "rocJpegGetImageInfo",
    "rocJpegDecode", "rocJpegDecodeBatched", "rocJpegGetErrorName",
];

const _: () = assert!(8 + 8 * HIP_KNOWN[0] == 4056 && HIP_KNOWN[1] == HIP.len());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::{Domain, FUNCTIONS};

    #[test]
    fn all_entries_but_tool_entries_are_wrapped() {
        let is_known = |domain: Domain, name: &str| FUNCTIONS.iter().any(|f| f.domain == domain && f.name == name);
        let unknown: Vec<&str> = HIP
            .iter()
            .copied()
            .filter(|name| !is_known(Domain::Hip, name))
            .collect();
        // The first four are for tools only; no library of these releases exports the last two.
        let left_out = [
            "hipApiName",
            "hipKernelNameRef",
            "hipKernelNameRefByPtr",
            "hipGetStreamDeviceId",
            "hipExternalMemoryGetMappedMipmappedArray",
            "hipExtHostAlloc",
        ];
        assert_eq!(unknown, left_out);
        assert!(COMPILER.iter().all(|name| is_known(Domain::Compiler, name)));
        assert!(RCCL.iter().all(|name| is_known(Domain::Rccl, name)));
    }

    #[test]
    fn known_tables_name_their_ends() {
        assert_eq!(hip(505, 8 + 8 * 506), Some("hipOccupancyAvailableDynamicSMemPerBlock"));
        assert_eq!(hip(533, 8 + 8 * 541), Some("hipExecutionCtxSynchronize"));
        assert_eq!(hip(540, 8 + 8 * 541), Some("hipDrvMemDiscardAndPrefetchBatchAsync"));
    }

    #[test]
    fn unknown_tables_name_only_the_stable_entries() {
        let bytes = 8 + 8 * 520;
        assert!(hip(501, bytes).is_some());
        assert_eq!((hip(502, bytes), hip(510, bytes)), (None, None));
    }
}
