# Every target of the project is made by one of these functions, so that dialect, warnings and
# floating-point rules are stated once.

add_library(cpverify_warnings INTERFACE)
target_compile_options(cpverify_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast -Wnon-virtual-dtor)

# C++20, no contraction: a run must give the same bytes with every compiler. x86-64-v3 (AVX2, FMA) is
# the oldest machine we support; the launcher script refuses older ones.
function(cpverify_target name)
  target_compile_features(${name} PUBLIC cxx_std_20)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${name} PRIVATE -ffp-contract=off -march=x86-64-v3)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:cpverify_warnings>)
endfunction()

# cpverify_layer(<layer> SOURCES ... [DEPS layer...] [LIBRARIES lib...])
# A static library cpverify_<layer>; DEPS are the layers it may include. tests/tidy checks the includes.
function(cpverify_layer layer)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBRARIES" ${ARGN})
  set(name cpverify_${layer})
  add_library(${name} STATIC ${ARG_SOURCES})
  cpverify_target(${name})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${name} PUBLIC cpverify_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY CPVERIFY_LAYERS ${name})
endfunction()

# cpverify_test(<name> LABEL <label> SOURCES ... [DEPS layer...] [LIBRARIES lib...])
# A GoogleTest executable; tests see src/ and the repository root. RapidCheck runs from a fixed seed.
function(cpverify_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPS;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  cpverify_target(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE
    CPVERIFY_SOURCE_DIR="${PROJECT_SOURCE_DIR}" CPVERIFY_BINARY_DIR="${PROJECT_BINARY_DIR}")
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${name} PRIVATE cpverify_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} ${RAPIDCHECK_LIBRARY} fmt::fmt
    GTest::gmock GTest::gtest_main)
  include(GoogleTest)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${ARG_LABEL} ENVIRONMENT "RC_PARAMS=seed=1 max_success=200")
endfunction()

# cpverify_benchmark(<name> SOURCES ... [DEPS layer...] [LIBRARIES lib...])
function(cpverify_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  cpverify_target(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${name} PRIVATE
    CPVERIFY_SOURCE_DIR="${PROJECT_SOURCE_DIR}" CPVERIFY_BINARY_DIR="${PROJECT_BINARY_DIR}")
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${name} PRIVATE cpverify_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} fmt::fmt benchmark::benchmark_main)
endfunction()
