"""For whoever runs jobs: the doctor before the job, diagnosis and bundle after an incident, rehearsals, assistants."""
