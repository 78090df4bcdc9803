"""Flows and broken rules as SARIF 2.1.0, for services that show them beside the code."""

from __future__ import annotations

from typing import Any

import msgspec

from cq.model.answer import Answer, Finding, RiskDetails, ViolationDetails
from cq.model.location import Location

MAX_RESULTS = 25_000  # what services take of one run
MAX_STEPS = 10_000
MAX_TAGS = 20
_Shown = RiskDetails | ViolationDetails
_LEVELS = {
    "warning": "warning",
    "info": "note",
    "critical": "error",
    "high": "error",
    "error": "error",
    "medium": "warning",
    "low": "note",
}
_SCORES = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "3.0"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(answer: Answer) -> str:
    """One run with every flow or broken rule of the answer, suppressed ones marked as such."""
    found = [
        (finding, finding.details)
        for section in answer.sections
        for finding in section.findings
        if isinstance(finding.details, _Shown)
    ][:MAX_RESULTS]
    rules: dict[str, dict[str, Any]] = {}
    for _, details in found:
        rules.setdefault(details.rule, _describe_rule(details))
    numbers = {name: number for number, name in enumerate(rules)}
    weaknesses = sorted({details.cwe for _, details in found if isinstance(details, RiskDetails)})
    run = {
        "tool": {
            "driver": {
                "name": "cq",
                "version": answer.run.version or "0",
                "informationUri": "https://pypi.org/project/cq-code/",
                "rules": list(rules.values()),
                "supportedTaxonomies": [{"name": "CWE", "index": 0}],
            }
        },
        "taxonomies": [
            {
                "name": "CWE",
                "organization": "MITRE",
                "shortDescription": {"text": "Common Weakness Enumeration"},
                "taxa": [{"id": str(number)} for number in weaknesses],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_describe_result(finding, details, numbers) for finding, details in found],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.encode(log).decode() + "\n"


def _describe_rule(details: _Shown) -> dict[str, Any]:
    if isinstance(details, ViolationDetails):
        return {
            "id": details.rule,
            "shortDescription": {"text": f"{details.rule_kind}: {details.rule}"},
            "help": {"text": details.reason or details.rule},
            "defaultConfiguration": {"level": _LEVELS[details.severity]},
        }
    tags = ["security", f"external/cwe/cwe-{details.cwe:03}", details.risk]
    rule = {
        "id": details.rule,
        "shortDescription": {"text": f"{details.risk}: {details.rule}"},
        "defaultConfiguration": {"level": _LEVELS[details.severity]},
        "properties": {"tags": tags[:MAX_TAGS], "security-severity": _SCORES[details.severity]},
        "relationships": [
            {"target": {"id": str(details.cwe), "toolComponent": {"name": "CWE"}}, "kinds": ["superset"]}
        ],
    }
    if details.fix:
        rule["help"] = {"text": details.fix}
    return rule


def _describe_result(finding: Finding, details: _Shown, numbers: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": details.rule,
        "ruleIndex": numbers[details.rule],
        "level": _LEVELS[details.severity],
        "message": {"text": finding.message},
        "partialFingerprints": {"cq/v1": details.fingerprint},
        "baselineState": "new" if details.is_new else "unchanged",
        "properties": {"confidence": finding.confidence},
    }
    if finding.location is not None:
        result["locations"] = [{"physicalLocation": _locate(finding.location)}]
    if len(details.witness) > 1:
        steps = [
            {"location": {"physicalLocation": _locate(step.location), "message": {"text": step.says}}}
            for step in details.witness[:MAX_STEPS]
        ]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if isinstance(details, RiskDetails) and details.suppressed:
        result["suppressions"] = [{"kind": "inSource", "justification": details.suppressed}]
    return result


def _locate(location: Location) -> dict[str, Any]:
    region = {
        "startLine": location.start_line,
        "startColumn": location.start_col,
        "endLine": location.end_line,
        "endColumn": location.end_col,
    }
    return {"artifactLocation": {"uri": _quote(location.path), "uriBaseId": "%SRCROOT%"}, "region": region}


def _quote(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
