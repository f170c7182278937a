-- Idle time of each GPU of a rocpd file: `Idle_ns` of `roctop ask REC status` is the sum over the GPUs.
--
-- A GPU is idle while it neither runs a kernel nor copies (from or to it), from its first kernel on: the time before
-- is start-up. Copies that the host made itself in a call are not the GPU's; rocpd does not tell them apart. Each
-- moment without a kernel has one cause, so that the times of all causes add up to without_kernel.
-- :end is the end of the run, ns (`window.end_ns` of an answer in JSON); without it, the last record ends the run.
WITH first AS (
    SELECT nid, agent_abs_index AS gpu, min(start) AS at FROM kernels WHERE "end" > start GROUP BY 1, 2
),
run AS (
    SELECT coalesce(:end, max("end")) AS run_end
    FROM (SELECT "end" FROM kernels UNION ALL SELECT "end" FROM memory_copies UNION ALL SELECT "end" FROM regions)
),
work AS (
    SELECT 1 AS is_kernel, nid, agent_abs_index AS gpu, start, "end" FROM kernels
    UNION ALL
    SELECT 0, nid, dst_agent_abs_index, start, "end" FROM memory_copies WHERE dst_agent_type = 'GPU'
    UNION ALL
    SELECT 0, nid, src_agent_abs_index, start, "end" FROM memory_copies WHERE src_agent_type = 'GPU'
    UNION ALL
    SELECT 1, nid, gpu, run_end, run_end FROM first, run
),
clipped AS (
    SELECT is_kernel, nid, gpu, at, max(start, at) AS start, "end"
    FROM work JOIN first USING (nid, gpu)
    WHERE "end" >= at
),
with_all AS (
    SELECT
        nid,
        gpu,
        start - max("end") OVER (
            PARTITION BY nid, gpu ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS gap
    FROM clipped
),
with_kernels AS (
    SELECT
        nid,
        gpu,
        start - max("end") OVER (
            PARTITION BY nid, gpu ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS gap
    FROM clipped
    WHERE is_kernel
)
SELECT
    nid,
    gpu,
    at AS first_kernel,
    (SELECT sum(max(gap, 0)) FROM with_all AS a WHERE (a.nid, a.gpu) = (first.nid, first.gpu)) AS idle,
    (SELECT sum(max(gap, 0)) FROM with_kernels AS k WHERE (k.nid, k.gpu) = (first.nid, first.gpu)) AS without_kernel
FROM first
ORDER BY nid, gpu;
