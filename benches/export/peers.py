#!/usr/bin/env python3
"""Writes the rows of an export of roctop with another library, in the same order, and measures that.

    peers.py duckdb|polars csv|parquet SOURCE OUT THREADS

SOURCE has roctop's Parquet files of one process (and its CSV files in `csv`, for `csv`). The library writes the same rows, with
the columns that roctop's files of that format have, to OUT, one file per kind of record: once from file to file, and once from
memory. Prints the seconds of both, and the largest resident size of the first in KiB. Then it checks what was written last: CSV
files have the bytes of roctop's below the header, and Parquet files the same rows in the same order. Exits with 3 if the library is missing.
"""

import glob
import os
import re
import resource
import sys
import time

library, form, source, out, threads = sys.argv[1:]
os.environ["POLARS_MAX_THREADS"] = threads

# As roctop's Parquet files have them.
ROW_GROUP = 1 << 16
# Columns of roctop's CSV files, by kind: name of the file, then what is in each column.
CALLS = "Domain=domain Function=function Process_Id=pid Thread_Id=tid Correlation_Id=correlation_id " \
    "Start_Timestamp=start_ns End_Timestamp=end_ns"
SIZES = " ".join(f"{what}_Size_{axis.upper()}={what.lower()}_{axis}" for what in ["Workgroup", "Grid"] for axis in "xyz")
CSV = {
    "hip_api": ("hip_api_trace", CALLS),
    "marker_api": ("marker_api_trace", CALLS),
    "kernel_dispatch": ("kernel_trace", "Kind='KERNEL_DISPATCH' Agent_Id=agent Queue_Id=queue Stream_Id=stream Thread_Id=tid "
        "Dispatch_Id=dispatch_id Kernel_Id=kernel_id Kernel_Name=kernel Correlation_Id=correlation_id Start_Timestamp=start_ns "
        "End_Timestamp=end_ns LDS_Block_Size=lds_bytes+511-(lds_bytes+511)%512 Scratch_Size=scratch_bytes VGPR_Count=vgprs "
        f"Accum_VGPR_Count=accum_vgprs SGPR_Count=sgprs {SIZES}"),
    "memory_copy": ("memory_copy_trace", "Kind='MEMORY_COPY' Direction=direction Stream_Id=stream Source_Agent_Id=source "
        "Destination_Agent_Id=destination Correlation_Id=correlation_id Start_Timestamp=start_ns End_Timestamp=end_ns"),
}


def tables():
    """Path, name of the file to write, and its columns, of each kind."""
    for path in sorted(glob.glob(f"{source}/parquet/kind=*/**/*.parquet", recursive=True)):
        kind = re.search("kind=([^/]*)", path)[1]
        if form == "csv" and kind not in CSV:
            continue  # The CSV files have no steps.
        name, columns = CSV[kind] if form == "csv" else (kind, "")
        yield path, f"{out}/{name}.{form}", [column.split("=", 1) for column in columns.split()]


class DuckDB:
    def __init__(self):
        import duckdb

        self.db = duckdb.connect()
        self.db.sql(f"SET threads = {threads}; SET preserve_insertion_order = true; SET enable_progress_bar = false")

    def rows(self, path, columns):
        what = ", ".join(f"{value} AS {name}" for name, value in columns) or "*"
        return f"SELECT {what} FROM read_parquet('{path}', hive_partitioning = false)"

    def read(self, path, to, columns):
        table = os.path.basename(to).split(".")[0]
        self.db.sql(f"CREATE TABLE {table} AS {self.rows(path, columns)}")
        return f"FROM {table}", to

    def copy(self, rows, to):
        how = f"FORMAT parquet, COMPRESSION lz4_raw, ROW_GROUP_SIZE {ROW_GROUP}"
        if form == "csv":
            columns = self.db.sql(f"DESCRIBE {rows}").fetchall()
            texts = ", ".join(name for name, kind, *_ in columns if kind == "VARCHAR")
            how = f"FORMAT csv, HEADER, FORCE_QUOTE ({texts})"
        self.db.sql(f"COPY ({rows}) TO '{to}' ({how})")

    def file_to_file(self, path, to, columns):
        self.copy(self.rows(path, columns), to)

    def is_same(self, rows, to):
        differ = f"SELECT count(*) FROM ({rows}) a POSITIONAL JOIN read_parquet('{to}') b WHERE a IS DISTINCT FROM b"
        return self.db.sql(differ).fetchall() == [(0,)]


class Polars:
    def __init__(self):
        import polars

        self.pl = polars

    def rows(self, path, columns):
        rows = self.pl.scan_parquet(path, hive_partitioning=False)
        return rows.select(self.pl.sql_expr(value).alias(name) for name, value in columns) if columns else rows

    def read(self, path, to, columns):
        return self.rows(path, columns).collect(), to

    def copy(self, rows, to):
        if form == "csv":
            rows.write_csv(to, quote_style="non_numeric")
        else:
            rows.write_parquet(to, compression="lz4", row_group_size=ROW_GROUP)

    def file_to_file(self, path, to, columns):
        rows = self.rows(path, columns)
        if form == "csv":
            rows.sink_csv(to, quote_style="non_numeric", maintain_order=True)
        else:
            rows.sink_parquet(to, compression="lz4", row_group_size=ROW_GROUP, maintain_order=True)

    def is_same(self, rows, to):
        return rows.equals(self.pl.read_parquet(to))


def seconds(act, items):
    """Does something with each item; returns how long that took."""
    begin = time.monotonic()
    for item in items:
        act(*item)
    return time.monotonic() - begin


def have_same_bytes(a, b):
    with open(a, "rb") as a, open(b, "rb") as b:
        # DuckDB quotes numbers' names no more than numbers.
        if a.readline().replace(b'"', b"") != b.readline().replace(b'"', b""):
            return False
        while piece := a.read(1 << 24):
            if piece != b.read(1 << 24):
                return False
        return not b.read(1)


try:
    peer = {"duckdb": DuckDB, "polars": Polars}[library]()
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
direct = seconds(peer.file_to_file, tables())
resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
held = [peer.read(*table) for table in tables()]
for _, to in held:
    os.remove(to)
print(direct, seconds(peer.copy, held), resident)
for rows, to in held:
    if form == "csv":
        (own,) = glob.glob(f"{source}/csv/*_{os.path.basename(to)}")
        assert have_same_bytes(own, to), f"{to} differs from {own}"
    else:
        assert peer.is_same(rows, to), f"{to} has other rows"
