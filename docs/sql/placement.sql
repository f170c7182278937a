-- What a wrong place costs, of a database that `roctop export --format rocpd` wrote: the columns of `roctop ask 'placement'` for each
-- process.
--
-- A median is the value in the middle; of an even number the greater one of both. roctop takes the latest 4096 kernels of each stream,
-- and copies of each direction.
--   Least_ns, Most_ns   Launch_Delay_p50_ns lies between them. The file does not say when a packet was submitted: it was within the
--                       call that launched the kernel
--   To_GPU_p50_Bps, From_GPU_p50_Bps   rate of copies of a MiB or more between host and GPU
WITH delay AS (
    SELECT kernels.pid, max(kernels.start - call."end", 0) AS least, kernels.start - call.start AS most
    FROM kernels
    JOIN regions AS call ON call.pid = kernels.pid AND call.stack_id = kernels.stack_id AND call.category NOT LIKE 'MARKER%'
    WHERE kernels.start >= call.start
),
rate AS (
    SELECT pid, name, size * 1000000000 / ("end" - start) AS rate
    FROM memory_copies WHERE size >= 1048576 AND "end" > start
),
measured AS (
    SELECT pid, 'least' AS what, least AS value FROM delay
    UNION ALL
    SELECT pid, 'most', most FROM delay
    UNION ALL
    SELECT pid, 'to', rate FROM rate WHERE name = 'MEMORY_COPY_HOST_TO_DEVICE'
    UNION ALL
    SELECT pid, 'from', rate FROM rate WHERE name = 'MEMORY_COPY_DEVICE_TO_HOST'
),
ordered AS (
    SELECT pid, what, value, row_number() OVER (PARTITION BY pid, what ORDER BY value) AS place,
        count(*) OVER (PARTITION BY pid, what) AS count
    FROM measured
),
middle AS (SELECT pid, what, value FROM ordered WHERE place = count / 2 + 1)
SELECT pid AS Process_Id,
    max(value) FILTER (WHERE what = 'least') AS Least_ns,
    max(value) FILTER (WHERE what = 'most') AS Most_ns,
    max(value) FILTER (WHERE what = 'to') AS To_GPU_p50_Bps,
    max(value) FILTER (WHERE what = 'from') AS From_GPU_p50_Bps
FROM middle GROUP BY pid;
