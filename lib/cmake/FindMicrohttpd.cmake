# Finds GNU libmicrohttpd, which divvy serve stands on. SPDX-License-Identifier: Apache-2.0
#
# Target: Microhttpd::microhttpd. Variable: Microhttpd_FOUND.
find_path(Microhttpd_INCLUDE_DIR microhttpd.h)
find_library(Microhttpd_LIBRARY microhttpd)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Microhttpd REQUIRED_VARS Microhttpd_LIBRARY Microhttpd_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "divvy serve is left out, on Debian: apt install libmicrohttpd-dev")
if(Microhttpd_FOUND AND NOT TARGET Microhttpd::microhttpd)
  add_library(Microhttpd::microhttpd UNKNOWN IMPORTED)
  set_target_properties(Microhttpd::microhttpd PROPERTIES IMPORTED_LOCATION "${Microhttpd_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Microhttpd_INCLUDE_DIR}")
endif()
mark_as_advanced(Microhttpd_INCLUDE_DIR Microhttpd_LIBRARY)
