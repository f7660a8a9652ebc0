# Flags by which mistakes that got past us do less harm: those of the OpenSSF compiler hardening guide that this
# compiler knows. SPDX-License-Identifier: Apache-2.0
#
# For everything that is built from here on in this folder and below. Left out of the guide's list: -Wl,-z,nodlopen, as
# a library may well be loaded by dlopen(); -mbranch-protection, which is another machine's. Warnings stand in
# divvy_flags.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

function(divvy_harden)
  set(unknown "")
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -fno-delete-null-pointer-checks
      -fno-strict-overflow -fno-strict-aliasing -ftrivial-auto-var-init=zero -Wimplicit-fallthrough -Wbidi-chars=any
      -Wtrampolines)
    string(MAKE_C_IDENTIFIER "DIVVY_KNOWS${flag}" known)
    set(CMAKE_REQUIRED_FLAGS -Werror) # A compiler that only warns of a flag does not know it.
    check_c_compiler_flag(${flag} ${known})
    if(${known})
      add_compile_options($<$<COMPILE_LANGUAGE:C>:${flag}>)
    else()
      list(APPEND unknown ${flag})
    endif()
  endforeach()
  # It needs what an optimiser knows of sizes, and says so where there is none.
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>
    $<$<COMPILE_LANGUAGE:CXX>:-D_GLIBCXX_ASSERTIONS>)
  foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,separate-code)
    string(MAKE_C_IDENTIFIER "DIVVY_KNOWS${flag}" known)
    check_linker_flag(C ${flag} ${known})
    if(${known})
      add_link_options(${flag})
    else()
      list(APPEND unknown ${flag})
    endif()
  endforeach()
  if(unknown)
    list(JOIN unknown " " unknown)
    message(STATUS "Not hardened by ${unknown}: this compiler does not know them")
  endif()
endfunction()

# Programs that can be loaded anywhere; objects of the libraries are position-independent anyway.
macro(divvy_harden_programs)
  check_pie_supported(LANGUAGES C)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endmacro()
