"""Compares what other tools read with the rocpd files of the same recordings.

Arguments: a folder with `parquet/` and a `*_results.db` for each recording, and one with the other formats of the recording `alone`.
Prints a line a tool; exits with 1 if one differs, or fails.
"""

import collections
import gzip
import json
import pathlib
import sqlite3
import subprocess
import sys
import traceback

ALL, SINGLE = (pathlib.Path(word) for word in sys.argv[1:3])
SQL = pathlib.Path(__file__).parents[2] / "docs/sql"
KERNELS = ALL / "parquet/kind=kernel_dispatch"


def rows(name, query):
    with sqlite3.connect(ALL / f"{name}_results.db") as database:
        return database.execute(query).fetchall()


def by_name(pairs):
    """Number and time of kernels by name."""
    sums = collections.defaultdict(lambda: [0, 0])
    for name, nanos in pairs:
        sums[name][0] += 1
        sums[name][1] += int(nanos)
    return {name: tuple(sum) for name, sum in sums.items()}


RANKS = {"alone": None, "rank0": 0, "rank1": 1}
TIMES = {name: by_name(rows(name, 'SELECT name, "end" - start FROM kernels')) for name in RANKS}
# Number and time of all kernels of each rank.
EXPECTED = {rank: tuple(map(sum, zip(*TIMES[name].values()))) for name, rank in RANKS.items()}


def same(found, expected):
    if found != expected:
        raise AssertionError(f"{found} is not {expected}")
    return len(expected)


def of_ranks(table):
    """Number and time by rank of a pandas table of kernels."""
    nanos = (table["end_ns"] - table["start_ns"]).groupby(table["rank"], dropna=False)
    return {None if rank != rank else int(rank): (int(one.count()), int(one.sum())) for rank, one in nanos}


def pandas():
    import pandas

    table = pandas.read_parquet(KERNELS)
    count = same(of_ranks(table), EXPECTED)
    table = pandas.read_csv(SINGLE / "t_kernel_trace.csv")
    pairs = zip(table["Kernel_Name"], table["End_Timestamp"] - table["Start_Timestamp"])
    return count + same(by_name(pairs), TIMES["alone"])


def pyarrow():
    import pyarrow.dataset

    dataset = pyarrow.dataset.dataset(ALL / "parquet", partitioning="hive")
    table = dataset.to_table(filter=pyarrow.dataset.field("kind") == "kernel_dispatch")
    return same(of_ranks(table.to_pandas()), EXPECTED)


def dask():
    import dask.dataframe

    return same(of_ranks(dask.dataframe.read_parquet(KERNELS).compute()), EXPECTED)


def polars():
    import polars

    nanos = polars.col("end_ns") - polars.col("start_ns")
    kernels = polars.scan_parquet(KERNELS / "**/*.parquet", hive_partitioning=True)
    sums = kernels.group_by("rank").agg(count=nanos.count(), sum=nanos.sum()).collect()
    return same({rank: (count, sum) for rank, count, sum in sums.rows()}, EXPECTED)


def spark():
    import pyspark.sql

    session = pyspark.sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.read.parquet(str(KERNELS)).createOrReplaceTempView("kernels")
    query = "SELECT rank, count(*), sum(end_ns - start_ns) FROM kernels GROUP BY rank"
    found = {row[0]: (row[1], row[2]) for row in session.sql(query).collect()}
    session.stop()
    return same(found, EXPECTED)


