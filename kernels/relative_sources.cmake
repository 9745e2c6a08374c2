# cmake -DPTX=file -DROOT=folder [-DHEADER=sm_90] -P relative_sources.cmake
# Rewrites the .file directives of a PTX file in place: "ROOT/kernels/x.cuh" becomes "kernels/x.cuh".
# HEADER names the architecture that the file is for, where it is not the compiler's.
file(READ "${PTX}" text)
string(REPLACE "\"${ROOT}/" "\"" text "${text}")
string(REPLACE "\"kernels/./" "\"kernels/" text "${text}")
if(HEADER)
  string(REGEX REPLACE "\n\\.version [0-9.]+\n\\.target [a-z0-9_, ]+\n"
    "\n.version 8.0\n.target ${HEADER}\n" text "${text}")
endif()
file(WRITE "${PTX}" "${text}")
