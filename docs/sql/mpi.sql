-- Time in MPI by function: `roctop ask REC 'top mpi'`.
--
-- A rocpd file has one process: of several ranks, the views are those of all files together (UNION ALL).
--   Bytes          what the rank gives, or gets where it gives none, of the Calls_with_Bytes whose bytes are known
--   Kind           MPI_Wait and its kin complete messages and collectives: they are a kind of their own
--   Max_over_Mean  the greatest time of a process over the mean of all that called MPI; none of one process
WITH call AS (
    SELECT R.name, R.pid, R."end" - R.start AS ns, CAST(A.value AS INTEGER) AS bytes
    FROM regions R LEFT JOIN region_args A ON A.id = R.id AND A.pid = R.pid AND A.name = 'bytes'
    WHERE R.category = 'MPI_API'),
processes AS (SELECT count(DISTINCT pid) AS count FROM call),
greatest AS (
    SELECT name, max(ns) AS ns FROM (SELECT name, sum(ns) AS ns FROM call GROUP BY name, pid) AS one GROUP BY name)
SELECT call.name AS Function, count(*) AS Calls, sum(call.ns) AS Total_ns, sum(bytes) AS Bytes, count(bytes) AS Calls_with_Bytes,
       sum(bytes) / nullif(count(bytes), 0) AS Average_Bytes,
       CASE
           WHEN call.name GLOB 'MPI_Wait*' OR call.name GLOB 'MPI_Test*' THEN 'completion'
           WHEN call.name GLOB 'MPI_*[Ss]end' OR call.name GLOB 'MPI_*[Rr]ecv' OR call.name GLOB 'MPI_*[Pp]robe'
               OR call.name IN ('MPI_Sendrecv_replace', 'MPI_Start', 'MPI_Startall') THEN 'point-to-point'
           WHEN call.name GLOB 'MPI_*[Bb]arrier' OR call.name GLOB 'MPI_*[Bb]cast' OR call.name GLOB 'MPI_*[Gg]ather'
               OR call.name GLOB 'MPI_*[Gg]atherv' OR call.name GLOB 'MPI_*[Ss]catter*' OR call.name GLOB 'MPI_*[Aa]lltoall*'
               OR call.name GLOB 'MPI_*[Rr]educe*' OR call.name GLOB 'MPI_*[Ss]can' THEN 'collective'
           ELSE 'other'
       END AS Kind,
       CASE WHEN processes.count > 1 THEN max(greatest.ns) * 1.0 * processes.count / sum(call.ns) END AS Max_over_Mean
FROM call JOIN greatest ON greatest.name = call.name CROSS JOIN processes
GROUP BY call.name, processes.count;
