# cmake -DPTX=file -DROOT=folder [-DHEADER=sm_90] [-DCLUSTER=n] -P relative_sources.cmake
# Rewrites the .file directives of a PTX file in place: "ROOT/kernels/x.cuh" becomes "kernels/x.cuh".
# HEADER names the architecture that the file is for, where it is not the compiler's. CLUSTER is how many
# CTAs the clusters of all its entries have, which clang 14 has no attribute for.
file(READ "${PTX}" text)
string(REPLACE "\"${ROOT}/" "\"" text "${text}")
string(REPLACE "\"kernels/./" "\"kernels/" text "${text}")
if(HEADER)
  string(REGEX REPLACE "\n\\.version [0-9.]+\n\\.target [a-z0-9_, ]+\n"
    "\n.version 8.0\n.target ${HEADER}\n" text "${text}")
endif()
if(CLUSTER)
  string(REGEX REPLACE "(\\.entry [a-z_]+\\([^)]*\\))" "\\1\n.reqnctapercluster ${CLUSTER}, 1, 1" text "${text}")
endif()
file(WRITE "${PTX}" "${text}")
