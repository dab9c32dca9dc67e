// What pint holds the generated rules to. All of its checks are on; these are the ones that want to be told something.

// Never asked, for it runs with --offline: rules are only looked at for duplicates where there is a server.
prometheus "any" {
  uri = "http://localhost:9090"
}

rule {
  match {
    kind = "alerting"
  }

  annotation "summary" {
    value    = "[A-Z][^{]+\\."
    required = true
    severity = "bug"
  }
  annotation "description" {
    value    = "[\\s\\S]*\\{\\{[\\s\\S]+\\}\\}[\\s\\S]*"
    required = true
    severity = "bug"
  }
  annotation "(runbook|dashboard)_url" {
    value    = "https?://.+"
    severity = "bug"
  }
  annotation "runbook_url" {
    required = true
    severity = "bug"
  }
  annotation "dashboard_url" {
    required = true
    severity = "bug"
  }
  label "severity" {
    values   = ["critical", "warning", "info"]
    required = true
    severity = "bug"
  }
  for {
    min      = "1m"
    max      = "6h"
    severity = "bug"
  }
  keep_firing_for {
    max      = "6h"
    severity = "bug"
  }
  name "Jax(obs)?([A-Z]+[a-z0-9]+)+" {
    severity = "bug"
  }
}

rule {
  match {
    kind = "recording"
  }

  name "[a-z_]+:[a-z0-9_]+:[a-z0-9_]+" {
    severity = "bug"
  }
}

rule {
  selector ".+" {
    requiredLabels = ["job"]
    severity       = "bug"
  }
  aggregate ".+" {
    keep     = ["job"]
    severity = "bug"
  }
  reject ".*https?://.*" {
    label_keys      = true
    label_values    = true
    annotation_keys = true
  }
}
