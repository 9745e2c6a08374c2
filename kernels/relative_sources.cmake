# cmake -DPTX=file -DROOT=folder -P relative_sources.cmake
# Rewrites the .file directives of a PTX file in place: "ROOT/kernels/x.cuh" becomes "kernels/x.cuh".
file(READ "${PTX}" text)
string(REPLACE "\"${ROOT}/" "\"" text "${text}")
string(REPLACE "\"kernels/./" "\"kernels/" text "${text}")
file(WRITE "${PTX}" "${text}")
