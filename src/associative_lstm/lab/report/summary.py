"""What came out: in three sentences, as counts, and claim by claim; ``method.md`` has how it was measured."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from associative_lstm.lab.experiments.claim import BEFORE, FAST, FAST_BEFORE, Claim, Reading, Verdict
from associative_lstm.lab.report.sections import Section


def _all(verdict: str, *keys: str) -> dict[str, str]:
    return {f"claim-{key}": verdict for key in keys}


SENTENCES: tuple[tuple[Mapping[str, str], str], ...] = (
    (
        _all("holds", "fig1-1", *(f"fig2-{k}" for k in "1234"), "3a", "4a", *(f"5{k}" for k in "bde"))
        | _all("holds", *(f"7{k}" for k in "abde"))
        | _all("undecided", "5d-fast"),
        "What holds: the memory's noise is what the paper predicts; on XML and variable assignment, where things are "
        "looked up all the time, several copies learn far better than LSTMs of the same size or of 512 units, in the "
        "runs made; and on arithmetic, as the paper trained, 3 heads with several copies solve the task within "
        "250,000 minibatches, and one copy with one head does well after 300,000.",
    ),
    (
        _all("fails", "1d", "1e", "4d", "5f", "6d")
        | _all("holds", "7g")
        | _all("undecided", "5a", "6b", "6e", "6g", "6h", "10a", "10b"),
        "What does not: on copy one copy is far behind permutation and unitary RNN, and several copies learn far "
        "sooner than one; on arithmetic several copies with one head do well in the end, too; 3 heads with W_hu and "
        "minibatches of 1 lose assignment again or hardly learn it, and an LSTM of 512 units (one seed so far) does "
        "not solve it; and open, most for want of longer runs, are Wikipedia, how well the NTM does, and what else "
        "is undecided in the table below.",
    ),
    (
        _all("holds", "6d-fast", *(f"9{letter}" for letter in "klmno"))
        | _all("fails", "1d-fast", "1e-fast", *(f"9{letter}" for letter in "acdefg")),
        "Why: in part because the paper tells neither how its networks start nor at which rates they learn, and "
        "clips no gradient: from a start and by a recipe of ours, with the same equations, 3 heads do well on "
        "assignment with W_hu and minibatches of 1, and 4 copies solve copy in about a tenth of the minibatches (a "
        "quarter in long runs, which need a lower rate); but what fails on copy fails by it, too, and an LSTM of the "
        "same size, trained alike, stays behind 4 copies on every task.",
    ),
)
"""Each with the verdicts that it rests on, those by the fast recipe at ``-fast``: it is said only while they are."""


def sentences(claims: Mapping[str, Claim]) -> list[str]:
    """What can be said of the claims, which are given by the names of their anchors."""
    verdicts = {name: claim.verdict for name, claim in claims.items()}
    for name, claim in claims.items():
        if again := claim.read(FAST):
            verdicts[f"{name}-fast"] = again.verdict
    return [text for rests_on, text in SENTENCES if rests_on.items() <= verdicts.items()]


def counts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many of the verdicts are that it holds, fails, is undecided."""
    found = list(verdicts)
    return {verdict: found.count(verdict) for verdict in ("holds", "fails", "undecided")}


HYPOTHESES = ("11b", "11c", "11d")
"""Claims in a section of ours that the paper makes: as a hypothesis, of queues that hold the names of tags."""


def _in_words(verdicts: Iterable[Verdict]) -> str:
    numbers = counts(verdicts)
    undecided = "1 is" if numbers["undecided"] == 1 else f"{numbers['undecided']} are"
    return f"{numbers['holds']} hold, {numbers['fails']} fail and {undecided} undecided"


def waits(claim: Claim | Reading) -> bool:
    """Whether it is undecided for want of runs."""
    return claim.verdict == "undecided" and bool(claim.lacks or "not_yet_run" in claim.numbers)


def counts_in_words(sections: Sequence[Section]) -> str:
    """The paper's claims, also by the fast recipe, and ours, counted in a sentence each."""
    claims: dict[bool, list[Claim]] = {False: [], True: []}
    for section in sections:
        for claim in section.claims.values():
            claims[section.ours and claim.key not in HYPOTHESES].append(claim)
    paper, our_own = claims[False], claims[True]
    lines = [f"Of the paper's {len(paper)} claims {_in_words(c.verdict for c in paper)}."]
    if learning := [c for c in paper if c.read(FAST)]:
        lacking = sum(c.verdict == "holds" and bool(c.lacks) for c in learning)
        waiting = sum(map(waits, learning))
        notes = [f"{waiting} of these for want of runs"] if waiting else []
        notes += [f"of those that hold, {lacking} lack planned runs"] if lacking else []
        told = f" ({'; '.join(notes)})" if notes else ""
        lines.append(
            f"{len(learning)} of them are about learning: {_in_words(c.verdict for c in learning)}{told}."
        )
        again = [reading for c in learning if (reading := c.read(FAST))]
        run = [each.verdict for each in again if each.runs and "not_yet_run" not in each.numbers]
        short = sum(each.short for each in again if each.runs and "not_yet_run" not in each.numbers)
        lines.append(
            f"By the fast recipe {len(run)} of the {len(learning)} are judged so far"
            f"{f', {short} of them in short runs' if short else ''}: {_in_words(run)}."
        )
    lines.append(f"Of our own {len(our_own)} claims {_in_words(c.verdict for c in our_own)}.")
    return " ".join(lines)


