"""Read suites/*.toml and the figures of the published benchmarks next to them; every entry is checked."""

import csv
import tomllib
from collections.abc import Iterable
from dataclasses import fields
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    ValidationError,
)

from harness.machine.inventory import cores
from harness.model import Experiment, Facts, LabError, Origin, Scalar, strings, unknown
from harness.suites.suite import (
    AnswersWanted,
    Comparison,
    CrossingsWanted,
    Picture,
    PublishedFigure,
    Rig,
    Size,
    SizeName,
    Suite,
    Sweep,
    Unasked,
    Versus,
)


def load(folder: Path, name: str) -> Suite:
    """Read a suite by name. Raises LabError naming the nearest suite if the name is unknown."""
    names = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in names:
        raise unknown("suite", name, names) if names else LabError(f"no suites in {folder}")
    path = folder / f"{name}.toml"
    try:
        return _suite(path, _SuiteFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))))
    except ValidationError as error:
        raise LabError(f"{path}: {_first_error(error)}") from None
    except (OSError, ValueError) as error:
        raise LabError(f"{path}: {error}") from None


def _expanded(values: Scalar) -> Scalar:
    """Return `1..cores` as 1, 2, 4 and so on, the number of cores and twice that; `cores` as the number."""
    if values == "cores":
        return [cores()]
    if values != "1..cores":
        return values
    powers = [2**power for power in range(cores().bit_length()) if 2**power < cores()]
    return [*powers, cores(), 2 * cores()]


def _different(values: list[Scalar]) -> list[Scalar]:
    if any(value in values[:place] for place, value in enumerate(values)):
        raise ValueError(f"{values!r} has one value twice; remove one")
    return values


def _numbers_of_rows(parameters: dict[str, list[Scalar]]) -> dict[str, list[Scalar]]:
    if not all(type(value) is int and value > 0 for value in parameters.get("rows", ())):
        raise ValueError(f"rows {parameters['rows']!r}: give whole numbers above 0")
    return parameters


def _differently_named(parts: list[Scalar]) -> list[Scalar]:
    names = [part.name for part in parts]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise ValueError(f'two are named "{twice[0]}"; rename one')
    return parts


def _which_comparison(entries: Scalar) -> str:
    """Return the type of comparison of some entries, by the entry that only this type has."""
    given = entries if isinstance(entries, dict) else {}
    return "sweep" if "parameter" in given else "versus" if "transport" in given else "points"


_Value = StrictStr | StrictInt | StrictFloat
_Values = Annotated[list[_Value], BeforeValidator(_expanded), Field(min_length=1), AfterValidator(_different)]
_Parameters = Annotated[dict[str, _Values], AfterValidator(_numbers_of_rows)]


_Comparison = Annotated[
    Annotated[Comparison, Tag("points")] | Annotated[Sweep, Tag("sweep")] | Annotated[Versus, Tag("versus")],
    Discriminator(_which_comparison),
]


