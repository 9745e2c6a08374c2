# cmake -DBINARY_DIR=.. -DCONSUMER_DIR=.. -DWORK_DIR=.. -DCXX=.. -P install_test.cmake
# Installs, moves the prefix, then builds a consumer against it and runs the moved program.

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${WORK_DIR}/first)
file(RENAME ${WORK_DIR}/first "${WORK_DIR}/moved prefix")
set(prefix "${WORK_DIR}/moved prefix")

run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/consumer -G Ninja
  -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_PREFIX_PATH=${prefix}")
run(${CMAKE_COMMAND} --build ${WORK_DIR}/consumer)
run(${WORK_DIR}/consumer/consumer)

# The kernels of the build tree would hide that the moved program does not find its own, so its
# folder is looked into: one kernel fewer must be noticed.
set(scenario "${prefix}/share/cpverify/scenarios/chunked_prefix.yaml")
run("${prefix}/bin/cpverify" --scenario "${scenario}")
file(GLOB kernels "${prefix}/share/cpverify/kernels/*.ptx")
if(NOT kernels)
  message(FATAL_ERROR "no kernel was installed")
endif()
file(REMOVE ${kernels})
execute_process(COMMAND "${prefix}/bin/cpverify" --scenario "${scenario}" RESULT_VARIABLE status)
if(status EQUAL 0)
  message(FATAL_ERROR "the moved program does not read the kernels it was installed with")
endif()
