-- Steps of a database that `roctop export --format rocpd` wrote, as view Steps and `roctop ask 'steps'` have them.
--
-- A step is a ROC-TX range whose text matches :steps, as 'step *'. Where such ranges are nested, or in several threads, restrict
-- them to the outermost ones of one thread.
--   Absolute     its place among all steps since the start, by end
--   Step         the last integer in its text, here at the text's end; without one, the absolute number
--   Duration_ns  its duration
--   Busy_ns      for each GPU the time in which at least one kernel ran in the step, of any process; summed over the GPUs
WITH step AS MATERIALIZED (
    SELECT json_extract(extdata, '$.message') AS name, start, "end",
        row_number() OVER (ORDER BY "end", start) AS absolute
    FROM regions
    WHERE category LIKE 'MARKER%' AND json_extract(extdata, '$.message') GLOB :steps
),
kernel AS MATERIALIZED (SELECT nid, agent_abs_index AS gpu, start, "end" FROM kernels),
piece AS (
    SELECT step.absolute, kernel.nid, kernel.gpu,
        max(kernel.start, step.start) AS start, min(kernel."end", step."end") AS "end"
    FROM step JOIN kernel ON kernel.start < step."end" AND kernel."end" > step.start
),
-- What earlier kernels of the same GPU have covered does not count again.
ordered AS (
    SELECT absolute, start, "end",
        max("end") OVER (
            PARTITION BY absolute, nid, gpu ORDER BY start, "end"
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered
    FROM piece
),
busy AS (
    SELECT absolute, sum(max(0, "end" - max(start, coalesce(covered, start)))) AS busy_ns FROM ordered GROUP BY absolute
),
-- Digits at the end of the text.
numbered AS (
    SELECT *, substr(name, length(rtrim(name, '0123456789')) + 1) AS digits FROM step
)
SELECT absolute AS Absolute, CASE digits WHEN '' THEN absolute ELSE CAST(digits AS INTEGER) END AS Step, name AS Name,
    "end" - start AS Duration_ns, coalesce(busy_ns, 0) AS Busy_ns
FROM numbered LEFT JOIN busy USING (absolute)
ORDER BY absolute;
