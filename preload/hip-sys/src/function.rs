//! The functions that libamdhip64 exports, of releases 5.2.3, 5.7.1, 6.4.3 and 7.2.4 and in the dispatch table of HIP
//! 10 (July 2026), and those of librccl in the dispatch tables of releases 6.2 to 7.2.
//!
//! A row: index, operation number in its domain, domain, symbol, displayed name, return type, position of its most
//! relevant argument, position of its stream, side effect, and number of stack words of its arguments. Positions follow
//! the System V calling convention: `r0` to `r5` are the integer registers, `s0` and up the words on the stack; `null`
//! and `thread` are the null stream and the per-thread stream of a function that names none; `config` is the stream in
//! the launch configuration that the first argument points to. Operation numbers are never reused.
//!
//! Excluded on purpose: functions that a tool itself calls (`hipApiName`, `hipKernelNameRef`, callback registration)
//! and hipRTC.

/// Domain of a function, by its number in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Domain {
    /// Run-time API.
    Hip = 1,
    /// Compiler API.
    Compiler = 2,
    /// RCCL.
    Rccl = 8,
    /// rocDecode.
    Rocdecode = 9,
    /// rocJPEG.
    Rocjpeg = 10,
}

/// Return type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// A status code.
    Status,
    /// Another value, or none.
    Other,
}

/// Position of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere.
    None,
    /// In an integer register.
    Register(u8),
    /// On the stack, in words after the return address.
    Stack(u8),
    /// The null stream.
    Null,
    /// The per-thread stream.
    PerThread,
    /// In the [`LaunchConfig`] to which the first argument points.
    Config,
}

/// `hipLaunchConfig_t` and `HIP_LAUNCH_CONFIG` (7.0 and later), as far as they are read: the grid and the block lie elsewhere
/// in one than in the other.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// Grid, block, bytes of LDS.
    pub shape: [u64; 4],
    /// The stream.
    pub stream: u64,
    /// The first attribute.
    pub attributes: *const LaunchAttribute,
    /// Attributes.
    pub count: u32,
}

/// `hipLaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttribute {
    /// See [`LaunchAttribute::COOPERATIVE`].
    pub id: u32,
    /// Reserved.
    pub reserved: u32,
    /// The value; a number is its first word.
    pub value: [u32; 16],
}

impl LaunchAttribute {
    /// Says whether the launch is cooperative.
    pub const COOPERATIVE: u32 = 2;
}

const _: () =
    assert!(std::mem::offset_of!(LaunchConfig, stream) == 32 && std::mem::offset_of!(LaunchConfig, count) == 48);
const _: () = assert!(size_of::<LaunchAttribute>() == 72 && std::mem::offset_of!(LaunchAttribute, value) == 8);

/// Effects of a function that concern the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Stores a new stream through the first argument.
    StreamCreate,
    /// Destroys the stream in the first argument.
    StreamDestroy,
    /// Starts recording on the program's request.
    Start,
    /// Stops recording on the program's request.
    Stop,
    /// Launches a kernel.
    Launch,
    /// Launches a cooperative kernel.
    Cooperative,
    /// Launches a kernel, cooperative if its [`LaunchConfig`] says so.
    Configured,
    /// Launches a graph.
    Graph,
    /// A stream's work goes into a graph from now on.
    CaptureBegin,
    /// It does not any more.
    CaptureEnd,
    /// Sets the attribute of a graph's kernel that the second argument names to what the third points to.
    NodeAttribute,
    /// Returns after GPU work has completed.
    Wait,
    /// The first argument names a function; its address is stored through the second.
    Lookup,
    /// The run-time calls it too, by its exported name, wherever one of its functions fails.
    Shared,
}

impl Effect {
    /// Does a call that succeeds launch a kernel?
    #[inline]
    pub const fn launches(self) -> bool {
        matches!(self, Self::Launch | Self::Cooperative | Self::Configured)
    }

