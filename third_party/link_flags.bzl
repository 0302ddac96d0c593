# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Link flags of system libraries, for both kinds of link.

The group lets archives refer to each other in any order; --as-needed keeps a
dynamic link to the libraries that are really used.
"""

ABSL_LIBS = [
    "-labsl_bad_any_cast_impl",
    "-labsl_bad_optional_access",
    "-labsl_bad_variant_access",
    "-labsl_base",
    "-labsl_city",
    "-labsl_civil_time",
    "-labsl_cord",
    "-labsl_cord_internal",
    "-labsl_cordz_functions",
    "-labsl_cordz_handle",
    "-labsl_cordz_info",
    "-labsl_cordz_sample_token",
    "-labsl_debugging_internal",
    "-labsl_demangle_internal",
    "-labsl_examine_stack",
    "-labsl_exponential_biased",
    "-labsl_failure_signal_handler",
    "-labsl_flags_commandlineflag",
    "-labsl_flags_commandlineflag_internal",
    "-labsl_flags_config",
    "-labsl_flags_internal",
    "-labsl_flags_marshalling",
    "-labsl_flags_parse",
    "-labsl_flags_private_handle_accessor",
    "-labsl_flags_program_name",
    "-labsl_flags_reflection",
    "-labsl_flags_usage",
    "-labsl_flags_usage_internal",
    "-labsl_graphcycles_internal",
    "-labsl_hash",
    "-labsl_hashtablez_sampler",
    "-labsl_int128",
    "-labsl_leak_check",
    "-labsl_log_severity",
    "-labsl_low_level_hash",
    "-labsl_malloc_internal",
    "-labsl_periodic_sampler",
    "-labsl_random_distributions",
    "-labsl_random_internal_platform",
    "-labsl_random_internal_pool_urbg",
    "-labsl_random_internal_randen",
    "-labsl_random_internal_randen_hwaes",
    "-labsl_random_internal_randen_hwaes_impl",
    "-labsl_random_internal_randen_slow",
    "-labsl_random_internal_seed_material",
    "-labsl_random_seed_gen_exception",
    "-labsl_random_seed_sequences",
    "-labsl_raw_hash_set",
    "-labsl_raw_logging_internal",
    "-labsl_scoped_set_env",
    "-labsl_spinlock_wait",
    "-labsl_stacktrace",
    "-labsl_status",
    "-labsl_statusor",
    "-labsl_str_format_internal",
    "-labsl_strerror",
    "-labsl_strings",
    "-labsl_strings_internal",
    "-labsl_symbolize",
    "-labsl_synchronization",
    "-labsl_throw_delegate",
    "-labsl_time",
    "-labsl_time_zone",
]

GRPC_LIBS = [
    "-lgrpc++_reflection",
    "-lgrpc++",
    "-lgrpc",
    "-lupb",
    "-lgpr",
    "-laddress_sorting",
    "-lre2",
    "-lcares",
    "-lssl",
    "-lcrypto",
    "-lz",
]

PROTOBUF_LIBS = [
    "-lprotobuf",
    "-lz",
]

def as_group(libs):
    """Wraps libraries so that their order and their number do not matter."""
    return (
        ["-Wl,--push-state,--as-needed", "-Wl,--start-group"] +
        libs +
        ["-Wl,--end-group", "-Wl,--pop-state"]
    )
