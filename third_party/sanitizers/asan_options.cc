// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0

// Defaults for AddressSanitizer builds; ASAN_OPTIONS and friends override them.

extern "C" const char* __asan_default_options() {
  return "strict_string_checks=1:detect_stack_use_after_return=1:"
         "check_initialization_order=1:"
         // Tests watch memory come back; what was freed stays here this long.
         "quarantine_size_mb=32";
}

extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

// The OpenMP runtime and the OpenCL loader that oneDNN brings keep memory for
// the life of the process.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libgomp.so\n"
         "leak:libOpenCL.so\n"
         "leak:libdnnl.so\n";
}