    /// Is there something to do when the call has returned? [`Effect::Wait`] apart.
    #[inline]
    pub const fn is_after(self) -> bool {
        matches!(
            self,
            Self::StreamCreate | Self::Start | Self::Stop | Self::Lookup | Self::CaptureBegin | Self::CaptureEnd
        )
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Exported symbol, with the terminating zero.
    pub symbol: &'static str,
    /// Displayed name.
    pub name: &'static str,
    /// Operation number in its domain.
    pub op: u16,
    /// Domain.
    pub domain: Domain,
    /// Return type.
    pub returns: Returns,
    /// Its most relevant argument.
    pub argument: Place,
    /// Its stream.
    pub stream: Place,
    /// Its null stream is the per-thread stream.
    pub is_per_thread: bool,
    /// Side effect.
    pub effect: Effect,
    /// It stores a resulting handle or address through its first argument.
    pub gives: bool,
    /// Stack words of its arguments, at most [`STACK_WORDS`].
    pub stack_words: u8,
    /// The copy or fill that it requests.
    pub moves: Option<Moves>,
    /// It has an effect, or copies or fills memory.
    pub is_special: bool,
}

/// Maximum number of stack words of a function's arguments.
pub const STACK_WORDS: u8 = 16;

/// Passes all rows to the macro `$do`.
#[macro_export]
macro_rules! functions {
    ($do:ident) => {
        $do! {
            0 0 Hip hipArray3DCreate "hipArray3DCreate" Status none none None 0;
            1 1 Hip hipArray3DGetDescriptor "hipArray3DGetDescriptor" Status none none None 0;
            2 2 Hip hipArrayCreate "hipArrayCreate" Status none none None 0;
            3 3 Hip hipArrayDestroy "hipArrayDestroy" Status none none None 0;
            4 4 Hip hipArrayGetDescriptor "hipArrayGetDescriptor" Status none none None 0;
            5 5 Hip hipArrayGetInfo "hipArrayGetInfo" Status none none None 0;
            6 6 Hip hipBindTexture "hipBindTexture" Status r4 none None 0;
            7 7 Hip hipBindTexture2D "hipBindTexture2D" Status r2 none None 1;
            8 8 Hip hipBindTextureToArray "hipBindTextureToArray" Status none none None 0;
            9 9 Hip hipBindTextureToMipmappedArray "hipBindTextureToMipmappedArray" Status none none None 0;
            10 10 Hip hipChooseDevice "hipChooseDevice" Status r0 none None 0;
            11 11 Hip hipConfigureCall "hipConfigureCall" Status r5 r5 None 0;
            12 12 Hip hipCreateChannelDesc "hipCreateChannelDesc" Other none none None 0;
            13 13 Hip _Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc "hipCreateSurfaceObject" Status none none None 0;
            14 13 Hip hipCreateSurfaceObject "hipCreateSurfaceObject" Status none none None 0;
            15 14 Hip hipCreateTextureObject "hipCreateTextureObject" Status none none None 0;
            16 15 Hip hipCtxCreate "hipCtxCreate" Status r2 none None 0;
            17 16 Hip hipCtxDestroy "hipCtxDestroy" Status none none None 0;
            18 17 Hip hipCtxDisablePeerAccess "hipCtxDisablePeerAccess" Status none none None 0;
            19 18 Hip hipCtxEnablePeerAccess "hipCtxEnablePeerAccess" Status none none None 0;
            20 19 Hip hipCtxGetApiVersion "hipCtxGetApiVersion" Status none none None 0;
            21 20 Hip hipCtxGetCacheConfig "hipCtxGetCacheConfig" Status none none None 0;
            22 21 Hip hipCtxGetCurrent "hipCtxGetCurrent" Status none none None 0;
            23 22 Hip hipCtxGetDevice "hipCtxGetDevice" Status r0 none None 0;
            24 23 Hip hipCtxGetFlags "hipCtxGetFlags" Status none none None 0;
            25 24 Hip hipCtxGetSharedMemConfig "hipCtxGetSharedMemConfig" Status none none None 0;
            26 25 Hip hipCtxPopCurrent "hipCtxPopCurrent" Status none none None 0;
            27 26 Hip hipCtxPushCurrent "hipCtxPushCurrent" Status none none None 0;
            28 27 Hip hipCtxSetCacheConfig "hipCtxSetCacheConfig" Status none none None 0;
            29 28 Hip hipCtxSetCurrent "hipCtxSetCurrent" Status none none None 0;
            30 29 Hip hipCtxSetSharedMemConfig "hipCtxSetSharedMemConfig" Status none none None 0;
            31 30 Hip hipCtxSynchronize "hipCtxSynchronize" Status none none Wait 0;
            32 31 Hip hipDestroyExternalMemory "hipDestroyExternalMemory" Status none none None 0;
            33 32 Hip hipDestroyExternalSemaphore "hipDestroyExternalSemaphore" Status none none None 0;
            34 33 Hip _Z23hipDestroySurfaceObjectP13__hip_surface "hipDestroySurfaceObject" Status none none None 0;
            35 33 Hip hipDestroySurfaceObject "hipDestroySurfaceObject" Status none none None 0;
            36 34 Hip hipDestroyTextureObject "hipDestroyTextureObject" Status none none None 0;
            37 35 Hip hipDeviceCanAccessPeer "hipDeviceCanAccessPeer" Status r1 none None 0;
            38 36 Hip hipDeviceComputeCapability "hipDeviceComputeCapability" Status r2 none None 0;
            39 37 Hip hipDeviceDisablePeerAccess "hipDeviceDisablePeerAccess" Status none none None 0;
            40 38 Hip hipDeviceEnablePeerAccess "hipDeviceEnablePeerAccess" Status none none None 0;
            41 39 Hip hipDeviceGet "hipDeviceGet" Status r0 none None 0;
            42 40 Hip hipDeviceGetAttribute "hipDeviceGetAttribute" Status r2 none None 0;
            43 41 Hip hipDeviceGetByPCIBusId "hipDeviceGetByPCIBusId" Status r0 none None 0;
            44 42 Hip hipDeviceGetCacheConfig "hipDeviceGetCacheConfig" Status none none None 0;
            45 43 Hip hipDeviceGetDefaultMemPool "hipDeviceGetDefaultMemPool" Status r1 none None 0;
            46 44 Hip hipDeviceGetGraphMemAttribute "hipDeviceGetGraphMemAttribute" Status r0 none None 0;
            47 45 Hip hipDeviceGetLimit "hipDeviceGetLimit" Status none none None 0;
            48 46 Hip hipDeviceGetMemPool "hipDeviceGetMemPool" Status r1 none None 0;
            49 47 Hip hipDeviceGetName "hipDeviceGetName" Status r2 none None 0;
            50 48 Hip hipDeviceGetP2PAttribute "hipDeviceGetP2PAttribute" Status none none None 0;
            51 49 Hip hipDeviceGetPCIBusId "hipDeviceGetPCIBusId" Status r2 none None 0;
            52 50 Hip hipDeviceGetSharedMemConfig "hipDeviceGetSharedMemConfig" Status none none None 0;
            53 51 Hip hipDeviceGetStreamPriorityRange "hipDeviceGetStreamPriorityRange" Status none none None 0;
            54 52 Hip hipDeviceGetUuid "hipDeviceGetUuid" Status r1 none None 0;
            55 53 Hip hipDeviceGraphMemTrim "hipDeviceGraphMemTrim" Status r0 none None 0;
            56 54 Hip hipDevicePrimaryCtxGetState "hipDevicePrimaryCtxGetState" Status none none None 0;
            57 55 Hip hipDevicePrimaryCtxRelease "hipDevicePrimaryCtxRelease" Status none none None 0;
            58 56 Hip hipDevicePrimaryCtxReset "hipDevicePrimaryCtxReset" Status none none None 0;
            59 57 Hip hipDevicePrimaryCtxRetain "hipDevicePrimaryCtxRetain" Status none none None 0;
            60 58 Hip hipDevicePrimaryCtxSetFlags "hipDevicePrimaryCtxSetFlags" Status none none None 0;
            61 59 Hip hipDeviceReset "hipDeviceReset" Status none none Wait 0;
            62 60 Hip hipDeviceSetCacheConfig "hipDeviceSetCacheConfig" Status none none None 0;
            63 61 Hip hipDeviceSetGraphMemAttribute "hipDeviceSetGraphMemAttribute" Status r0 none None 0;
            64 62 Hip hipDeviceSetLimit "hipDeviceSetLimit" Status none none None 0;
            65 63 Hip hipDeviceSetMemPool "hipDeviceSetMemPool" Status r0 none None 0;
            66 64 Hip hipDeviceSetSharedMemConfig "hipDeviceSetSharedMemConfig" Status none none None 0;
            67 65 Hip hipDeviceSynchronize "hipDeviceSynchronize" Status none none Wait 0;
            68 66 Hip hipDeviceTotalMem "hipDeviceTotalMem" Status r1 none None 0;
            69 67 Hip hipDriverGetVersion "hipDriverGetVersion" Status none none None 0;
            70 68 Hip hipDrvGetErrorName "hipDrvGetErrorName" Status none none None 0;
            71 69 Hip hipDrvGetErrorString "hipDrvGetErrorString" Status none none None 0;
            72 70 Hip hipDrvMemcpy2DUnaligned "hipDrvMemcpy2DUnaligned" Status none none None 0;
            73 71 Hip hipDrvMemcpy3D "hipDrvMemcpy3D" Status none none None 0;
            74 72 Hip hipDrvMemcpy3DAsync "hipDrvMemcpy3DAsync" Status r1 r1 None 0;
            75 73 Hip hipDrvPointerGetAttributes "hipDrvPointerGetAttributes" Status r3 none None 0;
            76 74 Hip hipEventCreate "hipEventCreate" Status r0 none None 0;
            77 75 Hip hipEventCreateWithFlags "hipEventCreateWithFlags" Status r0 none None 0;
            78 76 Hip hipEventDestroy "hipEventDestroy" Status r0 none None 0;
            79 77 Hip hipEventElapsedTime "hipEventElapsedTime" Status none none None 0;
            80 78 Hip hipEventQuery "hipEventQuery" Status r0 none Wait 0;
            81 79 Hip hipEventRecord "hipEventRecord" Status r0 r1 None 0;
            82 80 Hip hipEventRecord_spt "hipEventRecord_spt" Status r0 r1 None 0;
            83 81 Hip hipEventSynchronize "hipEventSynchronize" Status r0 none Wait 0;
            84 82 Hip hipExtGetLinkTypeAndHopCount "hipExtGetLinkTypeAndHopCount" Status none none None 0;
            85 83 Hip hipExtLaunchKernel "hipExtLaunchKernel" Status r0 s1 Launch 5;
            86 84 Hip hipExtLaunchMultiKernelMultiDevice "hipExtLaunchMultiKernelMultiDevice" Status none none None 0;
            87 85 Hip hipExtMallocWithFlags "hipExtMallocWithFlags" Status r1 none None 0;
            88 86 Hip _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j "hipExtModuleLaunchKernel" Status r0 s2 Launch 8;
            89 87 Hip hipExtStreamCreateWithCUMask "hipExtStreamCreateWithCUMask" Status r0 none StreamCreate 0;
            90 88 Hip hipExtStreamGetCUMask "hipExtStreamGetCUMask" Status r0 r0 None 0;
            91 89 Hip hipExternalMemoryGetMappedBuffer "hipExternalMemoryGetMappedBuffer" Status r0 none None 0;
            92 90 Hip hipFree "hipFree" Status r0 none Wait 0;
            93 91 Hip hipFreeArray "hipFreeArray" Status none none None 0;
            94 92 Hip hipFreeAsync "hipFreeAsync" Status r0 r1 None 0;
            95 93 Hip hipFreeHost "hipFreeHost" Status r0 none None 0;
            96 94 Hip hipFreeMipmappedArray "hipFreeMipmappedArray" Status none none None 0;
            97 95 Hip hipFuncGetAttribute "hipFuncGetAttribute" Status none none None 0;
            98 96 Hip hipFuncGetAttributes "hipFuncGetAttributes" Status none none None 0;
            99 97 Hip hipFuncSetAttribute "hipFuncSetAttribute" Status none none None 0;
            100 98 Hip hipFuncSetCacheConfig "hipFuncSetCacheConfig" Status none none None 0;
            101 99 Hip hipFuncSetSharedMemConfig "hipFuncSetSharedMemConfig" Status none none None 0;
            102 100 Hip hipGLGetDevices "hipGLGetDevices" Status none none None 0;
            103 101 Hip hipGetChannelDesc "hipGetChannelDesc" Status none none None 0;
            104 102 Hip hipGetDevice "hipGetDevice" Status r0 none None 0;
            105 103 Hip hipGetDeviceCount "hipGetDeviceCount" Status none none None 0;
            106 104 Hip hipGetDeviceFlags "hipGetDeviceFlags" Status none none None 0;
            107 105 Hip hipGetDeviceProperties "hipGetDeviceProperties" Status r1 none None 0;
            108 106 Hip hipGetErrorName "hipGetErrorName" Other none none Shared 0;
            109 107 Hip hipGetErrorString "hipGetErrorString" Other none none Shared 0;
            110 108 Hip hipGetLastError "hipGetLastError" Status none none None 0;
            111 109 Hip hipGetMipmappedArrayLevel "hipGetMipmappedArrayLevel" Status none none None 0;
            112 110 Hip hipGetSymbolAddress "hipGetSymbolAddress" Status r0 none None 0;
            113 111 Hip hipGetSymbolSize "hipGetSymbolSize" Status none none None 0;
            114 112 Hip hipGetTextureAlignmentOffset "hipGetTextureAlignmentOffset" Status none none None 0;
            115 113 Hip hipGetTextureObjectResourceDesc "hipGetTextureObjectResourceDesc" Status none none None 0;
            116 114 Hip hipGetTextureObjectResourceViewDesc "hipGetTextureObjectResourceViewDesc" Status none none None 0;
            117 115 Hip hipGetTextureObjectTextureDesc "hipGetTextureObjectTextureDesc" Status none none None 0;
            118 116 Hip hipGetTextureReference "hipGetTextureReference" Status none none None 0;
            119 117 Hip hipGraphAddChildGraphNode "hipGraphAddChildGraphNode" Status none none None 0;
            120 118 Hip hipGraphAddDependencies "hipGraphAddDependencies" Status none none None 0;
            121 119 Hip hipGraphAddEmptyNode "hipGraphAddEmptyNode" Status none none None 0;
            122 120 Hip hipGraphAddEventRecordNode "hipGraphAddEventRecordNode" Status r4 none None 0;
            123 121 Hip hipGraphAddEventWaitNode "hipGraphAddEventWaitNode" Status r4 none None 0;
            124 122 Hip hipGraphAddHostNode "hipGraphAddHostNode" Status none none None 0;
            125 123 Hip hipGraphAddKernelNode "hipGraphAddKernelNode" Status none none None 0;
            126 124 Hip hipGraphAddMemAllocNode "hipGraphAddMemAllocNode" Status none none None 0;
            127 125 Hip hipGraphAddMemFreeNode "hipGraphAddMemFreeNode" Status r4 none None 0;
            128 126 Hip hipGraphAddMemcpyNode "hipGraphAddMemcpyNode" Status none none None 0;
            129 127 Hip hipGraphAddMemcpyNode1D "hipGraphAddMemcpyNode1D" Status s0 none None 2;
            130 128 Hip hipGraphAddMemcpyNodeFromSymbol "hipGraphAddMemcpyNodeFromSymbol" Status s0 none None 3;
            131 129 Hip hipGraphAddMemcpyNodeToSymbol "hipGraphAddMemcpyNodeToSymbol" Status s0 none None 3;
            132 130 Hip hipGraphAddMemsetNode "hipGraphAddMemsetNode" Status none none None 0;
            133 131 Hip hipGraphChildGraphNodeGetGraph "hipGraphChildGraphNodeGetGraph" Status none none None 0;
            134 132 Hip hipGraphClone "hipGraphClone" Status none none None 0;
            135 133 Hip hipGraphCreate "hipGraphCreate" Status none none None 0;
            136 134 Hip hipGraphDebugDotPrint "hipGraphDebugDotPrint" Status none none None 0;
            137 135 Hip hipGraphDestroy "hipGraphDestroy" Status none none None 0;
            138 136 Hip hipGraphDestroyNode "hipGraphDestroyNode" Status none none None 0;
            139 137 Hip hipGraphEventRecordNodeGetEvent "hipGraphEventRecordNodeGetEvent" Status none none None 0;
            140 138 Hip hipGraphEventRecordNodeSetEvent "hipGraphEventRecordNodeSetEvent" Status r1 none None 0;
            141 139 Hip hipGraphEventWaitNodeGetEvent "hipGraphEventWaitNodeGetEvent" Status none none None 0;
            142 140 Hip hipGraphEventWaitNodeSetEvent "hipGraphEventWaitNodeSetEvent" Status r1 none None 0;
            143 141 Hip hipGraphExecChildGraphNodeSetParams "hipGraphExecChildGraphNodeSetParams" Status none none None 0;
            144 142 Hip hipGraphExecDestroy "hipGraphExecDestroy" Status r0 none None 0;
            145 143 Hip hipGraphExecEventRecordNodeSetEvent "hipGraphExecEventRecordNodeSetEvent" Status r2 none None 0;
            146 144 Hip hipGraphExecEventWaitNodeSetEvent "hipGraphExecEventWaitNodeSetEvent" Status r2 none None 0;
            147 145 Hip hipGraphExecHostNodeSetParams "hipGraphExecHostNodeSetParams" Status none none None 0;
            148 146 Hip hipGraphExecKernelNodeSetParams "hipGraphExecKernelNodeSetParams" Status none none None 0;
            149 147 Hip hipGraphExecMemcpyNodeSetParams "hipGraphExecMemcpyNodeSetParams" Status none none None 0;
            150 148 Hip hipGraphExecMemcpyNodeSetParams1D "hipGraphExecMemcpyNodeSetParams1D" Status r4 none None 0;
            151 149 Hip hipGraphExecMemcpyNodeSetParamsFromSymbol "hipGraphExecMemcpyNodeSetParamsFromSymbol" Status r4 none None 1;
            152 150 Hip hipGraphExecMemcpyNodeSetParamsToSymbol "hipGraphExecMemcpyNodeSetParamsToSymbol" Status r4 none None 1;
            153 151 Hip hipGraphExecMemsetNodeSetParams "hipGraphExecMemsetNodeSetParams" Status none none None 0;
            154 152 Hip hipGraphExecUpdate "hipGraphExecUpdate" Status none none None 0;
            155 153 Hip hipGraphGetEdges "hipGraphGetEdges" Status none none None 0;
            156 154 Hip hipGraphGetNodes "hipGraphGetNodes" Status none none None 0;
            157 155 Hip hipGraphGetRootNodes "hipGraphGetRootNodes" Status none none None 0;
            158 156 Hip hipGraphHostNodeGetParams "hipGraphHostNodeGetParams" Status none none None 0;
            159 157 Hip hipGraphHostNodeSetParams "hipGraphHostNodeSetParams" Status none none None 0;
            160 158 Hip hipGraphInstantiate "hipGraphInstantiate" Status none none None 0;
            161 159 Hip hipGraphInstantiateWithFlags "hipGraphInstantiateWithFlags" Status none none None 0;
            162 160 Hip hipGraphKernelNodeCopyAttributes "hipGraphKernelNodeCopyAttributes" Status none none None 0;
            163 161 Hip hipGraphKernelNodeGetAttribute "hipGraphKernelNodeGetAttribute" Status none none None 0;
            164 162 Hip hipGraphKernelNodeGetParams "hipGraphKernelNodeGetParams" Status none none None 0;
            165 163 Hip hipGraphKernelNodeSetAttribute "hipGraphKernelNodeSetAttribute" Status none none NodeAttribute 0;
            166 164 Hip hipGraphKernelNodeSetParams "hipGraphKernelNodeSetParams" Status none none None 0;
            167 165 Hip hipGraphLaunch "hipGraphLaunch" Status r0 r1 Graph 0;
            168 166 Hip hipGraphLaunch_spt "hipGraphLaunch_spt" Status r0 r1 Graph 0;
            169 167 Hip hipGraphMemAllocNodeGetParams "hipGraphMemAllocNodeGetParams" Status none none None 0;
            170 168 Hip hipGraphMemFreeNodeGetParams "hipGraphMemFreeNodeGetParams" Status r1 none None 0;
            171 169 Hip hipGraphMemcpyNodeGetParams "hipGraphMemcpyNodeGetParams" Status none none None 0;
            172 170 Hip hipGraphMemcpyNodeSetParams "hipGraphMemcpyNodeSetParams" Status none none None 0;
            173 171 Hip hipGraphMemcpyNodeSetParams1D "hipGraphMemcpyNodeSetParams1D" Status r3 none None 0;
            174 172 Hip hipGraphMemcpyNodeSetParamsFromSymbol "hipGraphMemcpyNodeSetParamsFromSymbol" Status r3 none None 0;
            175 173 Hip hipGraphMemcpyNodeSetParamsToSymbol "hipGraphMemcpyNodeSetParamsToSymbol" Status r3 none None 0;
            176 174 Hip hipGraphMemsetNodeGetParams "hipGraphMemsetNodeGetParams" Status none none None 0;
            177 175 Hip hipGraphMemsetNodeSetParams "hipGraphMemsetNodeSetParams" Status none none None 0;
            178 176 Hip hipGraphNodeFindInClone "hipGraphNodeFindInClone" Status none none None 0;
            179 177 Hip hipGraphNodeGetDependencies "hipGraphNodeGetDependencies" Status none none None 0;
            180 178 Hip hipGraphNodeGetDependentNodes "hipGraphNodeGetDependentNodes" Status none none None 0;
            181 179 Hip hipGraphNodeGetEnabled "hipGraphNodeGetEnabled" Status none none None 0;
            182 180 Hip hipGraphNodeGetType "hipGraphNodeGetType" Status none none None 0;
            183 181 Hip hipGraphNodeSetEnabled "hipGraphNodeSetEnabled" Status none none None 0;
            184 182 Hip hipGraphReleaseUserObject "hipGraphReleaseUserObject" Status none none None 0;
            185 183 Hip hipGraphRemoveDependencies "hipGraphRemoveDependencies" Status none none None 0;
            186 184 Hip hipGraphRetainUserObject "hipGraphRetainUserObject" Status none none None 0;
            187 185 Hip hipGraphUpload "hipGraphUpload" Status r0 r1 None 0;
            188 186 Hip hipGraphicsGLRegisterBuffer "hipGraphicsGLRegisterBuffer" Status none none None 0;
            189 187 Hip hipGraphicsGLRegisterImage "hipGraphicsGLRegisterImage" Status none none None 0;
            190 188 Hip hipGraphicsMapResources "hipGraphicsMapResources" Status r2 r2 None 0;
            191 189 Hip hipGraphicsResourceGetMappedPointer "hipGraphicsResourceGetMappedPointer" Status r0 none None 0;
            192 190 Hip hipGraphicsSubResourceGetMappedArray "hipGraphicsSubResourceGetMappedArray" Status none none None 0;
            193 191 Hip hipGraphicsUnmapResources "hipGraphicsUnmapResources" Status r2 r2 None 0;
            194 192 Hip hipGraphicsUnregisterResource "hipGraphicsUnregisterResource" Status none none None 0;
            195 193 Hip _Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_ "hipHccModuleLaunchKernel" Status r0 s2 Launch 8;
            196 194 Hip hipHostAlloc "hipHostAlloc" Status r1 none None 0;
            197 195 Hip hipHostFree "hipHostFree" Status r0 none Wait 0;
            198 196 Hip hipHostGetDevicePointer "hipHostGetDevicePointer" Status r0 none None 0;
            199 197 Hip hipHostGetFlags "hipHostGetFlags" Status r1 none None 0;
            200 198 Hip hipHostMalloc "hipHostMalloc" Status r1 none None 0;
            201 199 Hip hipHostRegister "hipHostRegister" Status r1 none None 0;
            202 200 Hip hipHostUnregister "hipHostUnregister" Status r0 none None 0;
            203 201 Hip hipImportExternalMemory "hipImportExternalMemory" Status none none None 0;
            204 202 Hip hipImportExternalSemaphore "hipImportExternalSemaphore" Status none none None 0;
            205 203 Hip hipInit "hipInit" Status none none None 0;
            206 204 Hip hipIpcCloseMemHandle "hipIpcCloseMemHandle" Status r0 none None 0;
            207 205 Hip hipIpcGetEventHandle "hipIpcGetEventHandle" Status r1 none None 0;
            208 206 Hip hipIpcGetMemHandle "hipIpcGetMemHandle" Status r1 none None 0;
            209 207 Hip hipIpcOpenEventHandle "hipIpcOpenEventHandle" Status r0 none None 8;
            210 208 Hip hipIpcOpenMemHandle "hipIpcOpenMemHandle" Status r0 none None 8;
            211 209 Hip hipLaunchByPtr "hipLaunchByPtr" Status none none None 0;
            212 210 Hip hipLaunchCooperativeKernel "hipLaunchCooperativeKernel" Status r0 s1 Cooperative 2;
            213 211 Hip hipLaunchCooperativeKernelMultiDevice "hipLaunchCooperativeKernelMultiDevice" Status none none Cooperative 0;
            214 212 Hip hipLaunchCooperativeKernel_spt "hipLaunchCooperativeKernel_spt" Status r0 s1 Cooperative 2;
            215 213 Hip hipLaunchHostFunc "hipLaunchHostFunc" Status r0 r0 None 0;
            216 214 Hip hipLaunchHostFunc_spt "hipLaunchHostFunc_spt" Status r0 r0 None 0;
            217 215 Hip hipLaunchKernel "hipLaunchKernel" Status r0 s1 Launch 2;
            218 216 Hip _ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv "hipLaunchKernelGGLImpl" Other r0 r4 None 0;
            219 217 Hip hipLaunchKernel_spt "hipLaunchKernel_spt" Status r0 s1 Launch 2;
            220 218 Hip hipMalloc "hipMalloc" Status r1 none None 0;
            221 219 Hip hipMalloc3D "hipMalloc3D" Status none none None 3;
            222 220 Hip hipMalloc3DArray "hipMalloc3DArray" Status none none None 3;
            223 221 Hip hipMallocArray "hipMallocArray" Status none none None 0;
            224 222 Hip hipMallocAsync "hipMallocAsync" Status r1 r2 None 0;
            225 223 Hip hipMallocFromPoolAsync "hipMallocFromPoolAsync" Status r1 r3 None 0;
            226 224 Hip hipMallocHost "hipMallocHost" Status r1 none None 0;
            227 225 Hip hipMallocManaged "hipMallocManaged" Status r1 none None 0;
            228 226 Hip hipMallocMipmappedArray "hipMallocMipmappedArray" Status none none None 3;
            229 227 Hip hipMallocPitch "hipMallocPitch" Status r0 none None 0;
            230 228 Hip hipMemAddressFree "hipMemAddressFree" Status r1 none None 0;
            231 229 Hip hipMemAddressReserve "hipMemAddressReserve" Status r1 none None 0;
            232 230 Hip hipMemAdvise "hipMemAdvise" Status r1 none None 0;
            233 231 Hip hipMemAllocHost "hipMemAllocHost" Status r1 none None 0;
            234 232 Hip hipMemAllocPitch "hipMemAllocPitch" Status none none None 0;
            235 233 Hip hipMemCreate "hipMemCreate" Status r1 none None 0;
            236 234 Hip hipMemExportToShareableHandle "hipMemExportToShareableHandle" Status none none None 0;
            237 235 Hip hipMemGetAccess "hipMemGetAccess" Status r2 none None 0;
            238 236 Hip hipMemGetAddressRange "hipMemGetAddressRange" Status none none None 0;
            239 237 Hip hipMemGetAllocationGranularity "hipMemGetAllocationGranularity" Status none none None 0;
            240 238 Hip hipMemGetAllocationPropertiesFromHandle "hipMemGetAllocationPropertiesFromHandle" Status none none None 0;
            241 239 Hip hipMemGetInfo "hipMemGetInfo" Status none none None 0;
            242 240 Hip hipMemImportFromShareableHandle "hipMemImportFromShareableHandle" Status none none None 0;
            243 241 Hip hipMemMap "hipMemMap" Status r1 none None 0;
            244 242 Hip hipMemMapArrayAsync "hipMemMapArrayAsync" Status r2 r2 None 0;
            245 243 Hip hipMemPoolCreate "hipMemPoolCreate" Status none none None 0;
            246 244 Hip hipMemPoolDestroy "hipMemPoolDestroy" Status none none None 0;
            247 245 Hip hipMemPoolExportPointer "hipMemPoolExportPointer" Status r1 none None 0;
            248 246 Hip hipMemPoolExportToShareableHandle "hipMemPoolExportToShareableHandle" Status none none None 0;
            249 247 Hip hipMemPoolGetAccess "hipMemPoolGetAccess" Status none none None 0;
            250 248 Hip hipMemPoolGetAttribute "hipMemPoolGetAttribute" Status none none None 0;
            251 249 Hip hipMemPoolImportFromShareableHandle "hipMemPoolImportFromShareableHandle" Status none none None 0;
            252 250 Hip hipMemPoolImportPointer "hipMemPoolImportPointer" Status r0 none None 0;
            253 251 Hip hipMemPoolSetAccess "hipMemPoolSetAccess" Status r2 none None 0;
            254 252 Hip hipMemPoolSetAttribute "hipMemPoolSetAttribute" Status none none None 0;
            255 253 Hip hipMemPoolTrimTo "hipMemPoolTrimTo" Status none none None 0;
            256 254 Hip hipMemPrefetchAsync "hipMemPrefetchAsync" Status r1 r3 None 0;
            257 255 Hip hipMemPtrGetInfo "hipMemPtrGetInfo" Status r0 none None 0;
            258 256 Hip hipMemRangeGetAttribute "hipMemRangeGetAttribute" Status r4 none None 0;
            259 257 Hip hipMemRangeGetAttributes "hipMemRangeGetAttributes" Status r5 none None 0;
            260 258 Hip hipMemRelease "hipMemRelease" Status none none None 0;
            261 259 Hip hipMemRetainAllocationHandle "hipMemRetainAllocationHandle" Status none none None 0;
            262 260 Hip hipMemSetAccess "hipMemSetAccess" Status r3 none None 0;
            263 261 Hip hipMemUnmap "hipMemUnmap" Status r1 none None 0;
            264 262 Hip hipMemcpy "hipMemcpy" Status r2 null Wait 0;
            265 263 Hip hipMemcpy2D "hipMemcpy2D" Status r0 null Wait 1;
            266 264 Hip hipMemcpy2DAsync "hipMemcpy2DAsync" Status r0 s1 None 2;
            267 265 Hip hipMemcpy2DAsync_spt "hipMemcpy2DAsync_spt" Status r0 s1 None 2;
            268 266 Hip hipMemcpy2DFromArray "hipMemcpy2DFromArray" Status r0 null Wait 2;
            269 267 Hip hipMemcpy2DFromArrayAsync "hipMemcpy2DFromArrayAsync" Status r0 s2 None 3;
            270 268 Hip hipMemcpy2DFromArrayAsync_spt "hipMemcpy2DFromArrayAsync_spt" Status r0 s2 None 3;
            271 269 Hip hipMemcpy2DFromArray_spt "hipMemcpy2DFromArray_spt" Status r0 thread Wait 2;
            272 270 Hip hipMemcpy2DToArray "hipMemcpy2DToArray" Status r0 null Wait 2;
            273 271 Hip hipMemcpy2DToArrayAsync "hipMemcpy2DToArrayAsync" Status r0 s2 None 3;
            274 272 Hip hipMemcpy2DToArrayAsync_spt "hipMemcpy2DToArrayAsync_spt" Status r0 s2 None 3;
            275 273 Hip hipMemcpy2DToArray_spt "hipMemcpy2DToArray_spt" Status r0 thread Wait 2;
            276 274 Hip hipMemcpy2D_spt "hipMemcpy2D_spt" Status r0 thread Wait 1;
            277 275 Hip hipMemcpy3D "hipMemcpy3D" Status none null Wait 0;
            278 276 Hip hipMemcpy3DAsync "hipMemcpy3DAsync" Status r1 r1 None 0;
            279 277 Hip hipMemcpy3DAsync_spt "hipMemcpy3DAsync_spt" Status r1 r1 None 0;
            280 278 Hip hipMemcpy3D_spt "hipMemcpy3D_spt" Status none thread Wait 0;
            281 279 Hip hipMemcpyAsync "hipMemcpyAsync" Status r2 r4 None 0;
            282 280 Hip hipMemcpyAsync_spt "hipMemcpyAsync_spt" Status r2 r4 None 0;
            283 281 Hip hipMemcpyAtoH "hipMemcpyAtoH" Status r3 null Wait 0;
            284 282 Hip hipMemcpyDtoD "hipMemcpyDtoD" Status r2 null Wait 0;
            285 283 Hip hipMemcpyDtoDAsync "hipMemcpyDtoDAsync" Status r2 r3 None 0;
            286 284 Hip hipMemcpyDtoH "hipMemcpyDtoH" Status r2 null Wait 0;
            287 285 Hip hipMemcpyDtoHAsync "hipMemcpyDtoHAsync" Status r2 r3 None 0;
            288 286 Hip hipMemcpyFromArray "hipMemcpyFromArray" Status r4 null Wait 0;
            289 287 Hip hipMemcpyFromArray_spt "hipMemcpyFromArray_spt" Status r4 thread Wait 0;
            290 288 Hip hipMemcpyFromSymbol "hipMemcpyFromSymbol" Status r2 null Wait 0;
            291 289 Hip hipMemcpyFromSymbolAsync "hipMemcpyFromSymbolAsync" Status r2 r5 None 0;
            292 290 Hip hipMemcpyFromSymbolAsync_spt "hipMemcpyFromSymbolAsync_spt" Status r2 r5 None 0;
            293 291 Hip hipMemcpyFromSymbol_spt "hipMemcpyFromSymbol_spt" Status r2 thread Wait 0;
            294 292 Hip hipMemcpyHtoA "hipMemcpyHtoA" Status r3 null Wait 0;
            295 293 Hip hipMemcpyHtoD "hipMemcpyHtoD" Status r2 null Wait 0;
            296 294 Hip hipMemcpyHtoDAsync "hipMemcpyHtoDAsync" Status r2 r3 None 0;
            297 295 Hip hipMemcpyParam2D "hipMemcpyParam2D" Status none null Wait 0;
            298 296 Hip hipMemcpyParam2DAsync "hipMemcpyParam2DAsync" Status r1 r1 None 0;
            299 297 Hip hipMemcpyPeer "hipMemcpyPeer" Status r4 null Wait 0;
            300 298 Hip hipMemcpyPeerAsync "hipMemcpyPeerAsync" Status r4 r5 None 0;
            301 299 Hip hipMemcpyToArray "hipMemcpyToArray" Status r4 null Wait 0;
            302 300 Hip hipMemcpyToSymbol "hipMemcpyToSymbol" Status r2 null Wait 0;
            303 301 Hip hipMemcpyToSymbolAsync "hipMemcpyToSymbolAsync" Status r2 r5 None 0;
            304 302 Hip hipMemcpyToSymbolAsync_spt "hipMemcpyToSymbolAsync_spt" Status r2 r5 None 0;
            305 303 Hip hipMemcpyToSymbol_spt "hipMemcpyToSymbol_spt" Status r2 thread Wait 0;
            306 304 Hip hipMemcpyWithStream "hipMemcpyWithStream" Status r2 r4 Wait 0;
            307 305 Hip hipMemcpy_spt "hipMemcpy_spt" Status r2 thread Wait 0;
            308 306 Hip hipMemset "hipMemset" Status r2 null Wait 0;
            309 307 Hip hipMemset2D "hipMemset2D" Status r0 null Wait 0;
            310 308 Hip hipMemset2DAsync "hipMemset2DAsync" Status r0 r5 None 0;
            311 309 Hip hipMemset2DAsync_spt "hipMemset2DAsync_spt" Status r0 r5 None 0;
            312 310 Hip hipMemset2D_spt "hipMemset2D_spt" Status r0 thread Wait 0;
            313 311 Hip hipMemset3D "hipMemset3D" Status none null Wait 7;
            314 312 Hip hipMemset3DAsync "hipMemset3DAsync" Status r1 r1 None 7;
            315 313 Hip hipMemset3DAsync_spt "hipMemset3DAsync_spt" Status r1 r1 None 7;
            316 314 Hip hipMemset3D_spt "hipMemset3D_spt" Status none thread Wait 7;
            317 315 Hip hipMemsetAsync "hipMemsetAsync" Status r2 r3 None 0;
            318 316 Hip hipMemsetAsync_spt "hipMemsetAsync_spt" Status r2 r3 None 0;
            319 317 Hip hipMemsetD16 "hipMemsetD16" Status r2 null Wait 0;
            320 318 Hip hipMemsetD16Async "hipMemsetD16Async" Status r2 r3 None 0;
            321 319 Hip hipMemsetD32 "hipMemsetD32" Status r2 null Wait 0;
            322 320 Hip hipMemsetD32Async "hipMemsetD32Async" Status r2 r3 None 0;
            323 321 Hip hipMemsetD8 "hipMemsetD8" Status r2 null Wait 0;
            324 322 Hip hipMemsetD8Async "hipMemsetD8Async" Status r2 r3 None 0;
            325 323 Hip hipMemset_spt "hipMemset_spt" Status r2 thread Wait 0;
            326 324 Hip hipMipmappedArrayCreate "hipMipmappedArrayCreate" Status none none None 0;
            327 325 Hip hipMipmappedArrayDestroy "hipMipmappedArrayDestroy" Status none none None 0;
            328 326 Hip hipMipmappedArrayGetLevel "hipMipmappedArrayGetLevel" Status none none None 0;
            329 327 Hip hipModuleGetFunction "hipModuleGetFunction" Status none none None 0;
            330 328 Hip hipModuleGetGlobal "hipModuleGetGlobal" Status none none None 0;
            331 329 Hip hipModuleGetTexRef "hipModuleGetTexRef" Status none none None 0;
            332 330 Hip hipModuleLaunchCooperativeKernel "hipModuleLaunchCooperativeKernel" Status r0 s2 Cooperative 4;
            333 331 Hip hipModuleLaunchCooperativeKernelMultiDevice "hipModuleLaunchCooperativeKernelMultiDevice" Status none none Cooperative 0;
            334 332 Hip hipModuleLaunchKernel "hipModuleLaunchKernel" Status r0 s2 Launch 5;
            335 333 Hip hipModuleLoad "hipModuleLoad" Status none none None 0;
            336 334 Hip hipModuleLoadData "hipModuleLoadData" Status none none None 0;
            337 335 Hip hipModuleLoadDataEx "hipModuleLoadDataEx" Status none none None 0;
            338 336 Hip hipModuleOccupancyMaxActiveBlocksPerMultiprocessor "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor" Status r1 none None 0;
            339 337 Hip hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags "hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" Status r1 none None 0;
            340 338 Hip hipModuleOccupancyMaxPotentialBlockSize "hipModuleOccupancyMaxPotentialBlockSize" Status r2 none None 0;
            341 339 Hip hipModuleOccupancyMaxPotentialBlockSizeWithFlags "hipModuleOccupancyMaxPotentialBlockSizeWithFlags" Status r2 none None 0;
            342 340 Hip hipModuleUnload "hipModuleUnload" Status none none Wait 0;
            343 341 Hip hipOccupancyMaxActiveBlocksPerMultiprocessor "hipOccupancyMaxActiveBlocksPerMultiprocessor" Status r1 none None 0;
            344 342 Hip hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags "hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" Status r1 none None 0;
            345 343 Hip hipOccupancyMaxPotentialBlockSize "hipOccupancyMaxPotentialBlockSize" Status r2 none None 0;
            346 344 Hip hipPeekAtLastError "hipPeekAtLastError" Status none none None 0;
            347 345 Hip hipPointerGetAttribute "hipPointerGetAttribute" Status r2 none None 0;
            348 346 Hip hipPointerGetAttributes "hipPointerGetAttributes" Status r1 none None 0;
            349 347 Hip hipPointerSetAttribute "hipPointerSetAttribute" Status r2 none None 0;
            350 348 Hip hipProfilerStart "hipProfilerStart" Status none none Start 0;
            351 349 Hip hipProfilerStop "hipProfilerStop" Status none none Stop 0;
            352 350 Hip hipRuntimeGetVersion "hipRuntimeGetVersion" Status none none None 0;
            353 351 Hip hipSetDevice "hipSetDevice" Status r0 none None 0;
            354 352 Hip hipSetDeviceFlags "hipSetDeviceFlags" Status none none None 0;
            355 353 Hip hipSetupArgument "hipSetupArgument" Status r1 none None 0;
            356 354 Hip hipSignalExternalSemaphoresAsync "hipSignalExternalSemaphoresAsync" Status r3 r3 None 0;
            357 355 Hip hipStreamAddCallback "hipStreamAddCallback" Status r0 r0 None 0;
            358 356 Hip hipStreamAddCallback_spt "hipStreamAddCallback_spt" Status r0 r0 None 0;
            359 357 Hip hipStreamAttachMemAsync "hipStreamAttachMemAsync" Status r0 r0 None 0;
            360 358 Hip hipStreamBeginCapture "hipStreamBeginCapture" Status r0 r0 CaptureBegin 0;
            361 359 Hip hipStreamBeginCapture_spt "hipStreamBeginCapture_spt" Status r0 r0 CaptureBegin 0;
            362 360 Hip hipStreamCreate "hipStreamCreate" Status r0 none StreamCreate 0;
            363 361 Hip hipStreamCreateWithFlags "hipStreamCreateWithFlags" Status r0 none StreamCreate 0;
            364 362 Hip hipStreamCreateWithPriority "hipStreamCreateWithPriority" Status r0 none StreamCreate 0;
            365 363 Hip hipStreamDestroy "hipStreamDestroy" Status r0 r0 StreamDestroy 0;
            366 364 Hip hipStreamEndCapture "hipStreamEndCapture" Status r0 r0 CaptureEnd 0;
            367 365 Hip hipStreamEndCapture_spt "hipStreamEndCapture_spt" Status r0 r0 CaptureEnd 0;
            368 366 Hip hipStreamGetCaptureInfo "hipStreamGetCaptureInfo" Status r0 r0 None 0;
            369 367 Hip hipStreamGetCaptureInfo_spt "hipStreamGetCaptureInfo_spt" Status r0 r0 None 0;
            370 368 Hip hipStreamGetCaptureInfo_v2 "hipStreamGetCaptureInfo_v2" Status r0 r0 None 0;
            371 369 Hip hipStreamGetCaptureInfo_v2_spt "hipStreamGetCaptureInfo_v2_spt" Status r0 r0 None 0;
            372 370 Hip hipStreamGetDevice "hipStreamGetDevice" Status r0 r0 None 0;
            373 371 Hip hipStreamGetFlags "hipStreamGetFlags" Status r0 r0 None 0;
            374 372 Hip hipStreamGetFlags_spt "hipStreamGetFlags_spt" Status r0 r0 None 0;
            375 373 Hip hipStreamGetPriority "hipStreamGetPriority" Status r0 r0 None 0;
            376 374 Hip hipStreamGetPriority_spt "hipStreamGetPriority_spt" Status r0 r0 None 0;
            377 375 Hip hipStreamIsCapturing "hipStreamIsCapturing" Status r0 r0 None 0;
            378 376 Hip hipStreamIsCapturing_spt "hipStreamIsCapturing_spt" Status r0 r0 None 0;
            379 377 Hip hipStreamQuery "hipStreamQuery" Status r0 r0 Wait 0;
            380 378 Hip hipStreamQuery_spt "hipStreamQuery_spt" Status r0 r0 Wait 0;
            381 379 Hip hipStreamSynchronize "hipStreamSynchronize" Status r0 r0 Wait 0;
            382 380 Hip hipStreamSynchronize_spt "hipStreamSynchronize_spt" Status r0 r0 Wait 0;
            383 381 Hip hipStreamUpdateCaptureDependencies "hipStreamUpdateCaptureDependencies" Status r0 r0 None 0;
            384 382 Hip hipStreamWaitEvent "hipStreamWaitEvent" Status r0 r0 None 0;
            385 383 Hip hipStreamWaitEvent_spt "hipStreamWaitEvent_spt" Status r0 r0 None 0;
            386 384 Hip hipStreamWaitValue32 "hipStreamWaitValue32" Status r0 r0 None 0;
            387 385 Hip hipStreamWaitValue64 "hipStreamWaitValue64" Status r0 r0 None 0;
            388 386 Hip hipStreamWriteValue32 "hipStreamWriteValue32" Status r0 r0 None 0;
            389 387 Hip hipStreamWriteValue64 "hipStreamWriteValue64" Status r0 r0 None 0;
            390 388 Hip hipTexObjectCreate "hipTexObjectCreate" Status none none None 0;
            391 389 Hip hipTexObjectDestroy "hipTexObjectDestroy" Status none none None 0;
            392 390 Hip hipTexObjectGetResourceDesc "hipTexObjectGetResourceDesc" Status none none None 0;
            393 391 Hip hipTexObjectGetResourceViewDesc "hipTexObjectGetResourceViewDesc" Status none none None 0;
            394 392 Hip hipTexObjectGetTextureDesc "hipTexObjectGetTextureDesc" Status none none None 0;
            395 393 Hip hipTexRefGetAddress "hipTexRefGetAddress" Status r0 none None 0;
            396 394 Hip hipTexRefGetAddressMode "hipTexRefGetAddressMode" Status none none None 0;
            397 395 Hip hipTexRefGetFilterMode "hipTexRefGetFilterMode" Status none none None 0;
            398 396 Hip hipTexRefGetFlags "hipTexRefGetFlags" Status none none None 0;
            399 397 Hip hipTexRefGetFormat "hipTexRefGetFormat" Status none none None 0;
            400 398 Hip hipTexRefGetMaxAnisotropy "hipTexRefGetMaxAnisotropy" Status none none None 0;
            401 399 Hip hipTexRefGetMipmapFilterMode "hipTexRefGetMipmapFilterMode" Status none none None 0;
            402 400 Hip hipTexRefGetMipmapLevelBias "hipTexRefGetMipmapLevelBias" Status none none None 0;
            403 401 Hip hipTexRefGetMipmapLevelClamp "hipTexRefGetMipmapLevelClamp" Status none none None 0;
            404 402 Hip hipTexRefSetAddress "hipTexRefSetAddress" Status r3 none None 0;
            405 403 Hip hipTexRefSetAddress2D "hipTexRefSetAddress2D" Status none none None 0;
            406 404 Hip hipTexRefSetAddressMode "hipTexRefSetAddressMode" Status none none None 0;
            407 405 Hip hipTexRefSetArray "hipTexRefSetArray" Status none none None 0;
            408 406 Hip hipTexRefSetBorderColor "hipTexRefSetBorderColor" Status none none None 0;
            409 407 Hip hipTexRefSetFilterMode "hipTexRefSetFilterMode" Status none none None 0;
            410 408 Hip hipTexRefSetFlags "hipTexRefSetFlags" Status none none None 0;
            411 409 Hip hipTexRefSetFormat "hipTexRefSetFormat" Status none none None 0;
            412 410 Hip hipTexRefSetMaxAnisotropy "hipTexRefSetMaxAnisotropy" Status none none None 0;
            413 411 Hip hipTexRefSetMipmapFilterMode "hipTexRefSetMipmapFilterMode" Status none none None 0;
            414 412 Hip hipTexRefSetMipmapLevelBias "hipTexRefSetMipmapLevelBias" Status none none None 0;
            415 413 Hip hipTexRefSetMipmapLevelClamp "hipTexRefSetMipmapLevelClamp" Status none none None 0;
            416 414 Hip hipTexRefSetMipmappedArray "hipTexRefSetMipmappedArray" Status none none None 0;
            417 415 Hip hipThreadExchangeStreamCaptureMode "hipThreadExchangeStreamCaptureMode" Status none none None 0;
            418 416 Hip hipUnbindTexture "hipUnbindTexture" Status none none None 0;
            419 417 Hip hipUserObjectCreate "hipUserObjectCreate" Status r1 none None 0;
            420 418 Hip hipUserObjectRelease "hipUserObjectRelease" Status none none None 0;
            421 419 Hip hipUserObjectRetain "hipUserObjectRetain" Status none none None 0;
            422 420 Hip hipWaitExternalSemaphoresAsync "hipWaitExternalSemaphoresAsync" Status r3 r3 None 0;
            423 421 Hip hipChooseDeviceR0000 "hipChooseDeviceR0000" Status none none None 0;
            424 422 Hip hipChooseDeviceR0600 "hipChooseDeviceR0600" Status none none None 0;
            425 423 Hip hipDeviceGetTexture1DLinearMaxWidth "hipDeviceGetTexture1DLinearMaxWidth" Status r1 none None 0;
            426 424 Hip hipDrvGraphAddMemFreeNode "hipDrvGraphAddMemFreeNode" Status none none None 0;
            427 425 Hip hipDrvGraphAddMemcpyNode "hipDrvGraphAddMemcpyNode" Status none none None 0;
            428 426 Hip hipDrvGraphAddMemsetNode "hipDrvGraphAddMemsetNode" Status none none None 0;
            429 427 Hip hipDrvGraphExecMemcpyNodeSetParams "hipDrvGraphExecMemcpyNodeSetParams" Status none none None 0;
            430 428 Hip hipDrvGraphExecMemsetNodeSetParams "hipDrvGraphExecMemsetNodeSetParams" Status none none None 0;
            431 429 Hip hipDrvGraphMemcpyNodeGetParams "hipDrvGraphMemcpyNodeGetParams" Status none none None 0;
            432 430 Hip hipDrvGraphMemcpyNodeSetParams "hipDrvGraphMemcpyNodeSetParams" Status none none None 0;
            433 431 Hip hipDrvLaunchKernelEx "hipDrvLaunchKernelEx" Status r1 config Configured 0;
            434 432 Hip hipEventRecordWithFlags "hipEventRecordWithFlags" Status r0 r1 None 0;
            435 433 Hip hipExtGetLastError "hipExtGetLastError" Status none none None 0;
            436 86 Hip hipExtModuleLaunchKernel "hipExtModuleLaunchKernel" Status r0 s2 Launch 8;
            437 434 Hip hipGetDevicePropertiesR0000 "hipGetDevicePropertiesR0000" Status none none None 0;
            438 435 Hip hipGetDevicePropertiesR0600 "hipGetDevicePropertiesR0600" Status none none None 0;
            439 436 Hip hipGetDriverEntryPoint "hipGetDriverEntryPoint" Status none none Lookup 0;
            440 437 Hip hipGetDriverEntryPoint_spt "hipGetDriverEntryPoint_spt" Status none none Lookup 0;
            441 438 Hip hipGetFuncBySymbol "hipGetFuncBySymbol" Status none none None 0;
            442 439 Hip hipGetProcAddress "hipGetProcAddress" Status none none Lookup 0;
            443 440 Hip hipGraphAddBatchMemOpNode "hipGraphAddBatchMemOpNode" Status none none None 0;
            444 441 Hip hipGraphAddExternalSemaphoresSignalNode "hipGraphAddExternalSemaphoresSignalNode" Status none none None 0;
            445 442 Hip hipGraphAddExternalSemaphoresWaitNode "hipGraphAddExternalSemaphoresWaitNode" Status none none None 0;
            446 443 Hip hipGraphAddNode "hipGraphAddNode" Status none none None 0;
            447 444 Hip hipGraphBatchMemOpNodeGetParams "hipGraphBatchMemOpNodeGetParams" Status none none None 0;
            448 445 Hip hipGraphBatchMemOpNodeSetParams "hipGraphBatchMemOpNodeSetParams" Status none none None 0;
            449 446 Hip hipGraphExecBatchMemOpNodeSetParams "hipGraphExecBatchMemOpNodeSetParams" Status none none None 0;
            450 447 Hip hipGraphExecExternalSemaphoresSignalNodeSetParams "hipGraphExecExternalSemaphoresSignalNodeSetParams" Status none none None 0;
            451 448 Hip hipGraphExecExternalSemaphoresWaitNodeSetParams "hipGraphExecExternalSemaphoresWaitNodeSetParams" Status none none None 0;
            452 449 Hip hipGraphExecGetFlags "hipGraphExecGetFlags" Status r0 none None 0;
            453 450 Hip hipGraphExecNodeSetParams "hipGraphExecNodeSetParams" Status r0 none None 0;
            454 451 Hip hipGraphExternalSemaphoresSignalNodeGetParams "hipGraphExternalSemaphoresSignalNodeGetParams" Status none none None 0;
            455 452 Hip hipGraphExternalSemaphoresSignalNodeSetParams "hipGraphExternalSemaphoresSignalNodeSetParams" Status none none None 0;
            456 453 Hip hipGraphExternalSemaphoresWaitNodeGetParams "hipGraphExternalSemaphoresWaitNodeGetParams" Status none none None 0;
            457 454 Hip hipGraphExternalSemaphoresWaitNodeSetParams "hipGraphExternalSemaphoresWaitNodeSetParams" Status none none None 0;
            458 455 Hip hipGraphInstantiateWithParams "hipGraphInstantiateWithParams" Status none none None 0;
            459 456 Hip hipGraphNodeSetParams "hipGraphNodeSetParams" Status none none None 0;
            460 193 Hip hipHccModuleLaunchKernel "hipHccModuleLaunchKernel" Status r0 s2 Launch 8;
            461 457 Hip hipKernelGetLibrary "hipKernelGetLibrary" Status none none None 0;
            462 458 Hip hipKernelGetName "hipKernelGetName" Status none none None 0;
            463 459 Hip hipLaunchKernelExC "hipLaunchKernelExC" Status r1 config Configured 0;
            464 460 Hip hipLibraryEnumerateKernels "hipLibraryEnumerateKernels" Status none none None 0;
            465 461 Hip hipLibraryGetKernel "hipLibraryGetKernel" Status none none None 0;
            466 462 Hip hipLibraryGetKernelCount "hipLibraryGetKernelCount" Status none none None 0;
            467 463 Hip hipLibraryLoadData "hipLibraryLoadData" Status none none None 2;
            468 464 Hip hipLibraryLoadFromFile "hipLibraryLoadFromFile" Status none none None 2;
            469 465 Hip hipLibraryUnload "hipLibraryUnload" Status none none None 0;
            470 466 Hip hipLinkAddData "hipLinkAddData" Status r3 none None 2;
            471 467 Hip hipLinkAddFile "hipLinkAddFile" Status none none None 0;
            472 468 Hip hipLinkComplete "hipLinkComplete" Status none none None 0;
            473 469 Hip hipLinkCreate "hipLinkCreate" Status none none None 0;
            474 470 Hip hipLinkDestroy "hipLinkDestroy" Status none none None 0;
            475 471 Hip hipMemAdvise_v2 "hipMemAdvise_v2" Status r1 none None 0;
            476 472 Hip hipMemGetHandleForAddressRange "hipMemGetHandleForAddressRange" Status r2 none None 0;
            477 473 Hip hipMemPrefetchAsync_v2 "hipMemPrefetchAsync_v2" Status r1 r4 None 0;
            478 474 Hip hipMemcpy2DArrayToArray "hipMemcpy2DArrayToArray" Status r0 null Wait 3;
            479 475 Hip hipMemcpy3DBatchAsync "hipMemcpy3DBatchAsync" Status r4 r4 None 0;
            480 476 Hip hipMemcpy3DPeer "hipMemcpy3DPeer" Status none null Wait 0;
            481 477 Hip hipMemcpy3DPeerAsync "hipMemcpy3DPeerAsync" Status r1 r1 None 0;
            482 478 Hip hipMemcpyAtoA "hipMemcpyAtoA" Status r4 null Wait 0;
            483 479 Hip hipMemcpyAtoD "hipMemcpyAtoD" Status r3 null Wait 0;
            484 480 Hip hipMemcpyAtoHAsync "hipMemcpyAtoHAsync" Status r3 r4 None 0;
            485 481 Hip hipMemcpyBatchAsync "hipMemcpyBatchAsync" Status r3 s2 None 3;
            486 482 Hip hipMemcpyDtoA "hipMemcpyDtoA" Status r3 null Wait 0;
            487 483 Hip hipMemcpyHtoAAsync "hipMemcpyHtoAAsync" Status r3 r4 None 0;
            488 484 Hip hipMemsetD2D16 "hipMemsetD2D16" Status r0 null Wait 0;
            489 485 Hip hipMemsetD2D16Async "hipMemsetD2D16Async" Status r0 r5 None 0;
            490 486 Hip hipMemsetD2D32 "hipMemsetD2D32" Status r0 null Wait 0;
            491 487 Hip hipMemsetD2D32Async "hipMemsetD2D32Async" Status r0 r5 None 0;
            492 488 Hip hipMemsetD2D8 "hipMemsetD2D8" Status r0 null Wait 0;
            493 489 Hip hipMemsetD2D8Async "hipMemsetD2D8Async" Status r0 r5 None 0;
            494 490 Hip hipModuleGetFunctionCount "hipModuleGetFunctionCount" Status none none None 0;
            495 491 Hip hipModuleLoadFatBinary "hipModuleLoadFatBinary" Status none none None 0;
            496 492 Hip hipOccupancyAvailableDynamicSMemPerBlock "hipOccupancyAvailableDynamicSMemPerBlock" Status r1 none None 0;
            497 493 Hip hipSetValidDevices "hipSetValidDevices" Status none none None 0;
            498 494 Hip hipStreamBatchMemOp "hipStreamBatchMemOp" Status r0 r0 None 0;
            499 495 Hip hipStreamBeginCaptureToGraph "hipStreamBeginCaptureToGraph" Status r0 r0 CaptureBegin 0;
            500 496 Hip hipStreamCopyAttributes "hipStreamCopyAttributes" Status r0 r0 None 0;
            501 497 Hip hipStreamGetAttribute "hipStreamGetAttribute" Status r0 r0 None 0;
            502 498 Hip hipStreamGetId "hipStreamGetId" Status r0 r0 None 0;
            503 499 Hip hipStreamSetAttribute "hipStreamSetAttribute" Status r0 r0 None 0;
            504 500 Hip hipTexRefGetArray "hipTexRefGetArray" Status none none None 0;
            505 501 Hip hipTexRefGetBorderColor "hipTexRefGetBorderColor" Status none none None 0;
            506 502 Hip hipTexRefGetMipMappedArray "hipTexRefGetMipMappedArray" Status none none None 0;
            507 0 Compiler __hipPopCallConfiguration "__hipPopCallConfiguration" Status none none None 0;
            508 1 Compiler __hipPushCallConfiguration "__hipPushCallConfiguration" Status none none None 0;
            509 2 Compiler __hipRegisterFatBinary "__hipRegisterFatBinary" Other none none None 0;
            510 3 Compiler __hipRegisterFunction "__hipRegisterFunction" Other none none None 4;
            511 4 Compiler __hipRegisterManagedVar "__hipRegisterManagedVar" Other none none None 0;
            512 5 Compiler __hipRegisterSurface "__hipRegisterSurface" Other none none None 0;
            513 6 Compiler __hipRegisterTexture "__hipRegisterTexture" Other none none None 1;
            514 7 Compiler __hipRegisterVar "__hipRegisterVar" Other none none None 2;
            515 8 Compiler __hipUnregisterFatBinary "__hipUnregisterFatBinary" Other none none None 0;
            516 0 Rccl ncclAllGather "ncclAllGather" Status r2 r5 None 0;
            517 1 Rccl ncclAllReduce "ncclAllReduce" Status r2 s0 None 1;
            518 2 Rccl ncclAllToAll "ncclAllToAll" Status r2 r5 None 0;
            519 3 Rccl ncclAllToAllv "ncclAllToAllv" Status none s2 None 3;
            520 4 Rccl ncclBroadcast "ncclBroadcast" Status r2 s0 None 1;
            521 5 Rccl ncclGather "ncclGather" Status r2 s0 None 1;
            522 6 Rccl ncclReduce "ncclReduce" Status r2 s1 None 2;
            523 7 Rccl ncclReduceScatter "ncclReduceScatter" Status r2 s0 None 1;
            524 8 Rccl ncclScatter "ncclScatter" Status r2 s0 None 1;
            525 9 Rccl ncclSend "ncclSend" Status r1 r5 None 0;
            526 10 Rccl ncclRecv "ncclRecv" Status r1 r5 None 0;
            527 11 Rccl ncclRedOpCreatePreMulSum "ncclRedOpCreatePreMulSum" Status none none None 0;
            528 12 Rccl ncclRedOpDestroy "ncclRedOpDestroy" Status none none None 0;
            529 13 Rccl ncclGroupStart "ncclGroupStart" Status none none None 0;
            530 14 Rccl ncclGroupEnd "ncclGroupEnd" Status none none None 0;
            531 15 Rccl ncclGetVersion "ncclGetVersion" Status none none None 0;
            532 16 Rccl ncclGetUniqueId "ncclGetUniqueId" Status none none None 0;
            533 17 Rccl ncclCommInitRank "ncclCommInitRank" Status r1 none None 16;
            534 18 Rccl ncclCommInitAll "ncclCommInitAll" Status r1 none None 0;
            535 19 Rccl ncclCommInitRankConfig "ncclCommInitRankConfig" Status r1 none None 16;
            536 20 Rccl ncclCommFinalize "ncclCommFinalize" Status r0 none None 0;
            537 21 Rccl ncclCommDestroy "ncclCommDestroy" Status r0 none None 0;
            538 22 Rccl ncclCommAbort "ncclCommAbort" Status r0 none None 0;
            539 23 Rccl ncclCommSplit "ncclCommSplit" Status r0 none None 0;
            540 24 Rccl ncclGetErrorString "ncclGetErrorString" Other none none None 0;
            541 25 Rccl ncclGetLastError "ncclGetLastError" Other none none None 0;
            542 26 Rccl ncclCommGetAsyncError "ncclCommGetAsyncError" Status r0 none None 0;
            543 27 Rccl ncclCommCount "ncclCommCount" Status r0 none None 0;
            544 28 Rccl ncclCommCuDevice "ncclCommCuDevice" Status r0 none None 0;
            545 29 Rccl ncclCommUserRank "ncclCommUserRank" Status r0 none None 0;
            546 30 Rccl ncclMemAlloc "ncclMemAlloc" Status r1 none None 0;
            547 31 Rccl ncclMemFree "ncclMemFree" Status r0 none None 0;
            548 32 Rccl mscclLoadAlgo "mscclLoadAlgo" Status none none None 0;
            549 33 Rccl mscclRunAlgo "mscclRunAlgo" Status s0 s7 None 8;
            550 34 Rccl mscclUnloadAlgo "mscclUnloadAlgo" Status none none None 0;
            551 35 Rccl ncclCommRegister "ncclCommRegister" Status r2 none None 0;
            552 36 Rccl ncclCommDeregister "ncclCommDeregister" Status r0 none None 0;
            553 37 Rccl ncclAllReduceWithBias "ncclAllReduceWithBias" Status r2 s0 None 2;
            554 38 Rccl ncclBcast "ncclBcast" Status r1 r5 None 0;
            555 503 Hip hipGetProcAddress_spt "hipGetProcAddress_spt" Status none none Lookup 0;
            556 504 Hip hipKernelGetParamInfo "hipKernelGetParamInfo" Status none none None 0;
            557 505 Hip hipExtDisableLogging "hipExtDisableLogging" Status none none None 0;
            558 506 Hip hipExtEnableLogging "hipExtEnableLogging" Status none none None 0;
            559 507 Hip hipExtSetLoggingParams "hipExtSetLoggingParams" Status none none None 0;
            560 508 Hip hipMemSetMemPool "hipMemSetMemPool" Status none none None 0;
            561 509 Hip hipMemGetMemPool "hipMemGetMemPool" Status none none None 0;
            562 510 Hip hipMipmappedArrayGetMemoryRequirements "hipMipmappedArrayGetMemoryRequirements" Status none none None 0;
            563 511 Hip hipKernelGetAttribute "hipKernelGetAttribute" Status none none None 0;
            564 512 Hip hipKernelSetAttribute "hipKernelSetAttribute" Status none none None 0;
            565 513 Hip hipKernelGetFunction "hipKernelGetFunction" Status none none None 0;
            566 514 Hip hipMemPrefetchBatchAsync "hipMemPrefetchBatchAsync" Status r2 s1 None 2;
            567 515 Hip hipOccupancyMaxPotentialClusterSize "hipOccupancyMaxPotentialClusterSize" Status r1 none None 0;
            568 516 Hip hipOccupancyMaxActiveClusters "hipOccupancyMaxActiveClusters" Status r1 none None 0;
            569 517 Hip hipGreenCtxCreate "hipGreenCtxCreate" Status none none None 0;
            570 518 Hip hipExecutionCtxDestroy "hipExecutionCtxDestroy" Status none none None 0;
            571 519 Hip hipExecutionCtxStreamCreate "hipExecutionCtxStreamCreate" Status none none StreamCreate 0;
            572 520 Hip hipDeviceGetDevResource "hipDeviceGetDevResource" Status r0 none None 0;
            573 521 Hip hipDevSmResourceSplitByCount "hipDevSmResourceSplitByCount" Status none none None 0;
            574 522 Hip hipDevSmResourceSplit "hipDevSmResourceSplit" Status none none None 0;
            575 523 Hip hipDevResourceGenerateDesc "hipDevResourceGenerateDesc" Status none none None 0;
            576 524 Hip hipDeviceGetExecutionCtx "hipDeviceGetExecutionCtx" Status r1 none None 0;
            577 525 Hip hipExecutionCtxGetDevResource "hipExecutionCtxGetDevResource" Status none none None 0;
            578 526 Hip hipExecutionCtxGetDevice "hipExecutionCtxGetDevice" Status none none None 0;
            579 527 Hip hipExecutionCtxGetId "hipExecutionCtxGetId" Status none none None 0;
            580 528 Hip hipStreamGetDevResource "hipStreamGetDevResource" Status r0 r0 None 0;
            581 529 Hip hipExecutionCtxRecordEvent "hipExecutionCtxRecordEvent" Status r1 none None 0;
            582 530 Hip hipExecutionCtxSynchronize "hipExecutionCtxSynchronize" Status none none Wait 0;
            583 531 Hip hipExecutionCtxWaitEvent "hipExecutionCtxWaitEvent" Status r1 none None 0;
            584 532 Hip hipLibraryGetGlobal "hipLibraryGetGlobal" Status none none None 0;
            585 533 Hip hipLibraryGetManaged "hipLibraryGetManaged" Status none none None 0;
            586 534 Hip hipMemDiscardBatchAsync "hipMemDiscardBatchAsync" Status r2 r4 None 0;
            587 535 Hip hipDrvMemDiscardBatchAsync "hipDrvMemDiscardBatchAsync" Status r2 r4 None 0;
            588 536 Hip hipMemDiscardAndPrefetchBatchAsync "hipMemDiscardAndPrefetchBatchAsync" Status r2 s1 None 2;
            589 537 Hip hipDrvMemDiscardAndPrefetchBatchAsync "hipDrvMemDiscardAndPrefetchBatchAsync" Status r2 s1 None 2;
        }
    };
}

macro_rules! place {
    (none) => {
        Place::None
    };
    (null) => {
        Place::Null
    };
    (thread) => {
        Place::PerThread
    };
    (config) => {
        Place::Config
    };
    (r0) => {
        Place::Register(0)
    };
    (r1) => {
        Place::Register(1)
    };
    (r2) => {
        Place::Register(2)
    };
    (r3) => {
        Place::Register(3)
    };
    (r4) => {
        Place::Register(4)
    };
    (r5) => {
        Place::Register(5)
    };
    (s0) => {
        Place::Stack(0)
    };
    (s1) => {
        Place::Stack(1)
    };
    (s2) => {
        Place::Stack(2)
    };
    (s3) => {
        Place::Stack(3)
    };
    (s4) => {
        Place::Stack(4)
    };
    (s5) => {
        Place::Stack(5)
    };
    (s6) => {
        Place::Stack(6)
    };
    (s7) => {
        Place::Stack(7)
    };
}

macro_rules! table {
    ($($index:literal $op:literal $domain:ident $symbol:ident $name:literal $returns:ident $arg:ident $stream:ident $effect:ident $words:literal;)*) => {
        /// Number of rows.
        pub const COUNT: usize = [$($index),*].len();

        /// All rows, by index.
        pub static FUNCTIONS: [Function; COUNT] = [$(
            Function {
                symbol: concat!(stringify!($symbol), "\0"),
                name: $name,
                op: $op,
                domain: Domain::$domain,
                returns: Returns::$returns,
                argument: place!($arg),
                stream: place!($stream),
                is_per_thread: ends_with(stringify!($symbol), "_spt"),
                effect: Effect::$effect,
                gives: gives($name),
                stack_words: $words,
                moves: moves($name),
                is_special: !matches!(Effect::$effect, Effect::None | Effect::Shared | Effect::Launch) || moves($name).is_some(),
            },
        )*];

        #[cfg(test)]
        const INDICES: [usize; COUNT] = [$($index),*];
    };
}

/// Whether this function stores a handle or an address through its first argument.
const fn gives(name: &str) -> bool {
    const NAMES: [&str; 23] = [
        "hipMalloc",
        "hipMallocAsync",
        "hipMallocFromPoolAsync",
        "hipMallocManaged",
        "hipMallocHost",
        "hipMallocPitch",
        "hipHostMalloc",
        "hipHostAlloc",
        "hipMemAllocHost",
        "hipExtMallocWithFlags",
        "hipMemAddressReserve",
        "hipStreamCreate",
        "hipStreamCreateWithFlags",
        "hipStreamCreateWithPriority",
        "hipExtStreamCreateWithCUMask",
        "hipEventCreate",
        "hipEventCreateWithFlags",
        "hipModuleLoad",
        "hipModuleLoadData",
        "hipModuleGetFunction",
        "hipGraphInstantiate",
        "ncclMemAlloc",
        "ncclCommInitRank",
    ];
    let mut at = 0;
    while at < NAMES.len() {
        if is_same(NAMES[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn ends_with(text: &str, end: &str) -> bool {
    match text.len().checked_sub(end.len()) {
        Some(at) => is_same(text.as_bytes().split_at(at).1, end.as_bytes()),
        None => false,
    }
}

pub(crate) const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

functions!(table);

pub use crate::moves::{Moves, moves};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_numbered_in_order() {
        assert!(INDICES.iter().copied().eq(0..COUNT));
    }

    #[test]
    fn no_function_exceeds_the_copied_stack() {
        assert!(FUNCTIONS.iter().all(|function| function.stack_words <= STACK_WORDS));
    }

    #[test]
    fn per_thread_functions_use_the_threads_null_stream() {
        let row = |name| FUNCTIONS.iter().find(|function| function.name == name);
        assert!(row("hipMemcpyAsync_spt").is_some_and(|function| function.is_per_thread));
        assert!(row("hipMemcpyAsync").is_some_and(|function| !function.is_per_thread));
    }

    #[test]
    fn an_operation_has_one_name() {
        for one in &FUNCTIONS {
            for other in FUNCTIONS.iter().filter(|f| f.domain == one.domain) {
                assert_eq!(
                    one.op == other.op,
                    one.name == other.name,
                    "{} {}",
                    one.name,
                    other.name
                );
            }
        }
    }
}
