"""The recording and alerting rules, promtool's tests of them, and the objectives that they were made of."""

from jaxobs.ops.monitoring import alerting, openslo, shipped_tests, yaml_text
from jaxobs.ops.monitoring.site import Site


def files(site: Site) -> dict[str, str]:
    """Returns the contents by path; no tests for a site that chooses other targets than the declared ones."""
    groups = alerting.groups(site)
    found = {"alerts/jaxobs.rules.yaml": yaml_text.dump({"groups": groups}, what="alerts", owner=True)}
    found["alerts/jaxobs.slos.yaml"] = openslo.text(alerting.wanted_objectives(site), what="alerts")
    if (site.targets(), site.function()) == (Site().targets(), Site().function()):
        for interval in alerting.intervals(site):
            name = "jaxobs.tests" if interval == "1m" else f"jaxobs.tests-{interval}"
            tests = shipped_tests.tests(site, interval)
            found[f"alerts/{name}.yaml"] = yaml_text.dump(tests, what="alerts")
    return found
