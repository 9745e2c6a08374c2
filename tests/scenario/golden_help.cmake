# cmake -DTOOL=.. -DCOMMAND=run -DGOLDEN=run_help.txt [-DUPDATE=ON] -P golden_help.cmake
execute_process(COMMAND ${TOOL} ${COMMAND} --help OUTPUT_VARIABLE got COMMAND_ERROR_IS_FATAL ANY)
# CLI11 prints the path it was called by.
string(REPLACE "${TOOL}" "cpverify" got "${got}")
if(UPDATE)
  file(WRITE ${GOLDEN} "${got}")
endif()
file(READ ${GOLDEN} want)
if(NOT got STREQUAL want)
  message(FATAL_ERROR "--help is now:\n${got}\nTo accept it: cmake -DTOOL=${TOOL} "
    "-DCOMMAND=${COMMAND} -DGOLDEN=${GOLDEN} -DUPDATE=ON -P ${CMAKE_CURRENT_LIST_FILE}")
endif()
