//! All options of fio 3 with their effects here: options of jobs, which job files have too, and those of the
//! command.

use crate::options::{
    OptionEffect, OptionRow, OptionTable,
    OptionValues::{Attached, One},
    changes, nothing, refused, taken,
};

/// Options of fio.
pub(crate) const TABLE: OptionTable = OptionTable { program: "fio", rows: ROWS, ends_at_word: false };

/// Options with which fio prints something other than its figure: the line runs without them.
pub const FIO_OUTPUT_OPTIONS: &[&str] = &[
    "output",
    "output-format",
    "minimal",
    "append-terse",
    "terse-version",
    "eta",
    "eta-newline",
    "eta-interval",
    "status-interval",
];

const ROWS: &[OptionRow] = &[
    // Options that cells of ours have.
    taken(
        "name|rw|readwrite|bs|blocksize|bsrange|blocksize_range|bssplit|size|filesize|io_size|io_limit",
        One,
    ),
    taken(
        "numjobs|iodepth|direct|buffered|sync|fsync|fdatasync|end_fsync|fsync_on_close|directory|filename",
        One,
    ),
    taken(
        "ioengine|rwmixread|rwmixwrite|rate|rate_iops|runtime|timeout|offset_increment|kb_base|section|fallocate|nrfiles|nr_files|loops",
        One,
    ),
    taken("time_based|zero_buffers|stonewall|wait_for_previous|norandommap", Attached),
    // Options that change no figure.
    nothing(
        "group_reporting|thread|new_group|exitall|exitall_on_error|minimal|append-terse|readonly",
        Attached,
    ),
    nothing("output|output-format|terse-version|eta|eta-newline|eta-interval|status-interval|max-jobs", One),
    nothing(
        "alloc-size|warnings-fatal|bandwidth-log|aux-path|idle-prof|inflate-log|merge-blktrace-only",
        Attached,
    ),
    nothing(
        "description|randrepeat|allrandrepeat|randseed|random_generator|invalidate|clocksource|exit_what",
        One,
    ),
    nothing(
        "write_bw_log|write_lat_log|write_iops_log|write_hist_log|per_job_logs|bwavgtime|iopsavgtime",
        One,
    ),
    nothing(
        "log_avg_msec|log_hist_msec|log_hist_coarseness|log_entries|log_max_value|log_offset|log_prio",
        One,
    ),
    nothing(
        "log_compression|log_compression_cpus|log_store_compressed|log_unix_epoch|log_alternate_epoch",
        One,
    ),
    nothing(
        "log_alternate_epoch_clock_id|block_error_percentiles|stats|clat_percentiles|lat_percentiles",
        One,
    ),
    nothing(
        "slat_percentiles|percentile_list|significant_figures|disk_util|gtod_reduce|gtod_cpu|disable_lat",
        One,
    ),
    nothing(
        "disable_clat|disable_slat|disable_bw_measurement|disable_bw|unit_base|error_dump|continue_on_error",
        One,
    ),
    nothing(
        "ignore_error|filename_format|unique_filename|opendir|create_serialize|create_fsync|create_on_open",
        One,
    ),
    nothing(
        "allow_file_create|allow_mounted_write|unlink|unlink_each_loop|fadvise_hint|lockmem|unified_rw_reporting",
        One,
    ),
    // Work of fio besides moving data.
    changes(
        "verify|verify_interval|verify_offset|verify_pattern|verify_fatal|verify_dump|verify_async",
        One,
        VERIFY,
    ),
    changes(
        "do_verify|verify_backlog|verify_backlog_batch|experimental_verify|verify_state_load",
        One,
        VERIFY,
    ),
    changes(
        "verify_state_save|trim_percentage|trim_verify_zero|trim_backlog|trim_backlog_batch",
        One,
        VERIFY,
    ),
    changes("verify_only", Attached, VERIFY),
    changes(
        "write_iolog|read_iolog|read_iolog_chunked|replay_no_stall|replay_redirect|replay_scale",
        One,
        REPLAY,
    ),
    changes(
        "replay_align|replay_time_scale|replay_skip|merge_blktrace_file|merge_blktrace_scalars",
        One,
        REPLAY,
    ),
    changes("merge_blktrace_iters", One, REPLAY),
    changes(
        "exec_prerun|exec_postrun|profile|trigger|trigger-file|trigger-timeout|trigger-remote",
        One,
        "it runs something beside",
    ),
    changes(
        "thinktime|thinktime_spin|thinktime_blocks|thinktime_blocks_type|thinktime_iotime",
        One,
        "it pauses between operations",
    ),
    changes(
        "rate_min|ratemin|rate_process|rate_cycle|ratecycle|rate_ignore_thinktime|rate_iops_min",
        One,
        "how it holds its rate",
    ),
    changes(
        "max_latency|latency_target|latency_window|latency_percentile|latency_run",
        One,
        "it changes its depth by latency",
    ),
    changes(
        "steadystate|ss|steadystate_duration|ss_dur|steadystate_ramp_time|ss_ramp",
        One,
        "it ends when its rate is steady",
    ),
    changes("ramp_time", One, "the first part of its time is not counted"),
    changes("startdelay|wait_for|flow|flow_id|flow_sleep", One, "when a job begins and how jobs share"),
    // The ways to issue operations.
    changes(
        "iodepth_batch|iodepth_batch_submit|iodepth_batch_complete_min|iodepth_batch_complete",
        One,
        BATCH,
    ),
    changes("iodepth_batch_complete_max|iodepth_low|serialize_overlap|io_submit_mode", One, BATCH),
    changes("hipri|fixedbufs|registerfiles|sqthread_poll|nonvectored|userspace_reap", Attached, ENGINE),
    changes(
        "uncached|nowait|force_async|cmd_type|sqthread_poll_cpu|cmdprio_percentage|cmdprio_class|cmdprio",
        One,
        ENGINE,
    ),
    changes(
        "cmdprio_bssplit|mem|iomem|hugepage-size|atomic|write_hint|hipri_percentage|rwf|pvsync2",
        One,
        ENGINE,
    ),
    changes(
        "clustername|rbdname|pool|clientname|busy_poll|hostname|port|listen|protocol|nodelay|namenode",
        One,
        ENGINE,
    ),
    changes(
        "chunk_size|volume|brick|http_host|http_user|http_pass|http_mode|http_verbose|https|uri|nfs_url",
        One,
        ENGINE,
    ),
    // The data, and their places in files.
    changes("openfiles|file_service_type", One, "a job goes round several files; here one"),
    changes("offset|fileoffset|offset_align|number_ios|fill_device|fill_fs|file_append", One, PART),
    changes("bs_unaligned|blocksize_unaligned", Attached, PART),
    changes("ba|blockalign", One, PART),
    changes(
        "random_distribution|percentage_random|rw_sequencer",
        One,
        "some blocks come more often than others",
    ),
    changes("zonemode|zonesize|zonecapacity|zonerange|zoneskip|read_beyond_wp|max_open_zones", One, PART),
    changes("job_max_open_zones|ignore_zone_limits|zone_reset_threshold|zone_reset_frequency", One, PART),
    changes("overwrite|pre_read|create_only|lockfile", One, "how its file is made ready"),
    changes("write_barrier|sync_file_range", One, "when data become durable"),
    changes("refill_buffers", Attached, CONTENT),
    changes("scramble_buffers|buffer_pattern|buffer_compress_percentage|buffer_compress_chunk", One, CONTENT),
    changes("dedupe_percentage|dedupe_mode|dedupe_working_set_percentage|dedupe_global", One, CONTENT),
    // The processors and priorities of fio.
    changes("cpumask|cpus_allowed|cpus_allowed_policy|numa_cpu_nodes|numa_mem_policy", One, PLACE),
    changes("nice|prio|prioclass|cgroup|cgroup_weight|ioscheduler|uid|gid", One, PLACE),
    changes("cgroup_nodelete", One, PLACE),
    refused(
        "client|server|daemonize|remote-config",
        Attached,
        "write the line that one machine runs by itself",
    ),
    refused(
        "parse-only|showcmd|help|h|version|v|cmdhelp|enghelp|crctest|cpuclock-test|debug",
        Attached,
        "write a line that measures",
    ),
];

