-- What a recording holds: `roctop ask REC status`, and the second line of `roctop summary`.
--
-- Dispatches   kernels that the GPU ran, those that the run-time launched for itself included.
-- Kernel_ns    the sum of their times on the GPU. Kernels that run beside each other count twice.
-- Copies       copies by a copy engine, by a kernel, and by the host.
-- Calls        calls of HIP, HSA and RCCL that have returned.
-- Markers      ROC-TX ranges that have ended, and marks.
SELECT (SELECT count(*) FROM kernels) AS Dispatches,
       (SELECT coalesce(sum("end" - start), 0) FROM kernels) AS Kernel_ns,
       (SELECT count(*) FROM memory_copies) AS Copies,
       (SELECT count(*) FROM regions WHERE category NOT LIKE 'MARKER_%') AS Calls,
       (SELECT count(*) FROM regions_and_samples WHERE category LIKE 'MARKER_%') AS Markers;