_AGAINST_LSTM = [f"claim-{key}" for key in ("1b", "1f", "3b", "3c", "4b", "4c", *(f"7{x}" for x in "abcdef"))]
"""The claims that the Associative LSTM is ahead of an LSTM."""

Named = list[tuple[str, Claim]]
"""Claims with the names of their anchors."""


def by_the_fast_recipe(claims: Mapping[str, Claim]) -> list[tuple[str, Named]]:
    """What the second verdicts change, in words, and which claims: also where there are none."""
    again = {name: reading for name, claim in claims.items() if (reading := claim.read(FAST))}

    def turned(first: str, second: str) -> Named:
        both = {name: (claims[name].verdict, reading.verdict) for name, reading in again.items()}
        return [(name, claims[name]) for name, verdicts in both.items() if verdicts == (first, second)]

    def level() -> Named:
        told = [(name, claims[name]) for name in _AGAINST_LSTM if name in claims]
        others = [
            (name, c, [each for each in c.readings if each.name in (BEFORE, FAST_BEFORE)]) for name, c in told
        ]
        return [
            (name, c)
            for name, c, readings in others
            if any(
                each.runs and "not_yet_run" not in each.numbers and each.verdict != "holds"
                for each in readings
            )
        ]

    def lstm(verdict: str) -> Named:
        told = [name for name in _AGAINST_LSTM if name in again and "not_yet_run" not in again[name].numbers]
        told = [name for name in told if verdict != "holds" or name not in dict(level())]
        return [(name, claims[name]) for name in told if again[name].verdict == verdict]

    def otherwise_before() -> Named:
        before = {name: reading for name, claim in claims.items() if (reading := claim.read(FAST_BEFORE))}
        opposite = {"holds", "fails"}
        return [(n, claims[n]) for n, r in before.items() if {r.verdict, again[n].verdict} == opposite]

    unsure = [each for each in turned("holds", "undecided") if "not_yet_run" not in again[each[0]].numbers]
    return [
        ("What failed as the paper trained, and holds by the fast recipe", turned("fails", "holds")),
        ("What was undecided, and holds by it", turned("undecided", "holds")),
        (
            "What held or was undecided, and fails by it",
            turned("holds", "fails") + turned("undecided", "fails"),
        ),
        (
            "What held, and is undecided by it",
            [(name, c) for name, c in unsure if again[name].runs],
        ),
        ("Where by it an earlier criterion says the opposite", otherwise_before()),
        ("Where an LSTM that is trained by the same recipe catches up", lstm("fails")),
        ("Where neither is clearly ahead in the runs made", lstm("undecided")),
        (
            "Where by the criterion before that of now, by either recipe, the LSTM is not clearly behind",
            level(),
        ),
        ("Where the LSTM stays behind", lstm("holds")),
    ]


def changed(claims: Mapping[str, Claim]) -> Named:
    """The claims whose criterion was changed after results were seen."""
    return [(name, claim) for name, claim in claims.items() if claim.read(BEFORE)]


def as_markdown(sections: Sequence[Section]) -> str:
    """Every claim with its verdict and its numbers, for a folder beside those of the experiments."""
    claims = {name: claim for section in sections for name, claim in section.claims.items()}
    lines = [
        "# What was reproduced",
        "",
        *(line for sentence in sentences(claims) for line in (sentence, "")),
        f"**{counts_in_words(sections)}** Each is below; click one for its criterion and what was measured.",
        "",
        "Every claim about learning is to be judged twice, for every network alike: as the paper trained (Adam, "
        "unclipped; of the start, of which the paper tells nothing, Glorot's is the plainest reading), and by the "
        "fast recipe.",
        "",
    ]
    for words, named in by_the_fast_recipe(claims):
        lines.append(f"- {words}: {_links(named) or 'none so far'}.")
    lines += ["", *_overview(sections)]
    lines += [
        "",
        "This page is made by `alstm report --out results/README.md` from the logs of the runs and the results in "
        "the folders beside it; `alstm report` makes a page with every curve.",
        "",
    ]
    for section in sections:
        if not section.claims:
            continue
        again = " (`--recipe fast` for the second verdicts)" if section.recipes else ""
        lines += [f"## {section.title}", "", f"[{section.id}]({section.id}): `{section.command}`{again}", ""]
        for name, claim in section.claims.items():
            lines += _as_item(name, claim)
        lines += [""]
    lines += _missing(claims, [what for section in sections for what in section.unclaimed])
    method = (files("associative_lstm.lab.report") / "method.md").read_text(encoding="utf-8")
    table = ["| claim | before | now | the criterion before |", "| --- | --- | --- | --- |"]
    for name, claim in changed(claims):
        before = claim.read(BEFORE)
        assert before is not None
        sentence = f"[{claim.sentence}](#{name})"
        table.append(f"| {sentence} | {before.verdict} | {claim.verdict} | {before.criterion} |")
    return "\n".join([*lines, "## How it was measured", "", method, CHANGED, "", *table, ""])