class _Entries(BaseModel):
    """Entries of a suite file; an unknown entry is an error."""

    model_config = ConfigDict(extra="forbid")

    @property
    def given(self) -> Facts:
        """The entries that the file sets, which take precedence over the enclosing level's."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class _SharedEntries(_Entries):
    """Entries of an experiment. A size or `defaults` may set them for all its experiments."""

    select: str = ""
    dataset: str = ""
    origins: list[Origin] = []


class _ExperimentEntries(_SharedEntries):
    name: str = ""
    parameters: _Parameters = {}
    unasked: Unasked = "everything"


class _SizeEntries(_SharedEntries):
    passes: int = Field(0, gt=0, strict=True)
    time_limit_seconds: float = Field(0, gt=0, allow_inf_nan=False, strict=True)
    experiments: Annotated[list[_ExperimentEntries], Field(min_length=1), AfterValidator(_differently_named)] = []


class _PublishedEntries(_Entries):
    title: str
    author: str
    date: str | date
    site: str = ""
    figures: str
    conditions: str


class _SuiteFile(_Entries):
    name: str
    title: str
    rig: Rig
    traces: bool = False
    published: _PublishedEntries | None = None
    transports: dict[str, str] = {}  # named globs: {name} in an entry `select`
    defaults: _SizeEntries
    sizes: Annotated[dict[SizeName, _SizeEntries], Field(min_length=1)]
    pictures: Annotated[list[Picture], AfterValidator(_differently_named)] = []
    comparisons: list[_Comparison] = []
    answers: AnswersWanted | None = None
    contenders_of: str = ""  # the suite whose contenders these are, if another one's
    also_contenders: str = ""  # globs of more contenders
    crossings: CrossingsWanted | None = None


def _suite(path: Path, file: _SuiteFile) -> Suite:
    if file.name != path.stem:
        raise ValueError(f'name "{file.name}": give the name of the file, "{path.stem}"')
    _require_experiments(file)
    published = file.published
    also = [glob.strip() for glob in _globs("also_contenders", file.also_contenders, file).split(",")]
    lost = left_out(path.parent, file.contenders_of or file.name)
    return Suite(
        name=file.name,
        title=file.title,
        rig=file.rig,
        citation=f'{published.author}, "{published.title}", {published.date}' if published else "",
        conditions=published.conditions if published else "",
        sizes={name: _size(name, file) for name in get_args(SizeName) if name in file.sizes},
        published=_figures(path.parent / published.figures) if published else (),
        pictures=tuple(file.pictures),
        comparisons=tuple(file.comparisons),
        traces=file.traces,
        answers=file.answers,
        crossings=file.crossings,
        left_out=frozenset(name for name in lost if not any(fnmatchcase(name, glob) for glob in also)),
    )


def left_out_path(folder: Path, name: str) -> Path:
    """Return the file that lists the transports of a suite that are not contenders."""
    return folder / "left_out" / f"{name}.csv"


def left_out(folder: Path, name: str) -> frozenset[str]:
    """Return the ids of the transports that are not contenders; empty for a suite without such a file."""
    path = left_out_path(folder, name)
    if not path.is_file():
        return frozenset()
    with path.open(newline="", encoding="utf-8") as file:
        return frozenset(line["transport"] for line in csv.DictReader(file))


def _require_experiments(file: _SuiteFile) -> None:
    """Raise ValueError if the entries `answers` or `crossings` name an experiment that no size has."""
    known = sorted({part.name for size in file.sizes.values() for part in size.experiments})
    named = []
    if file.answers:
        named += [("answers", file.answers.experiment), ("answers", file.answers.existing or file.answers.experiment)]
    if file.crossings:
        named += [("crossings", name) for name in (*file.crossings.experiments, *file.crossings.networks)]
    for entry, name in named:
        if name not in known:
            raise ValueError(f"{entry}: {unknown('experiment', name, known)}")


def _size(name: SizeName, file: _SuiteFile) -> Size:
    entries = file.defaults.given | file.sizes[name].given
    parts = entries.pop("experiments", [])
    _require(f"size {name}", entries | {"experiments": parts or None}, "passes", "time_limit_seconds", "experiments")
    above = {entry: value for entry, value in entries.items() if entry in _SharedEntries.model_fields}
    experiments = []
    for part in parts:
        found = above | part.given
        found.pop("unasked", None)
        _require(f"an experiment of size {name}", found, "name", "select", "dataset", "parameters")
        found["select"] = _globs("select", found["select"], file)
        experiments.append(Experiment(**found))
    unasked: dict[str, Unasked] = {part.name: part.unasked for part in parts if "unasked" in part.given}
    return Size(entries["passes"], entries["time_limit_seconds"], tuple(experiments), unasked)


def _globs(entry: str, said: str, file: _SuiteFile) -> str:
    """Return globs with the named ones of the file put in."""
    try:
        return said.format_map(file.transports)
    except (KeyError, ValueError, IndexError):
        known = ", ".join(f"{{{one}}}" for one in file.transports) or "none"
        raise ValueError(f"{entry} {said!r}: give globs, or names of transports ({known})") from None


def _require(what: str, entries: Facts, *names: str) -> None:
    if missing := [name for name in names if not entries.get(name)]:
        raise ValueError(f'{what}: the entry "{missing[0]}" is missing')


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_TAGS = ("points", "sweep", "versus", "str", "int", "float", "[key]")  # pydantic adds these to a location
_WORDS = {"model_type": "a table of entries", "dataclass_type": "a table of entries", "dict_type": "a table of entries"}
_WORDS |= {"list_type": "a list", "too_short": "a list of at least one"}


def _first_error(error: ValidationError) -> str:
    """Return the error of a suite file in one line: the place, the problem, the choices."""
    # An unknown entry is usually the reason why another one is missing.
    first = min(error.errors(include_url=False), key=lambda one: one["type"] not in _UNKNOWN)
    place = ".".join(str(part) for part in first["loc"] if part not in _TAGS)
    if first["type"] in _UNKNOWN:
        *above, entry = first["loc"]
        known = _known_at(above)
        return f"{place}: {unknown('entry', str(entry), known)}"
    if first["type"] == "missing":
        return f"{place}: this entry is missing"
    if first["type"] == "value_error":
        return f"{place}: {first['msg'].removeprefix('Value error, ')}"
    said = _WORDS.get(first["type"]) or first["msg"].removeprefix("Input should be ")
    return f"{place}: {first['input']!r:.80} must be {said}"


def _known_at(above: Iterable[int | str]) -> list[str]:
    """Return the names of the entries that are allowed at a location of a suite file."""
    models: Facts = {
        "experiments": _ExperimentEntries,
        "sizes": _SizeEntries,
        "defaults": _SizeEntries,
        "published": _PublishedEntries,
        "pictures": Picture,
        "points": Comparison,
        "sweep": Sweep,
        "versus": Versus,
        "answers": AnswersWanted,
    }
    found = [models[part] for part in above if isinstance(part, str) and part in models]
    model = found[-1] if found else _SuiteFile
    return list(getattr(model, "model_fields", None) or getattr(model, "__pydantic_fields__"))  # noqa: B009


def _figures(path: Path) -> tuple[PublishedFigure, ...]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = {field.name for field in fields(PublishedFigure)}
    try:
        found = tuple(_figure({name: text for name, text in row.items() if name in names}) for row in rows)
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"{path}: every row needs a description and numbers: {error}") from None
    if not found:
        raise LabError(f"{path}: no figures of a published benchmark in it")
    return found


def _figure(line: dict[str, str]) -> PublishedFigure:
    numbers: Facts = {name: int(text) for name, text in line.items() if name in ("rows", "bytes") and text}
    figures: Facts = {name: float(text) for name, text in line.items() if "_" in name and text}
    if not figures:
        raise ValueError(f"{line['description']!r} has no figure, such as mean_seconds")
    named: Facts = {name: line.get(name) or None for name in ("experiment", "detail")}
    parameters = strings(line.get("parameters") or "")
    return PublishedFigure(line["description"], **named, parameters=parameters, **numbers, **figures)