/// Options that name places, or hosts, or begin all jobs. They make no test.
const PLACES: &[&str] = &["name", "directory", "filename", "description", "section", "hostname", "port"];

/// Options that change no figure of ours, and yet make another test of fio.
const TESTS: &[&str] =
    &["invalidate", "thread", "fadvise_hint", "lockmem", "gtod_reduce", "random_generator"];

/// Returns true if jobs that differ in this option are different tests: it names no place, no output and no
/// seed.
pub fn fio_option_makes_test(name: &str) -> bool {
    let changes_nothing = TABLE.effect(name) == Some(OptionEffect::Nothing) && !TESTS.contains(&name);
    !changes_nothing && !PLACES.contains(&name)
}

/// Options whose value is a number of bytes.
const SIZES: &[&str] = &[
    "bs",
    "blocksize",
    "size",
    "filesize",
    "io_size",
    "io_limit",
    "offset",
    "offset_increment",
    "rate",
    "zonesize",
];

/// The value of an option of fio in one spelling: as sizes `4096` and `4K` are `4k`, and `1m` is `1M`. A flag
/// without a value is `1`.
pub fn fio_value(name: &str, value: &str) -> String {
    if value.is_empty() {
        return "1".to_owned();
    }
    if !SIZES.contains(&name) {
        return value.to_owned();
    }
    let digits = value.len() - value.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let unit = value[digits..].to_ascii_lowercase();
    let Ok(count) = value[..digits].parse::<u64>() else { return value.to_owned() };
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == unit);
    let bytes = power.and_then(|power| count.checked_mul(1 << (10 * power)));
    bytes.map_or_else(|| value.to_owned(), shortest)
}

