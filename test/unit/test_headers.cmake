# Each public header compiles alone, in C11, in C++11 and in C++17. SPDX-License-Identifier: Apache-2.0
#
# A failure here is one of the build. What the headers say is checked by test_headers.c, in both languages too.
enable_language(CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

file(GLOB headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/include/divvy/*.h")
set(sources_c "")
set(sources_cpp "")
foreach(header ${headers})
  get_filename_component(name ${header} NAME_WE)
  foreach(language c cpp)
    # Twice, for the include guard; and one declaration, since a header of macros alone makes no translation unit.
    file(CONFIGURE OUTPUT "headers/${name}.${language}" CONTENT
      "#include <${header}>\n#include <${header}>\nextern int divvy_header_stands_alone;\n")
    list(APPEND sources_${language} "${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.${language}")
  endforeach()
endforeach()

foreach(language c cpp cpp11)
  string(REPLACE 11 "" files ${language})
  add_library(divvy_headers_alone_${language} OBJECT ${sources_${files}})
  target_compile_options(divvy_headers_alone_${language} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_link_libraries(divvy_headers_alone_${language} PRIVATE divvy::divvy)
endforeach()
set_target_properties(divvy_headers_alone_cpp11 PROPERTIES CXX_STANDARD 11 EXPORT_COMPILE_COMMANDS OFF)

file(CONFIGURE OUTPUT "headers_cpp.cpp" CONTENT "#include \"${CMAKE_CURRENT_LIST_DIR}/test_headers.c\"\n")
add_executable(unit_headers_cpp "${CMAKE_CURRENT_BINARY_DIR}/headers_cpp.cpp")
target_compile_options(unit_headers_cpp PRIVATE -Wall -Wextra -Wpedantic -Werror)
target_link_libraries(unit_headers_cpp PRIVATE divvy::divvy)
add_test(NAME unit.headers_cpp COMMAND unit_headers_cpp)
set_tests_properties(unit.headers_cpp PROPERTIES LABELS unit TIMEOUT 60)
