# Spack recipe of roctop: put this folder's repository before others with `spack repo add packaging/spack`.

from spack.package import *


class Roctop(Package):
    """Live terminal profiling viewer for AMD ROCm applications. Needs nothing of ROCm to build or to run; it looks at
    whatever ROCm (5.2 and later) the profiled program uses."""

    homepage = "https://github.com/roctop/roctop"
    git = "https://github.com/roctop/roctop.git"

    maintainers("roctop")
    license("MIT")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("build", "--release", "--locked")
        Executable("packaging/stage")("target/release/roctop", "/", str(prefix))

    def setup_run_environment(self, env):
        env.prepend_path("MANPATH", self.prefix.share.man)
