-- Copies by direction and route: `roctop ask REC 'top copies'`.
--
-- Rows that begin with `~` are kernels of the run-time that copy or fill; they are in kernels.sql, and not here.
-- Average_Bps is all bytes over the sum of all times, so long copies weigh more.
WITH routed AS (
    SELECT CASE name WHEN 'MEMORY_COPY_HOST_TO_DEVICE' THEN 'H2D' WHEN 'MEMORY_COPY_DEVICE_TO_HOST' THEN 'D2H'
                     WHEN 'MEMORY_COPY_DEVICE_TO_DEVICE' THEN 'D2D' WHEN 'MEMORY_COPY_HOST_TO_HOST' THEN 'H2H' ELSE name END AS direction,
           CASE src_agent_type WHEN 'GPU' THEN 'GPU' || src_agent_type_index ELSE 'host' END AS source,
           CASE dst_agent_type WHEN 'GPU' THEN 'GPU' || dst_agent_type_index ELSE 'host' END AS destination,
           size, "end" - start AS ns
    FROM memory_copies)
SELECT direction AS Direction, source || '→' || destination AS Route, count(*) AS Count, sum(size) AS Bytes, sum(ns) AS Total_ns,
       avg(ns) AS Average_ns, sum(size) * 1e9 / sum(ns) AS Average_Bps
FROM routed GROUP BY direction, source, destination;
