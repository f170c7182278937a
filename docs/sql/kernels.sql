-- Kernels by name: `roctop ask REC 'top kernels'`.
--
-- A kernel's time is the end of its work on the GPU minus its begin. The variance is that of all launches (divided by their number); its root is StdDev_ns.
-- P50, P95 and P99 are nearest ranks: the smallest time that is not below 50, 95 or 99 % of the launches. roctop sorts times into
-- bins and shows a bin's upper end: its value is at least this one, and at most 1/64 above it.
WITH timed AS (
    SELECT name, "end" - start AS ns,
           row_number() OVER (PARTITION BY name ORDER BY "end" - start) AS place,
           count(*) OVER (PARTITION BY name) AS calls
    FROM kernels)
SELECT name AS Kernel_Name, count(*) AS Calls, sum(ns) AS Total_ns,
       sum(ns) * 1.0 / (SELECT sum(ns) FROM timed) AS Share,
       avg(ns) AS Average_ns, min(ns) AS Min_ns, max(ns) AS Max_ns,
       min(CASE WHEN place * 100 >= calls * 50 THEN ns END) AS P50_ns,
       min(CASE WHEN place * 100 >= calls * 95 THEN ns END) AS P95_ns,
       min(CASE WHEN place * 100 >= calls * 99 THEN ns END) AS P99_ns,
       CASE WHEN count(*) > 1 THEN avg(1.0 * ns * ns) - avg(ns) * avg(ns) END AS Variance
FROM timed GROUP BY name;