def _overview(sections: Sequence[Section]) -> list[str]:
    """A row for every figure and table of the paper: which of its claims hold, fail and are undecided."""
    rows = ["| | holds | fails | undecided |", "| --- | --- | --- | --- |"]
    for section in sections:
        if section.claims and not section.ours:
            by = {
                verdict: [n for n, c in section.claims.items() if c.verdict == verdict]
                for verdict in counts(())
            }
            rows.append(f"| {section.title} | {' | '.join(_keys(names) for names in by.values())} |")
    return rows


def _links(named: Named) -> str:
    """A few claims by their sentences, many by their keys."""
    if len(named) > _FEW:
        return _keys(name for name, _ in named)
    return "; ".join(f"[{claim.sentence.removesuffix('.')}](#{name})" for name, claim in named)


_FEW = 2


def _keys(names: Iterable[str]) -> str:
    return ", ".join(f"[{name.removeprefix('claim-')}](#{name})" for name in names)


def _missing(claims: Mapping[str, Claim], unclaimed: Iterable[str] = ()) -> list[str]:
    """The runs that are planned and were not made, each with the claims that would rest on it, if there are any."""
    waiting: dict[str, list[str]] = {}
    for name, claim in claims.items():
        fast = claim.read(FAST)
        judged: list[Claim | Reading] = [claim, *([fast] if fast else [])]
        for each in judged:
            absent = str(each.numbers.get("not_yet_run", "")).split(", ") if fast else []
            for what in (*each.lacks, *(f"{run}: none yet" for run in absent if run)):
                waiting.setdefault(what, []).append(name)
    for what in unclaimed:
        waiting.setdefault(what, [])
    if not waiting:
        return []
    rows = [
        f"- {what} ({_keys(dict.fromkeys(names)) or 'no claim rests on it'})"
        for what, names in sorted(waiting.items())
    ]
    return ["## Runs that are planned and missing", "", MISSING, "", *rows, ""]


MISSING = "Not made for want of time. By task and network, with the claims that would rest on them:"


CHANGED = (
    "Criteria that were changed after results had been seen and can be judged both ways from the logs, with both "
    "verdicts, by the runs of now (whose length and rate, and W_hu in figures 11 and 12, were changed, too). Of what "
    "is told above and cannot be, four changed a verdict: on Table 3's counts (undecided before), 9a and 9t (both "
    "held), 6e by the fast recipe (failed). The criterion of 12o tells of its change itself."
)


def _verdict(of: Claim | Reading) -> str:
    return f"**{of.verdict}**{', runs missing' if waits(of) else ''}"


def _as_item(name: str, claim: Claim) -> list[str]:
    fast = claim.read(FAST)
    second = f" (by the fast recipe: {_verdict(fast)})" if fast else ""
    told = [f"Criterion: {claim.criterion}.", f"Measured: {claim.measured}."]
    if claim.lacks:
        told.append(f"Stands on the runs there are: {'; '.join(claim.lacks)}.")
    for reading in claim.readings:
        if reading.numbers or reading.name != FAST:
            words = f"{reading.name[0].upper()}{reading.name[1:]}{', in short runs' * reading.short}"
            verdict = "" if reading.name == FAST else f"**{reading.verdict}**"
            if reading.criterion and reading.name == BEFORE:
                verdict += f" ({reading.criterion})"
            same = reading.name != FAST and reading.numbers == claim.numbers
            again = "" if same else reading.measured
            alone = [lack for lack in reading.lacks if lack not in claim.lacks]
            lacks = f"stands on the runs there are: {'; '.join(alone)}" if alone else ""
            told.append(f"{words}: {'; '.join(filter(None, (verdict, again, lacks)))}.")
    # the anchor goes first: an item that began with a block of HTML would not be read as Markdown
    key = name.removeprefix("claim-")
    summary = f"<summary>{key} {_verdict(claim)}{second}: {claim.sentence}</summary>"
    return [f'- <a id="{name}"></a><details>{summary}', "  " + "\n  <br>".join(told) + "</details>"]
