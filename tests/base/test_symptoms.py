"""Links from findings, errors and reports to the page by symptom."""

import re

import pytest
from helpers.paths import ROOT

from jaxobs.base import symptoms
from jaxobs.base.links import page_url
from jaxobs.findings import all_kinds
from jaxobs.recorder import error_texts
from jaxobs.sources.support import programs
from tools.docs_site import slug

HEADINGS = re.findall(r"(?m)^## (.+)$", (ROOT / symptoms.PAGE).read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", sorted(symptoms.SECTIONS))
def test_every_link_leads_to_a_section(kind: str) -> None:
    section = symptoms.SECTIONS[kind]
    assert section in HEADINGS
    assert symptoms.symptom_url(kind) == f"{page_url(symptoms.PAGE)}#{slug(section, '-')}"


def test_every_finding_has_a_section() -> None:
    findings = {each.NAME for each in all_kinds.every()} | {programs.NAME}
    errors = {each.kind for each in error_texts.KINDS}
    assert findings <= set(symptoms.SECTIONS), "say in jaxobs/base/symptoms.json which section explains it"
    assert set(symptoms.SECTIONS) <= findings | errors
    assert symptoms.symptom_url("nowhere") == symptoms.symptom_url() == page_url(symptoms.PAGE)
