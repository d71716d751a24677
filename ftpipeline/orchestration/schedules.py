"""The weekly schedule: the window comes from the partition key, never from the tick's clock."""

from datetime import date

import dagster as dg

from ftpipeline.pipeline import Pipeline
from ftpipeline.weeks import iso_name


def weekly_schedule(pipeline: Pipeline, job_name: str) -> dg.ScheduleDefinition:
    """Return the schedule that retrains the week that just ended, stopped until a person starts it."""

    @dg.schedule(
        job_name=job_name,
        name=f"{pipeline.name}_weekly",
        cron_schedule=pipeline.file.schedule.cron,
        execution_timezone=pipeline.file.schedule.timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"Retrains {pipeline.name} on the week that just ended; one run a week.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        week = pipeline.file.week.calendar.last_completed(context.scheduled_execution_time)
        if week < date.fromisoformat(pipeline.file.week.first):
            return dg.SkipReason(f"the first week of {pipeline.name} starts on {pipeline.file.week.first}")
        key = week.isoformat()
        # A run key is remembered for ever: a second tick for the same week starts nothing.
        return dg.RunRequest(run_key=key, partition_key=key, tags={"ftpipeline/week": iso_name(week)})

    return schedule
