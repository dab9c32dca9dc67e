"""Text from outside is shown, and is nothing else."""

import pytest

from jaxobs.ops.agent.texts import code, escaped, fenced, slack

EVIL = (
    "# heading", "- list", "1. list", "`code` ``more``", "[a](javascript:alert(1))", "![x](http://evil/x.png)",
    "<script>", "a | b", "**bold** _it_", "</details>", "http://evil.example", "```\nrm -rf /\n```", "$x$", "~~gone~~",
)  # fmt: skip


@pytest.mark.parametrize("text", EVIL)
def test_markdown_stays_text(text: str) -> None:
    shown = escaped(text)
    assert "\n" not in shown and "<" not in shown and "://" not in shown.replace("&#58;", "")
    for each in "`*_[]|~$":
        assert shown.replace(f"\\{each}", "").count(each) == 0
    assert not shown.startswith(("#", "-", "1."))


@pytest.mark.parametrize("text", [*EVIL, "````", "`", "", "\x00\x1b[31m"])
def test_code_is_not_left(text: str) -> None:
    span = code(text)
    marks = len(span) - len(span.lstrip("`"))
    inner = span[marks:-marks]
    assert (marks and "`" * marks not in inner.replace("`" * (marks - 1), "", 0)) or "`" * marks not in inner
    assert "\n" not in span and "|" not in span
    block = fenced(text).split("\n")
    fence = block[0]
    assert block[-1] == fence and all(fence not in each for each in block[1:-1])


def test_slack_mentions_nobody() -> None:
    shown = slack("<!channel> <@U1> <http://evil|click> *b* _i_ ~s~ `c` @here & more")
    assert not set("<>*_~`@") & set(shown)
