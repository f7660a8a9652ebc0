# The source archive: cpack --config build/CPackSourceConfig.cmake. SPDX-License-Identifier: Apache-2.0
#
# It has what git tracks, as it is in the checkout, and nothing else. cpack runs this file as well, to fill the folder
# that it packs.
if(CPACK_SOURCE_PACKAGE_FILE_NAME)
  if(NOT CPACK_PACKAGE_FILE_NAME STREQUAL CPACK_SOURCE_PACKAGE_FILE_NAME)
    message(FATAL_ERROR "divvy is packed as source only: cpack --config CPackSourceConfig.cmake")
  endif()
  if(NOT EXISTS "${CPACK_DIVVY_SOURCE}/.git")
    message(FATAL_ERROR "the source archive is made of a git checkout, which ${CPACK_DIVVY_SOURCE} is not")
  endif()
  set(folder "${CMAKE_INSTALL_PREFIX}")
  execute_process(COMMAND git log -1 --format=%ct WORKING_DIRECTORY "${CPACK_DIVVY_SOURCE}"
    OUTPUT_VARIABLE time OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  # One time for all files, that of the commit: the same commit gives the same bytes.
  execute_process(COMMAND git ls-files -z COMMAND tar --create --null --files-from=- "--mtime=@${time}"
    COMMAND tar --extract --directory "${folder}" WORKING_DIRECTORY "${CPACK_DIVVY_SOURCE}"
    COMMAND_ERROR_IS_FATAL ANY)
  set(ENV{SOURCE_DATE_EPOCH} "${time}")
  return()
endif()

set(CPACK_PACKAGE_VENDOR "divvy")
set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME "divvy-${PROJECT_VERSION}")
set(CPACK_SOURCE_INSTALLED_DIRECTORIES "")
set(CPACK_INSTALL_SCRIPTS "${CMAKE_CURRENT_LIST_FILE}")
set(CPACK_DIVVY_SOURCE "${PROJECT_SOURCE_DIR}")
include(CPack)
