-- Memory that is held at the end, by the function that allocated it, as view Memory has it, of a database that
-- `roctop export --format rocpd` wrote. Scratch memory is no allocation of the program.
--
--   Function   the call in which the memory was allocated; null if none was recorded
--   Count      number of allocations that were not freed
--   Bytes      their size
WITH event AS (
    SELECT id, pid, type, level, address, size, start, stack_id
    FROM memory_allocations
    WHERE level <> 'SCRATCH'
),
-- The next event of an address shows whether the memory was freed.
followed AS (
    SELECT *, lead(type) OVER (PARTITION BY pid, level, address ORDER BY start, id) AS next FROM event
)
SELECT call.name AS Function, count(*) AS Count, sum(held.size) AS Bytes
FROM followed AS held
LEFT JOIN regions AS call
    ON call.pid = held.pid AND call.stack_id = held.stack_id AND call.category NOT LIKE 'MARKER%'
WHERE held.type = 'ALLOC' AND held.next IS NOT 'FREE'
GROUP BY call.name
ORDER BY Bytes DESC;
