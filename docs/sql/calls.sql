-- Calls by function: `roctop ask REC 'top calls'`.
--
-- A call's time is the host's, from its begin to its return. P50 and P99 are nearest ranks, as in kernels.sql.
WITH timed AS (
    SELECT name, "end" - start AS ns,
           row_number() OVER (PARTITION BY name ORDER BY "end" - start) AS place,
           count(*) OVER (PARTITION BY name) AS calls
    FROM regions WHERE category NOT LIKE 'MARKER_%')
SELECT name AS Function, count(*) AS Calls, sum(ns) AS Total_ns, avg(ns) AS Average_ns, max(ns) AS Max_ns,
       min(CASE WHEN place * 100 >= calls * 50 THEN ns END) AS P50_ns,
       min(CASE WHEN place * 100 >= calls * 99 THEN ns END) AS P99_ns
FROM timed GROUP BY name;