/// A count with the largest unit of which it is a whole number.
fn shortest(count: u64) -> String {
    let units = [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")];
    let unit = units.into_iter().find(|(unit, _)| count > 0 && count.is_multiple_of(*unit));
    unit.map_or_else(|| count.to_string(), |(unit, name)| format!("{}{name}", count / unit))
}

const VERIFY: &str = "it compares its data, which takes time";
const REPLAY: &str = "it repeats recorded operations";
const BATCH: &str = "how many operations it hands over at once";
const ENGINE: &str = "how its engine works";
const PART: &str = "which part of a file it takes, and how often";
const CONTENT: &str = "the content of its data";
const PLACE: &str = "the processors and the priority of its jobs";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_one_spelling() {
        for (value, expected) in [
            ("4096", "4k"),
            ("4K", "4k"),
            ("1m", "1M"),
            ("1048576", "1M"),
            ("1024k", "1M"),
            ("30", "30"),
            ("", "1"),
            ("0", "0"),
            ("4k-64k", "4k-64k"),
            ("randread", "randread"),
            ("5%", "5%"),
            ("99999999999999999g", "99999999999999999g"),
        ] {
            assert_eq!(fio_value("bs", value), expected, "{value}");
        }
        assert_eq!(fio_value("numjobs", "1024"), "1024");
    }

    #[test]
    fn places_outputs_and_seeds_make_no_test() {
        for name in ["directory", "filename", "write_bw_log", "randseed", "group_reporting", "description"] {
            assert!(!fio_option_makes_test(name), "{name}");
        }
        for name in ["rate", "runtime", "buffered", "verify", "invalidate", "an_option_of_a_later_fio"] {
            assert!(fio_option_makes_test(name), "{name}");
        }
    }
}
