# A toolchain of CMake: zig compiles and links, for this machine or for another one.
#
# The environment variable PURSUIT_ZIG_PROGRAM is the path of zig; PURSUIT_ZIG_TARGET, if there is one, the system to
# compile for in zig's words, such as aarch64-linux-musl. No script stands between CMake and zig, so this works on Windows.
set(zig "$ENV{PURSUIT_ZIG_PROGRAM}")
set(target "$ENV{PURSUIT_ZIG_TARGET}")
if(NOT target)
  set(target native)
endif()
set(CMAKE_CXX_COMPILER "${zig}" c++)
set(CMAKE_CXX_COMPILER_TARGET "${target}")  # known, so that CMake links no program to identify the compiler:
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # zig would compile the libraries of that system for each one
set(CMAKE_CXX_FLAGS_INIT "-mcpu=baseline")  # zig's default is the processor of this machine
set(CMAKE_CXX_ARCHIVE_CREATE "\"${zig}\" ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "\"${zig}\" ar q <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "\"${zig}\" ranlib <TARGET>")
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
if(NOT target STREQUAL "native")
  string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "${target}")
  if(target MATCHES "windows")
    set(CMAKE_SYSTEM_NAME Windows)
  elseif(target MATCHES "macos")
    set(CMAKE_SYSTEM_NAME Darwin)
    set(CMAKE_INSTALL_NAME_TOOL true)  # CMake asks for one, and the module needs none
  else()
    set(CMAKE_SYSTEM_NAME Linux)
  endif()
endif()
