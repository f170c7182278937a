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

    def install(self, spec, prefix):
        Executable("preload/roctracer/install")("--headers", str(prefix))
