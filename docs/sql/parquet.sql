-- The views of a rocpd file over exported Parquet files, for DuckDB. Read it first, in the directory with `parquet/`, then another
-- file of this folder: the same query then answers for all processes and ranks that the files hold.
--
-- Parquet numbers agents, and rocpd GPUs: a copy's route has the agent's number here.
CREATE VIEW records AS SELECT * FROM read_parquet('parquet/**/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE VIEW kernels AS
    SELECT kernel AS name, rank, pid, tid, agent, queue, stream, start_ns AS start, end_ns AS "end" FROM records WHERE kind = 'kernel_dispatch';
CREATE VIEW regions AS
    SELECT domain AS category, "function" AS name, rank, pid, tid, start_ns AS start, end_ns AS "end"
    FROM records WHERE kind IN ('hip_api', 'hsa_api', 'rccl_api', 'marker_api');
CREATE VIEW regions_and_samples AS SELECT * FROM regions;
CREATE VIEW memory_copies AS
    SELECT direction AS name, rank, pid, tid, start_ns AS start, end_ns AS "end", bytes AS size,
           CASE WHEN direction LIKE '%\_HOST\_TO\_%' ESCAPE '\' THEN 'CPU' ELSE 'GPU' END AS src_agent_type,
           CASE WHEN direction LIKE '%\_TO\_HOST' ESCAPE '\' THEN 'CPU' ELSE 'GPU' END AS dst_agent_type,
           replace(source, 'Agent ', '') AS src_agent_type_index, replace(destination, 'Agent ', '') AS dst_agent_type_index
    FROM records WHERE kind = 'memory_copy';
