-- Copies by direction and route: `roctop ask REC 'top copies'`.
--
-- Rows that begin with `~` are kernels of the run-time that copy or fill; they are in kernels.sql, and not here.
-- Total_ns is the sum of the copies' times. Average_Bps is all bytes over the time in which at least one copy of the route ran: copies
-- that run beside each other share it.
WITH routed AS (
    SELECT CASE name WHEN 'MEMORY_COPY_HOST_TO_DEVICE' THEN 'H2D' WHEN 'MEMORY_COPY_DEVICE_TO_HOST' THEN 'D2H'
                     WHEN 'MEMORY_COPY_DEVICE_TO_DEVICE' THEN 'D2D' WHEN 'MEMORY_COPY_HOST_TO_HOST' THEN 'H2H' ELSE name END AS direction,
           CASE src_agent_type WHEN 'GPU' THEN 'GPU' || src_agent_type_index ELSE 'host' END || '→' ||
           CASE dst_agent_type WHEN 'GPU' THEN 'GPU' || dst_agent_type_index ELSE 'host' END AS route,
           size, start, "end"
    FROM memory_copies),
-- What earlier copies of the route have covered does not count again.
ordered AS (
    SELECT *, max("end") OVER (PARTITION BY direction, route ORDER BY start, "end"
                               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered
    FROM routed),
timed AS (
    SELECT *, CASE WHEN covered IS NULL OR covered < start THEN "end" - start
                   WHEN covered < "end" THEN "end" - covered ELSE 0 END AS busy
    FROM ordered)
SELECT direction AS Direction, route AS Route, count(*) AS Count, sum(size) AS Bytes, sum("end" - start) AS Total_ns,
       avg("end" - start) AS Average_ns, sum(size) * 1e9 / sum(busy) AS Average_Bps
FROM timed GROUP BY direction, route;
