"""The weekly schedule: the window comes from the partition key, never from the tick's clock."""

from datetime import date

import dagster as dg

from ftpipeline.pipeline import Pipeline
from ftpipeline.weeks import iso_name

WEEK_TAG = "ftpipeline/week"
_SCHEDULE_TAG = "dagster/schedule_name"


def weekly_schedule(pipeline: Pipeline, job_name: str) -> dg.ScheduleDefinition:
    """Return the schedule that retrains the week that just ended, stopped until a person starts it."""
    name = f"{pipeline.name}_weekly"

    @dg.schedule(
        job_name=job_name,
        name=name,
        cron_schedule=pipeline.file.schedule.cron,
        execution_timezone=pipeline.file.schedule.timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"Retrains {pipeline.name} on the week that just ended; one run a week.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        week = pipeline.file.week.calendar.last_completed(context.scheduled_execution_time)
        if week < date.fromisoformat(pipeline.file.week.first):
            return dg.SkipReason(f"the first week of {pipeline.name} starts on {pipeline.file.week.first}")
        # Dagster tells the runs of one tick apart by their keys; what another tick started it does not look for.
        started = context.instance.get_runs(
            dg.RunsFilter(job_name=job_name, tags={_SCHEDULE_TAG: name, WEEK_TAG: iso_name(week)}), limit=1
        )
        if started:
            return dg.SkipReason(f"week {iso_name(week)} was started before, as run {started[0].run_id}")
        key = week.isoformat()
        return dg.RunRequest(run_key=key, partition_key=key, tags={WEEK_TAG: iso_name(week)})

    return schedule
