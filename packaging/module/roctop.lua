-- Lmod module file. Edit `root` to where the tarball of packaging/package was unpacked.
local root = "/opt/roctop"

help([[roctop shows the kernels, copies, API calls and markers of a HIP or HSA program while it runs.
Begin with: roctop doctor ./app, then roctop ./app]])
whatis("Name: roctop")
whatis("Description: Live terminal profiling viewer for AMD ROCm applications")

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
-- The empty entry keeps the system's own manual pages.
append_path("MANPATH", "")
