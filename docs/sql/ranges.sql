-- GPU work under ROC-TX ranges, as view Markers and `roctop ask 'top ranges'` have it, of a database that
-- `roctop export --format rocpd` wrote.
--
-- The ranges are those whose text matches :ranges, as 'step [0-9]*'.
--   Count     number of the ranges
--   Total_ns  sum of their durations
--   Kernels   kernels that a thread launched in one of its ranges; a kernel counts once, however many of the ranges were open
--   Copies    the same of copies and fills
--   GPU_ns    sum of the durations of both
WITH range AS MATERIALIZED (
    SELECT pid, tid, start, "end"
    FROM regions
    WHERE category LIKE 'MARKER%' AND json_extract(extdata, '$.message') GLOB :ranges
),
work AS (
    SELECT pid, stack_id, duration, 1 AS kernels FROM kernels
    UNION ALL
    SELECT pid, stack_id, duration, 0 FROM memory_copies
),
-- A call is in a range or outside of it: ranges begin and end between calls.
call AS (
    SELECT call.pid, call.stack_id
    FROM regions AS call
    WHERE call.category NOT LIKE 'MARKER%' AND EXISTS (
        SELECT 1 FROM range
        WHERE range.pid = call.pid AND range.tid = call.tid AND range.start <= call.start AND range."end" >= call."end"
    )
),
launched AS (SELECT work.* FROM work JOIN call USING (pid, stack_id))
SELECT (SELECT count(*) FROM range) AS Count,
    (SELECT coalesce(sum("end" - start), 0) FROM range) AS Total_ns,
    coalesce(sum(kernels), 0) AS Kernels,
    count(*) - coalesce(sum(kernels), 0) AS Copies,
    coalesce(sum(duration), 0) AS GPU_ns
FROM launched;
