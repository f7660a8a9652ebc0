# Few translation units for a build that has to be quick: -DCMAKE_UNITY_BUILD=ON. SPDX-License-Identifier: Apache-2.0
#
# Files of one folder may have the same names for what they keep to themselves. So files are put together only where
# their names differ: those of static functions and data, types, constants and macros, which begin a line. Files that
# know the native client stay among themselves, since the system's headers behind it have names of ours, such as send().

# Sets *names* to those that the file defines at the beginnings of its lines.
function(divvy_unity_names source names)
  file(READ "${source}" text)
  string(REGEX REPLACE "__attribute__\\(\\([^\n]*\\)\\) " "" text "\n${text}")
  string(REGEX MATCHALL "\n(static [^(=;[]*|#define [A-Za-z0-9_]+|(typedef )?(struct|union|enum) [a-z_]+ {|} [a-z_]+;)"
    found "${text}")
  string(REGEX MATCHALL "\nenum {[^}]*}" enums "${text}")
  set(list "")
  foreach(one IN LISTS found)
    string(REGEX REPLACE ".*[^A-Za-z0-9_]([A-Za-z0-9_]+)[ {;]*$" "\\1" name "${one}")
    list(APPEND list ${name})
  endforeach()
  string(REGEX MATCHALL "[A-Z][A-Z0-9_]+" constants "${enums}")
  if(text MATCHES "<search\\.h>") # it has this struct
    list(APPEND list entry)
  endif()
  set(${names} ${list} ${constants} PARENT_SCOPE)
endfunction()

# Puts the target's C files together, each in the first group that has none of its names.
function(divvy_unity target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.c$")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    if(NOT EXISTS "${path}") # the build makes it
      continue()
    endif()
    divvy_unity_names("${path}" names)
    set(kind "")
    if(path MATCHES "/znode/apache/|/lib/zookeeper/")
      set(kind "native_")
    endif()
    set(number 0)
    set(fits FALSE)
    while(NOT fits)
      math(EXPR number "${number} + 1")
      set(group "${kind}${number}")
      set(fits TRUE)
      foreach(name IN LISTS names)
        if(DEFINED taken_${group}_${name})
          set(fits FALSE)
          break()
        endif()
      endforeach()
    endwhile()
    foreach(name IN LISTS names)
      set(taken_${group}_${name} TRUE)
    endforeach()
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${target}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
