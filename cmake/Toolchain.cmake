# Compiler launcher, linker and warnings: all optional speed-ups of the build, none changes the result.
find_program(AITRAINING_CCACHE ccache)
if(AITRAINING_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${AITRAINING_CCACHE})
endif()
find_program(AITRAINING_MOLD mold)
if(AITRAINING_MOLD)
  # g++ 12 knows -fuse-ld=mold; without mold the default linker does the same job more slowly.
  add_link_options(-fuse-ld=mold)
endif()
add_compile_options(-Wall -Wextra -Wno-unused-parameter)
# Kernels are written to be vectorised by the compiler; release builds keep frame pointers out and asserts in headers off.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
