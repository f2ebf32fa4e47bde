# LibTorch from the PyPI wheel, as imported targets. The wheel's own CMake package asks for a CUDA toolkit even when
# nothing of it is compiled; the headers and libraries themselves do not.
if(NOT AITRAINING_TORCH_ROOT)
  # A plain `cmake --preset` finds what scripts/setup.sh installed; another lock file means another LibTorch.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/requirements/build.lock)
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/paths.sh torch-root
    OUTPUT_VARIABLE AITRAINING_TORCH_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _status ERROR_VARIABLE _error)
  if(NOT _status EQUAL 0)
    message(FATAL_ERROR "LibTorch is not installed: run `make`, or scripts/setup.sh and this again.\n${_error}")
  endif()
endif()
set(_torch ${AITRAINING_TORCH_ROOT}/torch)
if(NOT EXISTS ${_torch}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "no LibTorch in ${_torch}: run scripts/setup.sh")
endif()
add_library(aitraining_libtorch INTERFACE)
target_include_directories(aitraining_libtorch SYSTEM INTERFACE
  ${_torch}/include ${_torch}/include/torch/csrc/api/include)
target_compile_definitions(aitraining_libtorch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
# ATen's parallel_for is inline OpenMP code. The wheel brings a libgomp of its own under the usual soname; it is named
# here so that one thread pool serves both (a second pool would spin against the first).
target_compile_options(aitraining_libtorch INTERFACE -fopenmp)
target_link_libraries(aitraining_libtorch INTERFACE
  ${_torch}/lib/libtorch_cpu.so ${_torch}/lib/libc10.so ${_torch}/lib/libgomp.so.1)
set(AITRAINING_TORCH_LIB_DIR ${_torch}/lib)

# Headers only: CUDA and NCCL functions are reached through libtorch_cuda, which is loaded at run time.
add_library(aitraining_nccl_headers INTERFACE)
target_include_directories(aitraining_nccl_headers SYSTEM INTERFACE
  ${AITRAINING_TORCH_ROOT}/nvidia/nccl/include ${AITRAINING_TORCH_ROOT}/nvidia/cu13/include)
target_compile_definitions(aitraining_nccl_headers INTERFACE USE_C10D_NCCL)
