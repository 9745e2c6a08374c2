# cmake -DTOOL=.. -DWORK_DIR=.. [-DGENHTML=..] -P same_coverage.cmake
# The tracefile of several scenarios is the same bytes whatever the number of scenarios at a time, has
# the sources of the kernels, and genhtml, where there is one, renders it.
set(scenarios scenarios/chunked_prefix.yaml scenarios/wrong/causal)
foreach(jobs 1 3)
  execute_process(COMMAND ${TOOL} run ${scenarios} --jobs ${jobs} --coverage ${WORK_DIR}/jobs_${jobs}.info
    OUTPUT_VARIABLE console_${jobs} COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${WORK_DIR}/jobs_${jobs}.info info_${jobs})
endforeach()
if(NOT info_1 STREQUAL info_3 OR NOT console_1 STREQUAL console_3)
  message(FATAL_ERROR "the coverage depends on --jobs: compare ${WORK_DIR}/jobs_{1,3}.info")
endif()
foreach(part "\nSF:kernels/attention_fma.cuh\n" "\nSF:kernels/kv_write.cuh\n" "\nBRDA:" "\nDA:" "\nFNDA:" "\nLH:")
  string(FIND "${info_1}" "${part}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the tracefile has no ${part}")
  endif()
endforeach()
string(FIND "${console_1}" "branches both ways" at)
if(at EQUAL -1)
  message(FATAL_ERROR "no summary on the console:\n${console_1}")
endif()
if(GENHTML)
  execute_process(COMMAND ${GENHTML} --branch-coverage --quiet --output-directory ${WORK_DIR}/coverage_html
    ${WORK_DIR}/jobs_1.info COMMAND_ERROR_IS_FATAL ANY)
endif()
