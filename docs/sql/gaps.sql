-- The 100 longest idle gaps of the GPUs of a rocpd file: `roctop ask REC 'gaps limit 100'`.
--
-- A GPU is idle while it neither runs a kernel nor copies (from or to it), from its first kernel on: the time before
-- is start-up. Copies that the host made itself in a call are not the GPU's; rocpd does not tell them apart. A gap
-- lasts from the end of all work before it to the begin of the next. It is listed from 1 ms on.
-- :end is the end of the run, ns (`window.end_ns` of the answer in JSON); without it, the last record ends the run.
WITH first AS (
    SELECT nid, agent_abs_index AS gpu, min(start) AS at FROM kernels WHERE "end" > start GROUP BY 1, 2
),
work AS (
    SELECT nid, agent_abs_index AS gpu, start, "end" FROM kernels
    UNION ALL
    SELECT nid, dst_agent_abs_index, start, "end" FROM memory_copies WHERE dst_agent_type = 'GPU'
    UNION ALL
    SELECT nid, src_agent_abs_index, start, "end" FROM memory_copies WHERE src_agent_type = 'GPU'
    UNION ALL
    SELECT nid, gpu, run_end, run_end
    FROM first, (
        SELECT coalesce(:end, max("end")) AS run_end
        FROM (SELECT "end" FROM kernels UNION ALL SELECT "end" FROM memory_copies UNION ALL SELECT "end" FROM regions)
    )
),
ordered AS (
    SELECT
        nid,
        gpu,
        max(start, at) AS start,
        max("end") OVER (
            PARTITION BY nid, gpu ORDER BY max(start, at) ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS since
    FROM work JOIN first USING (nid, gpu)
    WHERE "end" >= at
)
SELECT nid, gpu, since AS begin, start - since AS duration
FROM ordered
WHERE start - since >= 1000000
ORDER BY duration DESC, begin
LIMIT 100;
