# SPDX-License-Identifier: Apache-2.0
# Run by the build for each planted fault (SdrPlant.cmake): P_FROM becomes P_TO.
function(sdr_plant_text source copy)
  file(READ "${source}" text)
  string(FIND "${text}" "${P_FROM}" first)
  string(FIND "${text}" "${P_FROM}" last REVERSE)
  if(first EQUAL -1)
    message(FATAL_ERROR "${source} no longer holds the text that a fault is planted in:\n${P_FROM}")
  elseif(NOT first EQUAL last)
    message(FATAL_ERROR "${source} holds this text more than once:\n${P_FROM}")
  endif()
  string(REPLACE "${P_FROM}" "${P_TO}" text "${text}")
  file(WRITE "${copy}" "${text}")
endfunction()
