//! Columns of rocprofv3's CSV files: those of rocprofiler-sdk 1.0.0, and of ROCm 6.2 (seed).

pub(crate) const CALLS: &str = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp";
pub(crate) const KERNELS: &str = "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z";
pub(crate) const COPIES: &str =
    "Kind,Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp";
pub(crate) const ALLOCATIONS: &str =
    "Kind,Operation,Agent_Id,Allocation_Size,Address,Correlation_Id,Start_Timestamp,End_Timestamp";
/// Not one of rocprofv3's: kernels that were in flight when their process ended.
pub(crate) const IN_FLIGHT: &str =
    "Kind,Agent_Id,Queue_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Submit_Timestamp";
pub(crate) const SEED_KERNELS: &str = "Kind,Agent_Id,Queue_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Private_Segment_Size,Group_Segment_Size,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z";
pub(crate) const SEED_COPIES: &str =
    "Kind,Direction,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp";
pub(crate) const STATS: &str = "Name,Calls,TotalDurationNs,AverageNs,Percentage,MinNs,MaxNs,StdDev";
