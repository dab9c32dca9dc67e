"""The parts of the OpenTelemetry exporter. OpenTelemetry is imported when the exporter is opened, and not before."""
