# Finds the multi-threaded Apache C client; Debian ships no .pc file for it. SPDX-License-Identifier: Apache-2.0
#
# Target: ZooKeeper::mt. Variables: ZooKeeper_FOUND, ZooKeeper_VERSION, ZooKeeper_HAS_SSL, ZooKeeper_HAS_SASL.
find_path(ZooKeeper_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZooKeeper_LIBRARY zookeeper_mt)

if(ZooKeeper_INCLUDE_DIR AND EXISTS "${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h")
  file(STRINGS "${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h" ZooKeeper_VERSION_LINES
       REGEX "#define ZOO_(MAJOR|MINOR|PATCH)_VERSION")
  string(REGEX REPLACE ".*MAJOR_VERSION ([0-9]+).*MINOR_VERSION ([0-9]+).*PATCH_VERSION ([0-9]+).*" "\\1.\\2.\\3"
         ZooKeeper_VERSION "${ZooKeeper_VERSION_LINES}")
  if(NOT ZooKeeper_VERSION MATCHES "^[0-9.]+$")
    file(STRINGS "${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h" ZooKeeper_VERSION
         REGEX "#define ZOO_VERSION")
    string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" ZooKeeper_VERSION "${ZooKeeper_VERSION}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZooKeeper REQUIRED_VARS ZooKeeper_LIBRARY ZooKeeper_INCLUDE_DIR
  VERSION_VAR ZooKeeper_VERSION
  REASON_FAILURE_MESSAGE "install the Apache ZooKeeper C client, on Debian: apt install libzookeeper-mt-dev")

if(ZooKeeper_FOUND AND NOT TARGET ZooKeeper::mt)
  find_package(Threads REQUIRED)
  add_library(ZooKeeper::mt UNKNOWN IMPORTED)
  set_target_properties(ZooKeeper::mt PROPERTIES
    IMPORTED_LOCATION "${ZooKeeper_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ZooKeeper_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS THREADED
    INTERFACE_LINK_LIBRARIES Threads::Threads)
  include(CheckLibraryExists)
  check_library_exists("${ZooKeeper_LIBRARY}" zookeeper_init_ssl "" ZooKeeper_HAS_SSL)
  check_library_exists("${ZooKeeper_LIBRARY}" zookeeper_init_sasl "" ZooKeeper_HAS_SASL)
endif()
mark_as_advanced(ZooKeeper_INCLUDE_DIR ZooKeeper_LIBRARY)
