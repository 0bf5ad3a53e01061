# SPDX-License-Identifier: Apache-2.0
# How a layer, a test and a fuzz target are declared. A layer links only what
# its USES row names; scripts/check-layers proves the same of its #includes.

add_library(sdr_options INTERFACE)
target_compile_definitions(sdr_options INTERFACE _GNU_SOURCE)
target_compile_options(sdr_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
  -fno-strict-aliasing -fno-common)
target_include_directories(sdr_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if(SDR_SANITIZE)
  target_compile_options(sdr_options INTERFACE -fsanitize=${SDR_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(sdr_options INTERFACE -fsanitize=${SDR_SANITIZE})
endif()

if(SDR_FUZZ)
  # The layers themselves report coverage, or the fuzzer is blind in them.
  target_compile_options(sdr_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# sdr_layer(NAME SOURCES a.c ... [USES base ...] [LIBS PkgConfig::X ...])
function(sdr_layer name)
  cmake_parse_arguments(L "" "" "SOURCES;USES;LIBS" ${ARGN})
  add_library(sdr_${name} STATIC ${L_SOURCES})
  target_link_libraries(sdr_${name} PRIVATE sdr_options PUBLIC ${L_LIBS})
  foreach(used ${L_USES})
    target_link_libraries(sdr_${name} PUBLIC sdr_${used})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY SDR_LAYERS sdr_${name})
endfunction()

# sdr_test(NAME SOURCES a_test.c ... USES rx ... [LIBS ...] [LABELS unit] [ARGS ...])
function(sdr_test name)
  if(NOT SDR_TESTS)
    return()
  endif()
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;USES;LIBS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE sdr_options PkgConfig::CMOCKA ${T_LIBS})
  foreach(used ${T_USES})
    target_link_libraries(${name} PRIVATE sdr_${used})
  endforeach()
  add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT}
    SKIP_RETURN_CODE 77)
  sdr_test_memory(${name})
endfunction()

# Freed memory stays with the process: worlds by the hundred otherwise give theirs back to the
# kernel and fault it in again, which is most of what some of these tests cost.
function(sdr_test_memory)
  set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT
    MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824)
endfunction()

# sdr_fuzz(NAME SOURCES a_fuzz.c USES wire ...): libFuzzer where clang builds with
# SDR_FUZZ=ON.
function(sdr_fuzz name)
  if(NOT SDR_FUZZ)
    return()
  endif()
  cmake_parse_arguments(F "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${F_SOURCES})
  if(NOT TARGET fuzz_targets)
    add_custom_target(fuzz_targets) # all of them, and nothing else
  endif()
  add_dependencies(fuzz_targets ${name})
  target_link_libraries(${name} PRIVATE sdr_options)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  foreach(used ${F_USES})
    target_link_libraries(${name} PRIVATE sdr_${used})
  endforeach()
endfunction()
