// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0

// Defaults for ThreadSanitizer builds; TSAN_OPTIONS overrides them.
//
// The system's gRPC, Abseil, protobuf and OpenMP are not instrumented, so the
// sanitizer sees their memory accesses through memcpy and free but not the
// locks that order them. Only reports whose accesses are in that code are
// silenced. For the same reason data guarded by absl::Mutex looks unguarded:
// code that is to be checked uses std::mutex.

extern "C" const char* __tsan_default_options() {
  return "second_deadlock_stack=1:history_size=4";
}

extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgrpc++_reflection.so\n"
         "called_from_lib:libprotobuf.so\n"
         "called_from_lib:libgomp.so\n"
         "called_from_lib:libdnnl.so\n"
         "called_from_lib:libabsl_synchronization.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n"
         "called_from_lib:libabsl_strings.so\n"
         "called_from_lib:libabsl_cord.so\n"
         "called_from_lib:libabsl_cord_internal.so\n"
         "race:gpr_malloc\n"
         "race:gpr_realloc\n"
         "race:grpc::internal::\n"
         "race:grpc::ServerBidiReactor\n"
         "race:grpc::ProtoBufferReader\n"
         "race:grpc::ProtoBufferWriter\n"
         "race:libabsl_status.so\n"
         // Its threads meet at barriers of OpenMP, which is not instrumented.
         "race:libdnnl.so\n"
         // OpenSSL's contexts go from thread to thread under locks of its own.
         "race:libcrypto.so\n"
         "race:libssl.so\n"
         // The last of several to let go of a Status frees it: who let go
         // before it is known to the count alone, which the library keeps.
         "race:Status::Unref\n";
}
