# divvy as an overlay port of vcpkg. SPDX-License-Identifier: Apache-2.0
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE) # the checkout that this stands in

string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "dynamic" SHARED)
string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "static" STATIC)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DDIVVY_BUILD_SHARED=${SHARED}
    -DDIVVY_BUILD_STATIC=${STATIC}
    -DDIVVY_BUILD_TOOLS=OFF
    -DDIVVY_BUILD_TESTS=OFF
    -DDIVVY_BUILD_BENCH=OFF
    -DCMAKE_COMPILE_WARNING_AS_ERROR=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/divvy)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/libexec")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
