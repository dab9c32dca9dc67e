"""For whoever runs jobs: the doctor before the job, the diagnosis after an incident."""
