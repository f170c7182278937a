# Spack recipe of the headers of ROCTracer and ROC-TX alone, roctop's own, under the name that other recipes depend on.

from spack.package import *


class RoctracerDevApi(Package):
    """Headers of ROCTracer and ROC-TX, without the libraries: programs compile against them as against those of ROCm 5.5
    to 6.3, in C and C++."""

    homepage = "https://github.com/roctop/roctop"
    git = "https://github.com/roctop/roctop.git"

    maintainers("roctop")
    license("MIT")

    version("main", branch="main")
    # The releases that other recipes ask for. The interface is the same in all of them, so all are built from one branch.
    for release in ("6.3.3", "6.1.2", "5.7.1", "5.6.1", "5.5.1"):
        version(release, branch="main")

    def install(self, spec, prefix):
        Executable("preload/roctracer/install")("--headers", str(prefix))