def duckdb():
    """The definitions of docs/sql over Parquet, summed over all recordings, against SQLite's sums of each."""
    import duckdb

    database = duckdb.connect()
    database.execute(f"SET file_search_path = '{ALL}'")
    database.execute((SQL / "parquet.sql").read_text())

    def of_both(file, key, sums):
        query = f"SELECT {key}, {', '.join(f'sum({column})' for column in sums)} FROM ({{}}) GROUP BY 1"
        text = (SQL / f"{file}.sql").read_text().rstrip().removesuffix(";")
        found = {row[0]: tuple(map(int, row[1:])) for row in database.execute(query.format(text)).fetchall()}
        expected = collections.defaultdict(lambda: [0] * len(sums))
        for name in RANKS:
            for row in rows(name, query.format(text)):
                expected[row[0]] = [a + b for a, b in zip(expected[row[0]], row[1:])]
        return same(found, {name: tuple(sum) for name, sum in expected.items()}) * len(sums)

    return (
        of_both("totals", "1", ["Dispatches", "Kernel_ns", "Copies", "Calls", "Markers"])
        + of_both("kernels", "Kernel_Name", ["Calls", "Total_ns"])
        + of_both("calls", "Function", ["Calls", "Total_ns"])
        + of_both("copies", "Direction", ["Count", "Bytes", "Total_ns"])
    )


def gpu_time():
    """Number and time of kernels and copies, which stacks have both."""
    copies = rows("alone", 'SELECT count(*), sum("end" - start) FROM memory_copies')[0]
    return tuple(map(sum, zip(EXPECTED[None], copies)))


def collapsed():
    """The input of flame graphs: stacks that end in a kernel or copy, in ns."""
    lines = (SINGLE / "t_gpu.collapsed.txt").read_text().splitlines()
    return same([sum(int(line.rsplit(" ", 1)[1]) for line in lines)], [gpu_time()[1]])


def go_pprof():
    command = ["go", "tool", "pprof", "-raw", str(SINGLE / "t_gpu.pb.gz")]
    raw = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = raw.splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("Samples:"))
    units = [word.removesuffix("[dflt]") for word in lines[begin + 1].split()]
    sums = collections.Counter()
    for line in lines[begin + 2 :]:
        if line.startswith("Locations"):
            break
        values, colon, _ = line.partition(":")
        numbers = values.split()
        if colon and len(numbers) == len(units) and all(number.isdigit() for number in numbers):
            sums.update(dict(zip(units, map(int, numbers))))
    found = (sums["launches/count"], sums["gpu/nanoseconds"])
    return same(found, gpu_time())


def holistic_trace_analysis():
    import os

    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
    from hta.common.trace import Trace

    folder = SINGLE / "hta"
    folder.mkdir(exist_ok=True)
    text = (SINGLE / "t_kineto.pt.trace.json").read_bytes()
    document = json.loads(text)
    document.setdefault("distributedInfo", {"rank": 0, "world_size": 1})
    with gzip.open(folder / "rank-0.json.gz", "wb") as file:
        file.write(json.dumps(document).encode())
    trace = Trace(trace_dir=str(folder))
    trace.parse_traces(use_multiprocessing=False)
    trace.decode_symbol_ids()
    table = trace.get_trace(0)
    kernels = table[table["s_cat"] == "kernel"]
    # It shortens names: the numbers of launches are compared.
    found = collections.Counter(kernels["s_name"]).values()
    return same(sorted(found), sorted(sum[0] for sum in TIMES["alone"].values()))


def torch_tb_profiler():
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.kernel_parser import KernelParser
    from torch_tb_profiler.profiler.trace import EventTypes

    data = RunProfileData.parse("worker", None, str(SINGLE / "t_kineto.pt.trace.json"), str(SINGLE))
    kernels = [event for event in data.events if event.type == EventTypes.KERNEL]
    return same(dict(collections.Counter(event.name for event in kernels)), {name: sum[0] for name, sum in TIMES["alone"].items()})


TOOLS = [pandas, pyarrow, dask, polars, spark, duckdb, collapsed, go_pprof, holistic_trace_analysis, torch_tb_profiler]
failed = 0
for tool in TOOLS:
    try:
        print(f"{tool.__name__}: {tool()} numbers equal")
    except Exception:
        failed += 1
        print(f"{tool.__name__}: FAILED")
        traceback.print_exc()
sys.exit(failed > 0)
