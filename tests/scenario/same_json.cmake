# cmake -DTOOL=.. -DSOURCE_DIR=.. -DWORK_DIR=.. -P same_json.cmake
# The verdicts are the same bytes whatever the number of scenarios at a time: of one scenario of each family, since all
# of them, twice, would take longer than all other tests of scenarios together.
file(GLOB families LIST_DIRECTORIES TRUE RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/scenarios/*/*)
set(scenarios scenarios/chunked_prefix.yaml)
foreach(family ${families})
  file(GLOB members RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${family}/*.yaml)
  list(SORT members)
  list(SUBLIST members 0 1 members)
  list(APPEND scenarios ${members})
endforeach()
foreach(jobs 1 3)
  execute_process(COMMAND ${TOOL} run ${scenarios} --jobs ${jobs} --json ${WORK_DIR}/jobs_${jobs}.json
    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE console_${jobs} COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${WORK_DIR}/jobs_${jobs}.json json_${jobs})
endforeach()
if(NOT json_1 STREQUAL json_3)
  message(FATAL_ERROR "the JSON depends on --jobs: compare ${WORK_DIR}/jobs_{1,3}.json")
endif()
if(NOT console_1 STREQUAL console_3)
  message(FATAL_ERROR "the console text depends on --jobs")
endif()
string(JSON version GET "${json_1}" schema_version)
