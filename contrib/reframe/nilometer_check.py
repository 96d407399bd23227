"""A ReFrame check (version 4) that measures a file system with Nilometer and holds it against a baseline.

    reframe -c nilometer_check.py -r -S target=/scratch/$USER -S baseline=/site/before.sqlite

The figures of the record become ReFrame's performance variables. The check fails when a cell got worse than the baseline by more
than its noise and a threshold, or when no figure could be measured. See README.md beside this file.
"""
import json
import os
import re
import shlex

import reframe as rfm
import reframe.utility.sanity as sn

RECORD = "record.sqlite"
REPORT = "report.json"
COMPARISON = "comparison.json"


@rfm.simple_test
class nilometer_check(rfm.RunOnlyRegressionTest):
    """One campaign, its report, and what `nilometer compare --against` says of it."""

    # The program, if it is not on the PATH of the node.
    program = variable(str, value="nilometer")
    # The directory that is measured.
    target = variable(str)
    # A plan by its name, or the absolute path of a file.
    plan = variable(str, value="quick")
    # The absolute path of a record to be held against; none for figures alone.
    baseline = variable(str, value="")
    # The loss that counts, in percent; the plan's margin if it is empty.
    threshold = variable(str, value="")
    # More options of `nilometer evaluate`.
    options = variable(str, value="")

    descr = "file system by nilometer"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    time_limit = "2h"

    @run_before("run")
    def write_commands(self):
        program = shlex.quote(self.program)
        self.executable = program
        self.executable_opts = [
            "evaluate", shlex.quote(self.target), "--plan", shlex.quote(self.plan), "--record", RECORD,
            *shlex.split(self.options),
        ]
        self.postrun_cmds = [f"{program} report {RECORD} --format json > {REPORT}"]
        if self.baseline:
            threshold = f"--threshold {shlex.quote(self.threshold)}" if self.threshold else ""
            against = f"--against {shlex.quote(self.baseline)} {threshold}"
            # It ends with 3 when something got worse: what did is in the file.
            self.postrun_cmds.append(f"{program} compare {RECORD} {against} --json > {COMPARISON}")

    def read(self, name):
        """A document of the stage directory; nothing if it was not written."""
        try:
            with open(os.path.join(self.stagedir, name), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    @sanity_function
    def nothing_is_worse(self):
        report = self.read(REPORT)
        figures = report["figures"] if report else []
        valid = any(figure["valid"] > 0 for figure in figures)
        checks = [sn.assert_true(valid, msg="nilometer measured nothing: see the job's error output")]
        if self.baseline:
            compared = self.read(COMPARISON)
            against = compared["against"] if compared else None
            checks.append(sn.assert_true(against and against["compared"], msg="nothing could be compared with the baseline"))
            worse = "; ".join(f"{one['what']}: {one['words']}" for one in against["worse"]) if against else ""
            checks.append(sn.assert_eq(worse, "", msg=f"worse than the baseline: {worse}"))
        return sn.all(checks)

    @run_before("performance")
    def name_figures(self):
        """A variable for each phase of each cell: the mean over its repeats."""
        report = self.read(REPORT)
        for figure in report["figures"] if report else []:
            rate, unit, factor = figure["bytes_per_second"], "MB/s", 1e-6
            if rate is None:
                rate, unit, factor = figure["operations_per_second"], "op/s", 1.0
            if rate is None:
                continue
            words = f"{figure['stage']} {figure['cell']} {figure['phase']}"
            name = re.sub(r"\W+", "_", words).strip("_")
            self.perf_variables[name] = sn.make_performance_function(sn.defer(rate["mean"] * factor), unit)
