# Installs the program, its kernels and scenarios, and the package `find_package(cpverify)` finds:
# cpverify::cpverify links every layer.

include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY CPVERIFY_LAYERS)
list(APPEND layers cpverify_reference)
list(REMOVE_DUPLICATES layers)

add_library(cpverify INTERFACE)
add_library(cpverify::cpverify ALIAS cpverify)
target_compile_features(cpverify INTERFACE cxx_std_20)
target_link_libraries(cpverify INTERFACE ${layers})
target_sources(cpverify INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES
  include/cpverify/coverage.hpp
  include/cpverify/data.hpp
  include/cpverify/dtype.hpp
  include/cpverify/error.hpp
  include/cpverify/fault.hpp
  include/cpverify/finding.hpp
  include/cpverify/ids.hpp
  include/cpverify/launch.hpp
  include/cpverify/mma_accumulation.hpp
  include/cpverify/observer.hpp
  include/cpverify/plan.hpp
  include/cpverify/reduction.hpp
  include/cpverify/scenario.hpp
  include/cpverify/schedule.hpp
  include/cpverify/step.hpp
  include/cpverify/system.hpp
  include/cpverify/verdict.hpp
  include/cpverify/verify.hpp)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cpverify)
install(TARGETS cpverify ${layers} EXPORT cpverifyTargets FILE_SET HEADERS)
install(EXPORT cpverifyTargets NAMESPACE cpverify:: DESTINATION ${package_dir})
configure_package_config_file(cmake/cpverifyConfig.cmake.in cpverifyConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(cpverifyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cpverifyConfig.cmake
  ${PROJECT_BINARY_DIR}/cpverifyConfigVersion.cmake DESTINATION ${package_dir})

install(TARGETS cpverify_tool RUNTIME)
install(DIRECTORY ${PROJECT_BINARY_DIR}/kernels/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/cpverify/kernels
  FILES_MATCHING PATTERN "*.ptx" PATTERN CMakeFiles EXCLUDE)
# Of those by nvcc, the ones that clang does not build.
install(DIRECTORY ${PROJECT_BINARY_DIR}/kernels-nvcc/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/cpverify/kernels-nvcc OPTIONAL
  FILES_MATCHING PATTERN "attention_hopper*.ptx" PATTERN CMakeFiles EXCLUDE)
install(DIRECTORY scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/cpverify
  FILES_MATCHING PATTERN "*.yaml" PATTERN "*.jsonl")
