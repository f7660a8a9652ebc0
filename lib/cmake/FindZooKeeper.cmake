# Finds the multi-threaded Apache C client, under each of the names that it goes by. SPDX-License-Identifier: Apache-2.0
#
# In this order: the CMake packages of vcpkg (unofficial-zookeeper) and of conan (zookeeper-client-c, zookeeper); the
# libraries, zookeeper_mt where its autotools or Debian have built it, or zookeeper with hashtable where its CMake files
# have. ZooKeeper_LIBRARY and ZooKeeper_INCLUDE_DIR name another one.
#
# Target: ZooKeeper::mt. Variables: ZooKeeper_FOUND; ZooKeeper_VERSION, where it is known; ZooKeeper_PC_LIBS, for a file
# of pkg-config.
include(CheckIncludeFile)
include(FindPackageHandleStandardArgs)
find_package(Threads REQUIRED)

# Sets ZooKeeper_TARGET to what a CMake package has, and to nothing where none is there.
macro(zookeeper_find_package)
  set(ZooKeeper_TARGET "")
  foreach(name unofficial-zookeeper zookeeper-client-c zookeeper)
    if(NOT ZooKeeper_TARGET AND NOT ZooKeeper_LIBRARY)
      find_package(${name} CONFIG QUIET)
      foreach(target unofficial::zookeeper::zookeeper zookeeper-client-c::zookeeper-client-c zookeeper::zookeeper
          zookeeper)
        if(${name}_FOUND AND NOT ZooKeeper_TARGET AND TARGET ${target})
          set(ZooKeeper_TARGET ${target})
          set(ZooKeeper_VERSION "${${name}_VERSION}")
        endif()
      endforeach()
    endif()
  endforeach()
  set(ZooKeeper_LINKED ${ZooKeeper_TARGET})
  foreach(target zookeeper::hashtable hashtable)
    if(ZooKeeper_TARGET AND TARGET ${target})
      list(APPEND ZooKeeper_LINKED ${target})
    endif()
  endforeach()
endmacro()

# Sets ZooKeeper_LINKED and ZooKeeper_VERSION by the library and its headers, which stand beside it.
macro(zookeeper_find_library)
  find_library(ZooKeeper_LIBRARY NAMES zookeeper_mt zookeeper NAMES_PER_DIR)
  get_filename_component(ZooKeeper_FOLDER "${ZooKeeper_LIBRARY}" DIRECTORY)
  find_path(ZooKeeper_INCLUDE_DIR NAMES zookeeper/zookeeper.h zookeeper.h NO_DEFAULT_PATH
    HINTS "${ZooKeeper_FOLDER}/../include" "${ZooKeeper_FOLDER}/../../include")
  find_path(ZooKeeper_INCLUDE_DIR NAMES zookeeper/zookeeper.h zookeeper.h)
  set(ZooKeeper_LINKED ${ZooKeeper_LIBRARY})
  if(ZooKeeper_LIBRARY MATCHES "libzookeeper\\.a$")
    find_library(ZooKeeper_HASHTABLE_LIBRARY NAMES hashtable HINTS "${ZooKeeper_FOLDER}")
    list(APPEND ZooKeeper_LINKED ${ZooKeeper_HASHTABLE_LIBRARY} m)
  endif()
  file(GLOB ZooKeeper_VERSION_FILE "${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h"
    "${ZooKeeper_INCLUDE_DIR}/zookeeper_version.h")
  if(ZooKeeper_VERSION_FILE)
    file(STRINGS ${ZooKeeper_VERSION_FILE} ZooKeeper_VERSION REGEX "#define ZOO_(MAJOR_|MINOR_|PATCH_|)VERSION")
    string(REGEX REPLACE ".*VERSION \"([0-9.]+).*" "\\1" ZooKeeper_VERSION "${ZooKeeper_VERSION}")
    string(REGEX REPLACE ".*MAJOR_VERSION ([0-9]+).*MINOR_VERSION ([0-9]+).*PATCH_VERSION ([0-9]+).*" "\\1.\\2.\\3"
           ZooKeeper_VERSION "${ZooKeeper_VERSION}")
  endif()
endmacro()

zookeeper_find_package()
if(NOT ZooKeeper_TARGET)
  zookeeper_find_library()
endif()
if(ZooKeeper_TARGET)
  find_package_handle_standard_args(ZooKeeper REQUIRED_VARS ZooKeeper_TARGET VERSION_VAR ZooKeeper_VERSION)
else()
  find_package_handle_standard_args(ZooKeeper REQUIRED_VARS ZooKeeper_LIBRARY ZooKeeper_INCLUDE_DIR
    VERSION_VAR ZooKeeper_VERSION
    REASON_FAILURE_MESSAGE "install the Apache ZooKeeper C client, on Debian: apt install libzookeeper-mt-dev")
endif()

if(ZooKeeper_TARGET OR ZooKeeper_LIBRARY MATCHES "libzookeeper\\.")
  set(ZooKeeper_PC_LIBS "-lzookeeper -lhashtable -lm")
else()
  set(ZooKeeper_PC_LIBS "-lzookeeper_mt")
endif()

if(ZooKeeper_FOUND AND NOT TARGET ZooKeeper::mt)
  add_library(ZooKeeper::mt INTERFACE IMPORTED)
  set_target_properties(ZooKeeper::mt PROPERTIES
    INTERFACE_COMPILE_DEFINITIONS THREADED
    INTERFACE_LINK_LIBRARIES "${ZooKeeper_LINKED};Threads::Threads")
  # Some install its headers without a folder of their own: zookeeper/zookeeper.h is one that we write then.
  if(ZooKeeper_TARGET)
    block()
      set(CMAKE_REQUIRED_LIBRARIES ZooKeeper::mt)
      set(CMAKE_TRY_COMPILE_CONFIGURATION "${CMAKE_BUILD_TYPE}") # conan's target is empty for any other
      check_include_file(zookeeper.h ZooKeeper_HEADER_IS_FLAT)
    endblock()
  else()
    set_target_properties(ZooKeeper::mt PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${ZooKeeper_INCLUDE_DIR}")
    set(ZooKeeper_HEADER_IS_FLAT OFF)
    if(NOT EXISTS "${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper.h")
      set(ZooKeeper_HEADER_IS_FLAT ON)
    endif()
  endif()
  if(ZooKeeper_HEADER_IS_FLAT)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/divvy-zookeeper/zookeeper/zookeeper.h"
      CONTENT "#include <zookeeper.h>\n")
    set_property(TARGET ZooKeeper::mt APPEND PROPERTY
      INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_BINARY_DIR}/divvy-zookeeper")
  endif()
endif()
mark_as_advanced(ZooKeeper_INCLUDE_DIR ZooKeeper_LIBRARY ZooKeeper_HASHTABLE_LIBRARY)
