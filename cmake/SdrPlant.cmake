# SPDX-License-Identifier: Apache-2.0
# Planted faults: a test program again, with one change in one source, to prove that the
# test sees it. The change is text for text; a text that is not there exactly once fails
# the build, so that plants follow the code.

# sdr_plant(PROGRAM OF test FILE src/rx/rx.c FROM text TO text [COMPILE src/a.c ...])
#
# PROGRAM has the objects of `test`, its libraries, and in front of those FILE as changed: a
# library's member is not taken where all that it defines is there. A header in FILE is seen
# by the sources of COMPILE alone. One object or two and a link; the test is not run here.
function(sdr_plant program)
  cmake_parse_arguments(PARSE_ARGV 1 P "" "OF;FILE;FROM;TO" "COMPILE")
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/${program}.planted)
  string(REGEX REPLACE "^src/" "" name ${P_FILE})
  set(copy ${dir}/${name})
  set(from ${PROJECT_SOURCE_DIR}/${P_FILE})
  # Written here, because a build's command line carries no text of several lines.
  file(CONFIGURE OUTPUT ${dir}/plant.cmake @ONLY CONTENT
"set(P_FROM [==[${P_FROM}]==])
set(P_TO [==[${P_TO}]==])
include(${PROJECT_SOURCE_DIR}/cmake/SdrPlantText.cmake)
sdr_plant_text(${from} ${copy})
")
  add_custom_command(OUTPUT ${copy} COMMAND ${CMAKE_COMMAND} -P ${dir}/plant.cmake
    DEPENDS ${from} ${dir}/plant.cmake ${PROJECT_SOURCE_DIR}/cmake/SdrPlantText.cmake
    COMMENT "Planting ${program}" VERBATIM)
  list(TRANSFORM P_COMPILE PREPEND ${PROJECT_SOURCE_DIR}/)
  add_executable(${program} ${copy} ${P_COMPILE} $<TARGET_OBJECTS:${P_OF}>)
  target_include_directories(${program} BEFORE PRIVATE ${dir})
  target_link_libraries(${program} PRIVATE $<TARGET_PROPERTY:${P_OF},LINK_LIBRARIES>)
  target_link_options(${program} PRIVATE $<TARGET_PROPERTY:${P_OF},LINK_OPTIONS>)
  sdr_plant_as_layer(${program} ${from} ${P_COMPILE})
endfunction()

# What the layers of these sources are compiled with besides what all are.
function(sdr_plant_as_layer program)
  get_property(layers GLOBAL PROPERTY SDR_LAYERS)
  foreach(layer ${layers})
    get_target_property(dir ${layer} SOURCE_DIR)
    get_target_property(sources ${layer} SOURCES)
    list(TRANSFORM sources PREPEND ${dir}/)
    foreach(source ${ARGN})
      if(source IN_LIST sources)
        foreach(what definitions options)
          string(TOUPPER COMPILE_${what} property)
          get_target_property(value ${layer} ${property})
          if(value)
            cmake_language(CALL target_compile_${what} ${program} PRIVATE ${value})
          endif()
        endforeach()
      endif()
    endforeach()
  endforeach()
endfunction()
